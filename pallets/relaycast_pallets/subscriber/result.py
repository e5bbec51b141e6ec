"""What one pass over a relay state proof found: where it ended, what it read, and what moved of each publisher.

A version 0 trie has its values inside its nodes, however long they are, so a node may be longer than a read is charged
for: ``:code`` may be in a node on the way to a publisher that has not published yet. Such nodes are ``oversize``.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, Self, overload

from msgspec import Struct, field

from relaycast_pallets.subscriber.plan import SubscriberPlan, Turn
from relaycast_pallets.subscriber.storage import Cursor, ProcessedRoots
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_pallets.subscriber.walk import Placement, Placements, TrieDepthExceeded
from relaycast_xcm.primitives import ParaId, Weight


class StopCause(Enum):
    """What ended a pass before every key was processed: the meter of reads, the proof, or the meter of callbacks."""

    BUDGET = "budget"
    PROOF = "proof"
    """A node is missing. What PRUNE leaves out for want of budget, VERIFY finds missing."""

    CALLBACKS = "callbacks"


class Stop(Exception):
    """The pass ends here, for this ``cause``."""

    def __init__(self, cause: StopCause = StopCause.BUDGET) -> None:
        super().__init__(cause)
        self.cause = cause


class Oversize(Struct, frozen=True):
    """A node or value of ``size`` bytes of which ``charged_bytes`` are charged; ``publisher`` is who had it read.

    ``publisher`` is ``None`` in the relay chain's top trie. ``key`` is that of the entry inside, ``None`` where there
    is none.
    """

    publisher: ParaId | None
    node_hash: bytes
    size: int
    charged_bytes: int
    key: bytes | None = None

    @property
    def excess_bytes(self) -> int:
        return self.size - self.charged_bytes

    @property
    def name(self) -> str:
        """The key as it is written: ``:code`` plain, others in hex, the node's hash where no key is known."""
        if self.key is None:
            return f"node 0x{self.node_hash.hex()}"
        plain = self.key.startswith(b":") and self.key.isascii() and self.key.decode().isprintable()
        return self.key.decode() if plain else f"0x{self.key.hex()}"

    def __str__(self) -> str:
        return f"{self.name}: {self.size:,} bytes, {self.charged_bytes:,} of them charged"


class ReadSource(Enum):
    """Where a node came from, and as what."""

    RELAY_TOP = "relay_top"
    RELAY_NODE = "relay_node"
    RELAY_VALUE = "relay_value"
    CACHED_NODE = "cached_node"
    OWN_PATH = "own_path"
    """A place in the own trie where no node is read: none is there, one comes, or one goes."""

    @property
    def is_relay(self) -> bool:
        """Whether the bytes come out of the relay state proof."""
        return self is not ReadSource.CACHED_NODE and self is not ReadSource.OWN_PATH


class NodeRead(NamedTuple):
    """One read and the ``weight`` that was paid for it; ``publisher`` is ``None`` in the relay chain's top trie."""

    publisher: ParaId | None
    node_hash: bytes
    size: int
    source: ReadSource
    weight: Weight


class ReadTotal(NamedTuple):
    """A number of nodes and values that were read, and their bytes."""

    nodes: int = 0
    node_bytes: int = 0


def totals_by_source(reads: Iterable[NodeRead]) -> dict[str, ReadTotal]:
    """Return the totals of reads by the name of their source, in the order in which the first of each was made."""
    nodes: dict[str, int] = {}
    node_bytes: dict[str, int] = {}
    for _, _, size, source, _ in reads:
        name = source._value_
        nodes[name] = nodes.get(name, 0) + 1
        node_bytes[name] = node_bytes.get(name, 0) + size
    return {source: ReadTotal(count, node_bytes[source]) for source, count in nodes.items()}


