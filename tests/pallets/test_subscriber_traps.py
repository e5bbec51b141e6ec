"""The traps that drafts of the subscriber fell into: each is a wrong policy or a mutant, or a scene of its vectors.

``drive`` runs a small network through what a trap needs and checks every invariant on the way. The code as it is
passes; a mutant must not, and must fail at the invariant that the trap breaks, or change the vectors of the trap.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from pallets.block_vectors import (
    ALPHA,
    BETA,
    PUBLIC,
    SMALL,
    A,
    B,
    BlockVector,
    C,
    D,
    K,
    SmallNetwork,
    cut_short,
    following,
    keys,
    path_key,
    prune,
    staircase,
    told,
    trap,
    values,
)
from pallets.subscriber_invariants import cache_is_exact
from pallets.subscriber_mutants import tell_keys_of_the_disabled
from pallets.subscriber_scenes import drive, grow_deep, grow_wide, pad
from pallets.subscriber_world import MOCK, World
from relaycast_pallets import MAX_NODE_BYTES, Policies, PublishedEntry, TrackedProof, derive_child_info
from relaycast_pallets.frame.storage import Transaction
from relaycast_pallets.parachain_system import pallet as parachain_module
from relaycast_pallets.subscriber.node_cache import NodeCache, PublisherCache, marked_placements
from relaycast_pallets.subscriber.pallet import ProcessingMode, Subscriber, process_proof
from relaycast_pallets.subscriber.plan import PublisherView
from relaycast_pallets.subscriber.policies import StructureNodes
from relaycast_pallets.subscriber.proof_pass import PaidReads, PublisherPass
from relaycast_pallets.subscriber.result import NodeRead, PublisherChange, Stop
from relaycast_pallets.subscriber.subscription import SubscribedPaths
from relaycast_pallets.subscriber.variants.drafts import (
    AfterFirstKey,
    AllKeysOnChange,
    ForgetUnchanged,
    NoCache,
    SystemFirstNumeric,
    ValuesOnly,
)
from relaycast_pallets.subscriber.walk import PublisherWalk
from relaycast_trie import MemoryDB, StateVersion, StorageProof, TrieDBMut, UnusedNodes, blake2_256
from vector_fields import hexed
from yielded_vectors import yields

Mutation = Callable[[pytest.MonkeyPatch], None]
PATCH = pytest.MonkeyPatch


# The mutants. Each says what it gets wrong.


def sweep_per_key(patch: PATCH) -> None:
    """Each key's path sweeps the others out of the cache."""

    def last_key_only(self: NodeCache, change: PublisherChange, view: PublisherView, root: bytes) -> PublisherCache:
        stored = view.cache.all()
        known = stored | change.nodes
        last = SubscribedPaths.of(view.subscribed.keys[-1:])
        return PublisherCache.exactly(marked_placements(last, root, known), self.kept(known), stored)

    patch.setattr(NodeCache, "swept", last_key_only)


def compare_by_depth(patch: PATCH) -> None:
    """Both paths are walked in steps; where they stand at different prefixes, all below counts as new."""
    visit = PublisherWalk._visit

    def lock_step(self: PublisherWalk, low: int, high: int, new: Any, old: Any) -> None:
        if isinstance(new, tuple) and isinstance(old, tuple) and new[0] != old[0]:
            old = None
        visit(self, low, high, new, old)

    patch.setattr(PublisherWalk, "_visit", lock_step)


def cached_means_unchanged(patch: PATCH) -> None:
    """A node that is anywhere in the cache counts as unchanged."""
    visit = PublisherWalk._visit

    def present(self: PublisherWalk, low: int, high: int, new: Any, old: Any) -> None:
        if isinstance(new, tuple) and self._reads._view.cache.get(new[1]) is not None:  # type: ignore[attr-defined]
            return
        visit(self, low, high, new, old)

    patch.setattr(PublisherWalk, "_visit", present)


