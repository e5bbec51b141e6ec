"""The choices on which the public drafts differ, each a small object: here those that hold every invariant.

A policy is handed to the subscriber; the algorithm never asks for its name. The others are in ``variants``, so that
designs can be compared on one trace, and so that it can be seen what they break.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from msgspec import Struct

from relaycast_trie.hasher import blake2_256
from relaycast_xcm.primitives import LOWEST_PUBLIC_ID, DbWeight, ParaId, Weight

Root = bytes

LARGEST_BRANCH_BYTES = 564
"""A branch with all sixteen children and the longest partial key: 2 + 32 + 2 + 16 * 33."""

MAX_NODE_BYTES = 750
"""Room for every node that 32-byte keys can give rise to: a branch with all sixteen children has 531 to 564 bytes."""


class OrderPolicy(Protocol):
    """In which order publishers are looked at."""

    def arrange(self, publishers: Iterable[ParaId], seed: bytes) -> list[ParaId]: ...


class SystemFirstShuffled(Struct, frozen=True):
    """System parachains by number, then the others in an order that ``seed`` shuffles: nobody is first for ever."""

    def arrange(self, publishers: Iterable[ParaId], seed: bytes) -> list[ParaId]:
        return sorted(
            publishers, key=lambda para: (0, para, b"") if para < LOWEST_PUBLIC_ID else (1, 0, self._lot(para, seed))
        )

    @staticmethod
    def _lot(para: ParaId, seed: bytes) -> bytes:
        return blake2_256(seed + para.encode())


class MeteringPolicy(Protocol):
    """What a read weighs; sizes in bytes."""

    charges_own_state: ClassVar[bool]
    """Whether the paths in the own trie are charged too, and nodes that go are removed within the budget."""

    def relay_node(self, db_weight: DbWeight, size: int) -> Weight: ...

    def relay_value(self, db_weight: DbWeight, size: int) -> Weight: ...

    def cached_node(self, db_weight: DbWeight, size: int) -> Weight: ...

    def __hash__(self) -> int: ...


class EveryRead(Struct, frozen=True):
    """One database read and the bytes read, for nodes, values and cached nodes alike."""

    charges_own_state: ClassVar[bool] = False

    def relay_node(self, db_weight: DbWeight, size: int) -> Weight:
        return Weight(db_weight.read, size)

    relay_value = relay_node
    cached_node = relay_node


class RootCommitPolicy(Protocol):
    """Which roots are remembered."""

    keeps_updates: ClassVar[bool]
    """Whether a root is remembered only for keys that were dealt with against it."""

    def when_stopped(self, old: Root | None, new: Root) -> Root | None:
        """Return the root to remember of a publisher that the budget cut short."""
        ...

    def when_complete(self, stored: Mapping[ParaId, Root], changed: Mapping[ParaId, Root]) -> dict[ParaId, Root]:
        """Return all roots to remember, after the ``changed`` ones were dealt with."""
        ...


class WhenPublisherDone(Struct, frozen=True):
    """A root is remembered once all its keys are dealt with; the others stay as they are."""

    keeps_updates: ClassVar[bool] = True

    def when_stopped(self, old: Root | None, new: Root) -> Root | None:  # noqa: ARG002 - not before it is done
        return old

    def when_complete(self, stored: Mapping[ParaId, Root], changed: Mapping[ParaId, Root]) -> dict[ParaId, Root]:
        return {**stored, **changed}


class CallbackPolicy(Protocol):
    """Against which trie changes are told."""

    def compared_with(self, base: Root | None) -> Root | None: ...


class ChangedKeys(Struct, frozen=True):
    """A key is delivered when its entry differs from the one dealt with before."""

    def compared_with(self, base: Root | None) -> Root | None:
        return base


class CachePolicy(Protocol):
    """Which nodes stay on chain."""

    def keeps(self, node: bytes) -> bool: ...


class StructureNodes(Struct, frozen=True):
    """Nodes of at most ``max_node_bytes`` on the paths of subscribed keys; 512 leaves out every full branch."""

    max_node_bytes: int = MAX_NODE_BYTES

    def keeps(self, node: bytes) -> bool:
        return len(node) <= self.max_node_bytes


class DeletionPolicy(Protocol):
    """What the handler learns when a key is no longer in the publisher's trie."""

    notifies: ClassVar[bool]
    """Whether a proven absence is a callback without a value; the pallet then remembers which keys are delivered."""


class IgnoreDeletions(Struct, frozen=True):
    """Nothing: a handler keeps the last value, and knows its time to live (RFC-0160)."""

    notifies: ClassVar[bool] = False


class AdvancementPolicy(Protocol):
    """How far a block must advance horizontal messages when it is given some of them as hashes."""

    def allows(self, *, full_bytes: int, largest_next: int, room: int) -> bool:
        """Return whether messages of ``full_bytes`` in full are enough.

        ``largest_next`` is the largest message that the channel of the first hashed message allows; ``room`` is the
        space for messages in full, including that one. All in bytes.
        """
        ...


class Advanced(Struct, frozen=True):
    """The next message might not have fitted: the full ones leave less room than its channel allows (sdk 9086)."""

    def allows(self, *, full_bytes: int, largest_next: int, room: int) -> bool:
        return full_bytes + largest_next > room


@dataclass(frozen=True, slots=True)
class Policies:
    """One choice of each kind."""

    order: OrderPolicy = field(default_factory=SystemFirstShuffled)
    metering: MeteringPolicy = field(default_factory=EveryRead)
    root_commit: RootCommitPolicy = field(default_factory=WhenPublisherDone)
    callback: CallbackPolicy = field(default_factory=ChangedKeys)
    cache: CachePolicy = field(default_factory=StructureNodes)
    deletion: DeletionPolicy = field(default_factory=IgnoreDeletions)
    advancement: AdvancementPolicy = field(default_factory=Advanced)
