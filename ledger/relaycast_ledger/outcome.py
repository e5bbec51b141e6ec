"""What a run comes to: the figures of ``run.json``, of the summary on the terminal and of the report.

Law: the same scenario, seed and version give the same outcome, byte for byte. Nothing here knows a clock or a machine.
"""

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType, field

from relaycast_ledger.account_records import NodeTotals
from relaycast_ledger.key_tally import KeyCost
from relaycast_ledger.proof_picture import ProofPicture
from relaycast_ledger.runtime_outcome import RuntimeOutcome, RuntimePoint
from relaycast_ledger.spreads import FullBlock, Latency, Share, Spread
from relaycast_ledger.starvation import Starvation

SCHEMA_VERSION = 2


class UnchargedRead(Struct, frozen=True, kw_only=True):
    """An entry of the relay chain that blocks had to read, longer than any read is charged for."""

    name: str
    """``:code`` plain, other keys in hex."""

    blocks: int
    excess_bytes: int
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
    proof_bytes: int
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

    ref_time: int
    proof_size: int
    """Both of the weight that its reads consumed."""

    endings: dict[str, int]
    """In how many blocks the pass left the publisher how."""

    formula_bytes: int | None = None
    """What ``relaycast.predict`` gives for ``proof_bytes`` without ``top``; ``None`` where no formula holds."""


class CallbackLoad(Struct, frozen=True, kw_only=True):
    """The weight of a subscriber's callbacks, if any weighs something."""

    limit_ref_time: int
    """Picoseconds that the callbacks of a block may declare; the largest u64 is no limit."""

    ref_time_max: int
    """The most picoseconds that callbacks took in a block."""

    ref_time_total: int
    waiting_blocks: int
    """Blocks that left callbacks to the next one, since the limit had no room for them."""

    overweight: int
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
    proof_bytes: Spread
    static_bytes: Spread
    """Bytes of the proof for the keys that every parachain block proves, subscriptions or none."""

    own_bytes: Spread
    """Beside the proof: nodes of the parachain's own state, the price of its node cache."""

    pov_bytes: Spread
    """Everything that a block carries, as SCALE ``ParachainBlockData``, before compression."""

    compressed_bytes: Spread
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
    message_bytes: Spread
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
    """What another policy makes of the same relay blocks: bytes that all subscribers' blocks carry, uncompressed."""

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

    block: int
    proof_bytes: int
    static_bytes: int
    own_bytes: int
    callbacks: int
    budget_bytes: int = 0
    metered_bytes: int = 0
    """What the pass was charged of the budget; own nodes and the policy's rounding count as well."""

    complete: bool = True
    by_cause: tuple[int, ...] = ()
    """Bytes of the proof by the causes of ``PublisherCost``; empty where no account is kept."""

    pov_bytes: int = 0
    compressed_bytes: int = 0
    own_pov_bytes: int = 0
    """Part of ``pov_bytes``: the own state as a compact proof."""

    message_bytes: int = 0
    """Part of ``pov_bytes``: messages, in full and hashed."""

    received: int = 0
    """Callbacks with a value that the reader had not been given before."""

    owed: bool = False
    """Whether the block left a key without its current value."""

    behind: bool = False
    """Whether it left one more than ``relaycast_ledger.starvation.BLOCKS_BEHIND`` relay blocks behind."""

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
