"""What a run comes to: the figures of ``run.json``, of the summary on the terminal and of the report.

Law: the same scenario, seed and version give the same outcome, byte for byte. Nothing here knows a clock or a machine.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import ceil
from typing import Annotated

from msgspec import UNSET, Struct, UnsetType, field

from relaycast_ledger.accounting import NodeTotals
from relaycast_ledger.proof_picture import ProofPicture
from relaycast_ledger.record_fields import Of, Sum, Total


class Percentiles(Struct, frozen=True):
    """Percentiles by nearest rank, and the sum.

    A run's percentiles are of the blocks after its warm-up, the sum is of all blocks.
    """

    p50: int
    p99: int
    max: int
    total: int


class Latency(Struct, frozen=True):
    """Relay blocks from a publication to its delivery; ``None`` where nothing was delivered."""

    p50: int | None
    p99: int | None
    max: int | None

    def told(self, *names: str) -> str:
        """Return some of them with a stroke between, or a dash where nothing was delivered."""
        values = [getattr(self, name) for name in names]
        return "-" if None in values else "/".join(map(str, values))

    def later_than(self, other: "Latency") -> bool:
        """Tell whether the slowest here, or the p99, took longer than there; not where nothing was delivered."""
        pairs = ((self.p99, other.p99), (self.max, other.max))
        return any(ours is not None and theirs is not None and ours > theirs for ours, theirs in pairs)


class Share(Struct, frozen=True):
    """Parts of the largest PoV: 1 is a full block, more does not fit."""

    p50: float
    p99: float
    max: float


class FullBlock(Struct, frozen=True, kw_only=True):
    """The fullest block of a subscriber: what it carries, by cause, and the time that it takes to compute."""

    block: Annotated[int, Of("tick")]
    number: int
    pov_bytes: Annotated[int, Of("pov.pov_bytes")]
    compressed_bytes: Annotated[int | None, Of("pov.compressed_bytes")]
    """``None`` where it was not compressed: it fits in any case."""

    max_pov_bytes: Annotated[int, Of("pov.max_pov_bytes")]
    ref_time: Annotated[int, Of("pov.ref_time")]
    max_ref_time: Annotated[int, Of("pov.max_ref_time")]
    by_cause: Annotated[dict[str, int], Of("pov_by_cause")]
    """Bytes of ``pov_bytes``: ``static``, the causes of ``PublisherCost`` (``pubsub`` where no account is kept),
    ``own``, ``messages``, and ``rest``, which is the header and the lengths between nodes."""

    @property
    def is_oversize(self) -> bool:
        """Whether the relay chain would refuse it."""
        return self.load > 1

    @property
    def sent_bytes(self) -> int:
        """The compressed bytes, or, where they are not known, those before compression."""
        return self.pov_bytes if self.compressed_bytes is None else self.compressed_bytes

    @property
    def load(self) -> float:
        """How much of its limit it takes, in the dimension that decides."""
        return max(self.sent_bytes / self.max_pov_bytes, self.ref_time / self.max_ref_time)


def percentiles(values: Sequence[int], *, after: int = 0) -> Percentiles:
    """Return the spread of ``values``, percentiles without the first ``after``; all zero when there are none."""
    ordered = sorted(values[after:])
    return Percentiles(rank(ordered, 50), rank(ordered, 99), rank(ordered, 100), sum(values))


def latency(values: Iterable[int]) -> Latency:
    """Return the spread of latencies in blocks."""
    return counted_latency(Counter(values))


def counted_latency(counts: Mapping[int, int]) -> Latency:
    """Return the spread of latencies in blocks, of which it is counted how often each comes."""
    ordered = sorted(counts)
    ends = list(accumulate(counts[value] for value in ordered))
    if not ends:
        return Latency(None, None, None)

    def at(percent: int) -> int:
        return ordered[bisect_left(ends, max(1, ceil(ends[-1] * percent / 100)))]

    return Latency(at(50), at(99), at(100))


def share(sizes: Percentiles, allowed: int) -> Share:
    """Return sizes as parts of what is ``allowed``, to six places."""
    return Share(*(round(size / allowed, 6) for size in (sizes.p50, sizes.p99, sizes.max)))


def rank(ordered: Sequence[int], percent: int) -> int:
    """Return the value at or below which ``percent`` of the values lie, by nearest rank; 0 of no values."""
    if not ordered:
        return 0
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]


ENOUGH_BLOCKS = 10
"""Blocks with something to receive, from which on a share of them says something."""

BLOCKS_WITHOUT = 10
"""Such blocks in a row without a value that starve a reader."""

BLOCKS_BEHIND = 20
"""Relay blocks that a reader may be behind on a key."""


class Starvation(Struct, frozen=True, kw_only=True):
    """Counts of a reader that starved, or of one whose run is too short to tell.

    Such a reader's blocks end before it is given what it subscribes to.
    """

    is_starved: bool
    """False: cut short in over half of the blocks, but there are fewer than ``ENOUGH_BLOCKS``."""

    blocks: int
    """Blocks in which the reader had something to receive."""

    cut_short: int
    """How many of these blocks ended before every key was read."""

    blocks_without: int
    """The most of these in a row in which nothing was received."""

    is_behind: bool
    """Whether the last block left a key more than ``BLOCKS_BEHIND`` relay blocks behind."""


def starvation(blocks: Iterable[tuple[int, int, int, int]]) -> Starvation | None:
    """Judge the blocks of one reader: each its number of new values, ``complete``, ``owed`` and ``behind``.

    Law: a block counts if the reader had something to receive in it: keys whose current value it had not been given. A
    publisher that is silent or disabled starves no one. ``None`` where there is nothing to say.
    """
    counted = cut_short = without = longest = behind = 0
    for received, complete, owed, late in blocks:
        behind = late
        if not (received or owed):
            continue
        counted += 1
        cut_short += not complete
        without = 0 if received else without + 1
        longest = max(longest, without)
    mostly_cut = 2 * cut_short > counted
    starved = behind or longest >= BLOCKS_WITHOUT or (mostly_cut and counted >= ENOUGH_BLOCKS)
    if not starved and not mostly_cut:
        return None
    return Starvation(
        is_starved=bool(starved),
        blocks=counted,
        cut_short=cut_short,
        blocks_without=longest,
        is_behind=bool(behind),
    )


class ItemCost(Struct, frozen=True, kw_only=True):
    """What one storage item took of a runtime's blocks, all of them together.

    A node that several items of a pallet need counts as the pallet's item ``shared``, one that several pallets need as
    ``trie.shared``. The ``proof_bytes`` of all items therefore add up.
    """

    pallet: str
    item: str
    blocks: int
    """Blocks that read or wrote it."""

    reads: int
    writes: int
    proof_bytes: int

    @property
    def name(self) -> str:
        """The item as metadata has it; an item without a name is a pallet's, or a key of its own."""
        return f"{self.pallet}.{self.item}" if self.pallet and self.item else self.pallet or self.item


