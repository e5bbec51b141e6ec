"""From the bytes of an upward message to the child trie: ``Publish`` through queue, barrier, executor and pallet."""

import pytest

from pallets.relay import OTHER_PARA, PARA, SYSTEM_PARA, A, B, C, Relay, hash_key
from relaycast_pallets import DataPublished, NotRegistered, PublishedEntry, TotalStorageSizeExceeded, derive_child_info
from relaycast_pallets.broadcaster.errors import BroadcasterError, TooManyKeys, ValueTooLarge
from relaycast_trie import RelaycastError, StorageProof
from relaycast_xcm import (
    AllowPublishFrom,
    BadOrigin,
    ClearOrigin,
    Complete,
    Everything,
    Incomplete,
    Instruction,
    Location,
    OnlyParachains,
    Outcome,
    ParachainBroadcastAdapter,
    ParaId,
    Processed,
    Publish,
    PublishFailed,
    PublishItem,
    PublishItems,
    UpwardMessageQueue,
    Weight,
    XcmExecutor,
    encode_versioned_xcm,
)
from relaycast_xcm.barriers import Properties, ShouldExecute
from relaycast_xcm.instructions import Xcm


class AllowAll:
    """A barrier that lets every message through, so that the executor itself is what refuses."""

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        return message


def executor_of(relay: Relay, barrier: ShouldExecute | None = None) -> XcmExecutor:
    adapter = ParachainBroadcastAdapter(OnlyParachains(), relay.broadcaster)
    return XcmExecutor(barrier or AllowPublishFrom(Everything()), broadcast=adapter)


def send(relay: Relay, *message: Instruction, para: ParaId = PARA) -> Outcome:
    """Send a message as bytes and return its outcome."""
    queue = UpwardMessageQueue(executor_of(relay))
    queue.enqueue(para, encode_versioned_xcm(message))
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


@pytest.mark.scenario("XCM Publish Instruction / Successful publish")
@pytest.mark.upstream("publish_from_non_system_parachain_registered")
def test_a_publish_stores_the_value_under_the_very_key(relay: Relay) -> None:
    relay.register()
    relay.system.events.take()
    outcome = send(relay, Publish(key=bytes(32), value=bytes([1, 2, 3]), ttl=0))
    assert isinstance(outcome, Complete)
    root = relay.state.commit()
    child = derive_child_info(PARA)
    proven = relay.state.prove_child_read(root, child, [bytes(32)]).verify_child(root, child, [bytes(32)])
    assert proven[bytes(32)] == bytes.fromhex("0c0102030000000001000000")
    assert relay.of_broadcaster() == [DataPublished(PARA, bytes(32))]


@pytest.mark.scenario("XCM Publish Instruction / Publish with finite TTL")
def test_a_finite_ttl_ends_that_many_blocks_later(relay: Relay) -> None:
    relay.register()
    relay.at(500)
    send(relay, Publish(A, b"value", 1_000))
    entry = relay.storage.entry(PARA, A)
    assert entry == PublishedEntry(b"value", 1_000, 500)
    assert entry.expires_at() == 1_500
    assert relay.storage.ttl_data.get(PARA, A) == (1_000, 500)
    for block, alive in ((1_499, True), (1_500, False)):
        relay.at(block)
        relay.broadcaster.on_idle(Weight.MAX)
        assert (relay.value(A) is not None) is alive


@pytest.mark.scenario("Publisher Registration / System parachain publishes without registration")
def test_a_system_parachain_needs_no_registration(relay: Relay) -> None:
    assert isinstance(send(relay, Publish(A, b"value", 0), para=SYSTEM_PARA), Complete)
    root = relay.state.commit()
    child = derive_child_info(SYSTEM_PARA)
    assert isinstance(relay.state.prove_child_read(root, child, [A]), StorageProof)
    assert relay.state.child(child).get(A) == PublishedEntry(b"value", 0, 1).encode()


@pytest.mark.scenario("XCM Publish Instruction / Publish fails for unregistered public parachain")
@pytest.mark.upstream("publish_from_non_system_parachain_unregistered")
@pytest.mark.upstream("broadcast_handler_error_propagates")
def test_an_unregistered_parachain_is_told_so(relay: Relay) -> None:
    root, before = relay.state.commit(), relay.everything()
    refusal = refusal_of(send(relay, Publish(A, b"value", 0), para=ParaId(3_000)))
    assert isinstance(refusal, NotRegistered)
    assert refusal.publisher == 3_000
    assert relay.everything() == before
    assert relay.state.commit() == root


@pytest.mark.scenario("XCM Publish Instruction / Publish fails when storage limit exceeded")
def test_a_used_up_quota_is_told_too(relay: Relay) -> None:
    relay.register()
    relay.publish(A, bytes(1_024))
    relay.publish(B, bytes(2_048 - 1_056 - 32))
    assert relay.storage.size_of(PARA) == relay.broadcaster.config.max_total_storage_size
    root, before = relay.state.commit(), relay.everything()
    refusal = refusal_of(send(relay, Publish(C, b"", 0)))
    assert isinstance(refusal, TotalStorageSizeExceeded)
    assert relay.everything() == before
    assert relay.state.commit() == root


@pytest.mark.parametrize(("value_bytes", "stored", "error"), [(1_025, 0, ValueTooLarge), (1, 50, TooManyKeys)])
def test_every_limit_of_the_pallet_reaches_the_outcome(
    relay: Relay, value_bytes: int, stored: int, error: type[BroadcasterError]
) -> None:
    relay.register()
    for index in range(stored):
        relay.publish(hash_key(str(index)))
    executor = executor_of(relay, AllowAll())
    outcome = executor.prepare_and_execute(Location.parachain(PARA), [Publish(A, bytes(value_bytes), 0)])
    assert isinstance(refusal_of(outcome), error)


def test_what_comes_before_a_failure_stays(relay: Relay) -> None:
    relay.register()
    relay.publish(C, bytes(1_000))
    outcome = send(relay, Publish(A, b"kept", 0), Publish(B, bytes(1_024), 0), Publish(C, b"never", 0))
    assert isinstance(refusal_of(outcome, index=1), TotalStorageSizeExceeded)
    assert [relay.value(key) for key in (A, B, C)] == [b"kept", None, bytes(1_000)]


@pytest.mark.scenario("AllowPublishFrom Barrier / Barrier allows multiple Publish instructions within limit")
def test_all_instructions_of_a_message_publish(relay: Relay) -> None:
    relay.register()
    outcome = send(relay, *(Publish(key, key[:4], 0) for key in (A, B, C)))
    assert isinstance(outcome, Complete)
    assert [relay.value(key) for key in (A, B, C)] == [key[:4] for key in (A, B, C)]


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
        for key in (A, B):
            queue.enqueue(para, encode_versioned_xcm([Publish(key, str(para).encode(), 0)]))
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
