"""Chains whose code changes between two blocks: from which block on, with which state, and over a checkpoint."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from collator.networks import OTHER_PUBLISHER, OTHER_SUBSCRIBER, PUBLISHER, SUBSCRIBER, keys, network, values
from ledger.watched import Watched
from relaycast_collator import BlockBuilt, BlockPanicked, Pace, Parachain, ParachainUpgrade, RelayUpgrade
from relaycast_collator.chains import ChainsDump
from relaycast_pallets import Policies, SubscribedKey
from relaycast_pallets.broadcaster.events import DataPublished
from relaycast_pallets.frame.system import RuntimeUpgraded
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import CheckpointRefused, decoded, encoded

CARRIED = Policies(metering=MeterOwnState())


def reading(pace: Pace | None = None) -> Watched:
    """Return a network whose subscriber reads eight keys of a publisher that gives each a new value in each block."""
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, pace=pace)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(8))
    return net


def schedule(net: Watched, *upgrades: ParachainUpgrade) -> None:
    net.upgrades.schedule(parachains={SUBSCRIBER: upgrades})


def tick(net: Watched) -> list[Any]:
    for written, value in values(8, net.tick + 1).items():
        net.parachains[PUBLISHER].publish(written, value)
    return net.step()


def upgraded_at(net: Watched, ticks: int) -> dict[int, list[tuple[int, int]]]:
    """Return by tick the relay parents of the subscriber's blocks that run new code, with their versions."""
    found: dict[int, list[tuple[int, int]]] = {}
    for _ in range(ticks):
        for fact in tick(net):
            if isinstance(fact, BlockBuilt) and fact.para_id == SUBSCRIBER:
                versions = [it.spec_version for it in fact.block.events if isinstance(it, RuntimeUpgraded)]
                found.setdefault(net.tick, []).extend((fact.relay_parent.number, version) for version in versions)
    return {number: told for number, told in found.items() if told}


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        (Pace(), {6: [(5, 2)], 8: [(7, 3)]}),
        (Pace(cores=2), {6: [(5, 2)], 8: [(7, 3)]}),  # the second block of the tick runs the same code
        (Pace(relay_blocks=3), {6: [(5, 2)], 9: [(8, 3)]}),
        (Pace(relay_blocks=5), {10: [(9, 2), (9, 3)]}),  # both in one block
        (Pace(relay_parent_offset=2), {8: [(5, 2)], 10: [(7, 3)]}),
    ],
)
def test_code_changes_with_the_first_block_on_its_relay_block(
    pace: Pace, expected: Mapping[int, Sequence[tuple[int, int]]]
) -> None:
    net = reading(pace)
    depth = net.parachains[SUBSCRIBER].subscriber.config.max_trie_depth
    schedule(net, ParachainUpgrade(at=5, constants={"max_trie_depth": 9}), ParachainUpgrade(at=7, policies=CARRIED))
    assert depth != 9
    assert upgraded_at(net, 12) == expected
    assert net.parachains[SUBSCRIBER].subscriber.config.max_trie_depth == 9
    assert net.parachains[SUBSCRIBER].subscriber.policies == CARRIED


def test_a_relay_chain_has_other_limits_from_its_block_on() -> None:
    net = network(subscribers=())
    net.upgrades.schedule(relay=[RelayUpgrade(at=6, constants={"max_value_length": 10, "max_stored_keys": 9})])
    published: dict[int, int] = {}
    upgraded = []
    for _ in range(9):
        for fact in tick(net):
            for event in getattr(getattr(fact, "block", None), "events", ()):
                upgraded += [(net.tick, event.spec_version)] if isinstance(event, RuntimeUpgraded) else []
                published[net.tick] = published.get(net.tick, 0) + isinstance(event, DataPublished)
    assert upgraded == [(6, 2)]
    assert {number for number, count in published.items() if count} == {2, 3, 4, 5}
    assert net.relay_chain.broadcaster.config.max_stored_keys == 9


def test_new_subscriptions_replace_the_old_ones_with_the_upgrade() -> None:
    net = reading()
    wanted = {PUBLISHER: [SubscribedKey(key) for key in keys(3, start=6)]}
    schedule(net, ParachainUpgrade(at=5, subscriptions=wanted))
    told: dict[int, set[bytes]] = {}
    for _ in range(8):
        for fact in tick(net):
            if isinstance(fact, BlockBuilt) and fact.para_id == SUBSCRIBER:
                told[net.tick] = {bytes(key) for _, key, _ in fact.block.updates}
    assert told[5] == set(keys(8))
    assert told[6] == set(keys(2, start=6))  # of the three keys the publisher has two
    assert net.ledger.invariants.ok


