"""From the bytes of an upward message to the child trie: ``Publish`` through queue, barrier, executor and pallet."""

from collections.abc import Iterator

import pytest

from pallets.broadcaster_vectors import StepSequence, key, with_limits
from pallets.relay import OTHER_PARA, PARA, A, B, C, Relay
from relaycast_pallets import ValueTooLarge
from relaycast_trie import RelaycastError
from relaycast_xcm import (
    AllowPublishFrom,
    BadOrigin,
    ClearOrigin,
    DescendOrigin,
    Everything,
    Incomplete,
    Instruction,
    Location,
    OnlyParachains,
    Outcome,
    ParachainBroadcastAdapter,
    Processed,
    Publish,
    PublishFailed,
    PublishItem,
    PublishItems,
    SetTopic,
    UpwardMessageQueue,
    Weight,
    XcmExecutor,
    encode_versioned_xcm,
)
from relaycast_xcm.barriers import Properties, ShouldExecute
from relaycast_xcm.instructions import Xcm
from relaycast_xcm.location import PalletInstance
from vector_fields import Vector, VectorSource, scenario
from yielded_vectors import yields

# Who may publish


@pytest.mark.upstream("system_parachain_publishes_without_registration")
@pytest.mark.upstream("publish_system_parachain_id_1000")
@pytest.mark.upstream("publish_system_parachain_id_1999")
@pytest.mark.upstream("system_parachain_boundary")
@pytest.mark.parametrize("para_id", [0, 1_000, 1_999])
@yields("broadcaster/publication")
def test_a_system_parachain_needs_no_registration(para_id: int) -> Iterator[Vector]:
    source = scenario("Publisher Registration / System parachain publishes without registration")
    there = StepSequence().publish(para_id, "a", b"\x01")
    yield there.vector(f"publish/system-{para_id}", f"system parachain {para_id} publishes unregistered", source)


@pytest.mark.upstream("publish_requires_registration")
@pytest.mark.upstream("publish_unregistered_non_system_parachain")
@pytest.mark.upstream("publish_unregistered_non_system_parachain_high_id")
@pytest.mark.upstream("publish_from_non_system_parachain_unregistered")
@pytest.mark.parametrize("para_id", [2_000, 3_000, (1 << 32) - 1])
@yields("broadcaster/publication")
def test_an_unregistered_parachain_is_refused(para_id: int) -> Iterator[Vector]:
    source = scenario("XCM Publish Instruction / Publish fails for unregistered public parachain")
    there, why = StepSequence().publish(para_id, "a", b"\x01"), f"public parachain {para_id} is not registered"
    yield there.vector(f"publish/unregistered-{para_id}", why, source, refused="NotRegistered")


@yields("broadcaster/publication")
def test_an_unregistered_parachain_is_refused_whatever_it_sends() -> Iterator[Vector]:
    source = scenario("XCM Publish Instruction / Publish fails for unregistered public parachain")
    first, why = StepSequence().publish(3_000, "a", bytes(2_048)), "NotRegistered comes before the limits"
    yield first.vector("publish/unregistered-first", why, source, refused="NotRegistered")
    several = StepSequence().message(2_000, *publications("ab"))
    why = "the first instruction is refused"
    yield several.vector("publish/message-unregistered", why, source, refused="NotRegistered")


@yields("broadcaster/publication")
def test_publishers_of_one_block_do_not_meet() -> Iterator[Vector]:
    three = StepSequence().register(2_000).register(2_001).begin()
    for para_id in (2_000, 2_001, 1_000):
        three.publish(para_id, "a", para_id.to_bytes(2, "big"))
    source = VectorSource(upstream="multiple_publishers_in_same_block")
    yield three.vector("publish/three-publishers", "one key by three publishers: three child tries", source)


# Several instructions


def publications(names: str) -> list[Instruction]:
    return [Publish(key(name), name.encode()) for name in names]


def registered(**limits: int) -> StepSequence:
    return with_limits(**limits).register(2_000).begin()


@yields("broadcaster/publication")
def test_a_message_of_one_publish_runs_without_payment() -> Iterator[Vector]:
    source = scenario("AllowPublishFrom Barrier / Barrier allows single Publish instruction")
    there = registered().publish(2_000, "a", b"\x01")
    yield there.vector("publish/message-of-one", "a message of one Publish runs without payment", source, keeps="a")


@yields("broadcaster/publication")
def test_all_instructions_of_a_message_publish() -> Iterator[Vector]:
    source = scenario("AllowPublishFrom Barrier / Barrier allows multiple Publish instructions within limit")
    there = registered().message(2_000, *publications("abc"))
    yield there.vector("publish/message-of-three", "all three instructions run", source, keeps="abc")
    repeated = registered().message(2_000, Publish(key("a"), b"\x01"), Publish(key("a"), b"\x02", 9))
    yield repeated.vector("publish/message-repeats-key", "the last value of a key wins", source, keeps="a")


@pytest.mark.parametrize("at", range(3))
@yields("broadcaster/publication")
def test_what_comes_before_a_failure_stays(at: int) -> Iterator[Vector]:
    values = [b"\x01", b"\x02", b"\x03"]
    values[at] = bytes(9)
    sent = [Publish(key(name), value) for name, value in zip("abc", values, strict=True)]
    yield (
        registered(max_value_length=8)
        .message(2_000, *sent)
        .vector(
            f"publish/message-fails-at-{at}",
            f"instruction {at} of 3 is refused: earlier ones stay, later ones do not run and are not paid",
            VectorSource(upstream="broadcast_handler_error_propagates"),
            refused="ValueTooLarge",
            keeps="abc"[:at],
        )
    )


