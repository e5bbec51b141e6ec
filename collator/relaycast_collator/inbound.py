"""Messages for one parachain, from their arrival to the block that takes them in full.

First in, first out. A block takes as many as the policy of its budget lets it; the others wait for the next one, and
what arrives later stands behind them. So traffic beyond the budget is not lost: it fills every block that follows. What
stands in relay blocks after the one that a block is built on is not there for it yet.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from relaycast_pallets.parachain_system.relay_budget import Abridged
from relaycast_xcm.checkpoint import Count, Dump, refusing

Messages = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Downward and horizontal messages of one block."""

MAX_WAITING_BYTES = 1 << 25
"""Of each kind that wait for one parachain; a message beyond that is refused (polkadot ``dmp``: 32 MiB).

Each message is asked about alone (``can_queue_downward_message``): one that is refused holds up none that fits.
"""


class LaneDump(Dump, frozen=True):
    """Messages that wait: of each its relay block and its place among the different ``messages``."""

    messages: list[bytes]
    relay_blocks: list[Count]
    places: list[Count]
    refused_bytes: Count


class InboundDump(Dump, frozen=True):
    """Messages of both kinds."""

    downward: LaneDump
    horizontal: LaneDump


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

    @property
    def refused_bytes(self) -> int:
        """Bytes of all that was refused to its sender so far."""
        return self._downward.refused_bytes + self._horizontal.refused_bytes

    def arrive(self, messages: Messages, *, relay_block: int) -> None:
        """Put the messages of a relay block behind those that wait; what finds no room is refused to its sender."""
        downward, horizontal = messages
        self._downward.arrive(downward, relay_block)
        self._horizontal.arrive(horizontal, relay_block)

    def offered(self, max_pov_bytes: int, *, relay_parent: int) -> Messages:
        """Return what a block with this largest proof could possibly take: the others would be hashed in any case."""
        lanes = self._downward, self._horizontal
        downward, horizontal = (tuple(lane.first(max_pov_bytes, relay_parent)) for lane in lanes)
        return downward, horizontal

    def take(self, abridged: Abridged, *, given: Messages | None = None) -> int:
        """Take out what a block was given in full, and return its bytes.

        ``given`` are the messages as the block had them, where its collator may lie: each lane goes on up to the first
        that did not wait there.
        """
        downward, horizontal = (None, None) if given is None else given
        taken = self._downward.take(abridged.downward_count, downward)
        return taken + self._horizontal.take(abridged.horizontal_count, horizontal)

    def dump(self) -> InboundDump:
        """Return all messages as data."""
        return InboundDump(self._downward.dump(), self._horizontal.dump())

    def load(self, dump: InboundDump) -> None:
        """Hold the messages that another queue put away; raises ``CheckpointRefused``."""
        with refusing("downward messages"):
            self._downward.load(dump.downward)
        with refusing("horizontal messages"):
            self._horizontal.load(dump.horizontal)

    def __repr__(self) -> str:
        return f"<InboundQueue of {self.waiting_bytes} bytes>"


class _Lane:
    __slots__ = ("_messages", "refused_bytes", "waiting_bytes")

    def __init__(self) -> None:
        self._messages: deque[tuple[int, bytes]] = deque()
        self.waiting_bytes = 0
        self.refused_bytes = 0

    def arrive(self, messages: Iterable[bytes], relay_block: int) -> None:
        for message in messages:
            if self.waiting_bytes + len(message) > MAX_WAITING_BYTES:
                self.refused_bytes += len(message)
                continue
            self._messages.append((relay_block, message))
            self.waiting_bytes += len(message)

    def first(self, room: int, relay_parent: int) -> Iterator[bytes]:
        """Iterate over messages up to the first that does not fit into ``room`` bytes any more, that one included.

        None comes from a relay block after ``relay_parent``.
        """
        for relay_block, message in self._messages:
            if relay_block > relay_parent:
                return
            yield message
            room -= len(message)
            if room < 0:
                return

    def take(self, count: int, given: Sequence[bytes] | None) -> int:
        before = self.waiting_bytes
        for index in range(count):
            if given is not None and (not self._messages or self._messages[0][1] != given[index]):
                break
            self.waiting_bytes -= len(self._messages.popleft()[1])
        return before - self.waiting_bytes

    def dump(self) -> LaneDump:
        different = {message: place for place, message in enumerate(dict.fromkeys(it for _, it in self._messages))}
        relay_blocks = [relay_block for relay_block, _ in self._messages]
        places = [different[message] for _, message in self._messages]
        return LaneDump(list(different), relay_blocks, places, self.refused_bytes)

    def load(self, dump: LaneDump) -> None:
        waiting = [dump.messages[place] for place in dump.places]
        waiting_bytes = sum(map(len, waiting))
        if waiting_bytes > MAX_WAITING_BYTES:
            raise ValueError(f"{waiting_bytes:,} bytes wait, expected at most {MAX_WAITING_BYTES:,}")
        self._messages = deque(zip(dump.relay_blocks, waiting, strict=True))
        self.waiting_bytes, self.refused_bytes = waiting_bytes, dump.refused_bytes
