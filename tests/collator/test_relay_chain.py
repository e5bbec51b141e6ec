"""The relay chain: state roots are those of tries built anew, headers chain, only recent states can be proven."""

import gzip
import json
from collections.abc import Mapping
from itertools import pairwise

import pytest

from collator.networks import PUBLISHER, SUBSCRIBER, key, keys, network, publish, run, value
from ledger.watched import Watched
from relaycast_collator import Genesis, RelayChain, collect_relay_storage_proof, modelled_genesis
from relaycast_collator.header import PRE_RUNTIME
from relaycast_collator.relay_chain import Call
from relaycast_pallets import AlreadyRegistered, ExhaustsResources, derive_child_info
from relaycast_pallets.frame.state import Snapshot, StateDiscarded
from relaycast_pallets.frame.system import Origin
from relaycast_pallets.frame.well_known_keys import (
    ACTIVE_CONFIG,
    CURRENT_SLOT,
    RelayProofRequest,
    para_head,
    static_relay_keys,
)
from relaycast_trie import ChildInfo, StateVersion, blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import HashedValue, Value
from relaycast_trie.node_codec import encode_branch, encode_leaf
from relaycast_trie.reference import reference, trie_root
from relaycast_trie.scale import ScaleReader, encode_u64
from relaycast_xcm import ParaId, Weight
from shared_vectors import shared, unhex

KUSAMA_ROOT = "b0006203c3a6e6bd2c6a17b1d4ae8ca49a31da0f4579da950b127774b44aef6b"
RELAY_READS = ("relay_top", "relay_node")
V0, V1 = StateVersion.V0, StateVersion.V1


def with_child_roots(snapshot: Snapshot, state_version: StateVersion = V1) -> dict[bytes, bytes]:
    """Return the pairs of the top trie, built without the code under test."""
    top, children = {k: v for k, v in snapshot[0].items() if not k.startswith(b":child_storage:")}, snapshot[1]
    for name, pairs in children.items():
        top[ChildInfo.new_default(name).prefixed_storage_key()] = trie_root(pairs, state_version=state_version)
    return top


def root_of(paths: Mapping[bytes, Value]) -> bytes:
    """Return the root of a trie whose values are inline or hashed as they are given: by the definition."""
    return blake2_256(_encode(dict(paths)))


def _encode(paths: dict[bytes, Value]) -> bytes:
    if len(paths) == 1:
        ((path, only),) = paths.items()
        return encode_leaf(path, only)
    first, last = min(paths), max(paths)
    depth = next((at for at in range(len(first)) if first[at] != last[at]), len(first))
    below: list[dict[bytes, Value]] = [{} for _ in range(16)]
    for path, held in paths.items():
        if len(path) > depth:
            below[path[depth]][path[depth + 1 :]] = held
    children = [reference(_encode(child)) if child else None for child in below]
    return encode_branch(first[:depth], children, paths.get(first[:depth]))


def as_stored(held: bytes, state_version: StateVersion) -> Value:
    return HashedValue(blake2_256(held)) if state_version.is_external(held) else held


def test_every_state_root_is_that_of_a_trie_built_from_the_state() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(20))
    for tick in range(12):
        publish(net, PUBLISHER, {name: value(tick, 10 + 5 * tick) for name in keys(20)[tick % 4 :: 3]}, ttl=tick % 4)
        net.step()
        state, block = net.relay_chain.state, net.relay_chain.head
        assert trie_root(with_child_roots(state.snapshot()), state_version=V1) == block.state_root
    assert net.relay_chain.broadcaster.storage.entry(PUBLISHER, key(0)) is not None


def test_parachain_roots_are_those_of_tries_built_from_their_states() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(20))
    for tick in range(6):
        publish(net, PUBLISHER, {name: value(tick) for name in keys(20)})
        net.step()
        for parachain in net.parachains.values():
            top, children = parachain.state.snapshot()
            assert not children
            assert trie_root(top, state_version=V1) == parachain.head.state_root


