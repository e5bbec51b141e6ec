"""The formulas beside a run: what closed forms give for the passes that a subscriber made over a publisher.

From counts alone: how many passes there were, how many keys changed in them, and how many were published meanwhile.
The first pass reads everything; the others are taken to be alike. So the formula is off where they were not, where
a first publication took several relay blocks, where keys expired, and where a budget cut passes short.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from relaycast.outcome import PublisherCost, PublisherOutcome
from relaycast.policy_choice import PolicyTable
from relaycast.predict import ValueBytes, delta_bytes_on_average, full_proof

LARGEST_NODE_BYTES = 564
"""A branch with sixteen children and the longest partial key; a cache that refuses some nodes has no closed form.

Nor have callbacks for all keys: they hide which of them changed.
"""

PASSES = ("finished", "cut short")
"""Endings of a pass in which the publisher's root had moved."""


def with_formulas(
    costs: Sequence[PublisherCost],
    publishers: Sequence[PublisherOutcome],
    sizes: Mapping[int, ValueBytes],
    policies: PolicyTable,
) -> list[PublisherCost]:
    """Return the costs with their ``formula_bytes``; ``sizes`` of values by publisher, where a scenario gives them."""
    by_id = {it.para_id: it for it in publishers}
    found = []
    for cost in costs:
        publisher = by_id[cost.para_id]
        mean = round(publisher.value_bytes / publisher.sent) if publisher.sent else 0
        value_bytes = sizes.get(cost.para_id, mean)
        found.append(replace(cost, formula_bytes=formula_bytes(cost, publisher, value_bytes, policies)))
    return found


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
