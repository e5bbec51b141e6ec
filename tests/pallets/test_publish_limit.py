"""``max_publishes_per_block``: a runtime's limit of one publisher's publications in one relay block."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.relay import ALICE, OTHER_PARA, PARA, SYSTEM_PARA, A, B, C, Relay, refused
from pallets.test_publish_by_xcm import AllowAll, executor_of, refusal_of, send
from relaycast_pallets import DRAFT_MOCK, Broadcaster, Origin, TooManyPublishes, ValueTooLarge
from relaycast_pallets.broadcaster.storage import BroadcasterStorage
from relaycast_xcm import Incomplete, Location, Publish, PublishItem, PublishItems
from relaycast_xcm.primitives import ROCKS_DB, ParaId

TWO = replace(DRAFT_MOCK, max_publishes_per_block=2)


def limited(limit: int | None = 2) -> Relay:
    relay = Relay(replace(DRAFT_MOCK, max_publishes_per_block=limit))
    for para in (PARA, OTHER_PARA):
        relay.register(para)
    return relay


def test_one_publication_more_than_the_limit_is_refused_and_leaves_no_trace() -> None:
    relay = limited()
    relay.publish(A)
    relay.publish(A, b"again")
    for key in (A, B):  # an update counts as a new key does
        with refused(relay, TooManyPublishes) as refusal:
            relay.publish(key, b"too many")
        assert refusal.value.args == (PARA, 2)


def test_every_block_and_every_publisher_counts_for_itself() -> None:
    relay = limited()
    for number in (1, 2, 5):
        relay.at(number)
        for publisher in (PARA, OTHER_PARA, SYSTEM_PARA):
            relay.publish(A, publisher=publisher)
            relay.publish(B, publisher=publisher)
            with refused(relay, TooManyPublishes):
                relay.publish(C, publisher=publisher)


def test_a_publication_refused_for_another_reason_does_not_count() -> None:
    relay = limited()
    for _ in range(3):
        with refused(relay, ValueTooLarge):
            relay.publish(A, bytes(2_000))
    relay.publish(A)
    relay.publish(B)


def test_publishing_is_not_limited_by_default() -> None:
    relay = limited(None)
    for number in range(40):
        relay.publish(A, bytes([number]))
    assert relay.storage.publish_counts.count() == 0


def test_a_publisher_that_deletes_its_keys_within_a_block_keeps_its_count() -> None:
    """Otherwise it could start over as often as it deletes."""
    relay = limited(1)
    relay.publish(A)
    relay.broadcaster.delete_keys(Origin.parachain(PARA), [A])
    with refused(relay, TooManyPublishes):
        relay.publish(A)


acts = st.sampled_from(["publish", "publish", "publish", "publish too much", "delete", "next block"])


@given(st.integers(1, 3), st.lists(st.tuples(acts, st.sampled_from([PARA, OTHER_PARA, SYSTEM_PARA])), max_size=40))
def test_whatever_happens_in_a_block_the_limit_alone_ends_the_publications(
    limit: int, steps: list[tuple[str, ParaId]]
) -> None:
    relay, counts = limited(limit), Counter[ParaId]()
    for act, publisher in steps:
        if act == "next block":
            relay.at(relay.system.block_number + 1)
            counts.clear()
        elif act == "delete":
            relay.broadcaster.delete_keys(Origin.parachain(publisher), [A])
        elif act == "publish too much":
            with refused(relay, ValueTooLarge):
                relay.publish(A, bytes(2_000), publisher=publisher)
        elif counts[publisher] == limit:
            with refused(relay, TooManyPublishes):
                relay.publish(A, publisher=publisher)
        else:
            relay.publish(A, publisher=publisher)
            counts[publisher] += 1


LEAVES: dict[str, Callable[[Broadcaster], object]] = {
    "deregistered": lambda it: it.deregister_publisher(Origin.signed(ALICE), PARA),
    "deregistered by force": lambda it: it.force_deregister_publisher(Origin.root(), PARA),
    "offboarded": lambda it: it.offboard_publishers([PARA]),
}


@pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES)
def test_a_publisher_that_leaves_leaves_no_count(leave: Callable[[Broadcaster], object]) -> None:
    relay = limited()
    relay.publish(A)
    assert relay.storage.publishes_in(PARA, 1) == 1
    leave(relay.broadcaster)
    assert relay.storage.publish_counts.count() == 0


def test_a_system_parachain_that_is_offboarded_leaves_no_count() -> None:
    relay = limited()
    relay.publish(A, publisher=SYSTEM_PARA)
    relay.broadcaster.offboard_publishers([SYSTEM_PARA])
    assert relay.storage.publish_counts.count() == 0


@pytest.mark.parametrize(("before", "after", "allowed"), [(3, 2, False), (2, 3, True), (2, None, True)])
def test_a_limit_that_changes_within_a_block_holds_from_then_on(before: int, after: int | None, allowed: bool) -> None:
    relay = limited(before)
    for _ in range(2):
        relay.publish(A)
    relay.broadcaster.config = replace(relay.broadcaster.config, max_publishes_per_block=after)
    if allowed:
        relay.publish(B)
        return
    with refused(relay, TooManyPublishes):
        relay.publish(B)


def test_a_message_stops_at_the_publication_beyond_the_limit() -> None:
    """As with every refusal, instructions before it stay applied and those after it are not run."""
    relay = limited()
    outcome = send(relay, *(Publish(key, b"v", 0) for key in (A, B, C)))
    assert isinstance(refusal_of(outcome, index=2), TooManyPublishes)
    assert relay.keys() == {A, B}


def test_items_that_are_published_together_are_refused_together() -> None:
    relay = limited()
    items = PublishItems(tuple(PublishItem(key, b"v") for key in (A, B, C)))
    outcome = executor_of(relay, AllowAll()).prepare_and_execute(Location.parachain(PARA), (items,))
    assert isinstance(outcome, Incomplete)
    assert not relay.keys()
    assert relay.storage.publish_counts.count() == 0
    relay.publish(A)
    relay.publish(B)


def test_counting_weighs_a_read_and_a_write_more() -> None:
    counted = replace(TWO, db_weight=ROCKS_DB)
    free = replace(counted, max_publishes_per_block=None)
    assert counted.weight("publish") - free.weight("publish") == ROCKS_DB.reads_writes(1, 1)
    assert counted.weight("on_idle") == free.weight("on_idle")


@pytest.mark.parametrize("limit", [0, -1, 2**32])
def test_a_limit_out_of_range_is_refused_with_the_range(limit: int) -> None:
    with pytest.raises(ValueError, match=rf"between 1 and 4294967295, or None, got {limit}"):
        replace(DRAFT_MOCK, max_publishes_per_block=limit)


def never_begin_anew(patch: pytest.MonkeyPatch) -> None:
    """The count of an earlier block goes on."""
    read = BroadcasterStorage.publishes_in
    patch.setattr(
        BroadcasterStorage,
        "publishes_in",
        lambda self, publisher, _: read(self, publisher, (self.publish_counts.get(publisher) or (0, 0))[1]),
    )


def count_all_together(patch: pytest.MonkeyPatch) -> None:
    """All publishers share one count."""
    count = Broadcaster._count_publish
    patch.setattr(Broadcaster, "_count_publish", lambda self, _: count(self, ParaId(0)))


def count_before_the_checks(patch: pytest.MonkeyPatch) -> None:
    """Refused publications are counted."""
    total_with = Broadcaster._total_with

    def counting(self: Broadcaster, publisher: ParaId, key: bytes, value: bytes) -> int:
        self._count_publish(publisher)
        return total_with(self, publisher, key, value)

    patch.setattr(Broadcaster, "_total_with", counting)


def begin_anew_when_data_goes(patch: pytest.MonkeyPatch) -> None:
    """A publisher without keys is not counted."""
    forget = BroadcasterStorage._forget

    def forgetting(self: BroadcasterStorage, publisher: ParaId) -> None:
        forget(self, publisher)
        self.publish_counts.remove(publisher)

    patch.setattr(BroadcasterStorage, "_forget", forgetting)


Mutant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (never_begin_anew, test_every_block_and_every_publisher_counts_for_itself),
        (count_all_together, test_every_block_and_every_publisher_counts_for_itself),
        (count_before_the_checks, test_one_publication_more_than_the_limit_is_refused_and_leaves_no_trace),
        (begin_anew_when_data_goes, test_a_publisher_that_deletes_its_keys_within_a_block_keeps_its_count),
    ],
)
def test_a_wrong_count_is_found_out(mutant: Mutant, law: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, TooManyPublishes, pytest.fail.Exception)):
        law()
