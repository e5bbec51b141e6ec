"""Statistics: each by the names of the text, and equal to a count of our own."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.registry_office import (
    ANN,
    BOB,
    CLEO,
    DAN,
    FIRST,
    PUBLISHERS,
    SECOND,
    RegistryOffice,
    pairs,
    principals,
    raw,
    stats,
)
from relaycast_gateway.icrc.registry import IcrcSubscription
from relaycast_gateway.icrc.store import IcrcStore
from searches import examples

NAMES, CALLERS = ["a.x", "a.y"], [ANN, BOB, CLEO]

things = st.one_of(
    st.tuples(
        st.just("published"), st.sampled_from([ANN, BOB]), st.sampled_from(NAMES), st.sampled_from([FIRST, SECOND])
    ),
    st.tuples(st.just("completed"), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(["sent", "confirmed"]), st.integers(1, 4), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("requested"), st.sampled_from(CALLERS), st.none() | st.integers(1, 4)),
    st.tuples(st.just("paid"), st.sampled_from(CALLERS), st.integers(0, 1 << 50), st.none() | st.integers(1, 4)),
    st.tuples(st.just("rewarded"), st.sampled_from([ANN, BOB]), st.sampled_from(NAMES), st.integers(0, 1 << 50)),
    st.just(("restart",)),
)


def counting_office(store: IcrcStore) -> RegistryOffice:
    """Return an office with two publishers of ``a.x``, one of ``a.y``, and four subscriptions, one of them stopped."""
    office = RegistryOffice(store, (FIRST, SECOND))
    office.publish(ANN, *NAMES, config=pairs({PUBLISHERS + "allowed:list": principals(ANN, BOB)}))
    office.publish(BOB, "a.x")
    office.subscribe(BOB, *NAMES)
    office.subscribe(CLEO, "a.*")
    office.subscribe(CLEO, "a.x", stopped=True)
    return office


class RunStatistics:
    """Keeps everything that happened, and counts it when asked."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[Any, ...]] = Counter()

    def happen(self, office: RegistryOffice, thing: tuple[Any, ...]) -> None:
        """Tell the statistics what happened, and note it under each name that it counts for."""
        kind, *given = thing
        statistics, registry = office.orchestrator.statistics, office.orchestrator.registry
        if kind in {"sent", "confirmed"}:
            subscription, namespace, number = registry.subscriptions[given[0]], given[1], given[2]
            getattr(statistics, kind)(subscription, namespace, number)
            keys = (
                ("subscription", subscription.id),
                ("subscriber", subscription.subscriber),
                ("publication", namespace),
            )
            for key in (*keys, ("broadcaster", subscription.broadcaster)):
                self.counts[kind, *key] += number
        elif kind in {"requested", "paid"}:
            *amounts, subscription_id = given[1:]
            known = None if subscription_id is None else registry.subscriptions[subscription_id]
            getattr(statistics, kind)(given[0], *amounts, known)
            for amount in amounts or [1]:
                self.counts[kind, "subscriber", given[0]] += amount
                self.counts[kind, "subscription", subscription_id] += amount
        elif kind == "completed":
            statistics.completed(*given)
            self.counts[kind, "publication", given[0]] += 1
        else:
            getattr(statistics, kind)(*given)
            publisher, namespace, rest = given
            amount = rest if kind == "rewarded" else 1
            self.counts[kind, "publisher", publisher] += amount
            self.counts[kind, "pair", publisher, namespace] += amount
            if kind == "published":
                self.counts[kind, "publication", namespace] += 1
                self.counts[kind, "broadcaster", rest] += 1

    def of(self, *key: Any) -> list[int]:
        """Return what was sent, confirmed, paid and requested of somebody."""
        return [self.counts[kind, *key] for kind in ("sent", "confirmed", "paid", "requested")]


def of_subscriber(kind: str, first: str, counts: list[int]) -> dict[str, int]:
    """Return the statistics of a subscriber, a subscription or both, by the names of the text."""
    own, notifications, confirmations, paid, requests = counts
    return {
        f"icrc72:{kind}:stats:{first}": own,
        f"icrc72:{kind}:stats:notifications": notifications,
        f"icrc72:{kind}:stats:confirmations": confirmations,
        f"icrc72:{kind}:stats:cyclesPaid": paid,
        f"icrc76:{kind}:stats:requests": requests,
        f"icrc77:{kind}:stats:requests": requests,
    }


def of_publisher(kind: str, publications: int, cycles: int, events: int) -> dict[str, int]:
    return {
        f"icrc72:{kind}:stats:publications": publications,
        f"icrc72:{kind}:stats:cyclesReceived": cycles,
        f"icrc72:{kind}:stats:events": events,
    }


