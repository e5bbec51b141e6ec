"""A collator that lies, attack by attack, in every state that the subscriber can be in.

The matrix is generated: each attack is made in every way that a situation allows. Whatever is not the honest set of
nodes is refused, but for omissions inside the last ``min_weight`` of the budget, and a refused block leaves no trace.
"""

from collections import Counter
from dataclasses import replace

import pytest

from pallets.block_vectors import ALPHA
from pallets.lying_collators import (
    ATTACKS,
    PUBLISHERS,
    SEED,
    SITUATIONS,
    Attack,
    judge,
    omit_from_the_end,
    stale_root,
    verdict,
)
from pallets.subscriber_invariants import cache_is_exact, nothing_is_lost, refused
from relaycast_pallets import (
    Panic,
    ValidationOutcome,
)


@pytest.mark.upstream("collator_omits_data_below_limit")
@pytest.mark.upstream("collator_includes_extraneous_data")
@pytest.mark.upstream("collator_wrong_cursor")
@pytest.mark.upstream("collator_inflated_proof")
@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_every_attack_is_refused_or_within_the_slack(attack: Attack, name: str) -> None:
    situation = SITUATIONS[name]()
    if attack is not stale_root:
        assert not isinstance(verdict(situation, situation.honest.relay_chain_state), Exception)
    seen: Counter[str] = Counter()
    for nodes in attack(situation):
        seen[judge(situation, nodes, verdict(situation, nodes))] += 1
    assert set(seen) <= {error.__name__ for error in ATTACKS[attack]} | {"honest", "slack"}
    if attack is stale_root:
        assert not seen.keys() & {"honest", "slack"}
        assert seen.total() > 0
    if name in {"first block", "cached, changed", "too deep"}:
        assert "slack" not in seen, "far from the limit nothing can be left out"


def test_the_slack_is_real_and_its_victim_comes_next() -> None:
    """Near the limit an omission passes; the cursor stands at what was left out, and the next block delivers it."""
    situation = SITUATIONS["a third of the budget"]()
    world = situation.world
    passed = [
        nodes
        for nodes in omit_from_the_end(situation)
        if isinstance(verdict(situation, nodes), ValidationOutcome)
        and set(nodes) != set(situation.honest.relay_chain_state)
    ]
    assert passed
    outcome = world.parachain.set_validation_data(world.inherent(passed[0], situation.pubsub_bytes), SEED)
    assert outcome.result.cursor is not None
    assert world.block(seed=b"next").result.is_complete
    nothing_is_lost(world)
    cache_is_exact(world)


def test_two_nodes_left_out_and_two_put_in_are_not_overlooked() -> None:
    """Sets are compared: a proof with as many foreign nodes as it lacks has the right count."""
    situation = SITUATIONS["cached, changed"]()
    nodes = situation.honest.relay_chain_state
    cached = sorted(situation.world.cached(ALPHA).values())
    for index in range(len(nodes) - 1):
        changed = (*nodes[:index], *nodes[index + 2 :], *cached[:2])
        assert len(changed) == len(nodes)
        assert isinstance(verdict(situation, changed), Exception)


def test_a_refused_block_is_as_if_it_had_not_been() -> None:
    situation = SITUATIONS["cached, changed"]()
    world = situation.world
    refused(world, lambda inherent: replace(inherent, relay_chain_state=inherent.relay_chain_state[1:]), seed=SEED)
    block = world.block(seed=SEED, seal=False)
    assert {publisher for publisher, _ in block.called} == set(PUBLISHERS)
    nothing_is_lost(world)


def test_stopping_early_only_delays() -> None:
    """A collator that uses all of the slack in every block cannot keep a value back for ever."""
    situation = SITUATIONS["a third of the budget"]()
    world = situation.world
    for number in range(40):
        seed = bytes([number])
        candidates = (
            world.prune(pubsub_bytes, seed=seed)[0].relay_chain_state
            for pubsub_bytes in range(max(0, situation.pubsub_bytes - 1_100), situation.pubsub_bytes, 50)
        )
        for nodes in candidates:
            try:
                outcome = world.parachain.set_validation_data(world.inherent(nodes, situation.pubsub_bytes), seed)
            except Panic:
                continue
            if outcome.result.is_complete:
                nothing_is_lost(world)
                return
            break
        else:
            world.block(situation.pubsub_bytes, seed=seed, seal=False)
    nothing_is_lost(world)