@yields("broadcaster/publication")
def test_a_message_stops_at_the_key_beyond_the_limit() -> Iterator[Vector]:
    full = registered(max_stored_keys=2).message(2_000, *publications("abc"))
    source = VectorSource(upstream="broadcast_handler_error_propagates")
    why = "the third key of a message is one too many"
    yield full.vector("publish/message-fills", why, source, refused="TooManyKeys", keeps="ab")


# The barrier


@yields("broadcaster/publication")
def test_a_message_holds_as_many_publications_as_the_barrier_allows() -> Iterator[Vector]:
    source = scenario("AllowPublishFrom Barrier / Barrier allows exactly max Publish instructions")
    exact = registered(max_publish_instructions=4).message(2_000, *publications("abcd"))
    yield exact.vector("publish/barrier-exact", "4 instructions where 4 are allowed", source, keeps="abcd")
    source = scenario("AllowPublishFrom Barrier / Barrier rejects too many Publish instructions")
    above = registered(max_publish_instructions=4).message(2_000, *publications("abcde"))
    why = "5 instructions where 4 are allowed: nothing runs"
    yield above.vector("publish/barrier-above", why, source, refused="StackLimitReached", keeps="")


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("set-topic", SetTopic(bytes(32))),
        ("clear-origin", ClearOrigin()),
        ("descend-origin", DescendOrigin((PalletInstance(1),))),
    ],
)
@yields("broadcaster/publication")
def test_a_publish_before_another_instruction_does_not_run(name: str, other: Instruction) -> Iterator[Vector]:
    source = scenario("AllowPublishFrom Barrier / Barrier rejects Publish mixed with other instructions")
    mixed = registered().message(2_000, *publications("a"), other)
    why = f"a Publish before {name} is no message of Publish alone"
    yield mixed.vector(f"publish/barrier-{name}", why, source, refused="BadFormat", keeps="")


@yields("broadcaster/publication")
def test_an_empty_message_does_not_run() -> Iterator[Vector]:
    source = VectorSource(upstream="allow_publish_from_rejects_empty_message")
    empty = registered().message(2_000)
    yield empty.vector("publish/barrier-empty", "an empty message has no form", source, refused="BadFormat")


# Messages in the queue, and past the barrier


class AllowAll:
    """A barrier that lets every message through, so that the executor itself is what refuses."""

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        return message


def executor_of(relay: Relay, barrier: ShouldExecute | None = None) -> XcmExecutor:
    adapter = ParachainBroadcastAdapter(OnlyParachains(), relay.broadcaster)
    return XcmExecutor(barrier or AllowPublishFrom(Everything()), broadcast=adapter)


def send(relay: Relay, *message: Instruction) -> Outcome:
    """Send a message as bytes and return its outcome."""
    queue = UpwardMessageQueue(executor_of(relay))
    queue.enqueue(PARA, encode_versioned_xcm(message))
    (processed,) = queue.service()
    assert isinstance(processed, Processed)
    return processed.outcome


def refusal_of(outcome: Outcome, index: int = 0) -> RelaycastError:
    """Return the pallet's own error behind a failed ``Publish``."""
    assert isinstance(outcome, Incomplete)
    assert outcome.error.index == index
    assert isinstance(outcome.error.error, PublishFailed)
    assert outcome.error.cause is not None
    return outcome.error.cause


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        (Location.parachain(PARA), [ClearOrigin(), Publish(A, b"value", 0)]),
        (Location(1, ()), [Publish(A, b"value", 0)]),
    ],
)
def test_without_a_parachain_as_origin_nothing_is_published(
    relay: Relay, origin: Location, message: list[Instruction]
) -> None:
    relay.register()
    before = relay.everything()
    adapter = ParachainBroadcastAdapter(Everything(), relay.broadcaster)
    outcome = XcmExecutor(AllowAll(), broadcast=adapter).prepare_and_execute(origin, message)
    assert isinstance(outcome, Incomplete)
    assert isinstance(outcome.error.error, BadOrigin)
    assert relay.everything() == before


def test_messages_of_many_parachains_meet_in_one_block(relay: Relay) -> None:
    queue = UpwardMessageQueue(executor_of(relay))
    for para in (PARA, OTHER_PARA):
        relay.register(para)
        for published in (A, B):
            queue.enqueue(para, encode_versioned_xcm([Publish(published, str(para).encode(), 0)]))
    assert [type(result) for result in queue.service()] == [Processed] * 4
    assert [relay.value(A, para) for para in (PARA, OTHER_PARA)] == [b"2000", b"2001"]


def test_many_items_of_one_instruction_are_stored_all_or_none(relay: Relay) -> None:
    """The flavour that carries several items: the last is too long, and none is stored or told."""
    relay.register()
    before = relay.everything()
    items = PublishItems((PublishItem(A, b"first"), PublishItem(B, b"second"), PublishItem(C, bytes(1_025))))
    outcome = executor_of(relay, AllowAll()).prepare_and_execute(Location.parachain(PARA), (items,))
    assert isinstance(refusal_of(outcome), ValueTooLarge)
    assert relay.everything() == before
