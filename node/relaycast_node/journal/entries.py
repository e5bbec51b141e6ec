"""What a journal holds: everything that comes into served chains from outside, in order, as data.

Law: chains that begin alike and are given the same entries build the same blocks. ``TickDoneEntry`` is the one entry
that is no input: it says what the tick before it came to, so that nobody goes on with other blocks unnoticed.
"""

from msgspec import Struct

from relaycast_node.block_time import BlockTime

ChainNumber = int | None
"""A parachain's id, or the relay chain."""

FORMAT = 1


class _Row(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An entry as a list that begins with its tag."""


class BeginEntry(_Row, frozen=True, tag="begin"):
    """What the chains are made from: a digest of the ``scenario``, and one of the genesis blocks."""

    format: int
    version: str
    title: str
    scenario: bytes
    genesis: bytes
    finality: int


class TickEntry(_Row, frozen=True, tag="tick"):
    """A tick passes. What is submitted in it comes before its ``TickDoneEntry``."""


class TickDoneEntry(_Row, frozen=True, tag="done"):
    """A tick has passed; ``heads`` is a digest of the chains' newest blocks after it."""

    heads: bytes


class SubmitEntry(_Row, frozen=True, tag="submit"):
    """An extrinsic for the pool, which may refuse it; ``after`` is the chain's newest block."""

    chain: ChainNumber
    data: bytes
    after: bytes


class RemoveEntry(_Row, frozen=True, tag="remove"):
    """Extrinsics that leave the pool and are banned, by hash."""

    chain: ChainNumber
    hashes: list[bytes]


class StoreEntry(_Row, frozen=True, tag="storage"):
    """Values written into a chain's storage; ``child`` is the bare name of a child trie."""

    chain: ChainNumber
    values: list[tuple[bytes, bytes | None]]
    child: bytes | None


class PublishEntry(_Row, frozen=True, tag="publish"):
    """A value that a parachain publishes with its next block."""

    chain: int
    key: bytes
    value: bytes
    ttl: int


class TravelEntry(_Row, frozen=True, tag="travel"):
    """The time of the relay chain's next block, in milliseconds since 1970."""

    milliseconds: int


class HeadEntry(_Row, frozen=True, tag="head"):
    """A kept block that becomes the newest of its chain."""

    chain: ChainNumber
    hash: bytes


class SnapshotEntry(_Row, frozen=True, tag="snapshot"):
    """A snapshot of where all chains stand."""


class RevertEntry(_Row, frozen=True, tag="revert"):
    """All chains stand where they stood at a snapshot."""

    number: int


class PaceEntry(_Row, frozen=True, tag="pace"):
    """Another block time: seconds, or a word."""

    block_time: BlockTime


class FeedEntry(_Row, frozen=True, tag="feed"):
    """An event log with ``logged`` blocks in it, other chains' counted, when these chains had told of ``told``.

    ``log`` is the id of the log, ``newest`` the hash of its newest block of these chains, empty if it has none.
    """

    log: bytes
    logged: int
    told: int
    newest: bytes | None = None
    """``None`` in entries of versions that did not record it."""


Entry = (
    BeginEntry
    | TickEntry
    | TickDoneEntry
    | SubmitEntry
    | RemoveEntry
    | StoreEntry
    | PublishEntry
    | TravelEntry
    | HeadEntry
    | SnapshotEntry
    | RevertEntry
    | PaceEntry
    | FeedEntry
)

NO_INPUTS = (BeginEntry, TickEntry, TickDoneEntry, FeedEntry)
"""Entries that are not inputs of the chains."""
