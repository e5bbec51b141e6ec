"""Following an extrinsic: callbacks that hear each of its statuses until the last (sc-transaction-pool ``watcher``)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from relaycast_node.chain.signal import call_all

MOST_BLOCKS_AWAITING_FINALITY = 512
"""The oldest block beyond these is given up: its extrinsics time out."""


class StatusKind(StrEnum):
    """What became of an extrinsic, as ``author_extrinsicUpdate`` spells it."""

    FUTURE = "future"
    READY = "ready"
    IN_BLOCK = "inBlock"
    RETRACTED = "retracted"
    FINALITY_TIMEOUT = "finalityTimeout"
    FINALIZED = "finalized"
    USURPED = "usurped"
    DROPPED = "dropped"
    INVALID = "invalid"


LAST_KINDS = frozenset(
    {
        StatusKind.FINALITY_TIMEOUT,
        StatusKind.FINALIZED,
        StatusKind.USURPED,
        StatusKind.DROPPED,
        StatusKind.INVALID,
    }
)


@dataclass(frozen=True, slots=True)
class TransactionStatus:
    """A status: ``hash`` is that of the block, or of the usurper; ``index`` is the extrinsic's place in the block."""

    kind: StatusKind
    hash: bytes | None = None
    index: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self.kind in LAST_KINDS


FUTURE = TransactionStatus(StatusKind.FUTURE)
READY = TransactionStatus(StatusKind.READY)
DROPPED = TransactionStatus(StatusKind.DROPPED)
INVALID = TransactionStatus(StatusKind.INVALID)

StatusCallback = Callable[[TransactionStatus], None]
Disconnect = Callable[[], None]


class Watchers:
    """Callbacks by extrinsic hash, and the blocks whose extrinsics await finality."""

    def __init__(self) -> None:
        self.failures = 0
        """Number of failed callbacks."""

        self._callbacks: dict[bytes, list[StatusCallback]] = {}
        self._unfinalized: dict[bytes, tuple[bytes, ...]] = {}

    def connect(self, extrinsic_hash: bytes, callback: StatusCallback) -> Disconnect:
        """Tell ``callback`` every status from here on; return the function that ends this."""
        callbacks = self._callbacks.setdefault(extrinsic_hash, [])
        callbacks.append(callback)

        def disconnect() -> None:
            """Forget the callback; a second time does nothing."""
            if callback in callbacks:
                callbacks.remove(callback)
                if not callbacks and self._callbacks.get(extrinsic_hash) is callbacks:
                    del self._callbacks[extrinsic_hash]

        return disconnect

    def tell(self, extrinsic_hash: bytes, status: TransactionStatus) -> None:
        """Tell a status to all who follow the extrinsic; the last status ends that."""
        callbacks = self._callbacks.get(extrinsic_hash, [])
        if status.is_last:
            self._callbacks.pop(extrinsic_hash, None)
        self.failures += call_all(tuple(callbacks), status)

    def in_block(self, block_hash: bytes, hashes: Iterable[bytes]) -> None:
        """Tell that a block holds these extrinsics, in this order."""
        included = tuple(hashes)
        self._unfinalized[block_hash] = included
        for index, extrinsic_hash in enumerate(included):
            self.tell(extrinsic_hash, TransactionStatus(StatusKind.IN_BLOCK, block_hash, index))
        while len(self._unfinalized) > MOST_BLOCKS_AWAITING_FINALITY:
            oldest = next(iter(self._unfinalized))
            self._tell_all(oldest, StatusKind.FINALITY_TIMEOUT)

    def finalized(self, block_hash: bytes) -> None:
        """Tell that a block, and what it holds, is final."""
        self._tell_all(block_hash, StatusKind.FINALIZED)

    def retracted(self, block_hash: bytes) -> None:
        """Tell that a block is no longer part of the best chain."""
        self._tell_all(block_hash, StatusKind.RETRACTED)

    def _tell_all(self, block_hash: bytes, kind: StatusKind) -> None:
        for index, extrinsic_hash in enumerate(self._unfinalized.pop(block_hash, ())):
            place = index if kind is StatusKind.FINALIZED else None
            self.tell(extrinsic_hash, TransactionStatus(kind, block_hash, place))
