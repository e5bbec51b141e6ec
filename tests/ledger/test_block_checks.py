"""Invariants: each is broken on purpose once, by a policy that is wrong or by a collator that does something else."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from collator.networks import (
    EVERYTHING,
    OTHER_PUBLISHER,
    PUBLISHER,
    SUBSCRIBER,
    deep_keys,
    key,
    keys,
    network,
    publish,
    run,
    values,
)
from ledger.watched import Watched
from relaycast_collator import Collation, Collator, Genesis, modelled_genesis
from relaycast_collator.relay_chain import RelayBlock
from relaycast_ledger import Invariants
from relaycast_ledger.records import VIOLATIONS_KEPT
from relaycast_pallets import Origin, PublishedEntry, derive_child_info
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.config import CALLBACK_LIMIT
from relaycast_pallets.subscriber.plan import Turn
from relaycast_pallets.subscriber.policies import Policies, StructureNodes
from relaycast_pallets.subscriber.proof_pass import CallbackMeter
from relaycast_pallets.subscriber.variants.drafts import (
    AfterFirstKey,
    AllKeysOnChange,
    ForgetUnchanged,
    NoCache,
    ValuesOnly,
)
from relaycast_trie import StateVersion, StorageProof
from relaycast_xcm import ParaId, Weight, WeightMeter

Patch = pytest.MonkeyPatch
Breaks = Callable[[Patch], Watched]

SYSTEM = ParaId(1_000)


def network_with(
    policies: Policies | None = None, *, budget: BudgetPolicy | None = None, pov: int = 1 << 20, size: int = 16
) -> Watched:
    """Return a network after a run in which two publishers take turns, with something left for late deliveries."""
    net = network(publishers=(PUBLISHER, OTHER_PUBLISHER), subscribers=())
    net.add_parachain(SUBSCRIBER, policies=policies, budget=budget, max_pov_size=pov)
    for publisher in (PUBLISHER, OTHER_PUBLISHER):
        net.subscribe(SUBSCRIBER, publisher, keys(8))
    for tick in range(8):
        some = dict(list(values(8, tick, size).items())[tick // 2 % 2 :: 2])
        publish(net, (PUBLISHER, OTHER_PUBLISHER)[tick % 2], some)
        net.step()
    run(net, 8)
    return net


def patched(change: Callable[[Collation], Collation]) -> Breaks:
    """Return a network whose collators hand over something else than they should, and are not said to lie."""

    def build(patch: Patch) -> Watched:
        honest = Collator.collate

        def collate(self: Collator, relay_parent: RelayBlock) -> Collation:
            collation = honest(self, relay_parent)
            return change(collation) if collation.pruning.reads else collation

        patch.setattr(Collator, "collate", collate)
        return network_with()

    return build


def without_a_node(collation: Collation) -> Collation:
    nodes = collation.inherent.relay_chain_state[1:]
    return replace(collation, inherent=replace(collation.inherent, relay_chain_state=nodes))


def with_a_generous_meter(patch: Patch) -> Watched:
    def try_consume(self: WeightMeter, weight: Weight) -> bool:
        self.consume(weight)
        return True

    patch.setattr(WeightMeter, "try_consume", try_consume)
    return network_with(budget=EVERYTHING, pov=1_000, size=500)


def with_a_generous_callback_meter(patch: Patch) -> Watched:
    """Each callback counts for more than a block allows, and is let through."""
    patch.setattr(CallbackMeter, "admit", lambda _self, _publisher, _key: Weight(CALLBACK_LIMIT.ref_time + 1))
    return network_with()


def with_a_cache_of_anything(_: Patch) -> Watched:
    """Version 0 keeps long values inside of leaves: a cache without a bound takes them in."""
    entries = {name: PublishedEntry(data, 0, 0).encode() for name, data in values(8, 0, 2_000).items()}
    child: dict[bytes, bytes] = dict(entries)
    genesis = Genesis(modelled_genesis(7).top, {derive_child_info(SYSTEM).storage_key: child}, StateVersion.V0)
    net = Watched(genesis=genesis)
    net.add_parachain(SUBSCRIBER, policies=Policies(cache=StructureNodes(max_node_bytes=10_000)))
    net.subscribe(SUBSCRIBER, SYSTEM, keys(8))
    run(net, 3)
    return net


MUTANTS: dict[str, Breaks] = {
    "an honest block is valid": patched(without_a_node),
    "prune and verify read the same nodes": patched(
        lambda collation: replace(
            collation,
            pruning=changed(collation.pruning, reads=[*collation.pruning.reads[::-1], *collation.pruning.reads]),
        )
    ),
    "prune and verify consume the same weight": patched(
        lambda collation: replace(
            collation, pruning=changed(collation.pruning, consumed=collation.pruning.consumed + Weight(0, 1))
        )
    ),
    "prune and verify set the same cursor": patched(
        lambda collation: replace(collation, pruning=changed(collation.pruning, turn=Turn(None, (PUBLISHER, key(0)))))
    ),
    "the pruned proof is a part of the collected one": patched(
        lambda collation: replace(collation, collected=StorageProof(()))
    ),
    "no more is consumed than allowed": with_a_generous_meter,
    "no more is read than allowed": lambda _: network_with(
        Policies(metering=ValuesOnly()), budget=EVERYTHING, pov=1_000, size=500
    ),
    "callbacks declare no more than a block allows": with_a_generous_callback_meter,
    "cached nodes are within their bound": with_a_cache_of_anything,
    "roots of unchanged publishers are kept": lambda _: network_with(Policies(root_commit=ForgetUnchanged())),
    "no callback without a change": lambda _: network_with(Policies(callback=AllKeysOnChange())),
    "no update is lost": lambda _: network_with(
        Policies(root_commit=AfterFirstKey()), budget=EVERYTHING, pov=2_800, size=500
    ),
}


def violated(net: Watched) -> set[str]:
    return {violation.invariant for violation in net.invariants.violations}


@pytest.mark.parametrize("invariant", MUTANTS)
def test_what_is_broken_on_purpose_is_found(invariant: str, monkeypatch: Patch) -> None:
    net = MUTANTS[invariant](monkeypatch)
    assert invariant in violated(net)
    assert not net.invariants.ok
    assert "violated" in repr(net.invariants)
    assert all(violation.tick and violation.seen for violation in net.invariants.violations)


def test_there_is_a_mutant_for_every_invariant(monkeypatch: Patch) -> None:
    checked = {"an honest block is valid"}
    check = Invariants.check

    def note(self: Invariants, invariant: str, holds: bool, tick: int, para_id: ParaId, *, seen: object = "") -> None:
        checked.add(invariant)
        check(self, invariant, holds, tick, para_id, seen=seen)

    monkeypatch.setattr(Invariants, "check", note)
    assert network_with().invariants.ok
    assert checked == set(MUTANTS)


@pytest.mark.parametrize(
    ("budget", "pov", "size"), [(None, 1 << 20, 16), (EVERYTHING, 2_800, 500), (EVERYTHING, 4_000, 1_000)]
)
def test_the_correct_policies_break_nothing(budget: BudgetPolicy | None, pov: int, size: int) -> None:
    net = network_with(budget=budget, pov=pov, size=size)
    assert net.invariants.ok
    assert net.invariants.violated == 0
    assert net.invariants.checked > 100


def test_without_a_cache_old_values_may_be_told_again() -> None:
    """Nothing is known of the old trie then: that repeats callbacks by design."""
    assert network_with(Policies(cache=NoCache())).invariants.ok


@pytest.mark.upstream("clear_publisher_cache_clears_root")
def test_values_may_be_told_again_after_the_cache_was_cleared() -> None:
    net = network_with()
    subscriber = net.parachains[SUBSCRIBER].subscriber
    subscriber.clear_publisher_cache(Origin.root(), PUBLISHER)
    records = net.recorded_step()
    assert len(records[0].deliveries) == 8
    subscriber.clear_stored_roots(Origin.root(), PUBLISHER)
    records = net.recorded_step()
    assert len(records[0].deliveries) == 8
    assert net.invariants.ok


def test_a_disabled_publisher_loses_no_update() -> None:
    """It is left out: what it publishes is owed to nobody."""
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, [bytes(32)])
    publish(net, PUBLISHER, dict.fromkeys([*deep_keys(20), bytes(32)], b"deep"))
    records = run(net, 6)
    assert [record.disabled for record in records if record.disabled] == [(PUBLISHER,)]
    assert net.invariants.ok


def test_only_the_first_violations_are_kept_and_all_are_counted() -> None:
    invariants = Invariants()
    for tick in range(3 * VIOLATIONS_KEPT):
        invariants.check("never true", False, tick, SUBSCRIBER, seen=tick)
    assert (invariants.checked, invariants.violated) == (3 * VIOLATIONS_KEPT,) * 2
    assert len(invariants.violations) == VIOLATIONS_KEPT
    assert str(invariants.violations[1]) == "never true (tick 1, parachain 3000): 1"
    assert repr(invariants) == f"<Invariants {3 * VIOLATIONS_KEPT} violated, {3 * VIOLATIONS_KEPT} checks>"