@pytest.mark.matrix("ICRC72-70", "ICRC72-71", "ICRC72-72", "ICRC72-73", "ICRC72-74", "ICRC72-75")
@settings(max_examples=examples(25))
@given(st.lists(things, max_size=40))
def test_statistics_equal_a_count_of_our_own(happened: list[tuple[Any, ...]]) -> None:
    store, tally = IcrcStore.open(), RunStatistics()
    office = counting_office(store)
    for thing in happened:
        if thing == ("restart",):
            store.flush()
            office = RegistryOffice(store, (FIRST, SECOND))
        else:
            tally.happen(office, thing)
    counts = tally.counts

    for info, publishers in zip(office.query("publications"), (2, 1), strict=True):
        key = "publication", info["namespace"]
        assert stats(info) == {
            "icrc72:publication:stats:publishers": publishers,
            "icrc72:publication:stats:events": counts["published", *key],
            "icrc72:publication:stats:events:sent": counts["completed", *key],
            "icrc72:publication:stats:notifications": counts["sent", *key],
            "icrc72:publication:stats:confirmations": counts["confirmed", *key],
        }
    for info, publications in zip(office.query("publishers"), (2, 1), strict=True):
        one = raw(info["publisher"])
        found = counts["rewarded", "publisher", one], counts["published", "publisher", one]
        assert stats(info) == of_publisher("publisher", publications, *found)
    for info in office.query("publication_publishers", namespace="a.x"):
        pair = "pair", raw(info["publisher"]), "a.x"
        found = counts["rewarded", *pair], counts["published", *pair]
        assert stats(info) == of_publisher("publisher", 1, *found) | of_publisher("publisher_publication", 1, *found)
    for info in office.query("subscribers"):
        one = raw(info["subscriber"])
        assert stats(info) == of_subscriber("subscriber", "subscriptions", [2, *tally.of("subscriber", one)])
    for info in office.query("subscriptions"):
        found_of = [2, *tally.of("subscription", info["subscriptionId"])]
        assert stats(info) == of_subscriber("subscription", "subscribers", found_of)
    for caller, active in ((BOB, 2), (CLEO, 1)):
        for info in office.query("subscriber_subscriptions", caller=caller):
            found_of = [active, *tally.of("subscription", info["subscriptionId"])]
            assert stats(info) == of_subscriber("subscriber_subscription", "subscriptions:active", found_of)
    for info in office.query("broadcasters"):
        key = "broadcaster", raw(info["broadcaster"])
        assert stats(info) == {
            "icrc72:broadcaster:stats:subscriptions": 2,
            "icrc72:broadcaster:stats:subscribers": 1,
            "icrc72:broadcaster:stats:events": counts["published", *key],
            "icrc72:broadcaster:stats:notifications": counts["sent", *key],
            "icrc72:broadcaster:stats:confirmations": counts["confirmed", *key],
        }


def test_counters_stand_with_what_is_flushed_beside_them(tmp_path: Path) -> None:
    file = tmp_path / "icrc.sqlite"
    store = IcrcStore.open(file)
    office = counting_office(store)
    statistics, subscription = office.orchestrator.statistics, office.orchestrator.registry.subscriptions[1]
    statistics.sent(subscription, "a.x", 3)
    store.put("cursor", b"", b"3")
    store.flush()
    statistics.sent(subscription, "a.x", 4)
    store.put("cursor", b"", b"7")
    store._connection.close()  # the process is killed

    store = IcrcStore.open(file)
    again = RegistryOffice(store, (FIRST, SECOND))
    (info,) = again.query("publications", take=1)
    assert (store.get("cursor", b""), stats(info)["icrc72:publication:stats:notifications"]) == (b"3", 3)
    store.close()


def test_principals_of_any_length_are_counted_apart() -> None:
    office = RegistryOffice()
    statistics = office.orchestrator.statistics
    for publisher, namespace in ((b"", "bb"), (b"b", "b"), (b"bb", ""), (b"\1", "b"), (b"", "\1b")):
        statistics.published(publisher, namespace, FIRST)
    assert dict(statistics.of_pair(b"b", "b"))["icrc72:publisher:stats:events"].content == 1


@pytest.mark.matrix("ICRC72-70")
def test_a_registry_without_events_counts_none() -> None:
    office = counting_office(IcrcStore.open())
    assert all(
        number in {0, 1, 2}
        for name in ("publications", "publishers", "subscribers", "subscriptions", "broadcasters")
        for info in office.query(name, caller=DAN)
        for number in stats(info).values()
    )
    assert all(isinstance(it, IcrcSubscription) for it in office.orchestrator.registry.subscriptions.values())
