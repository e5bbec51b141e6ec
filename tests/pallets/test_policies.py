"""The policies one by one: each a small object, with the choice that holds the invariants as the default."""

from collections.abc import Iterator
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.block_vectors import (
    ALPHA,
    OTHER_PUBLIC,
    PUBLIC,
    A,
    About,
    B,
    BlockVector,
    C,
    SmallNetwork,
    costs,
    keys,
    of_bytes,
    path_key,
)
from pallets.subscriber_world import MOCK, PLENTY, World
from relaycast_pallets import MAX_NODE_BYTES, Policies
from relaycast_pallets.subscriber.policies import (
    Advanced,
    ChangedKeys,
    EveryRead,
    IgnoreDeletions,
    MeteringPolicy,
    StructureNodes,
    SystemFirstShuffled,
    WhenPublisherDone,
)
from relaycast_pallets.subscriber.variants.drafts import (
    AfterFirstKey,
    AllKeysOnChange,
    Basic,
    ForgetUnchanged,
    NoCache,
    SystemFirstNumeric,
    ValuesOnly,
)
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_trie import blake2_256
from relaycast_xcm.primitives import ROCKS_DB, ParaId, Weight
from vector_fields import VectorSource
from yielded_vectors import yields

OLD, NEW = b"o" * 32, b"n" * 32
IDS = [ParaId(number) for number in (3_000, 1_999, 2_000, 5, 1_000, 2_001, 256)]
para_ids = st.sets(st.integers(0, 4_000).map(ParaId))


def test_the_defaults_are_those_that_hold_the_invariants() -> None:
    kinds = [type(getattr(Policies(), it.name)) for it in fields(Policies)]
    assert kinds == [
        SystemFirstShuffled,
        EveryRead,
        WhenPublisherDone,
        ChangedKeys,
        StructureNodes,
        IgnoreDeletions,
        Advanced,
    ]
    assert StructureNodes().max_node_bytes == MAX_NODE_BYTES == 750


def test_numeric_order_is_by_number() -> None:
    assert SystemFirstNumeric().arrange(IDS, b"whatever") == sorted(IDS)


@pytest.mark.upstream("non_system_randomized")
def test_public_publishers_are_shuffled_by_the_seed_and_system_ones_are_not() -> None:
    orders = {tuple(SystemFirstShuffled().arrange(IDS, bytes([seed]))) for seed in range(40)}
    assert {order[:4] for order in orders} == {(5, 256, 1_000, 1_999)}
    assert len({order[4:] for order in orders}) == 6  # every order of three


def test_a_lot_is_the_hash_of_seed_and_id() -> None:
    seed = b"the parent's hash"
    public = [para_id for para_id in IDS if not para_id.is_system]
    by_lot = sorted(public, key=lambda para_id: blake2_256(seed + para_id.to_bytes(4, "little")))
    assert SystemFirstShuffled().arrange(IDS, seed)[4:] == by_lot


@given(para_ids, st.binary(max_size=4))
def test_an_order_depends_on_ids_and_seed_alone(publishers: set[ParaId], seed: bytes) -> None:
    order = SystemFirstShuffled()
    arranged = order.arrange(publishers, seed)
    assert order.arrange(sorted(publishers, reverse=True), seed) == arranged
    assert set(arranged) == publishers
    assert [para_id.is_system for para_id in arranged] == sorted(
        (para_id.is_system for para_id in arranged), reverse=True
    )
    assert [para_id for para_id in arranged if para_id.is_system] == sorted(
        para_id for para_id in publishers if para_id.is_system
    )


def test_every_read_weighs_a_read_and_its_bytes() -> None:
    read = Weight(ROCKS_DB.read, 100)
    metering = EveryRead()
    assert [metering.relay_node(ROCKS_DB, 100), metering.relay_value(ROCKS_DB, 100)] == [read, read]
    assert metering.cached_node(ROCKS_DB, 100) == read


def test_values_only_charges_values() -> None:
    metering = ValuesOnly()
    assert metering.relay_node(ROCKS_DB, 100) == metering.cached_node(ROCKS_DB, 100) == Weight.ZERO
    assert metering.relay_value(ROCKS_DB, 100) == Weight(ROCKS_DB.read, 100)


def test_a_root_is_remembered_when_its_publisher_is_done() -> None:
    policy, stored = WhenPublisherDone(), {ParaId(1): OLD, ParaId(2): OLD}
    assert policy.when_stopped(OLD, NEW) == OLD
    assert policy.when_stopped(None, NEW) is None
    assert policy.when_complete(stored, {ParaId(2): NEW}) == {ParaId(1): OLD, ParaId(2): NEW}
    assert stored == {ParaId(1): OLD, ParaId(2): OLD}


def test_the_drafts_remember_too_early_or_forget() -> None:
    assert AfterFirstKey().when_stopped(OLD, NEW) == NEW
    assert ForgetUnchanged().when_complete({ParaId(1): OLD}, {ParaId(2): NEW}) == {ParaId(2): NEW}


def test_changes_are_told_against_the_trie_before() -> None:
    assert [ChangedKeys().compared_with(base) for base in (OLD, None)] == [OLD, None]
    assert AllKeysOnChange().compared_with(OLD) is None


def test_what_stays_is_bounded_in_bytes() -> None:
    assert [StructureNodes(512).keeps(bytes(size)) for size in (512, 513)] == [True, False]
    assert [StructureNodes().keeps(bytes(size)) for size in (750, 751)] == [True, False]
    assert not NoCache().keeps(b"")