class RuntimeOutcome(Struct, frozen=True, kw_only=True):
    """What the blocks of one parachain with a real runtime cost."""

    para_id: int
    name: str
    spec_name: str
    spec_version: int
    blocks: int
    refused_blocks: int
    """Blocks that its code did not build, or whose messages the relay chain refuses."""

    extrinsics: int
    failed_extrinsics: int
    """Extrinsics whose call failed."""

    left_out: int
    """Extrinsics beside them that were submitted, and that its code does not take."""

    waiting: int
    """Extrinsics for later blocks than those that were built."""

    upward_messages: int
    published: int
    """Values that the relay chain published for it."""

    refused_messages: int
    """Upward messages that failed on the relay chain."""

    relay_proof_bytes: Percentiles
    own_proof_bytes: Percentiles
    """Nodes of its own state that a block reads and rewrites, in full."""

    own_compact_bytes: Percentiles
    """The same as the compact proof that a block carries."""

    pov_bytes: Percentiles
    """Everything that a block carries, before compression."""

    compressed_bytes: Percentiles
    """The same as the relay chain gets it; it decides whether a block fits."""

    pov_share: Share
    compressed_share: Share
    oversize_blocks: int
    fullest_block: FullBlock | None
    by_item: list[ItemCost]
    """``own_proof_bytes`` of all blocks, the item that takes most first."""


