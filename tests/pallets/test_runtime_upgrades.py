"""Code changes between two blocks of a subscriber: each scene by itself, and the mutants of migrations that it catches.

The scenes check every invariant on their way. A mutant loses an update, tells one twice, leaves nodes behind, or lets
an honest block panic.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from pallets.block_vectors import ALPHA, BETA, keys, path_key, staircase
from pallets.subscriber_invariants import (
    ChangesTold,
    all_hold,
    cache_is_exact,
    nothing_is_lost,
    one_pass_in_both_modes,
    proof_is_what_was_read,
)
from pallets.subscriber_world import Block, World
from pallets.upgrade_mutants import (
    PATCH,
    charge_as_before,
    count_no_places,
    keep_nodes_without_uses,
    look_at_one_root,
    migrate_followed_publishers_alone,
    migrate_nothing,
    trust_roots,
    trust_uses,
)
from relaycast_pallets import Origin, Policies, derive_child_info
from relaycast_pallets.parachain_system.pallet import Panic
from relaycast_pallets.subscriber.policies import (
    ChangedKeys,
    EveryRead,
    StructureNodes,
    SystemFirstShuffled,
    WhenPublisherDone,
)
from relaycast_pallets.subscriber.variants.drafts import (
    AfterFirstKey,
    AllKeysOnChange,
    ForgetUnchanged,
    NoCache,
    SystemFirstNumeric,
    ValuesOnly,
)
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_pallets.subscriber.variants.migration import migrate
from relaycast_trie.exceptions import InvalidNode
from relaycast_xcm.primitives import Weight

W = keys(12, prefix="w")
OTHERS = [path_key("0"), *keys(4, prefix="more"), path_key("f")]
"""Keys without a reader, before, between and after those."""

PLAIN, CARRIED = Policies(), Policies(metering=MeterOwnState())
ENOUGH_FOR_SOME = 3_000
"""A budget that ends a pass among the keys, whatever it is charged for."""


class Chain(World):
    """A parachain that seals its state after each block, with every invariant checked in each."""

    def __init__(self, policies: Policies = PLAIN) -> None:
        super().__init__(policies=policies)
        self.told = ChangesTold()

    def pass_(self, pubsub_bytes: int = 1 << 20) -> Block:
        self.told.note(self)
        block = self.block(pubsub_bytes)
        all_hold(self, block, self.told)
        self.state.commit()
        return block

    def interrupt(self) -> None:
        block = self.pass_(ENOUGH_FOR_SOME)
        assert not block.result.is_complete
        assert 0 < len(block.calls) < len(W)

    def settle(self) -> Block:
        block = self.pass_()
        assert block.result.is_complete
        return block


def following(policies: Policies = PLAIN) -> Chain:
    """Return a parachain that has dealt with twelve keys of one publisher, which has others too."""
    chain = Chain(policies)
    chain.subscribe(ALPHA, W)
    chain.publish(ALPHA, OTHERS, bytes(40))
    write(chain, 0)
    chain.settle()
    return chain


def write(chain: Chain, number: int) -> None:
    """Give each key a long value of its own."""
    for place, wanted in enumerate(W):
        chain.publish(ALPHA, [wanted], bytes([number, place]) * 150)


# The scenes.


def metering_changes_while_a_pass_is_interrupted() -> None:
    """Nodes are stored in another form. What the pass dealt with stays dealt with, and each change is told once."""
    for before, after in ((PLAIN, CARRIED), (CARRIED, PLAIN)):
        chain = following(before)
        write(chain, 1)
        chain.interrupt()
        chain.upgrade(policies=after)
        for number in range(2, 5):
            assert not chain.pass_(ENOUGH_FOR_SOME).result.is_complete
            write(chain, number)
        assert sorted(wanted for _, wanted in chain.settle().called) == W
        chain.publish(ALPHA, W[:1], bytes(50))
        assert chain.settle().called == [(ALPHA, W[0])]


def some_keys_wait_while_metering_changes() -> None:
    """Keys whose turn has not come are compared with the old trie: those that did not change are not told again."""
    chain = following()
    changed = W[::2]
    for place, wanted in enumerate(changed):
        chain.publish(ALPHA, [wanted], bytes([place]) * 600)
    block = chain.pass_(ENOUGH_FOR_SOME)
    assert 0 < len(block.calls) < len(changed)
    chain.upgrade(policies=CARRIED)
    assert sorted([*block.called, *chain.settle().called]) == [(ALPHA, wanted) for wanted in changed]


def metering_changes_at_rest() -> None:
    """A cache that is exact stays exact: nothing is read again but what changes."""
    for before, after in ((PLAIN, CARRIED), (CARRIED, PLAIN)):
        chain = following(before)
        chain.upgrade(policies=after)
        assert chain.settle().called == []
        assert not chain.settle().sizes("relay_node")
        chain.publish(ALPHA, W[:1], bytes(50))
        block = chain.settle()
        assert block.called == [(ALPHA, W[0])]
        assert len(block.sizes("relay_node")) <= 4


def a_node_was_read_for_a_key_that_was_not_reached() -> None:
    """It is cached, though no key was dealt with against its root: it goes, for nothing would remove it later."""
    chain = following()
    write(chain, 1)
    chain.interrupt()
    chain.upgrade(policies=CARRIED)
    write(chain, 2)
    chain.settle()


def equal_leaves_under_new_metering() -> None:
    """Two keys end in the same node: it stays for one of them when the other moves on."""
    chain, (first, second) = Chain(CARRIED), (path_key("1"), path_key("2"))
    chain.subscribe(ALPHA, [first, second])
    chain.publish(ALPHA, [first], bytes(40))
    entry = chain.entry(ALPHA, first)
    assert entry is not None
    chain.relay.child(derive_child_info(ALPHA)).put(second, entry)
    chain.settle()
    chain.upgrade(policies=PLAIN)
    chain.publish(ALPHA, [first], bytes(50))
    chain.settle()
    chain.publish(ALPHA, [path_key("21")], bytes(60))
    assert chain.settle().called == []


def uses_are_counted_from_now_on() -> None:
    """Callbacks for all keys leave nodes whose uses are not counted; under callbacks for changes they have to be."""
    chain = following(Policies(metering=MeterOwnState(), callback=AllKeysOnChange()))
    write(chain, 1)
    chain.interrupt()
    chain.upgrade(policies=CARRIED)
    write(chain, 2)
    chain.settle()
    write(chain, 3)
    chain.settle()


def a_root_was_forgotten_in_mid_pass() -> None:
    """Waiting keys no longer count, and neither do the nodes that they used."""
    chain = following(Policies(metering=MeterOwnState(), root_commit=ForgetUnchanged()))
    write(chain, 1)
    chain.block(ENOUGH_FOR_SOME)
    chain.state.commit()
    chain.upgrade(policies=CARRIED)
    chain.told = ChangesTold()
    chain.settle()


def keys_were_lost_before() -> None:
    """The root that an interrupted pass left says that all was dealt with: after the upgrade all is told."""
    chain = following(Policies(root_commit=AfterFirstKey()))
    write(chain, 1)
    chain.block(ENOUGH_FOR_SOME)
    chain.upgrade(policies=PLAIN)
    chain.told = ChangesTold()
    assert len(chain.settle().called) == len(W)
    nothing_is_lost(chain)


def keys_are_added_after_a_root_was_forgotten() -> None:
    """No key of the publisher counts as dealt with: all its old nodes go, whichever keys are added."""
    chain = following(Policies(metering=MeterOwnState(), root_commit=AfterFirstKey()))
    chain.upgrade(policies=CARRIED)
    chain.subscribe(ALPHA, [*W, *OTHERS[1:3]])
    write(chain, 1)
    chain.told = ChangesTold()
    assert len(chain.settle().called) == len(W) + 2
    write(chain, 2)
    assert len(chain.settle().called) == len(W)


def a_publisher_that_left_has_nodes() -> None:
    """No subscription uses them: they stay in their new form until they are cleared, and do no harm when it returns."""
    for before, after in ((PLAIN, CARRIED), (CARRIED, PLAIN)):
        chain = following(before)
        chain.subscribe(ALPHA, [])
        chain.settle()
        held = chain.cached(ALPHA)
        chain.upgrade(policies=after)
        assert held
        assert chain.cached(ALPHA) == held
        chain.subscribe(ALPHA, W)
        chain.told = ChangesTold()
        assert len(chain.settle().called) == len(W)


def values_are_bounded_anew() -> None:
    """A read is charged for at most the new bound: with any budget the block is valid, and longer values arrive."""
    for bound in (100, 4_096):
        for pubsub_bytes in range(0, 6_000, 211):
            chain = following()
            write(chain, 1)
            chain.interrupt()
            chain.upgrade(max_value_length=bound)
            chain.publish(ALPHA, W[6:], bytes(1_000))
            chain.pass_(pubsub_bytes)
            chain.settle()


def a_limit_falls_below_paths_that_stand() -> None:
    """They stay until they change: then the publisher is disabled, and no other is harmed."""
    chain, deep, shallow = Chain(), staircase(6), path_key("f")
    chain.subscribe(ALPHA, [deep[0], shallow])
    chain.publish(ALPHA, [*deep, shallow], bytes(40))
    chain.subscribe(BETA, keys(3))
    chain.publish(BETA, keys(3), bytes(40))
    chain.settle()
    chain.upgrade(max_trie_depth=4)
    assert chain.settle().called == []
    chain.publish(ALPHA, [shallow], bytes(41))
    assert chain.settle().called == [(ALPHA, shallow)]
    chain.publish(ALPHA, [shallow, deep[0]], bytes(42))
    chain.publish(BETA, keys(3), bytes(42))
    assert chain.settle().called == [(BETA, wanted) for wanted in keys(3)]
    assert ALPHA in chain.storage.disabled_publishers
    chain.upgrade(max_trie_depth=6)
    assert chain.settle().called == []
    chain.subscriber.enable_publisher(Origin.root(), ALPHA)
    assert sorted(chain.settle().called) == sorted([(ALPHA, shallow), (ALPHA, deep[0])])


def a_limit_falls_while_a_pass_is_interrupted() -> None:
    """The publisher is disabled at the first key that is too deep now; once enabled, what it owes arrives."""
    chain, deep = Chain(), staircase(7, subscribed=path_key("e"))
    chain.subscribe(ALPHA, [*W, deep[0]])
    chain.publish(ALPHA, deep, bytes(40))
    write(chain, 0)
    chain.interrupt()
    chain.upgrade(max_trie_depth=3)
    while ALPHA not in chain.storage.disabled_publishers:
        chain.pass_(ENOUGH_FOR_SOME)
    assert chain.settle().called == []
    chain.upgrade(max_trie_depth=8)
    chain.subscriber.enable_publisher(Origin.root(), ALPHA)
    chain.settle()
    nothing_is_lost(chain)


# The mutants of the migration.


SCENES: dict[Callable[[], None], tuple[Callable[[PATCH], None], ...]] = {
    metering_changes_while_a_pass_is_interrupted: (migrate_nothing,),
    some_keys_wait_while_metering_changes: (look_at_one_root,),
    metering_changes_at_rest: (migrate_nothing,),
    a_node_was_read_for_a_key_that_was_not_reached: (keep_nodes_without_uses,),
    equal_leaves_under_new_metering: (count_no_places,),
    uses_are_counted_from_now_on: (trust_uses,),
    a_root_was_forgotten_in_mid_pass: (trust_uses,),
    keys_were_lost_before: (trust_roots,),
    keys_are_added_after_a_root_was_forgotten: (),
    a_publisher_that_left_has_nodes: (migrate_followed_publishers_alone,),
    values_are_bounded_anew: (charge_as_before,),
    a_limit_falls_below_paths_that_stand: (),
    a_limit_falls_while_a_pass_is_interrupted: (),
}
CASES = [(scene, mutate) for scene, mutants in SCENES.items() for mutate in mutants]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_nothing_is_lost_and_nothing_is_told_twice_when(scene: Callable[[], None]) -> None:
    scene()


@pytest.mark.parametrize(
    ("scene", "mutate"), CASES, ids=[f"{mutate.__name__}, {scene.__name__}" for scene, mutate in CASES]
)
def test_a_mutant_is_caught_when(
    scene: Callable[[], None], mutate: Callable[[PATCH], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with pytest.raises((AssertionError, Panic, InvalidNode)):
        scene()


def test_a_migration_weighs_a_read_and_a_write_for_each_cached_node() -> None:
    chain = following()
    count, weight = len(chain.cached(ALPHA)), chain.subscriber.config.db_weight
    chain.subscriber.policies = CARRIED
    assert count
    assert migrate(chain.subscriber, PLAIN) == weight.reads_writes(count, count)


@pytest.mark.parametrize(
    "after", [Policies(order=SystemFirstNumeric(), metering=ValuesOnly()), Policies(cache=NoCache())]
)
def test_an_upgrade_that_needs_no_migration_writes_nothing(after: Policies) -> None:
    chain = following()
    write(chain, 1)
    chain.interrupt()
    before = chain.everything()
    chain.subscriber.policies = after
    assert migrate(chain.subscriber, PLAIN) == Weight.ZERO
    assert chain.everything() == before


EVERY: dict[str, tuple[Any, ...]] = {
    "order": (SystemFirstShuffled(), SystemFirstNumeric()),
    "metering": (EveryRead(), ValuesOnly(), MeterOwnState()),
    "root_commit": (WhenPublisherDone(), ForgetUnchanged(), AfterFirstKey()),
    "callback": (ChangedKeys(), AllKeysOnChange()),
    "cache": (StructureNodes(), StructureNodes(300), NoCache()),
}
PAIRS = [(kind, *pair) for kind, choices in EVERY.items() for pair in permutations(choices, 2)]


@pytest.mark.parametrize("metering", [EveryRead(), MeterOwnState()], ids=lambda metering: type(metering).__name__)
@pytest.mark.parametrize(
    ("kind", "before", "after"), PAIRS, ids=[f"{kind}, {before} to {after}" for kind, before, after in PAIRS]
)
def test_every_policy_gives_way_to_every_other_in_mid_pass(kind: str, before: Any, after: Any, metering: Any) -> None:
    """Collator and chain agree in every block, every value arrives, and the default policies leave an exact cache."""
    chain = World(policies=replace(Policies(metering=metering), **{kind: before}))
    chain.subscribe(ALPHA, W)
    for number in range(8):
        for place, wanted in enumerate(W):
            chain.publish(ALPHA, [wanted], bytes([number, place]) * 150)
        block = chain.block(ENOUGH_FOR_SOME if number % 3 else 1 << 20)
        one_pass_in_both_modes(block)
        proof_is_what_was_read(chain, block)
        chain.state.commit()
        if number == 4:
            assert not block.result.is_complete
            chain.upgrade(policies=replace(chain.subscriber.policies, **{kind: after}))
    chain.upgrade(policies=Policies(metering=metering))
    assert chain.block().result.is_complete
    nothing_is_lost(chain)
    chain.state.commit()
    chain.publish(ALPHA, W, b"new")
    chain.block()
    cache_is_exact(chain)