def test_a_migrated_state_holds_old_values_inline_and_new_ones_hashed() -> None:
    """Each value stays in the version in which it was last written, as on a chain that migrates lazily."""
    genesis = modelled_genesis(3, entries=60)
    child: dict[bytes, bytes] = {key(number): value(number, 50) for number in range(30)}
    name = derive_child_info(ParaId(1_000)).storage_key
    net = Watched(genesis=Genesis(genesis.top, {name: child}, V0))
    system = net.add_parachain(1_000)
    for tick in range(5):
        for number in range(0, 30, 3 + tick):
            system.publish(key(number), value(tick, 60))
        net.step()
    top, children = net.relay_chain.state.snapshot()
    before = {name: child}
    roots = {
        ChildInfo.new_default(storage_key): root_of(
            {
                to_nibbles(k): as_stored(v, V0 if before.get(storage_key, {}).get(k) == v else V1)
                for k, v in pairs.items()
            }
        )
        for storage_key, pairs in children.items()
    }
    expected = {
        to_nibbles(k): as_stored(v, V0 if genesis.top.get(k) == v else V1)
        for k, v in top.items()
        if not k.startswith(b":child_storage:")
    }
    expected |= {to_nibbles(info.prefixed_storage_key()): root for info, root in roots.items()}
    assert root_of(expected) == net.relay_chain.head.state_root
    assert trie_root(with_child_roots((top, children)), state_version=V1) != net.relay_chain.head.state_root
    assert trie_root(with_child_roots((top, children), V0), state_version=V0) != net.relay_chain.head.state_root


def test_a_genesis_of_version_0_has_the_root_of_version_0() -> None:
    top, children = modelled_genesis(1).top, {b"a child": {b"key": bytes(40)}}
    for version in StateVersion:
        chain = RelayChain(Genesis(top, children, version))
        expected = trie_root(with_child_roots((dict(top), children), version), state_version=version)
        assert chain.head.state_root == chain.genesis_root == expected
    assert RelayChain(Genesis(top, {}, V0)).genesis_root != RelayChain(Genesis(top, {}, V1)).genesis_root


def test_headers_chain() -> None:
    net = network()
    run(net, 10)
    blocks = list(net.relay_chain.blocks)
    assert [block.number for block in blocks] == list(range(11))
    for parent, block in pairwise(blocks):
        assert block.header.parent_hash == parent.hash
        (author,) = block.header.digest
        assert (author.variant, author.engine, len(author.data)) == (PRE_RUNTIME, b"BABE", 13)
        assert author.data[:1] + author.data[5:] == b"\x02" + encode_u64(block.number)
    assert len({block.hash for block in blocks}) == len({block.state_root for block in blocks}) == 11


def test_the_state_holds_the_slot_and_the_heads_of_the_tick_before() -> None:
    net = network()
    run(net, 5)
    before = {para_id: parachain.head for para_id, parachain in net.parachains.items()}
    net.step()
    state = net.relay_chain.state
    assert state.get(CURRENT_SLOT) == encode_u64(6)
    for para_id, head in before.items():
        stored = state.get(para_head(para_id))
        assert stored is not None
        assert ScaleReader(stored).bytes_() == head.encode()


def test_parachain_headers_chain_and_build_on_the_relay_block_before() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    previous = net.parachains[SUBSCRIBER].head
    for tick in range(1, 6):
        (record,) = net.recorded_step()
        head = net.parachains[SUBSCRIBER].head
        assert (record.tick, record.relay_parent, record.number) == (tick, tick - 1, tick)
        assert (head.parent_hash, head.number) == (previous.hash, tick)
        previous = head


def test_states_within_the_window_can_be_proven_and_no_others() -> None:
    chain = RelayChain(window=4)
    blocks = [chain.head, *(chain.build_block() for _ in range(9))]
    asked = list(static_relay_keys(SUBSCRIBER))
    for block in blocks[-4:]:
        values = chain.prove_read(block, asked).verify(block.state_root, asked, strict=True)
        assert values[CURRENT_SLOT] == encode_u64(block.number)
    for block in blocks[:-4]:
        with pytest.raises(StateDiscarded) as refusal:
            chain.prove_read(block, asked)
        assert refusal.value.root == block.state_root
        with pytest.raises(StateDiscarded):
            collect_relay_storage_proof(chain, block, asked, RelayProofRequest(()))
    assert list(chain.blocks) == blocks[-4:]


