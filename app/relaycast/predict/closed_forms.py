"""What a subscription costs, by closed forms: at once, without building a trie.

The figures are what random keys are expected to give; names are hashed into keys, so that every publisher's are. The
formulas are in ``trie.py``; what they do not have is in ``ground.py``, by name and source.

They do not hold for

- keys that were crafted to lie close together,
- values that are equal byte for byte within a relay block, which a proof holds once,
- keys that are added or removed, which move their neighbours,
- a pass that the budget cuts short.

The size of a single trie scatters around the expected one. The path of one key of ten does by 30 %, ten keys of a
hundred by 8 %, and a hundred of a thousand by 2 %.

>>> full_proof(1_000, 100, 16)
<ProofSize 27,535 bytes: 218.1 nodes>
>>> delta_proof(1_000, 100, 10, 16).proof_bytes
6624
>>> cache_break_even(1_000, 100, 16)
16
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from relaycast.predict.ground import MODELLED, Ground
from relaycast.predict.trie import (
    branches_met,
    branches_on_changed_paths,
    branches_on_paths,
    leaves_left_alone,
    leaves_split,
    partial_key_bytes,
)

MAX_KEYS = 1_000_000_000
MAX_VALUE_BYTES = 1 << 20
MAX_BUDGET_BYTES = 1 << 40

INLINE_ENTRY_BYTES = 32
"""Bytes of the longest stored value that stands in its leaf; a longer one is a node of its own (state version 1)."""

HASH_BYTES = 32

LONGEST_INLINE_VALUE = INLINE_ENTRY_BYTES - 9
"""Bytes of the longest value that stays in its leaf: its stored entry has 9 more, see ``entry_bytes``."""

COMPACT_VALUE_BYTES = 1
"""Marks a leaf of a compact proof whose value follows it."""

OWN_KEY_NIBBLES = 96
"""What sets two cached nodes apart in the parachain's state: Blake2_128Concat of a node's hash."""

OWN_KEY_BYTES = 100
"""Key of a cached node: two item hashes, Blake2_128Concat of the publisher's id, and that of the node's hash."""

ValueBytes = int | Sequence[int]
"""Bytes of a published value; or of several, that keys have in turns, the first key the first of them."""


class OutOfRange(ValueError):
    """The argument ``name`` is ``got``; ``expected`` says what would do."""

    def __init__(self, name: str, got: object, expected: str) -> None:
        super().__init__(name, got, expected)
        self.name = name
        self.got = got
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.name} is {self.expected}, got {self.got!r}"


class ProofSize(Struct, frozen=True):
    """What a proof is expected to hold of one publisher's child trie."""

    branches: float
    leaves: int
    values: int
    """External ones."""

    branch_bytes: float
    leaf_bytes: float
    value_bytes: int

    @property
    def nodes(self) -> float:
        """Nodes and external values, as a proof counts them."""
        return self.branches + self.leaves + self.values

    @property
    def structure_bytes(self) -> float:
        """Bytes of branches and leaves: what the node cache keeps."""
        return self.branch_bytes + self.leaf_bytes

    @property
    def proof_bytes(self) -> int:
        """Bytes of all nodes and external values, to the nearest whole one."""
        return round(self.structure_bytes + self.value_bytes)

    def __repr__(self) -> str:
        return f"<ProofSize {self.proof_bytes:,} bytes: {self.nodes:,.1f} nodes>"


class CacheSize(Struct, frozen=True):
    """The nodes of one publisher that a subscriber keeps in its own state."""

    nodes: float
    node_bytes: int

    @property
    def state_bytes(self) -> int:
        """Bytes of keys and values in the parachain's state."""
        return round(self.node_bytes + self.nodes * (OWN_KEY_BYTES + 1.5))


def entry_bytes(value_bytes: int) -> int:
    """Return the bytes that the broadcaster stores for a value: ``PublishedEntry``, SCALE.

    ``compact(v) + v + 8``: the length before the value, and a time to live and a block number of four bytes each.
    """
    checked("value_bytes", value_bytes, 0, MAX_VALUE_BYTES)
    return (1 if value_bytes < 1 << 6 else 2 if value_bytes < 1 << 14 else 4) + value_bytes + 8


def leaf_bytes(keys: int, value_bytes: int) -> tuple[float, int]:
    """Return the expected bytes of a leaf among ``keys``, and of its value where that is outside of it.

    ``1 + partial + 1 + entry`` where the entry has 32 bytes at most, else ``2 + partial + 32`` and the entry itself.
    The partial key has 32 bytes less half a byte for each nibble of the branches above it.
    """
    entry, (partial, long) = entry_bytes(value_bytes), partial_key_bytes(keys)
    if entry <= INLINE_ENTRY_BYTES:
        return 1 + long + partial + 1 + entry, 0
    return 2 + partial + HASH_BYTES, entry


