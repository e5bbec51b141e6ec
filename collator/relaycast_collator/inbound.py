"""Messages for one parachain, from their arrival to the block that takes them in full.

First in, first out. A block takes as many as the policy of its budget lets it; the others wait for the next one, and
what arrives later stands behind them. So traffic beyond the budget is not lost: it fills every block that follows.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from relaycast_pallets.relay_budget import Abridged

Messages = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Downward and horizontal messages of one block."""

MAX_WAITING_BYTES = 1 << 25
"""Of each kind that wait for one parachain; a sender is refused beyond that (polkadot ``dmp``: 32 MiB)."""


class InboundQueue:
    """Downward and horizontal messages that no block has taken yet."""

    __slots__ = ("_downward", "_horizontal")

    def __init__(self) -> None:
        self._downward = _Lane()
        self._horizontal = _Lane()

    @property
    def waiting_bytes(self) -> int:
        """Bytes of all that waits."""
        return self._downward.waiting_bytes + self._horizontal.waiting_bytes

    def arrive(self, messages: Messages) -> None:
        """Put messages behind those that wait; what finds no room is refused to its sender."""
        downward, horizontal = messages
        self._downward.arrive(downward)
        self._horizontal.arrive(horizontal)

    def offered(self, max_pov_bytes: int) -> Messages:
        """Return what a block with this largest proof could possibly take: the others would be hashed in any case."""
        return tuple(self._downward.first(max_pov_bytes)), tuple(self._horizontal.first(max_pov_bytes))

    def take(self, abridged: Abridged, *, given: Messages | None = None) -> int:
        """Take out what a block was given in full, and return its bytes.

        ``given`` are the messages as the block had them, where its collator may lie: each lane goes on up to the first
        that did not wait there.
        """
        downward, horizontal = (None, None) if given is None else given
        taken = self._downward.take(abridged.downward_count, downward)
        return taken + self._horizontal.take(abridged.horizontal_count, horizontal)

    def __repr__(self) -> str:
        return f"<InboundQueue of {self.waiting_bytes} bytes>"


class _Lane:
    __slots__ = ("_messages", "waiting_bytes")

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self.waiting_bytes = 0

    def arrive(self, messages: Iterable[bytes]) -> None:
        for message in messages:
            if self.waiting_bytes + len(message) > MAX_WAITING_BYTES:
                return
            self._messages.append(message)
            self.waiting_bytes += len(message)

    def first(self, room: int) -> Iterator[bytes]:
        """Iterate over messages up to the first that does not fit into ``room`` bytes any more, that one included."""
        for message in self._messages:
            yield message
            room -= len(message)
            if room < 0:
                return

    def take(self, count: int, given: Sequence[bytes] | None) -> int:
        before = self.waiting_bytes
        for index in range(count):
            if given is not None and (not self._messages or self._messages[0] != given[index]):
                break
            self.waiting_bytes -= len(self._messages.popleft())
        return before - self.waiting_bytes