def forget_nodes_above(patch: PATCH) -> None:
    """An unchanged node is settled although there are more nodes above it than there were."""
    visit = PublisherWalk._visit

    def settled(self: PublisherWalk, low: int, high: int, new: Any, old: Any) -> None:
        if not (isinstance(new, tuple) and isinstance(old, tuple) and new[:2] == old[:2]):
            visit(self, low, high, new, old)

    patch.setattr(PublisherWalk, "_visit", settled)


def count_nodes(patch: PATCH) -> None:
    """One recorder for cached nodes and the proof's, and a comparison of counts."""

    def count(self: TrackedProof) -> None:
        if len(self.nodes) != len(self.accessed):
            raise UnusedNodes((b"",))

    read = PaidReads.cached

    def record_too(self: PaidReads, view: PublisherView, node_hash: bytes) -> bytes | None:
        data = read(self, view, node_hash)
        if data is not None:
            self.proof.accessed.add(node_hash)
        return data

    patch.setattr(TrackedProof, "ensure_no_unused_nodes", count)
    patch.setattr(PaidReads, "cached", record_too)


def count_parachain_blocks(patch: PATCH) -> None:
    """Times to live are counted from the parachain's own block number."""
    deliver = Subscriber._deliver

    def own_number(self: Subscriber, change: Any, now: int) -> None:
        deliver(self, change, self.system.block_number + 1_000)

    patch.setattr(Subscriber, "_deliver", own_number)


def missing_means_absent(patch: PATCH) -> None:
    """A node missing on the way to a child root counts as a child trie that is not there."""
    child_root = PaidReads.child_root

    def absent(self: PaidReads, view: PublisherView) -> bytes | None:
        try:
            return child_root(self, view)
        except Stop:
            return None

    patch.setattr(PaidReads, "child_root", absent)


def shuffle_apart(patch: PATCH) -> None:
    """The collator and the chain shuffle by different seeds."""

    def apart(mode: ProcessingMode, *given: Any, seed: bytes = b"", **more: Any) -> Any:
        return process_proof(mode, *given, seed=seed + mode.value.encode(), **more)

    patch.setattr(parachain_module, "process_proof", apart)


def never_roll_back(patch: PATCH) -> None:
    """A panic leaves what was written; here the demand comes after the writing, as in the drafts."""

    def demand_last(*given: Any, demand: Any = None, **more: Any) -> Any:
        result = process_proof(*given, **more)
        if demand is not None:
            demand(result)
        return result

    def leave(self: Transaction, *_error: object) -> None:
        self._undo.frame = self._outer

    patch.setattr(parachain_module, "process_proof", demand_last)
    patch.setattr(Transaction, "__exit__", leave)


def demand_after_the_callbacks(patch: PATCH) -> None:
    """The handler has been called when the block panics."""

    def demand_last(*given: Any, demand: Any = None, **more: Any) -> Any:
        result = process_proof(*given, **more)
        if demand is not None:
            demand(result)
        return result

    patch.setattr(parachain_module, "process_proof", demand_last)


def one_deep_publisher_ends_the_pass(patch: PATCH) -> None:
    """A path too deep ends the whole pass instead of its publisher's part."""
    process = PublisherPass.process

    def ends(self: PublisherPass, low: int, high: int) -> None:
        process(self, low, high)
        if self.found.disabled_by is not None:
            raise Stop

    patch.setattr(PublisherPass, "process", ends)


def sweep_never(patch: PATCH) -> None:
    """What leaves the trie stays in the cache."""

    def kept(self: NodeCache, change: PublisherChange, *_: Any) -> PublisherCache:
        return PublisherCache(insert=self.kept(change.nodes))

    patch.setattr(NodeCache, "swept", kept)


def spend_what_is_not_there(patch: PATCH) -> None:
    """A read that does not fit is made all the same."""

    def overspend(self: PaidReads, read: NodeRead) -> None:
        self.meter.consume(read.weight)
        self.made.append(read)

    patch.setattr(PaidReads, "pay", overspend)


SCENES = [drive, grow_wide, grow_deep, pad]