def inline_hint(value_bytes: ValueBytes) -> str:
    """Return what one byte less would save where a value is that much over the inline limit, else an empty text."""
    size = LONGEST_INLINE_VALUE + 1
    if size not in ([value_bytes] if isinstance(value_bytes, int) else value_bytes):
        return ""
    more = sum(leaf_bytes(MAX_KEYS, size)) - sum(leaf_bytes(MAX_KEYS, LONGEST_INLINE_VALUE))
    return (
        f"A value of {size} bytes is one byte over the limit of what stays in its leaf: a proof carries it as a node "
        f"of its own, which takes {more:.0f} bytes more than a value of {LONGEST_INLINE_VALUE}."
    )


def full_proof(keys: int, subscribed: int, value_bytes: ValueBytes) -> ProofSize:
    """Return the proof of ``subscribed`` of a publisher's ``keys`` to a reader that has nothing yet.

    ``sum over d of 16^d [g(n) - (1-q)^k g(n-k)] + k leaf(v)``, where ``g`` are the bytes of a branch.
    """
    _check_keys(keys, subscribed)
    return _proof(branches_on_paths(keys, subscribed), keys, subscribed, value_bytes)


def delta_proof(keys: int, subscribed: int, updated: int, value_bytes: ValueBytes, *, elsewhere: int = 0) -> ProofSize:
    """Return the proof of what changed to a reader that keeps the structure of all that it subscribes to.

    ``updated`` of the subscribed keys have new values, and ``elsewhere`` of the others:
    ``sum over d of 16^d [g(n) - (1-q)^k g(n-k) - (1-q)^(u+w) g(n-u-w) + (1-q)^(k+w) g(n-k-w)] + u leaf(v)``.
    """
    _check_keys(keys, subscribed, updated, elsewhere)
    branches = branches_on_changed_paths(keys, subscribed, updated, elsewhere)
    return _proof(branches, keys, updated, value_bytes)


def delta_bytes_on_average(
    keys: int, subscribed: int, updated: float, elsewhere: float, value_bytes: ValueBytes
) -> float:
    """Return the bytes of what changed in a block with this average number of new keys, whichever they are.

    Values count with the mean over all keys.
    """
    _check_keys(keys, subscribed)
    updated, elsewhere = min(updated, subscribed), min(elsewhere, keys - subscribed)
    each = [sum(leaf_bytes(keys, size)) for size in value_sizes(value_bytes)]
    branches = branches_on_changed_paths(keys, subscribed, updated, elsewhere)
    return branches.node_bytes + updated * sum(each) / len(each)


def node_cache(keys: int, subscribed: int, value_bytes: ValueBytes) -> CacheSize:
    """Return what a reader keeps: the branches and leaves of its full proof, no external values."""
    proof = full_proof(keys, subscribed, value_bytes)
    return CacheSize(proof.branches + proof.leaves, round(proof.structure_bytes))


def cache_upkeep_bytes(keys: int, subscribed: int, updated: int, value_bytes: ValueBytes, *, elsewhere: int = 0) -> int:
    """Return the bytes of own state that a block carries to read the old nodes from the cache and write the new ones.

    The cache is a trie as well, of keys that are hashes of nodes. ``t`` old nodes leave it and as many enter at other
    places. Counted are the branches on the way to both, the old nodes with their leaves, the leaves that new keys part,
    and those that are left alone. They are carried as a compact proof, without the hash of any node or value that is
    part of it. Within 6 % of what is measured, see ``Ground`` for what a block reads besides.
    """
    delta = delta_proof(keys, subscribed, updated, value_bytes, elsewhere=elsewhere)
    cached, moved = node_cache(keys, subscribed, value_bytes).nodes, delta.branches + delta.leaves
    if not moved:
        return 0
    branches = branches_met(cached, moved, moved)
    partial, _ = partial_key_bytes(max(1, round(cached)))
    leaf = 2 + partial + (OWN_KEY_NIBBLES - 64) / 2 + HASH_BYTES
    leaves = moved + leaves_split(cached, cached - moved, moved) + leaves_left_alone(cached, moved, moved)
    lengths = 2 * delta.branches + (1 if delta.leaf_bytes < 64 * delta.leaves else 2) * delta.leaves
    whole = branches.node_bytes + leaves * leaf + delta.structure_bytes + lengths
    return round(whole - HASH_BYTES * (branches.nodes + leaves + moved) + COMPACT_VALUE_BYTES * moved)