def test_a_network_runs_with_the_smallest_window_and_refuses_a_smaller_one() -> None:
    net = Watched(window=2)
    publisher = net.add_parachain(1_000)
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, 1_000, keys(1))
    publisher.publish(key(0), b"value")
    assert sum(len(record.deliveries) for record in run(net, 4)) == 1
    with pytest.raises(ValueError, match=r"window must be at least 2, .* got 1"):
        Watched(window=1)


def test_a_block_says_how_its_calls_ended() -> None:
    net = network()
    net.step()
    before = net.relay_chain.broadcaster.storage.registered_publishers.count()
    issued = net.relay_chain.balances.total_issuance
    net.register_publisher(PUBLISHER)
    net.register_publisher(4_321)
    broadcaster = net.relay_chain.broadcaster
    declared = broadcaster.config.weight("force_deregister_publisher", k=0)
    net.call(lambda: broadcaster.force_deregister_publisher(Origin.root(), ParaId(4_321)), declared=declared)
    net.step()
    refused, registered, deregistered = net.relay_chain.head.calls
    assert isinstance(refused.error, AlreadyRegistered)
    assert registered.ok
    assert registered.weight != Weight.ZERO
    assert deregistered.ok
    assert net.relay_chain.broadcaster.storage.registered_publishers.count() == before
    assert net.relay_chain.balances.total_issuance == issued + 2 * net.relay_chain.broadcaster.config.publisher_deposit
    net.step()
    assert net.relay_chain.head.calls == ()


def test_a_modelled_genesis_follows_from_its_seed() -> None:
    assert modelled_genesis(1) == modelled_genesis(1)
    assert RelayChain(seed=1).genesis_root == RelayChain(seed=1).genesis_root != RelayChain(seed=2).genesis_root
    assert len(modelled_genesis(1).top[ACTIVE_CONFIG]) == 202


def test_the_kusama_genesis_gives_a_network_whose_proofs_have_its_depth() -> None:
    with gzip.open(shared("data/kusama-genesis.json.gz"), "rt") as spec:
        raw = json.load(spec)["genesis"]["raw"]
    top = {unhex(name): unhex(held) for name, held in raw["top"].items()}
    depths = []
    for genesis in (modelled_genesis(7), Genesis(top, state_version=V0)):
        net = Watched(seed=7, genesis=genesis)
        publisher = net.add_parachain(PUBLISHER)
        net.register_publisher(PUBLISHER)
        net.add_parachain(SUBSCRIBER)
        net.subscribe(SUBSCRIBER, PUBLISHER, keys(50))
        records = []
        for tick in range(8):
            for name in keys(50):
                publisher.publish(name, value(tick))
            records += net.recorded_step()
        assert net.invariants.ok
        last = records[-1]
        assert len(last.deliveries) == 50
        path = net.relay_chain.prove_read(net.relay_chain.head, [derive_child_info(PUBLISHER).prefixed_storage_key()])
        depths.append((len(path), last.reads["relay_top"].nodes, last.reads["relay_node"].proof_bytes))
        assert last.proof_bytes == last.static_bytes + sum(last.reads[name].proof_bytes for name in RELAY_READS)
    assert net.relay_chain.genesis_root.hex() == KUSAMA_ROOT
    (modelled_path, modelled_top, modelled_nodes), (kusama_path, kusama_top, kusama_nodes) = depths
    assert (modelled_path, modelled_top) == (4, 1), "what is above is proven by the static keys already"
    assert (kusama_path, kusama_top) == (5, 2), "names with a common start part far down: one more node each"
    assert modelled_nodes == kusama_nodes, "the publisher's own trie does not depend on the genesis"


def test_a_refused_call_weighs_what_it_declared_and_one_too_heavy_is_not_made() -> None:
    net = network(subscribers=())
    net.step()
    chain = net.relay_chain
    declared = chain.broadcaster.config.weight("register_publisher")
    manager = Origin.signed(bytes(32))
    again = Call(lambda: chain.broadcaster.register_publisher(manager, PUBLISHER), declared)
    heavy = Call(lambda: pytest.fail("it must not be made"), chain.system.max_block + Weight(1, 1))
    refused, unmade = chain.build_block((again, heavy)).calls
    assert isinstance(refused.error, AlreadyRegistered)
    assert refused.weight == declared
    assert isinstance(unmade.error, ExhaustsResources)
    assert unmade.weight == Weight.ZERO
