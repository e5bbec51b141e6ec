"""One prediction of everything: what a block of a subscriber carries of one publisher, and what a budget allows.

``relaycast predict`` prints it; figures are those of ``predict.py``, bytes to the nearest whole one.
"""

from msgspec import Struct

from relaycast.predict.closed_forms import (
    MAX_BUDGET_BYTES,
    ProofSize,
    ValueBytes,
    cache_break_even,
    cache_upkeep_bytes,
    checked,
    delta_proof,
    full_proof,
    keys_for_budget,
    node_cache,
    updates_for_budget,
    value_sizes,
)
from relaycast.predict.ground import MODELLED, Ground

BUDGET_BYTES = 10 * 1024 * 1024 * 85 // 100
"""What collators use of the largest proof of validity, 85 % of 10 MiB."""


SCHEMA_VERSION = 1
"""Version of the JSON that a prediction is printed as."""


class ProofParts(Struct, frozen=True, kw_only=True):
    """A publisher's part of a relay proof: branches, leaves and external values, each counted and in bytes.

    Counts are to a tenth. A branch holds the hashes of its children. A leaf holds the rest of its key and the stored
    entry. If the entry has more than 32 bytes, it is an external value, and the leaf holds its hash.
    """

    proof_bytes: int
    nodes: float
    branches: float
    branch_bytes: int
    leaves: int
    leaf_bytes: int
    values: int
    value_bytes: int


class CacheCost(Struct, frozen=True, kw_only=True):
    """The node cache: what it keeps, and what a block takes with it and without it."""

    nodes: float
    node_bytes: int
    state_bytes: int
    """Bytes of keys and values in the parachain's state."""

    upkeep_bytes: int
    """Bytes of the block's own state as a compact proof: old nodes that are read, new ones that are written."""

    with_cache_bytes: int
    """What changed, and the upkeep."""

    without_cache_bytes: int
    """Every subscribed path again."""

    pays: bool
    break_even_updated: int
    """The most updated keys for which it pays, nothing changing elsewhere."""


class BudgetRoom(Struct, frozen=True, kw_only=True):
    """What fits into the relay proof of one block."""

    budget_bytes: int
    keys: int
    """This publisher's keys, read from nothing: the first block."""

    keys_alone: int
    """Keys of a publisher that has only the keys which are read."""

    updated: int
    """Subscribed keys that are new in every block."""

    updates_per_second: float


class GroundBytes(Struct, frozen=True, kw_only=True):
    """What a block carries whatever is published: measured, not derived."""

    name: str
    static_bytes: int
    top_bytes: int
    own_bytes: int


class Prediction(Struct, frozen=True, kw_only=True):
    """What is asked, and what is expected."""

    keys: int
    subscribed: int
    value_bytes: list[int]
    updated: int
    elsewhere: int
    full: ProofParts
    delta: ProofParts
    first_block_bytes: int
    """The relay proof of the block that reads all subscribed keys, static keys included."""

    block_bytes: int
    """The relay proof of a block with the updates, static keys included."""

    cache: CacheCost
    budget: BudgetRoom
    ground: GroundBytes


def prediction(
    keys: int,
    subscribed: int,
    value_bytes: ValueBytes,
    *,
    updated: int | None = None,
    elsewhere: int = 0,
    budget_bytes: int = BUDGET_BYTES,
    block_seconds: float = 6.0,
    ground: Ground = MODELLED,
) -> Prediction:
    """Return everything at once; ``updated`` are all subscribed keys where it is not given.

    Raises ``OutOfRange`` for a number that cannot be.

    >>> prediction(1_000, 100, 16, updated=10).block_bytes
    11788
    """
    sizes = value_sizes(value_bytes)
    full = full_proof(keys, subscribed, sizes)
    new = subscribed if updated is None else updated
    delta = delta_proof(keys, subscribed, new, sizes, elsewhere=elsewhere)
    checked("budget_bytes", budget_bytes, 1, MAX_BUDGET_BYTES)
    return Prediction(
        keys=keys,
        subscribed=subscribed,
        value_bytes=sizes,
        updated=new,
        elsewhere=elsewhere,
        full=_parts(full),
        delta=_parts(delta),
        first_block_bytes=ground.proof_bytes + full.proof_bytes,
        block_bytes=ground.proof_bytes + delta.proof_bytes,
        cache=_cache(keys, subscribed, sizes, new, elsewhere),
        budget=_budget(keys, subscribed, sizes, budget_bytes, block_seconds, ground),
        ground=GroundBytes(
            name=ground.name,
            static_bytes=ground.static_bytes,
            top_bytes=ground.top_bytes,
            own_bytes=ground.own_changed_bytes if new + elsewhere else ground.own_bytes,
        ),
    )


def _parts(size: ProofSize) -> ProofParts:
    return ProofParts(
        proof_bytes=size.proof_bytes,
        nodes=round(size.nodes, 1),
        branches=round(size.branches, 1),
        branch_bytes=round(size.branch_bytes),
        leaves=size.leaves,
        leaf_bytes=round(size.leaf_bytes),
        values=size.values,
        value_bytes=size.value_bytes,
    )


def _cache(keys: int, subscribed: int, sizes: list[int], updated: int, elsewhere: int) -> CacheCost:
    cache = node_cache(keys, subscribed, sizes)
    full = full_proof(keys, subscribed, sizes).proof_bytes if updated + elsewhere else 0
    delta = delta_proof(keys, subscribed, updated, sizes, elsewhere=elsewhere).proof_bytes
    upkeep = cache_upkeep_bytes(keys, subscribed, updated, sizes, elsewhere=elsewhere)
    return CacheCost(
        nodes=round(cache.nodes, 1),
        node_bytes=cache.node_bytes,
        state_bytes=cache.state_bytes,
        upkeep_bytes=upkeep,
        with_cache_bytes=delta + upkeep,
        without_cache_bytes=full,
        pays=delta + upkeep <= full,
        break_even_updated=cache_break_even(keys, subscribed, sizes),
    )


def _budget(
    keys: int, subscribed: int, sizes: list[int], budget_bytes: int, block_seconds: float, ground: Ground
) -> BudgetRoom:
    updated = updates_for_budget(budget_bytes, keys, subscribed, sizes, ground=ground)
    return BudgetRoom(
        budget_bytes=budget_bytes,
        keys=keys_for_budget(budget_bytes, sizes, keys=keys, ground=ground),
        keys_alone=keys_for_budget(budget_bytes, sizes, ground=ground),
        updated=updated,
        updates_per_second=round(updated / block_seconds, 2),
    )
