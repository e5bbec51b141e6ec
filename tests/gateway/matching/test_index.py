"""The index of subscriptions gives what asking each of them would give, and asks few."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.matching.records import record
from relaycast_gateway.matching.index import SubscriptionIndex
from relaycast_gateway.record import EventRecord

NAMESPACES = ("a", "a.b", "b")


def always(_: EventRecord) -> bool:
    return True


def every(modulus: int) -> Callable[[EventRecord], bool]:
    return lambda one: one.seq % modulus == 0


def test_subscriptions_are_found_in_the_order_in_which_they_were_added() -> None:
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("all", always)
    index.add("b", always, namespaces=["b", "b"])
    index.add("ab", always, namespaces={"a", "b"})
    index.add("none", lambda one: False)
    index.add("a", lambda one: one.seq > 1, namespaces=("a",))
    assert list(index.selecting(record(1, "a"))) == ["all", "ab"]
    assert list(index.selecting(record(2, "a"))) == ["all", "ab", "a"]
    assert list(index.selecting(record(2, "b"))) == ["all", "b", "ab"]
    assert list(index.selecting(record(2, "a.b"))) == ["all"]
    index.add("all", always, namespaces=["c"])  # replaced, and last
    index.remove("ab")
    index.remove("unknown")
    assert list(index.selecting(record(2, "a"))) == ["a"]
    assert list(index.selecting(record(2, "c"))) == ["all"]
    assert len(index) == 4


@pytest.mark.matrix("CE-11")
def test_a_subscription_is_asked_about_its_namespaces_only() -> None:
    index: SubscriptionIndex[int] = SubscriptionIndex()
    asked: list[int] = []

    def noting(key: int) -> Callable[[EventRecord], bool]:
        def note(_: EventRecord) -> bool:
            asked.append(key)
            return True

        return note

    for key in range(10_000):
        index.add(key, noting(key), namespaces=[f"ns{key % 1_000}"])
    assert list(index.selecting(record(1, "ns7"))) == asked == list(range(7, 10_000, 1_000))


changes = st.tuples(
    st.integers(0, 5), st.none() | st.sets(st.sampled_from(NAMESPACES)), st.integers(1, 4), st.booleans()
)


@given(st.lists(changes, max_size=20))
def test_the_index_agrees_with_asking_everybody(
    steps: list[tuple[int, set[str] | None, int, bool]],
) -> None:
    index: SubscriptionIndex[int] = SubscriptionIndex()
    model: dict[int, tuple[set[str] | None, int]] = {}
    for key, namespaces, modulus, removes in steps:
        model.pop(key, None)
        if removes:
            index.remove(key)
        else:
            model[key] = namespaces, modulus
            index.add(key, every(modulus), namespaces=namespaces)
        for seq, namespace in enumerate(NAMESPACES, 1):
            assert list(index.selecting(record(seq, namespace))) == [
                key
                for key, (wanted, modulus) in model.items()
                if (wanted is None or namespace in wanted) and seq % modulus == 0
            ]
    assert len(index) == len(model)