MUTANTS: list[tuple[Mutation, Callable[[World], None], str]] = [
    (sweep_per_key, drive, "cache_is_exact"),
    (sweep_never, drive, "cache_is_exact"),
    (count_nodes, pad, "refused"),
    (tell_keys_of_the_disabled, grow_deep, "disabled_publishers_are_silent"),
    (count_parachain_blocks, drive, "times_to_live_count_relay_blocks"),
    (shuffle_apart, drive, "one_pass_in_both_modes"),
    (never_roll_back, pad, "refused"),
    (demand_after_the_callbacks, pad, "refused"),
    (one_deep_publisher_ends_the_pass, grow_deep, "omission_is_within_the_slack"),
    (spend_what_is_not_there, drive, "within_the_limit"),
]

WRONG_POLICIES: list[tuple[Policies, Callable[[World], None], str]] = [
    (Policies(root_commit=AfterFirstKey()), drive, "nothing_is_lost"),
    (Policies(root_commit=ForgetUnchanged()), drive, "check"),
    (Policies(callback=AllKeysOnChange()), drive, "check"),
    (Policies(metering=ValuesOnly()), drive, "within_the_limit"),
    (Policies(cache=StructureNodes(512)), grow_wide, "cache_is_exact"),
    (Policies(cache=NoCache()), drive, "cache_is_exact"),
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("policies", [Policies(), Policies(order=SystemFirstNumeric())], ids=["default", "numeric"])
def test_the_code_as_it_is_holds_every_invariant(scene: Callable[[World], None], policies: Policies) -> None:
    scene(World(config=replace(MOCK, max_value_length=128), policies=policies))


@pytest.mark.parametrize(("mutate", "scene", "invariant"), MUTANTS, ids=[mutate.__name__ for mutate, _, _ in MUTANTS])
def test_a_mutant_is_caught(
    mutate: Mutation, scene: Callable[[World], None], invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(config=replace(MOCK, max_value_length=128))
    mutate(monkeypatch)
    assert caught_at(scene, world) == invariant


@pytest.mark.parametrize(
    ("policies", "scene", "invariant"), WRONG_POLICIES, ids=[invariant for _, _, invariant in WRONG_POLICIES]
)
def test_a_wrong_policy_is_caught(policies: Policies, scene: Callable[[World], None], invariant: str) -> None:
    assert caught_at(scene, World(config=replace(MOCK, max_value_length=128), policies=policies)) == invariant


def caught_at(scene: Callable[[World], None], world: World) -> str:
    """Return the name of the invariant at which ``scene`` fails."""
    with pytest.raises((AssertionError, pytest.fail.Exception, parachain_module.Panic)) as caught:
        scene(world)
    names = [entry.name for entry in caught.traceback if "subscriber_invariants" in str(entry.path)]
    if isinstance(caught.value, parachain_module.Panic):
        return "omission_is_within_the_slack"
    return next(name for name in reversed(names) if name != "<genexpr>")


def test_wrong_policies_cost_what_they_are_said_to_cost() -> None:
    """On one trace, in proof bytes: no cache and all keys on change pay for what did not change."""
    cost: dict[str, int] = {}
    for name, policies in {
        "default": Policies(),
        "all keys": Policies(callback=AllKeysOnChange()),
        "no cache": Policies(cache=NoCache()),
        "512 bytes": Policies(cache=StructureNodes(512)),
    }.items():
        world = World(policies=policies)
        every = keys(300)
        world.subscribe(ALPHA, every[:60])
        world.publish(ALPHA, every, bytes(40))
        world.block()
        world.publish(ALPHA, every[:1], bytes(41))
        cost[name] = world.block().inherent.proof_bytes
    assert cost["default"] < cost["512 bytes"] < cost["no cache"]
    assert cost["default"] < cost["all keys"]


def test_a_bound_of_750_bytes_keeps_every_node_that_32_byte_keys_can_make() -> None:
    world = World()
    grow_wide(world)
    assert max(map(len, world.cached(ALPHA).values())) == 531
    assert 2 + 32 + 2 + 16 * 33 == 564 <= MAX_NODE_BYTES
    cache_is_exact(world)


# The vectors.


@yields("subscriber/traps")
def test_a_pass_that_is_cut_short_keeps_the_old_root_and_the_next_one_tells_the_rest() -> Iterator[BlockVector]:
    about = trap("root-after-first-key", "a pass that is cut short keeps the old root: the other keys are told next")
    network = values(wanted=3)
    yield cut_short(network, about, reads=2)
    rest = network.block(about.at("rest", "the rest of the keys are told, and those told before are not told again"))
    assert told(rest) == [C]
    yield rest


@yields("subscriber/traps")
def test_the_root_of_an_unchanged_publisher_is_kept_while_another_one_changes() -> Iterator[BlockVector]:
    about = trap("unchanged-roots", "the root of a publisher that did not change is kept while another changes")
    network = following(ALPHA, BETA, wanted=1)
    for number in range(3):
        network.publish(BETA, [A], bytes([number]))
        yield network.block(about.at(number))


@yields("subscriber/traps")
def test_the_cache_is_swept_once_for_all_keys() -> Iterator[BlockVector]:
    about = trap("sweep-per-key", "the cache is swept once for all keys: every subscribed path stays")
    network = following(wanted=3, value=bytes(30))
    network.publish(ALPHA, K[:3], bytes(31))
    yield network.block(about)


@yields("subscriber/traps")
def test_a_branch_that_comes_above_keys_or_goes_changes_nothing_of_theirs() -> Iterator[BlockVector]:
    about = trap("compare-by-depth", "a foreign key puts a branch above two keys: nothing of theirs changed")
    network, wanted = SmallNetwork(), [path_key("00a"), path_key("00b")]
    network.subscribe(ALPHA, wanted)
    network.publish(ALPHA, wanted, bytes(30))
    network.block(about)
    network.publish(ALPHA, [path_key("01")], bytes(30))
    blocks = [network.block(about)]
    network.delete(ALPHA, [path_key("01")])
    blocks.append(network.block(about.at("merge", "the branch goes again: the paths move up, nothing is told")))
    network.publish(ALPHA, [path_key("00a1")], b"inside")
    split = about.at("split-leaf", "a foreign key splits the leaf of a key whose value did not change")
    blocks.append(network.block(split))
    network.publish(ALPHA, [path_key("02"), path_key("00a")], b"both")
    blocks.append(network.block(about.at("split-and-change", "a split and a change of value at once")))
    network.delete(ALPHA, [path_key("00b"), path_key("00a1")])
    blocks.append(network.block(about.at("merge-leaf", "a branch with two leaves becomes one leaf")))
    assert [told(block) for block in blocks] == [[], [], [], [path_key("00a")], []]
    yield from blocks


@yields("subscriber/traps")
def test_as_many_foreign_nodes_as_cached_ones_are_read_are_refused() -> Iterator[BlockVector]:
    about = trap("counted-nodes", "as many foreign nodes as cached ones are read: sets are compared, never counts")
    network = following(wanted=3, value=bytes(30))
    network.publish(ALPHA, [A], bytes(31))
    network.seal()
    honest = network.honest(about, seal=False)
    cached = sum(not read.source.is_relay for read in prune(honest)[1].reads)
    nodes = honest.nodes_at(honest.given)
    yield network.lie(honest, about, [*nodes, *(b"foreign" + bytes([it]) for it in range(cached))])


@yields("subscriber/traps")
def test_a_branch_with_sixteen_children_is_cached() -> Iterator[BlockVector]:
    about = trap("full-branch", "a branch with sixteen children has 531 bytes and is cached: the bound is 750")
    network, whole = SmallNetwork(), [path_key(f"{nibble:x}") for nibble in range(16)]
    network.subscribe(ALPHA, whole[:1])
    network.publish(ALPHA, whole, bytes(2))
    yield network.block(about)
    network.publish(ALPHA, whole[:1], b"new")
    yield network.block(about.at("again", "the next block reads the full branch from the cache"))


@yields("subscriber/traps")
def test_a_key_that_is_read_before_a_deep_one_of_its_publisher_is_not_told() -> Iterator[BlockVector]:
    about = trap("callback-before-depth-check", "a key that was read before a deep one of its publisher is not told")
    network, deep = SmallNetwork(), staircase(9, subscribed=path_key("f"))
    network.subscribe(PUBLIC, [path_key("0"), path_key("1"), deep[0]])
    network.publish(PUBLIC, [path_key("0"), path_key("1"), *deep], bytes(30))
    block = network.block(about)
    assert told(block) == []
    yield block


@pytest.mark.parametrize("left", [2, 1, 0])
@yields("subscriber/traps")
def test_times_to_live_count_blocks_of_the_relay_chain(left: int) -> Iterator[BlockVector]:
    about = trap("ttl-of-relay-blocks", "times to live count blocks of the relay chain, from the relay parent")
    network = SmallNetwork(number=1_000)
    network.subscribe(ALPHA, [A])
    network.write(ALPHA, A, PublishedEntry(b"brief", 100, 901 + left).encode())
    yield network.block(about.at(left, f"an entry with {left} relay blocks left"))


@yields("subscriber/traps")
def test_an_expiry_beyond_32_bits_is_not_truncated() -> Iterator[BlockVector]:
    about = trap("ttl-of-relay-blocks", "times to live count blocks of the relay chain, from the relay parent")
    network = SmallNetwork(number=0xFFFF_FFF0)
    network.subscribe(ALPHA, [A, B, C])
    for each, ttl, inserted in ((A, 0xFFFF_FFFF, 0xFFFF_FFFF), (B, 1, 0xFFFF_FFFF), (C, 16, 0xFFFF_FFE0)):
        network.write(ALPHA, each, PublishedEntry(b"late", ttl, inserted).encode())
    yield network.block(about.at("overflow", "an expiry beyond 2^32 is not truncated; what is left is"))


@yields("subscriber/traps")
def test_a_missing_node_on_the_way_to_a_child_root_is_no_absence() -> Iterator[BlockVector]:
    about = trap("missing-is-not-absent", "the last node on the way to a child root is left out: it is no absence")
    network = SmallNetwork()
    for publisher in (ALPHA, BETA):
        network.subscribe(publisher, [A])
        network.publish(publisher, [A], str(publisher).encode())
    network.seal()
    honest = network.honest(about, seal=False)
    result = prune(honest)[1]
    tops = [read.node_hash for read in result.reads if read.source.value == "relay_top"]
    gone = {read.node_hash for read in result.reads if read.publisher == BETA} | {tops[-1]}
    rest = [node for node in honest.nodes_at(honest.given) if blake2_256(node) not in gone]
    yield network.lie(honest, about, rest)


@yields("subscriber/traps")
def test_a_node_stays_until_it_leaves_its_last_place_and_each_new_place_is_told() -> Iterator[BlockVector]:
    about = trap("shared-leaf", "two keys with equal leaves: one cached node, two places")
    first, second, third = (path_key(digit) for digit in "123")
    network = SmallNetwork()
    network.subscribe(ALPHA, [first, second, third])
    network.publish(ALPHA, [first, second], bytes(30))
    network.publish(ALPHA, [third], bytes(31))
    yield network.block(about)
    entry = network.entry(ALPHA, first)
    assert entry is not None
    network.write(ALPHA, third, entry)
    taken = network.block(about.at("third", "a node that is cached for another place is new here: the key is told"))
    assert told(taken) == [third]
    yield taken
    network.publish(ALPHA, [first], bytes(32))
    yield network.block(about.at("one-goes", "one of three places goes: the count is two"))
    network.publish(ALPHA, [second], bytes(33))
    yield network.block(about.at("another-goes", "one place is left: no count is stored, the node stays"))


@yields("subscriber/traps")
def test_unchanged_nodes_count_anew_where_more_nodes_come_above_them() -> Iterator[BlockVector]:
    about = trap("nodes-above", "unchanged nodes are counted anew where more nodes stand above them")
    network, steps = SmallNetwork(config=structs.replace(SMALL, max_trie_depth=5)), staircase(7)
    network.subscribe(ALPHA, steps[:1])
    network.publish(ALPHA, [steps[0], *steps[-4:]], bytes(30))
    network.block(about)
    network.publish(ALPHA, [steps[2]], bytes(30))
    yield network.block(about)


@yields("subscriber/traps")
def test_a_node_of_two_publishers_is_paid_for_once_and_cached_for_both() -> Iterator[BlockVector]:
    about = trap("equal-publishers", "two publishers with equal tries: a node is paid for once and cached for both")
    network = SmallNetwork()
    for publisher in (ALPHA, BETA):
        network.subscribe(publisher, [A, B])
        network.publish(publisher, [A, B], bytes(30))
    yield network.block(about)


@yields("subscriber/traps")
def test_a_value_that_is_no_entry_is_passed_over_with_an_event() -> Iterator[BlockVector]:
    about = trap("undecodable", "what is no PublishedEntry is passed over with an event")
    network = following(wanted=3)
    network.write(ALPHA, A, b"\xff")
    network.write(ALPHA, B, PublishedEntry(b"x", 0, 1).encode() + b"\x00")
    network.write(ALPHA, C, b"\x05\x00x" + bytes(8))
    network.publish(ALPHA, [D], b"fine")
    yield network.block(about)


@pytest.mark.parametrize("version", list(StateVersion))
@pytest.mark.parametrize("size", [0, 31, 33])
@yields("subscriber/traps")
def test_a_broken_child_root_is_no_absence(version: StateVersion, size: int) -> Iterator[BlockVector]:
    why = f"a child root of {size} bytes, state version {version.value}: a broken root is no absence"
    about, network = trap(f"broken-child-root/v{version.value}-{size}", why), SmallNetwork()
    network.subscribe(ALPHA, [A])
    network.seal()
    root_key, db = derive_child_info(ALPHA).prefixed_storage_key(), MemoryDB()
    top = TrieDBMut(db, state_version=version)
    top[root_key] = bytes(size)
    top[network.static_keys[0]] = bytes(8)
    root = top.commit()
    nodes = StorageProof.generate(db, root, [root_key, *network.static_keys]).nodes
    yield network.lie(structs.replace(network.asked(about), relay_root=hexed(root)), about, sorted(nodes))


@pytest.mark.parametrize(
    ("name", "junk"),
    [("kind", b"\x01junk"), ("cut", b"\x7f\x01"), ("bitmap", b"\x80\x00\x00"), ("length", b"\x41\x0a\xfc")],
)
@yields("subscriber/traps")
def test_a_node_that_does_not_decode_is_refused_whoever_reads_it(name: str, junk: bytes) -> Iterator[BlockVector]:
    about = trap("broken-node", "a node whose hash fits and whose bytes do not decode: the block panics")
    network = SmallNetwork(static_keys=())
    network.subscribe(ALPHA, [A])
    network.seal()
    asked = structs.replace(network.asked(about), relay_root=hexed(blake2_256(junk)))
    yield network.lie(asked, about.at(name), [junk])
    static = structs.replace(asked, static_keys=(hexed(A),))
    yield network.lie(static, about.at(f"{name}-static", "the same where a static key meets it"), [junk])


CHANGED_VECTORS: list[tuple[Mutation, Callable[[], None]]] = [
    (compare_by_depth, test_a_branch_that_comes_above_keys_or_goes_changes_nothing_of_theirs),
    (cached_means_unchanged, test_a_node_stays_until_it_leaves_its_last_place_and_each_new_place_is_told),
    (forget_nodes_above, test_unchanged_nodes_count_anew_where_more_nodes_come_above_them),
    (missing_means_absent, test_a_missing_node_on_the_way_to_a_child_root_is_no_absence),
]


@pytest.mark.parametrize(("mutate", "law"), CHANGED_VECTORS, ids=[mutate.__name__ for mutate, _ in CHANGED_VECTORS])
def test_a_mutant_changes_the_vectors_of_its_trap(
    mutate: Mutation, law: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        law()
