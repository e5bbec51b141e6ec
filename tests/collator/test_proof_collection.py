"""What a collator collects for its parachain, and whole networks in which it arrives."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from ledger.watched import Watched
from pallets.block_vectors import keys
from relaycast_collator.chains import manager_of
from relaycast_collator.collator import collect_relay_storage_proof
from relaycast_collator.relay_chain import RelayBlock, RelayChain
from relaycast_ledger.records import BlockRecord
from relaycast_pallets import (
    Infinite,
    Origin,
    ParachainInherentData,
    RelayProofRequest,
    Remaining,
    SubscribedKey,
    SubscriberConfig,
    Top,
    ValidFor,
    derive_child_info,
    static_relay_keys,
)
from relaycast_pallets.frame.state import StateDiscarded
from relaycast_pallets.frame.well_known_keys import ACTIVE_CONFIG, Child
from relaycast_trie import StorageProof
from relaycast_xcm import ParaId

A, B, C, D, E = keys(5)
SYSTEM, SUBSCRIBER = 1_000, 3_000


def network(*publishers: int, subscribed: list[SubscribedKey] | None = None) -> Watched:
    """Return a network in which publishers have sent five keys, of which a subscriber wants some."""
    net = Watched(seed=3)
    for publisher in publishers or (SYSTEM,):
        net.add_parachain(publisher)
        if not ParaId(publisher).is_system:
            net.register_publisher(publisher)
    net.add_parachain(SUBSCRIBER)
    for publisher in publishers or (SYSTEM,):
        net.subscribe(SUBSCRIBER, publisher, list(subscribed or [A, B, C]))
    run(net, 1)
    for publisher in publishers or (SYSTEM,):
        publish(net, publisher, [A, B, C, D, E], str(publisher).encode())
    return net


def publish(net: Watched, publisher: int, written: list[SubscribedKey], value: bytes, *, ttl: int = 0) -> None:
    for key in written:
        net.parachains[ParaId(publisher)].publish(key, value, ttl=ttl, tick=net.tick + 1)


def run(net: Watched, ticks: int) -> list[BlockRecord]:
    records = [record for _ in range(ticks) for record in net.recorded_step()]
    assert net.invariants.ok, net.invariants.violations
    return [record for record in records if record.para_id == SUBSCRIBER]


def values(net: Watched) -> dict[tuple[int, SubscribedKey], bytes]:
    kept = net.parachains[ParaId(SUBSCRIBER)].kept.values
    return {(int(publisher), key): value for (publisher, key), (value, _) in kept.items()}


@pytest.mark.scenario("Relay Proof Collection / Proof collection for subscriptions")
def test_the_collected_proof_covers_static_keys_and_every_subscribed_key() -> None:
    net = network()
    run(net, 3)
    collator, parent = net.collators[ParaId(SUBSCRIBER)], net.relay_chain.head
    collected = collator.collate(parent).collected
    child = derive_child_info(ParaId(SYSTEM))
    verified = collected.verify_child(parent.state_root, child, [A, B, C])
    assert [value is not None and b"1000" in value for value in verified.values.values()] == [True] * 3
    top = collected.verify(parent.state_root, collator.parachain.parachain_system.static_keys())
    assert top.values[ACTIVE_CONFIG] is not None
    assert len(top.values) == len(static_relay_keys(ParaId(SUBSCRIBER))) == 13


def test_keys_that_are_not_there_are_proven_absent() -> None:
    chain = RelayChain(seed=1)
    block = chain.build_block()
    request = RelayProofRequest((Child(b"pubsub\x01\x00\x00\x00", A), Top(b"nothing")))
    proof = collect_relay_storage_proof(chain, block, [ACTIVE_CONFIG], request)
    assert proof.verify(block.state_root, [b"nothing"]).values == {b"nothing": None}
    assert proof.verify_child(block.state_root, derive_child_info(ParaId(1)), [A]).values == {A: None}


def test_what_is_asked_for_twice_is_proven_once() -> None:
    chain = RelayChain(seed=1)
    block = chain.build_block()
    once = collect_relay_storage_proof(chain, block, [ACTIVE_CONFIG], RelayProofRequest())
    twice = collect_relay_storage_proof(chain, block, [ACTIVE_CONFIG] * 2, RelayProofRequest((Top(ACTIVE_CONFIG),)))
    assert once == twice == chain.prove_read(block, [ACTIVE_CONFIG])


def test_a_child_trie_that_cannot_be_proven_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    chain = RelayChain(seed=1)
    block = chain.build_block()

    class Node:
        """A relay chain node that has pruned its child tries."""

        def prove_read(self, at: RelayBlock, wanted: list[bytes]) -> StorageProof:
            return chain.prove_read(at, wanted)

        def prove_child_read(self, at: RelayBlock, storage_key: bytes, wanted: list[bytes]) -> StorageProof:
            raise StateDiscarded(at.state_root)

    with caplog.at_level(logging.WARNING):
        proof = collect_relay_storage_proof(Node(), block, [ACTIVE_CONFIG], RelayProofRequest((Child(b"gone", A),)))
    assert proof == chain.prove_read(block, [ACTIVE_CONFIG])
    assert "child trie 0x676f6e65 left out" in caplog.text


def test_a_relay_parent_that_is_gone_cannot_be_built_on() -> None:
    chain = RelayChain(seed=1, window=2)
    old = chain.build_block()
    for _ in range(3):
        chain.build_block()
    with pytest.raises(StateDiscarded):
        collect_relay_storage_proof(chain, old, [ACTIVE_CONFIG], RelayProofRequest())


@pytest.mark.upstream("e2e_publish_subscribe")
@pytest.mark.upstream("e2e_system_parachain_publisher")
def test_a_value_is_told_two_ticks_after_it_was_sent() -> None:
    net = network()
    records = run(net, 4)
    assert values(net) == {(SYSTEM, key): b"1000" for key in (A, B, C)}
    delivered = [delivery for record in records for delivery in record.deliveries]
    assert {delivery.latency_blocks for delivery in delivered} == {2}
    assert run(net, 3)[-1].deliveries == ()


@pytest.mark.upstream("e2e_multiple_publishers")
def test_five_publishers_reach_one_subscriber() -> None:
    publishers = (1_000, 1_001, 2_000, 2_001, 2_002)
    net = network(*publishers)
    run(net, 5)
    assert values(net) == {(publisher, key): str(publisher).encode() for publisher in publishers for key in (A, B, C)}


@pytest.mark.upstream("e2e_ttl_expiration")
def test_an_entry_is_told_with_what_it_has_left_and_goes_without_a_word() -> None:
    net = network()
    run(net, 4)
    publish(net, SYSTEM, [A], b"brief", ttl=6)
    run(net, 3)
    kept = net.parachains[ParaId(SUBSCRIBER)].kept.values
    assert kept[ParaId(SYSTEM), A] == (b"brief", ValidFor(6))
    assert kept[ParaId(SYSTEM), B][1] == Infinite()
    records = run(net, 10)
    assert all(record.deliveries == () for record in records)
    assert net.relay_chain.state.child(derive_child_info(ParaId(SYSTEM))).get(A) is None
    assert net.parachains[ParaId(SUBSCRIBER)].kept.values == kept


@pytest.mark.upstream("e2e_budget_under_hrmp_load")
def test_messages_leave_pubsub_what_they_do_not_use() -> None:
    net = Watched(seed=3)
    net.add_parachain(SYSTEM)
    net.add_parachain(SUBSCRIBER, budget=Remaining(), max_pov_size=20_000)
    net.subscribe(SUBSCRIBER, SYSTEM, list(keys(40)))
    net.traffic[ParaId(SUBSCRIBER)] = lambda _tick: ((), (bytes(15_800),))
    for number, key in enumerate(keys(40)):
        publish(net, SYSTEM, [key], bytes([number]) * 40)
    net.step()
    loaded = run(net, 11)
    assert {record.budget_bytes for record in loaded} == {17_000 - 15_800}
    assert all(record.consumed.proof_size <= record.budget_bytes for record in loaded)
    assert any(not record.complete for record in loaded)
    told = len(values(net))
    net.traffic.clear()
    run(net, 2)
    assert told < len(values(net)) == 40


def test_deregistering_while_somebody_subscribes_ends_the_publisher_for_him() -> None:
    net = network(2_000)
    run(net, 4)
    subscriber = net.parachains[ParaId(SUBSCRIBER)].subscriber
    assert subscriber.storage.cache_of(ParaId(2_000)).all()
    manager = Origin.signed(manager_of(ParaId(2_000)))
    relay = net.relay_chain
    declared = relay.broadcaster.config.weight(
        "deregister_publisher", k=len(relay.broadcaster.storage.keys_of(ParaId(2_000)))
    )
    net.call(lambda: relay.broadcaster.deregister_publisher(manager, ParaId(2_000)), declared=declared)
    records = run(net, 3)
    assert all(record.deliveries == () for record in records)
    assert subscriber.storage.cache_of(ParaId(2_000)).all() == {}
    assert subscriber.storage.previous_roots() == {}


LIES: dict[str, Callable[[ParachainInherentData], ParachainInherentData]] = {
    "omits": lambda honest: replace(honest, relay_chain_state=honest.relay_chain_state[1:]),
    "adds": lambda honest: replace(honest, relay_chain_state=(*honest.relay_chain_state, b"junk")),
    "repeats": lambda honest: replace(honest, relay_chain_state=honest.relay_chain_state * 2),
    "is silent": lambda honest: replace(honest, relay_chain_state=()),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lying_collator_builds_no_block_and_tells_nothing(
    lie: Callable[[ParachainInherentData], ParachainInherentData],
) -> None:
    net = Watched(seed=3)
    net.add_parachain(SYSTEM)
    liar = net.add_parachain(SUBSCRIBER, tamper=lie)
    net.subscribe(SUBSCRIBER, SYSTEM, [A, B])
    publish(net, SYSTEM, [A, B], b"v")
    before = liar.state.snapshot()
    records = run(net, 6)
    assert all(record.panic is not None and record.number == 0 for record in records)
    assert (liar.state.snapshot(), values(net), liar.head.number) == (before, {}, 0)
    net.collators[ParaId(SUBSCRIBER)].tamper = None
    run(net, 1)
    assert values(net) == {(SYSTEM, A): b"v", (SYSTEM, B): b"v"}


def test_a_publisher_too_deep_is_reported_disabled() -> None:
    net = Watched(seed=3)
    net.add_parachain(SYSTEM)
    net.add_parachain(SUBSCRIBER, config=SubscriberConfig(max_trie_depth=1))
    net.subscribe(SUBSCRIBER, SYSTEM, [A, B])
    publish(net, SYSTEM, [A, B], bytes(40))
    records = run(net, 4)
    assert [record.disabled for record in records if record.disabled] == [(ParaId(SYSTEM),)]
    assert values(net) == {}