class ReadColumns(Protocol):
    """Reads of one publisher that were made in arrays; ``made`` returns them as objects."""

    publisher: ParaId

    @property
    def largest(self) -> int:
        """The bytes of the longest node or value."""

    def __len__(self) -> int: ...

    def made(self) -> list[NodeRead]: ...

    def totals(self) -> dict[str, ReadTotal]:
        """Return what ``totals_by_source`` returns."""

    def are_those_of(self, other: Self, /) -> bool:
        """Return whether the same was read, in the same order, at the same price."""


class ReadLog(Sequence[NodeRead]):
    """The reads of a pass in their order; those in columns become objects when they are asked for."""

    __slots__ = ("_made", "parts")

    def __init__(self, made: list[NodeRead]) -> None:
        self.parts: list[list[NodeRead] | ReadColumns] = [made]
        self._made: list[NodeRead] | None = None

    def append(self, read: NodeRead) -> None:
        """Add a read."""
        last = self.parts[-1]
        if isinstance(last, list):
            last.append(read)
        else:
            self.parts.append([read])
        self._made = None

    def extend_by(self, columns: ReadColumns) -> None:
        """Add reads in columns."""
        self.parts.append(columns)
        self._made = None

    @property
    def largest(self) -> int:
        """The bytes of the longest node or value."""
        return max(_largest(part) for part in self.parts)

    def totals(self) -> dict[str, ReadTotal]:
        """Return what ``totals_by_source`` returns."""
        totals: dict[str, ReadTotal] = {}
        for part in self.parts:
            for source, more in (totals_by_source(part) if isinstance(part, list) else part.totals()).items():
                nodes, node_bytes = totals.get(source, ReadTotal())
                totals[source] = ReadTotal(nodes + more.nodes, node_bytes + more.node_bytes)
        return totals

    def _all(self) -> list[NodeRead]:
        if self._made is None:
            parts = (part if isinstance(part, list) else part.made() for part in self.parts)
            self._made = [read for part in parts for read in part]
        return self._made

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @overload
    def __getitem__(self, index: int) -> NodeRead: ...

    @overload
    def __getitem__(self, index: slice) -> list[NodeRead]: ...

    def __getitem__(self, index: int | slice) -> NodeRead | list[NodeRead]:
        return self._all()[index]

    def __iter__(self) -> Iterator[NodeRead]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReadLog | list):
            return False
        if isinstance(other, ReadLog) and list(map(len, self.parts)) == list(map(len, other.parts)):
            return all(map(_are_same, self.parts, other.parts))
        return self._all() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())


def _largest(part: list[NodeRead] | ReadColumns) -> int:
    return max((read.size for read in part), default=0) if isinstance(part, list) else part.largest


def _are_same(left: list[NodeRead] | ReadColumns, right: list[NodeRead] | ReadColumns) -> bool:
    if isinstance(left, list) or isinstance(right, list):
        return (left if isinstance(left, list) else left.made()) == (right if isinstance(right, list) else right.made())
    return left.are_those_of(right)


class WalkedRange(NamedTuple):
    """Keys ``[start, stop)`` that were processed, and the placements met in one of the two tries alone."""

    start: int
    stop: int
    placements: Placements