class RuntimePoint(Struct, frozen=True):
    """One block of a real runtime, for charts."""

    block: Annotated[int, Of("tick")] = 0
    relay_proof_bytes: int = 0
    own_proof_bytes: int = 0
    own_compact_bytes: Annotated[int, Of("pov.own_bytes")] = 0
    pov_bytes: Annotated[int, Of("pov.pov_bytes")] = 0
    compressed_bytes: Annotated[int, Of("pov.compressed_bytes")] = 0
    carried_relay_bytes: int = 0
    """Part of ``pov_bytes``: nodes of the relay proof that the block's extrinsics hold."""


class KeySums(Struct):
    """What one key took of one subscriber's blocks: bytes that it adds to those of the keys before it."""

    callbacks: Sum = 0
    changed_blocks: Sum = 0
    node_bytes: Sum = 0
    """Nodes in the proofs, without the way through the top trie."""

    value_bytes: Sum = 0
    """External values in the proofs; shorter ones are in their nodes."""

    cached_bytes: Sum = 0
    pruned_bytes: Sum = 0
    slowest_blocks: Annotated[int, Total(add=max)] = 0
    """The longest way of a value, from publication to delivery."""

    conflated: Sum = 0


class KeyCost(KeySums, kw_only=True):
    """The sums of one key."""

    publisher: int
    key: bytes

    @property
    def proof_bytes(self) -> int:
        """What of the proofs counts with this key."""
        return self.node_bytes + self.value_bytes


SCHEMA_VERSION = 2


class UnchargedRead(Struct, frozen=True, kw_only=True):
    """An entry of the relay chain that blocks had to read, longer than any read is charged for."""

    name: str
    """``:code`` plain, other keys in hex."""

    blocks: Sum
    excess_bytes: Sum
    """Bytes that were not charged, in all blocks together."""


class PublisherOutcome(Struct, frozen=True, kw_only=True):
    """What a parachain published: ``sent`` values, of which the relay chain refused some messages or their rest."""

    para_id: int
    name: str
    keys: int
    sent: int
    published: int
    refused_messages: int
    value_bytes: int
    sizes: list[int]
    """Bytes of a value, several if they take turns; empty for recorded publications."""

    spent_planck: int | UnsetType = UNSET
    """What left its account, for fees or into the asset trap; absent where its messages are free."""


class PublisherCost(Struct, frozen=True, kw_only=True):
    """What one publisher took of one subscriber's blocks, over the whole run."""

    para_id: int
    keys: int
    keys_walked: int
    """Keys that were dealt with, in all blocks together."""

    keys_changed: int
    callbacks: int
    proof_bytes: Annotated[int, Of("proof.node_bytes")]
    by_cause: dict[str, NodeTotals]
    """Parts of the proofs: top trie, new nodes, changed ones, those whose old trie cannot be seen, external values."""

    sibling_bytes: int
    """Bytes of the nodes that are child references to no subscribed key."""

    uncacheable: NodeTotals
    """Nodes of the proofs that the cache policy does not keep."""

    cached: NodeTotals
    """Beside the proofs: what was read from the node cache."""

    pruned: dict[str, NodeTotals]
    """Collected, and left out for this reason."""

    ref_time: Annotated[int, Of("consumed.ref_time")]
    proof_size: Annotated[int, Of("consumed.proof_size")]
    """Both of the weight that its reads consumed."""

    endings: dict[str, int]
    """In how many blocks the pass left the publisher how."""

    formula_bytes: int | None = None
    """What ``relaycast.predict`` gives for ``proof_bytes`` without ``top``; ``None`` where no formula holds."""


class CallbackLoad(Struct, frozen=True, kw_only=True):
    """The weight of a subscriber's callbacks, if any weighs something."""

    limit_ref_time: int
    """Picoseconds that the callbacks of a block may declare; the largest u64 is no limit."""

    ref_time_max: Annotated[int, Of("callback_ref_time_max")]
    """The most picoseconds that callbacks took in a block."""

    ref_time_total: Annotated[int, Of("callback_ref_time")]
    waiting_blocks: Annotated[int, Of("callback_ended_blocks")]
    """Blocks that left callbacks to the next one, since the limit had no room for them."""

    overweight: Annotated[int, Of("overweight_callbacks")]
    """Callbacks that weighed more than they had declared."""