@pytest.mark.parametrize("metering", [EveryRead(), MeterOwnState()], ids=["every read", "carried"])
@pytest.mark.parametrize("pubsub_bytes", [2_500, 4_000, PLENTY])
def test_all_keys_are_delivered_once_for_each_root(metering: MeteringPolicy, pubsub_bytes: int) -> None:
    """A tight budget takes more passes, and delivers no key twice."""
    policies = Policies(callback=AllKeysOnChange(), metering=metering)
    world = World(config=replace(MOCK, max_value_length=100), policies=policies)
    wanted = keys(40)
    world.subscribe(ALPHA, wanted)
    for change in range(3):
        world.publish(ALPHA, wanted, bytes([change]) * 40)
        blocks = [world.block(pubsub_bytes) for _ in range(120)]
        called = [key for block in blocks for _, key in block.called]
        assert sorted(called) == wanted
        assert blocks[-1].result.is_complete


@pytest.mark.parametrize("max_cached_bytes", [None, 1 << 20])
@pytest.mark.parametrize("metering", [EveryRead(), MeterOwnState()], ids=["every read", "carried"])
def test_a_node_too_long_for_the_cache_hides_none_below_it(
    metering: MeteringPolicy, max_cached_bytes: int | None
) -> None:
    if metering == MeterOwnState() and max_cached_bytes is not None:
        pytest.skip("the metering rules out a limit of cached bytes")
    config = replace(MOCK, max_cached_bytes=max_cached_bytes)
    world = World(config=config, policies=Policies(metering=metering, cache=StructureNodes(512)))
    whole = World(config=config, policies=Policies(metering=metering))
    wanted = keys(400)
    for each in (world, whole):
        each.subscribe(ALPHA, wanted)
        each.publish(ALPHA, wanted)
        each.block()
    long = {node_hash for node_hash, node in whole.cached(ALPHA).items() if len(node) > 512}
    assert len(long) == 1, "the root"
    assert world.cached(ALPHA) == {key: node for key, node in whole.cached(ALPHA).items() if key not in long}


def test_an_advanced_block_gives_messages_in_full_until_the_next_might_not_fit() -> None:
    for allows, room in ((False, 1_500), (True, 1_499)):
        assert Advanced().allows(full_bytes=500, largest_next=1_000, room=room) is allows
        assert Basic().allows(full_bytes=500, largest_next=1_000, room=room)


# Whole blocks


@yields("subscriber/policies")
@pytest.mark.parametrize(
    ("name", "policies", "why"),
    [
        ("numeric", {"order": "numeric"}, "publishers in the order of their ids"),
        ("all-keys", {"callback": "all-keys"}, "every key of a changed publisher is told"),
        ("no-cache", {"cache": "none"}, "nothing is cached"),
        ("after-first-key", {"root_commit": "after-first-key"}, "the new root is stored although keys are left"),
        ("forget-unchanged", {"root_commit": "forget-unchanged"}, "roots of unchanged publishers are forgotten"),
        ("values-only", {"metering": "values-only"}, "nodes of the proof are not charged"),
        ("several", {"order": "numeric", "callback": "all-keys", "cache": "none"}, "several choices at once"),
    ],
)
def test_a_history_under_another_policy_goes_as_that_policy_says(
    name: str, policies: dict[str, str], why: str
) -> Iterator[BlockVector]:
    network = SmallNetwork(policies=policies)
    source = VectorSource(trap=name)
    for publisher in (OTHER_PUBLIC, PUBLIC, ALPHA)[: 2 + (name == "numeric")]:
        network.subscribe(publisher, [A, B])
        network.publish(publisher, [A, B, C], str(publisher).encode() * 6)

    def about(part: str, what: str) -> About:
        return About(f"policies/{name}/{part}", f"{why}: {what}", source)

    yield network.block(about("first", "first sight"), seed=b"1")
    yield network.block(about("unchanged", "nothing changed"), seed=b"2")
    network.publish(PUBLIC, [A], b"changed" * 4)
    yield network.block(about("changed", "one key changed"), seed=b"3")
    network.publish(PUBLIC, [A, B], b"again" * 6)
    network.publish(OTHER_PUBLIC, [B], b"again" * 6)
    network.seal()
    tight = about("cut-short", "a pass is cut short")
    paid = costs(network.honest(tight, seed=b"4", seal=False))
    yield network.block(tight, budget=of_bytes(max(0, paid[-1] - 1)), seed=b"4", seal=False)
    yield network.block(about("same", "the rest of it"), seed=b"5", seal=False)
    if name == "after-first-key":
        return  # its node caches hold what no root accounts for: no text says what becomes of that
    network.delete(PUBLIC, [A])
    yield network.block(about("deleted", "a key is deleted"), seed=b"6")


@yields("subscriber/policies")
def test_a_bound_of_512_bytes_leaves_every_full_branch_out_of_the_cache() -> Iterator[BlockVector]:
    network = SmallNetwork(policies={"max_cached_node": "512"})
    whole = [path_key(f"{nibble:x}") for nibble in range(16)]
    network.subscribe(ALPHA, whole[:1])
    network.publish(ALPHA, whole, b"\x01")
    source = VectorSource(trap="max-cached-node")
    yield network.block(About("policies/max-cached-node/first", "a full branch of 531 bytes is not cached", source))
    for number in (1, 0, 0):
        network.publish(ALPHA, [whole[number]], bytes([network.number]))
        name, what = f"policies/max-cached-node/{network.number}", "a foreign key" if number else "the key"
        yield network.block(
            About(name, f"{what} changed: the full branch is read again, its key is told again", source)
        )