class PublisherChange(Struct):
    """What a pass found of one publisher whose root moved, or whose last pass was cut short."""

    para_id: ParaId
    root: bytes | None = None
    """The child root, ``None`` where the relay chain has no such child trie."""

    finished: bool = False
    sweeping: bool = False
    """Whether its old nodes have to go first: nothing else of it was processed."""

    disabled_by: TrieDepthExceeded | None = None
    changed: list[tuple[SubscribedKey, bytes]] = field(default_factory=list)
    """Keys with their new entries, in the order in which they were read."""

    deleted: list[SubscribedKey] = field(default_factory=list)
    """Delivered keys that are proven absent, in the order of the pass; empty unless deletions are reported."""

    processed_roots: ProcessedRoots = field(default_factory=dict)
    """For a publisher cut short, the root against which each key was last processed."""

    keys_walked: int = 0
    placements: Placements = field(default_factory=Placements)
    unseen: set[bytes] = field(default_factory=set)
    """Prefixes where the old trie could not be looked into."""

    ranges: list[WalkedRange] = field(default_factory=list)
    nodes: dict[bytes, bytes] = field(default_factory=dict)
    """Nodes by hash that were read from the proof; ``cached`` are those read from the cache."""

    cached: dict[bytes, bytes] = field(default_factory=dict)
    removed: list[bytes] = field(default_factory=list)
    """Hashes of cached nodes that went unread, if a metering charges for that."""

    is_compared: bool = True
    """Whether all keys were compared with the trie that they were last processed against."""

    began_at: int = 0
    """The first key of its part of the pass, and where the pass stopped if it did so here."""

    stopped_at: int = 0

    @property
    def gained(self) -> set[Placement]:
        """Nodes met in the new trie alone; ``lost`` are those met in the old one."""
        return self.placements.gained

    @property
    def lost(self) -> set[Placement]:
        return self.placements.lost


class ProofProcessingResult(Struct):
    """How a pass ended: in which ``turn``, with what moved and what was read."""

    plan: SubscriberPlan
    turn: Turn
    changes: list[PublisherChange]
    reads: Sequence[NodeRead]
    consumed: Weight
    allowed: Weight = Weight.MAX
    """What the meter had left before the pass."""

    oversize: tuple[Oversize, ...] = ()
    """Relay nodes and values that were charged for a part of their bytes."""

    least: Weight = Weight.ZERO
    """What no longer fits when the pass is incomplete: the most that its last step could have weighed."""

    stopped_by: StopCause | None = None
    """What ran out when the pass was cut short."""

    callback_weight: Weight = Weight.ZERO
    """Declared weight of its callbacks, at most ``callback_limit``."""

    callback_limit: Weight = Weight.MAX

    @property
    def is_complete(self) -> bool:
        return self.turn.stopped_at is None

    @property
    def stopped_at(self) -> Cursor | None:
        """The first key that was not processed."""
        return self.turn.stopped_at

    @property
    def cursor(self) -> Cursor | None:
        """The key that the next pass begins with: the first that was not processed, or the one after it."""
        return self.turn.cursor

    @property
    def beyond_budget(self) -> Cursor | None:
        """The key that the pass began with at its cursor and could not finish: the next pass goes past it."""
        return self.turn.stopped_at if self.turn.is_passed_over else None

    @property
    def is_stopped_by_callbacks(self) -> bool:
        """Whether the pass ended because the limit had no room for one more callback."""
        return self.stopped_by is StopCause.CALLBACKS

    @property
    def oversize_bytes(self) -> int:
        """Bytes that were read but not charged, because the charge of a read has an upper limit."""
        return sum(it.excess_bytes for it in self.oversize)

    @property
    def read_totals(self) -> dict[str, ReadTotal]:
        """What was read by the name of its source, in the order in which the first of each was read."""
        return self.reads.totals() if isinstance(self.reads, ReadLog) else totals_by_source(self.reads)

    @property
    def read_bytes(self) -> int:
        """Bytes of all nodes and values that were read."""
        return sum([it.node_bytes for it in self.read_totals.values()])

    @property
    def chargeable_bytes(self) -> int:
        """Bytes read, of every read as many as are charged at most: they stay within what was allowed."""
        return self.read_bytes - self.oversize_bytes

    @property
    def overshoot_bytes(self) -> int:
        """By how many bytes what was read exceeds what was allowed."""
        return max(0, self.read_bytes - self.allowed.proof_size)

    def __repr__(self) -> str:
        stopped_at = self.turn.stopped_at
        end = "complete" if stopped_at is None else f"incomplete at publisher {stopped_at[0]}"
        return f"<ProofProcessingResult {end}, {len(self.reads)} reads, {self.consumed}>"