class SubscriberOutcome(Struct, frozen=True, kw_only=True):
    """What a parachain read, and what that took of its blocks."""

    para_id: int
    name: str
    keys: int
    blocks: int
    deliveries: int
    """Publications whose value arrived, or was overtaken by a later one that did."""

    callbacks: int
    proof_bytes: Percentiles
    static_bytes: Percentiles
    """Bytes of the proof for the keys that every parachain block proves, subscriptions or none."""

    own_bytes: Percentiles
    """Beside the proof: nodes of the parachain's own state, the price of its node cache."""

    pov_bytes: Percentiles
    """Everything that a block carries, as SCALE ``ParachainBlockData``, before compression."""

    compressed_bytes: Percentiles
    """The same as the relay chain gets it; it decides whether a block fits."""

    pov_share: Share
    """``pov_bytes`` as a share of the largest PoV."""

    compressed_share: Share
    """``compressed_bytes`` as a share of the largest PoV."""

    pov_parts: dict[str, Share]
    """Each part of ``pov_bytes`` alone: ``static``, ``top``, ``proof`` (the rest of the relay proof), ``own``,
    ``messages``."""

    message_free_bytes: int
    """What the budget gives to pub-sub in a block without messages."""

    any_key_bytes: int
    """What it would have to give to hold any key, the deepest and longest too."""

    uncharged: list[UnchargedRead]
    """What was read beyond any charge, the most first: a budget cannot keep it out."""

    oversize_blocks: int
    """Blocks that the relay chain would refuse."""

    large_blocks: int
    """Blocks that fit only because they are compressed."""

    fullest_block: FullBlock | None
    """The one that takes most of its limit."""

    first_proof_bytes: int
    """The relay proof of the largest block of the warm-up, which has the first delivery; 0 if nothing is left out."""

    warm_up_blocks: int
    """Blocks at the beginning that percentiles leave out."""

    latency_blocks: Latency
    """How long deliveries took; values that were told again are not counted."""

    told_again: int
    """Callbacks with an entry that the subscriber had been told before."""

    incomplete_blocks: int
    message_bytes: Percentiles
    """Messages that went before pub-sub in each block."""

    waiting_bytes_max: int
    """Messages that found no room, at the worst moment."""

    refused_bytes: int
    """Messages that were refused to their senders, for as many bytes waited as the relay chain keeps."""

    disabled_publishers: list[int]
    publishers: list[PublisherCost]
    callback_load: CallbackLoad | UnsetType = UNSET
    """Absent where no callback weighs anything."""

    deletions: int | UnsetType = UNSET
    """Callbacks without a value, for deleted keys; absent if none was told."""

    starvation: Starvation | UnsetType = UNSET
    """Absent where the reader was given what it subscribes to."""

    @property
    def is_starved(self) -> bool:
        """Whether the reader was not given what it subscribes to."""
        return self.starvation is not UNSET and self.starvation.is_starved


class ReaderAlternative(Struct, frozen=True, kw_only=True):
    """Bytes that the blocks of one reader carry, uncompressed: in the run itself, and under the other policy."""

    para_id: int
    pov_bytes: int
    its_pov_bytes: int

    @property
    def saved(self) -> float:
        """The share of the bytes that the other policy saves, negative where it costs more."""
        return (self.pov_bytes - self.its_pov_bytes) / self.pov_bytes if self.pov_bytes else 0.0


class Alternative(Struct, frozen=True, kw_only=True):
    """What another policy makes of the same relay blocks: bytes that the blocks of ``readers`` carry, uncompressed.

    Of many subscribers only some are measured.
    """

    policy: str
    first_block: int
    last_block: int
    pov_bytes: int
    """Bytes of the run itself."""

    its_pov_bytes: int
    """Under the other policy."""

    its_told_again: int
    """Callbacks under the other policy that tell what was known."""

    violations: int
    readers: list[ReaderAlternative]
    """The parts of both sums, by reader."""


class InvariantsOutcome(Struct, frozen=True):
    """Whether what must always hold did, and where not."""

    ok: bool
    violations: list[str]


