"""The formulas beside a run: what closed forms give for the passes that a subscriber made over a publisher.

From counts alone: how many passes there were, how many keys changed in them, and how many were published meanwhile.
The first pass reads everything; the others are taken to be alike. So the formula is off where they were not, where
a first publication took several relay blocks, and where a budget cut passes short. Where keys were crafted, expire or
go with their publisher, there is none.
"""

from collections.abc import Sequence
from math import ceil

from msgspec.structs import replace

from relaycast.predict.closed_forms import ValueBytes, delta_bytes_on_average, full_proof
from relaycast.scenario.policy_choice import PolicyTable
from relaycast.scenario.scenario import PublishTable, Scenario
from relaycast_ledger.outcome import PublisherCost, PublisherOutcome
from relaycast_pallets.broadcaster.storage import INFINITE

LARGEST_NODE_BYTES = 564
"""A branch with sixteen children and the longest partial key; a cache that refuses some nodes has no closed form.

Nor have callbacks for all keys: they hide which of them changed.
"""

PASSES = ("finished", "cut short")
"""Endings of a pass in which the publisher's root had moved."""


def with_formulas(
    costs: Sequence[PublisherCost],
    publishers: Sequence[PublisherOutcome],
    scenario: Scenario,
) -> list[PublisherCost]:
    """Return the costs with their ``formula_bytes``; recorded values count with their mean size."""
    rules = scenario.publishers()
    by_id = {it.para_id: it for it in publishers}
    found = []
    for cost in costs:
        publisher, rule = by_id.get(cost.para_id), rules.get(cost.para_id)
        if publisher is None:  # a real runtime: nobody knows how many keys it publishes
            found.append(cost)
            continue
        if rule is None:
            value_bytes: ValueBytes = round(publisher.value_bytes / publisher.sent) if publisher.sent else 0
        else:
            value_bytes = rule.value_bytes
        holds = rule is None or stays(rule, scenario.blocks)
        formula = formula_bytes(cost, publisher, value_bytes, scenario.policies) if holds else None
        found.append(replace(cost, formula_bytes=formula))
    return found


def stays(rule: PublishTable, blocks: int) -> bool:
    """Return whether the publisher's keys are all as they were named, and stay for that many blocks."""
    rounds = blocks if rule.picked == "random" else ceil(rule.keys / rule.changed_keys)
    expires = rule.ttl != INFINITE and rule.ttl < min(rule.every * rounds, blocks)
    return rule.grief is None and rule.deregisters_at is None and not expires


def formula_bytes(
    cost: PublisherCost, publisher: PublisherOutcome, value_bytes: ValueBytes, policies: PolicyTable
) -> int | None:
    """Return the bytes of all passes by formula, ``None`` where there is none."""
    made = passes(cost)
    beyond_formulas = policies.callback == "all-keys" or policies.max_cached_node < LARGEST_NODE_BYTES
    if beyond_formulas or not made or cost.keys > publisher.keys:
        return None
    full = full_proof(publisher.keys, cost.keys, value_bytes).proof_bytes
    if policies.cache == "none":
        return made * full
    later = made - 1
    if not later:
        return full
    updated = max(0, cost.keys_changed - cost.keys) / later
    published = max(0, publisher.published - publisher.keys) / later
    delta = delta_bytes_on_average(publisher.keys, cost.keys, updated, max(0.0, published - updated), value_bytes)
    return full + round(later * delta)


def passes(cost: PublisherCost) -> int:
    """Return in how many blocks the publisher's root had moved."""
    return sum(cost.endings.get(ending, 0) for ending in PASSES)