def cache_break_even(keys: int, subscribed: int, value_bytes: ValueBytes) -> int:
    """Return the most updated keys a block for which the cache pays: delta and upkeep are no more than a full proof."""
    full = full_proof(keys, subscribed, value_bytes).proof_bytes

    def pays(updated: int) -> bool:
        delta = delta_proof(keys, subscribed, updated, value_bytes).proof_bytes
        return delta + cache_upkeep_bytes(keys, subscribed, updated, value_bytes) <= full

    return most(pays, subscribed)


def keys_for_budget(
    budget_bytes: int, value_bytes: ValueBytes, *, keys: int | None = None, ground: Ground = MODELLED
) -> int:
    """Return how many keys one block can read from nothing, when pub-sub may use ``budget_bytes`` of it.

    The publisher has ``keys`` keys, or, where they are not given, only those that are read. Static keys are free.
    """
    room = checked("budget_bytes", budget_bytes, 0, MAX_BUDGET_BYTES) - ground.top_bytes

    def fits(subscribed: int) -> bool:
        return full_proof(keys or subscribed, subscribed, value_bytes).proof_bytes <= room

    return most(fits, MAX_KEYS if keys is None else checked("keys", keys, 1, MAX_KEYS))


def updates_for_budget(
    budget_bytes: int, keys: int, subscribed: int, value_bytes: ValueBytes, *, ground: Ground = MODELLED
) -> int:
    """Return how many of the subscribed keys may be new in every block within the budget: the rate that lasts.

    What is metered is the delta, and the old nodes that it replaces, which are read from the cache.
    """
    room = checked("budget_bytes", budget_bytes, 0, MAX_BUDGET_BYTES) - ground.top_bytes

    def fits(updated: int) -> bool:
        delta = delta_proof(keys, subscribed, updated, value_bytes)
        return delta.proof_bytes + delta.structure_bytes <= room

    return most(fits, _check_keys(keys, subscribed))


def value_sizes(value_bytes: ValueBytes) -> list[int]:
    """Return the sizes that take turns; raises ``OutOfRange`` where there are none."""
    sizes = [value_bytes] if isinstance(value_bytes, int) else list(value_bytes)
    if not sizes:
        raise OutOfRange("value_bytes", value_bytes, "one size, or several that take turns")
    return sizes


def most(fits: Callable[[int], bool], limit: int) -> int:
    """Return the largest number up to ``limit`` that ``fits``, 0 when not even 1 does; what fits has no gaps."""
    low, step = 0, 1
    while low + step <= limit and fits(low + step):
        low, step = low + step, 2 * step
    while step:
        if low + step <= limit and fits(low + step):
            low += step
        step //= 2
    return low


def checked(name: str, number: int, lowest: int, highest: int, *, highest_is: str = "") -> int:
    """Return ``number``; raises ``TypeError`` where it is none, ``OutOfRange`` where it is not within its range."""
    if type(number) is bool or not isinstance(number, int):
        raise TypeError(f"{name} is a whole number, got {number!r} of type {type(number).__name__}")
    if not lowest <= number <= highest:
        raise OutOfRange(name, number, f"from {lowest:,} to {highest_is}{highest:,}")
    return number


def _check_keys(keys: int, subscribed: int, updated: int = 0, elsewhere: int = 0) -> int:
    checked("keys", keys, 1, MAX_KEYS)
    checked("subscribed", subscribed, 1, keys, highest_is="keys = ")
    checked("updated", updated, 0, subscribed, highest_is="subscribed = ")
    checked("elsewhere", elsewhere, 0, keys - subscribed, highest_is="keys - subscribed = ")
    return subscribed


def _proof(branches: tuple[float, float], keys: int, leaves: int, value_bytes: ValueBytes) -> ProofSize:
    sizes = value_sizes(value_bytes)
    rounds, rest = divmod(leaves, len(sizes))
    each = [(rounds + (turn < rest), *leaf_bytes(keys, size)) for turn, size in enumerate(sizes)]
    return ProofSize(
        branches=branches[0],
        leaves=leaves,
        values=sum(count for count, _, outside in each if outside),
        branch_bytes=branches[1],
        leaf_bytes=sum(count * inside for count, inside, _ in each),
        value_bytes=sum(count * outside for count, _, outside in each),
    )