class RelayOutcome(Struct, frozen=True, kw_only=True):
    """The chain that was published to."""

    genesis: str
    genesis_entries: int
    genesis_root: str
    state_root: str
    allowed_pov_bytes: int
    """What collators use of it."""

    max_pov_bytes: int
    """The largest PoV that the relay chain takes, compressed."""

    runtime: str | UnsetType = UNSET
    """Name and version of the runtime that builds its blocks; absent where all of it is modelled."""

    lifted: list[str] | UnsetType = UNSET
    """Its limits that are above those proposed for Polkadot, each with both values; absent where none is."""


class UpgradeOutcome(Struct, frozen=True, kw_only=True):
    """A runtime upgrade in mid-run."""

    at: int
    """The relay block on which, or after which, the new code builds its first block."""

    para_id: int | None
    """The parachain, ``None`` for the relay chain."""

    changes: list[str]
    """Changes, each as ``name: before -> after``."""


class RecordedOutcome(Struct, frozen=True, kw_only=True):
    """Recorded publications that a run replayed, as far as it went; ``digest`` is of all their rows."""

    file: str
    rows: int
    last_block: int
    digest: str


class Point(Struct, frozen=True):
    """One block of a subscriber, for charts."""

    block: Annotated[int, Of("tick")]
    proof_bytes: int
    static_bytes: int
    own_bytes: int
    callbacks: int
    budget_bytes: int = 0
    metered_bytes: Annotated[int, Of("consumed.proof_size")] = 0
    """What the pass was charged of the budget; own nodes and the policy's rounding count as well."""

    complete: bool = True
    by_cause: Annotated[tuple[int, ...], Of("account.by_cause")] = ()
    """Bytes of the proof by the causes of ``PublisherCost``; empty where no account is kept."""

    pov_bytes: Annotated[int, Of("pov.pov_bytes")] = 0
    compressed_bytes: Annotated[int, Of("pov.compressed_bytes")] = 0
    own_pov_bytes: Annotated[int, Of("pov.own_bytes")] = 0
    """Part of ``pov_bytes``: the own state as a compact proof."""

    message_bytes: Annotated[int, Of("pov.message_bytes")] = 0
    """Part of ``pov_bytes``: messages, in full and hashed."""

    received: int = 0
    """Callbacks with a value that the reader had not been given before."""

    owed: bool = False
    """Whether the block left a key without its current value."""

    behind: bool = False
    """Whether it left one more than ``relaycast_ledger.outcome.BLOCKS_BEHIND`` relay blocks behind."""

    warm_up: bool = False
    """Whether percentiles leave it out."""


class Outcome(Struct, frozen=True, kw_only=True):
    """A whole run; what has a default but ``schema`` is for the report, by parachain, and not in ``run.json``."""

    run_id: str
    name: str
    description: str
    version: str
    engine: str
    seed: int
    blocks: int
    block_seconds: float
    relaychain: RelayOutcome
    publishers: list[PublisherOutcome]
    subscribers: list[SubscriberOutcome]
    oversize_blocks: int
    """Blocks of all subscribers and real runtimes that the relay chain would refuse."""

    invariants: InvariantsOutcome
    recorded: RecordedOutcome | None = None
    alternative: Alternative | None = None
    runtimes: Sequence[RuntimeOutcome] = ()
    """Parachains with real runtimes; absent from ``run.json`` where there are none."""

    refusals: Sequence[str] = ()
    """Blocks that real runtimes refused, and extrinsics at which they trapped; absent where there are no runtimes."""

    upgrades: Sequence[UpgradeOutcome] | UnsetType = UNSET
    """Runtime upgrades in the order of their blocks; absent where there are none."""

    schema: int = SCHEMA_VERSION
    series: Mapping[int, Sequence[Point]] = field(default_factory=dict)
    latencies: dict[int, dict[int, int]] = field(default_factory=dict)
    pictures: dict[int, list[ProofPicture]] = field(default_factory=dict)
    """One or two blocks of a subscriber, path by path."""

    keys: dict[int, list[KeyCost]] = field(default_factory=dict)
    """What each key took; no bytes where accounts were not kept by key."""

    key_names: dict[tuple[int, bytes], str] = field(default_factory=dict)
    """By publisher and key."""

    runtime_series: Mapping[int, Sequence[RuntimePoint]] = field(default_factory=dict)

    @property
    def starved(self) -> list[SubscriberOutcome]:
        """Readers that were not given what they subscribe to."""
        return [it for it in self.subscribers if it.is_starved]
