"""The code that runs a chain, as the node needs it: its version, its methods, and how it judges transactions.

Law: a question is asked at a block, with the state that the block left, and leaves no trace there. The code of a chain
can change with a block, so that every answer is about one block.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from relaycast_collator.header import Header
from relaycast_node.extrinsic.validity import PoolView

CODE = b":code"
"""Where a state holds the code of its chain."""


class ReadableState(Protocol):
    """The state that a block left; ``child`` takes the bare name of a child trie."""

    def get(self, key: bytes, /) -> bytes | None: ...
    def keys(self, prefix: bytes = b"", *, after: bytes | None = None) -> Iterator[bytes]: ...
    def child(self, storage_key: bytes, /) -> "ReadableState": ...


@dataclass(frozen=True, slots=True)
class BlockState:
    """A block, and the state that it left."""

    header: Header
    hash: bytes
    state: ReadableState


class ChainStates(Protocol):
    """Blocks of a chain and their states; ``state_of`` raises ``UnknownBlock``."""

    @property
    def genesis_hash(self) -> bytes: ...
    def hash_of(self, number: int, /) -> bytes | None: ...
    def newest(self) -> BlockState: ...
    def state_of(self, block_hash: bytes, /) -> BlockState: ...


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """What code says of itself; ``apis`` are the ids of its runtime APIs with their versions, in its own order."""

    spec_name: str
    impl_name: str
    authoring_version: int
    spec_version: int
    impl_version: int
    apis: tuple[tuple[bytes, int], ...]
    transaction_version: int
    state_version: int

    def api(self, api_id: bytes) -> int | None:
        """Return the version of a runtime API, ``None`` where the code has none."""
        return dict(self.apis).get(api_id)


class ChainCode(Protocol):
    """The code that runs a chain."""

    def follow(self, chain: ChainStates) -> None:
        """Take note of the chain's newest block: the genesis first, then each block before anything is asked at it."""

    def version(self, at: BlockState) -> CodeVersion:
        """Return what the code says of itself; raises ``CodeRefused``."""

    def metadata(self, at: BlockState) -> bytes:
        """Return its metadata in the version that nodes give, from the magic number on; raises ``CodeRefused``."""

    def call(self, method: str, data: bytes, at: BlockState) -> bytes:
        """Return what a method answers to SCALE ``data``.

        Raises ``CodeRefused``, and ``UnknownBlock`` for a block that ``data`` names.
        """

    def dry_run(self, data: bytes, at: BlockState) -> bytes:
        """Return the ``ApplyExtrinsicResult`` of an extrinsic in the next block; raises ``CodeRefused``."""

    def view(self, at: BlockState) -> PoolView:
        """Return the chain as the pool sees it."""

    def check_value(self, key: bytes, value: bytes | None) -> None:
        """Raise ``ValueError`` for a value in the top trie that the code cannot read; ``None`` removes the key."""

    def take_over(self, code: bytes | None) -> None:
        """Let the next block be that of other ``code``, which somebody writes into storage; ``ValueError`` for none."""


class BlockContents(Protocol):
    """What fills the blocks of a chain: ``ready`` gives the extrinsics that wait, best first."""

    ready: Callable[[], Iterable[bytes]]

    @property
    def extrinsics(self) -> Sequence[bytes]:
        """Return the extrinsics of the block that was built last."""

    @property
    def invalid(self) -> Sequence[bytes]:
        """Return the ready extrinsics that the same block found invalid: they never become valid by waiting."""
