"""Why a pass ends before it has dealt with every key."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from msgspec import Struct, field

from relaycast_pallets.subscriber.node_cache import PublisherCache
from relaycast_pallets.subscriber.plan import Cursor, SubscriberPlan, Turn
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_pallets.subscriber.variants.cache_limit import CacheLimit
from relaycast_pallets.subscriber.walk import Placement, TrieDepthExceeded
from relaycast_trie.nibbles import from_nibbles
from relaycast_trie.node import Branch, Empty, Node
from relaycast_xcm.primitives import ParaId, Weight


class StopCause(Enum):
    """What ran out: the meter of reads, the proof, or the meter of callbacks."""

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


def entry_key(prefix: bytes, node: Node) -> bytes | None:
    """Return the key whose value ``node`` at the nibbles ``prefix`` holds, ``None`` when it holds none."""
    if isinstance(node, Empty) or node.value is None:
        return None
    path = prefix + node.partial
    return None if len(path) % 2 else from_nibbles(path)


def key_on_the_way(node_hash: bytes, root: bytes, paths: Iterable[bytes], nodes: Mapping[bytes, Node]) -> bytes | None:
    """Return the key of the entry in a node that stands on one of the ``paths`` from ``root``, as ``nodes`` go."""
    for path in paths:
        depth, reference = 0, root
        while (node := nodes.get(reference)) is not None:
            if reference == node_hash:
                return entry_key(path[:depth], node)
            if not isinstance(node, Branch) or not path.startswith(node.partial, depth):
                break
            depth += len(node.partial)
            child = node.children[path[depth]] if depth < len(path) else None
            if child is None:
                break
            depth, reference = depth + 1, child
    return None


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


class PublisherChange(Struct):
    """What a pass found of one publisher whose root moved, or whose last pass was cut short."""

    para_id: ParaId
    root: bytes | None
    """The child root, ``None`` where the relay chain has no such child trie."""

    finished: bool = False
    sweeping: bool = False
    """Whether its old nodes have to go first: nothing else of it was dealt with."""

    disabled_by: TrieDepthExceeded | None = None
    changed: list[tuple[SubscribedKey, bytes]] = field(default_factory=list)
    """Keys with their new entries, in the order in which they were read."""

    deleted: list[SubscribedKey] = field(default_factory=list)
    """Delivered keys that are proven absent, in the order of the pass; empty under ``silent``."""

    bases: dict[SubscribedKey, bytes | None] = field(default_factory=dict)
    """For a publisher cut short, the root against which each key was last dealt with."""

    keys_walked: int = 0
    gained: set[Placement] = field(default_factory=set)
    """Nodes met in the new trie alone; ``lost`` are those met in the old one."""

    lost: set[Placement] = field(default_factory=set)
    unseen: set[bytes] = field(default_factory=set)
    """Prefixes where the old trie could not be looked into."""

    sweep: Callable[[], PublisherCache] = PublisherCache
    """Works out what becomes of the node cache, from storage as the pass found it."""

    _cache: PublisherCache | None = None

    @property
    def cache(self) -> PublisherCache:
        """What becomes of the node cache, once that is settled."""
        assert self._cache is not None, "a pass that is not taken over leaves its caches unsettled"
        return self._cache

    def settle(self) -> None:
        """Work out what becomes of the node cache, before anything of the pass is written."""
        self._cache = self.sweep()
        self.sweep = PublisherCache


class ProofProcessingResult(Struct):
    """How a pass ended: in which ``turn``, with what moved and what was read."""

    plan: SubscriberPlan
    turn: Turn
    changes: list[PublisherChange]
    reads: list[NodeRead]
    consumed: Weight
    seed: bytes = b""
    """What the publishers were shuffled with."""

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
    cache_limit: CacheLimit | None = None
    """The limit of cached bytes, if one is set."""

    @property
    def is_complete(self) -> bool:
        return self.turn.stopped_at is None

    @property
    def stopped_at(self) -> Cursor | None:
        """The first key that was not dealt with."""
        return self.turn.stopped_at

    @property
    def cursor(self) -> Cursor | None:
        """The key that the next pass begins with: the first that was not dealt with, or the one after it."""
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
    def chargeable_bytes(self) -> int:
        """Bytes read, of every read as many as are charged at most: they stay within what was allowed."""
        return sum(read.size for read in self.reads) - self.oversize_bytes

    @property
    def overshoot_bytes(self) -> int:
        """By how many bytes what was read exceeds what was allowed."""
        return max(0, sum(read.size for read in self.reads) - self.allowed.proof_size)

    def __repr__(self) -> str:
        stopped_at = self.turn.stopped_at
        end = "complete" if stopped_at is None else f"incomplete at publisher {stopped_at[0]}"
        return f"<ProofProcessingResult {end}, {len(self.reads)} reads, {self.consumed}>"