def everything(chain: Parachain) -> tuple[object, ...]:
    return chain.state.snapshot(), chain.head, dict(chain.kept.values), list(chain.system.events), chain.upgrades.built


def test_a_block_that_panics_leaves_the_migration_to_the_next() -> None:
    net = reading()
    schedule(net, ParachainUpgrade(at=5, policies=CARRIED))
    for _ in range(5):
        tick(net)
    chain, collator = net.parachains[SUBSCRIBER], net.collators[SUBSCRIBER]
    before = chain.state.snapshot()
    collator.tamper = lambda inherent: replace(inherent, relay_chain_state=inherent.relay_chain_state[:-1])
    assert any(isinstance(fact, BlockPanicked) for fact in tick(net))
    assert chain.state.snapshot() == before
    assert chain.upgrades.built == 0
    collator.tamper = None
    assert upgraded_at(net, 1) == {7: [(6, 2)]}
    assert net.ledger.invariants.ok
    assert len(chain.subscriber.delivered.updates) == 8


def test_a_collator_leaves_no_trace_of_the_migration() -> None:
    net = reading()
    schedule(net, ParachainUpgrade(at=5, policies=CARRIED))
    for _ in range(5):
        tick(net)
    chain, parent = net.parachains[SUBSCRIBER], net.relay_chain.head
    chain.upgrades.install(parent.number)
    before = everything(chain)
    first = net.collators[SUBSCRIBER].collate(parent)
    assert everything(chain) == before
    assert net.collators[SUBSCRIBER].collate(parent).inherent == first.inherent


def test_a_migration_is_part_of_the_block_that_makes_it() -> None:
    """Its nodes are in the proof of the own state, and its weight is in the block's."""
    sizes: dict[bool, int] = {}
    for migrates in (False, True):
        net = reading()
        if migrates:
            schedule(net, ParachainUpgrade(at=5, policies=CARRIED))
        for _ in range(5):
            tick(net)
        (block,) = (fact.block for fact in net.step() if isinstance(fact, BlockBuilt) and fact.para_id == SUBSCRIBER)
        chain = net.parachains[SUBSCRIBER]
        sizes[migrates] = block.own_proof.proof_bytes
        assert (chain.system.meter.consumed.ref_time > 0) is migrates
    assert sizes[True] > sizes[False]


def built(facts: Sequence[Any]) -> list[tuple[object, ...]]:
    blocks = [fact.block for fact in facts if isinstance(fact, BlockBuilt)]
    return [(it.header, it.inherent, it.updates, it.events, set(it.own_proof.nodes)) for it in blocks]


UPGRADES = (
    ParachainUpgrade(at=4, policies=CARRIED, constants={"max_trie_depth": 8}),
    ParachainUpgrade(at=6, subscriptions={PUBLISHER: [SubscribedKey(key) for key in keys(5)]}),
    ParachainUpgrade(at=9, policies=Policies()),
)


@pytest.mark.parametrize("put_away_after", range(2, 12))
def test_chains_go_on_from_a_checkpoint_over_upgrades(put_away_after: int) -> None:
    def made() -> Watched:
        net = reading(Pace(relay_blocks=2))
        net.upgrades.schedule(relay=[RelayUpgrade(at=5, constants={"max_stored_keys": 100})])
        schedule(net, *UPGRADES)
        return net

    net = made()
    for _ in range(put_away_after):
        tick(net)
    again = made()
    again.load(decoded(encoded(net.dump()), ChainsDump))
    assert again.relay_chain.broadcaster.config == net.relay_chain.broadcaster.config
    for _ in range(8):
        assert built(tick(net)) == built(tick(again))
        assert net.relay_chain.head == again.relay_chain.head


def test_a_checkpoint_after_more_upgrades_than_are_known_is_refused() -> None:
    net = reading()
    schedule(net, *UPGRADES)
    for _ in range(8):
        tick(net)
    other = reading()
    schedule(other, UPGRADES[0])
    with pytest.raises(CheckpointRefused, match="got 2 runtime upgrades, expected at most 1"):
        other.load(net.dump())


