"""What fills the blocks of a served chain with a real runtime: the pool's ready extrinsics (``BlockContents``).

Law: the runtime decides. An extrinsic that it refuses for good leaves the pool. One that it refuses because its nonce
is too high, or because the block is full, stays for a later block.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from relaycast_node.chain.executive import LEFT_IN_THE_POOL
from relaycast_node.extrinsic.validity_errors import InvalidTransaction, decode_refusal
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader
from relaycast_wasm.blocks.applied import RefusedExtrinsic

NOT_INCLUDED = 1
"""The first byte of an ``ApplyExtrinsicResult`` of an extrinsic that the block does not hold."""


class Waits(Protocol):
    """A chain whose next block takes what is ``waiting``."""

    waiting: list[bytes]


LastBlock = Callable[[], tuple[Sequence[bytes], Sequence[RefusedExtrinsic]]]
"""Gives the extrinsics of the block that was built last, and those that it refused."""


class RuntimeContents:
    """The pool's part in the blocks of ``chain``."""

    def __init__(self, chain: Waits, last_block: LastBlock) -> None:
        self.ready: Callable[[], Iterable[bytes]] = tuple
        self._chain = chain
        self._last_block = last_block

    def offer(self) -> None:
        """Let the next block take what is ready, behind what waits already."""
        waiting = self._chain.waiting
        known = set(waiting)
        waiting += [data for data in self.ready() if data not in known]

    @property
    def extrinsics(self) -> Sequence[bytes]:
        return self._last_block()[0]

    @property
    def invalid(self) -> Sequence[bytes]:
        return [it.extrinsic for it in self._last_block()[1] if not _can_wait(it.result)]


def _can_wait(result: bytes) -> bool:
    """Return whether an extrinsic that was refused with this ``ApplyExtrinsicResult`` may be valid in a later block.

    One at which the runtime panicked has no result, and never is.
    """
    reader = ScaleReader(result)
    try:
        refusal = decode_refusal(reader) if reader.u8() == NOT_INCLUDED else None
    except CodecError:
        return False
    return isinstance(refusal, InvalidTransaction) and refusal.reason in LEFT_IN_THE_POOL