def test_chains_without_upgrades_put_away_what_they_did_before() -> None:
    net = reading()
    tick(net), tick(net)
    assert b"upgrades" not in encoded(net.dump())


@pytest.mark.parametrize(
    ("relay", "parachains", "expected"),
    [
        (
            [RelayUpgrade(at=9, constants={"max_value_length": 4_000})],
            {},
            "from relay block 9 on must be at least 4000, .*2048",
        ),
        ([], {SUBSCRIBER: [ParachainUpgrade(at=8, constants={"max_value_length": 100})]}, "at least 2048, .*got 100"),
        ([RelayUpgrade(at=3)], {}, "an upgrade of the relay chain is at relay block 4 or later, got 3"),
        ([], {SUBSCRIBER: [ParachainUpgrade(at=2)]}, "of parachain 3000 is at relay block 3 or later, got 2"),
        ([], {ParaId(9): [ParachainUpgrade(at=8)]}, "there is no parachain 9"),
        (
            [RelayUpgrade(at=8), RelayUpgrade(at=7)],
            {},
            "upgrades come in the order of their blocks: at is at least 8, got 7",
        ),
        ([RelayUpgrade(at=8, constants={"max_publishers": -1})], {}, "max_publishers is between 0 and"),
        (
            [],
            {SUBSCRIBER: [ParachainUpgrade(at=8, subscriptions={ParaId(it): [] for it in range(200)})]},
            "parachain 3000 subscribes to at most 100 publishers from relay block 8 on, got 200",
        ),
        (
            [],
            {SUBSCRIBER: [ParachainUpgrade(at=9, constants={"max_publishers": 0})]},
            "parachain 3000 subscribes to at most 0 publishers from relay block 9 on, got 1",
        ),
    ],
)
def test_upgrades_that_chains_do_not_agree_on_are_refused(
    relay: list[RelayUpgrade], parachains: dict[ParaId, list[ParachainUpgrade]], expected: str
) -> None:
    net = reading()
    for _ in range(3):
        tick(net)
    with pytest.raises(ValueError, match=expected):
        net.upgrades.schedule(relay=relay, parachains=parachains)
    assert net.relay_chain.upgrades.scheduled == []
    assert all(not chain.upgrades.scheduled for chain in net.parachains.values())


def test_a_bound_may_rise_with_both_chains_and_fall_with_both() -> None:
    net = reading()
    net.upgrades.schedule(
        relay=[
            RelayUpgrade(at=5, constants={"max_value_length": 4_000}),
            RelayUpgrade(at=7, constants={"max_value_length": 50}),
        ],
        parachains={
            SUBSCRIBER: [
                ParachainUpgrade(at=5, constants={"max_value_length": 4_000}),
                ParachainUpgrade(at=7, constants={"max_value_length": 50}),
            ]
        },
    )
    assert list(upgraded_at(net, 10)) == [6, 8]
    assert net.ledger.invariants.ok


def test_a_parachain_that_subscribes_later_expects_the_values_to_come() -> None:
    net = reading()
    net.add_parachain(OTHER_SUBSCRIBER)
    schedule(net, ParachainUpgrade(at=5, constants={"max_value_length": 4_000}))
    net.upgrades.schedule(relay=[RelayUpgrade(at=9, constants={"max_value_length": 4_000})])
    said = f"max_value_length of parachain {OTHER_SUBSCRIBER} from relay block 9 on must be at least 4000"
    with pytest.raises(ValueError, match=re.escape(said)):
        net.subscribe(OTHER_SUBSCRIBER, PUBLISHER, keys(1))
    assert OTHER_SUBSCRIBER in net.parachains
    assert not net.parachains[OTHER_SUBSCRIBER].kept.wanted


def test_a_parachain_reads_no_more_publishers_than_its_next_code_lets_it() -> None:
    net = reading()
    schedule(net, ParachainUpgrade(at=5, constants={"max_publishers": 1}))
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(2, start=8))
    with pytest.raises(ValueError, match="at most 1 publishers from relay block 5 on, got 2"):
        net.subscribe(SUBSCRIBER, OTHER_PUBLISHER, keys(1))
    assert list(net.parachains[SUBSCRIBER].kept.wanted) == [PUBLISHER]
    assert list(upgraded_at(net, 8)) == [6]
