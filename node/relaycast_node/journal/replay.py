"""Chains that go on from a journal: its entries are put in again, and what comes out is compared with what came then.

Law: either the chains are what they were, or ``OtherChains`` says which entry was the first that they differ at.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from relaycast_node.chain.exceptions import ChainRefusal, TickFailed
from relaycast_node.chain.served_block import ServedBlock
from relaycast_node.chain.served_chain import HeadMove, ServedChain
from relaycast_node.chain_clock import ChainClock
from relaycast_node.extrinsic.pool_errors import PoolError
from relaycast_node.journal.entries import (
    BeginEntry,
    Entry,
    FeedEntry,
    HeadEntry,
    PaceEntry,
    PublishEntry,
    RemoveEntry,
    RevertEntry,
    SnapshotEntry,
    StoreEntry,
    SubmitEntry,
    TickDoneEntry,
    TickEntry,
    TravelEntry,
)
from relaycast_node.journal.frames import Frame
from relaycast_node.journal.input_log import InputLog
from relaycast_trie.exceptions import RelaycastError

Progress = Callable[[int], None]
"""Told how many ticks have passed again."""


class OtherChains(RelaycastError, message="entry {index}: {reason}"):
    """Chains that are not what they were, from entry ``index`` on, for ``reason``."""

    index: int
    reason: str


class _Replayed(InputLog):
    """Notes nothing: the time is that of the entry that is put in again."""

    def note(self, entry: Entry) -> Callable[[], None]:
        now = self.now
        take_back = super().note(entry)
        self.now = now
        return take_back


class JournalReplay:
    """Replays entries on chains in the state before the first one.

    ``kept_aside`` is the file for the inputs of a last tick that fails.
    """

    def __init__(self, clock: ChainClock, *, progress: Progress | None = None, kept_aside: str | None = None) -> None:
        self.ticks = 0
        """Ticks that have passed again."""

        self.failed: TickFailed | None = None
        """The last tick, if it failed: the chains are at the tick before it, without later inputs."""

        self._clock = clock
        self._progress = progress
        self._log = _Replayed()
        self._log.kept_aside = kept_aside

    def run(self, frames: Iterable[Frame]) -> None:
        """Replay entries; raises ``OtherChains``.

        A last tick that was never completed may fail: see ``failed``.
        """
        clock, former = self._clock, self._clock.log
        clock.log = self._log
        waiting = deque(frames)
        try:
            while waiting:
                frame = waiting.popleft()
                self._log.now = frame.milliseconds / 1_000
                self._log.position = frame.end
                if isinstance(frame.entry, TickEntry):
                    inside = list(_inside(waiting))
                    try:
                        self._pass_tick(inside)
                    except TickFailed as failed:
                        if any(isinstance(it.entry, TickEntry | TickDoneEntry) for it in waiting):
                            raise OtherChains(frame.index, str(failed)) from None
                        self.failed = failed
                        return
                else:
                    self._put_in(frame)
        finally:
            if clock.halted is None:
                clock.log = former

    def _pass_tick(self, inside: list[Frame]) -> None:
        if inside:
            self._log.position = inside[-1].end
        with self._submitting(inside):
            self._clock.new_block()
        if inside:
            raise OtherChains(inside[0].index, "an extrinsic came with a block that does not come now")
        self.ticks += 1
        if self._progress is not None:
            self._progress(self.ticks)

    @contextmanager
    def _submitting(self, inside: list[Frame]) -> Iterator[None]:
        """Submit what came while a tick passed, each extrinsic after the block that it came after."""

        def hear(chain: ServedChain, block: ServedBlock) -> None:
            for frame in list(inside):
                entry = frame.entry
                assert isinstance(entry, SubmitEntry), "nothing else comes while a tick passes"
                if (entry.chain, entry.after) == (chain.number_in_entries, block.hash):
                    inside.remove(frame)
                    self._log.now = frame.milliseconds / 1_000
                    _submit(chain, entry)

        def hear_moved(chain: ServedChain, move: HeadMove) -> None:
            hear(chain, move.block)

        ends = [chain.new_heads.connect(partial(hear, chain)) for chain in self._clock.served()]
        ends += [chain.moved_heads.connect(partial(hear_moved, chain)) for chain in self._clock.served()]
        try:
            yield
        finally:
            for end in ends:
                end()

    def _put_in(self, frame: Frame) -> None:
        try:
            self._apply(frame.entry)
        except (ChainRefusal, LookupError, ValueError) as error:
            raise OtherChains(frame.index, str(error)) from None
        if isinstance(frame.entry, TickDoneEntry) and frame.entry.heads != self._clock.heads_digest():
            number = self._clock.relay.best.number
            raise OtherChains(frame.index, f"the blocks of relay block {number:,} are others than they were")

    def _apply(self, entry: Entry) -> None:
        clock = self._clock
        match entry:
            case SubmitEntry():
                _submit(clock.chain(entry.chain), entry)
            case RemoveEntry():
                clock.chain(entry.chain).remove(entry.hashes)
            case StoreEntry():
                clock.set_storage(entry.chain, dict(entry.values), child=entry.child, is_checked=True)
            case PublishEntry():
                clock.publish(entry.chain, entry.key, entry.value, ttl=entry.ttl)
            case TravelEntry():
                clock.travel(entry.milliseconds)
            case HeadEntry():
                clock.set_head(clock.chain(entry.chain), entry.hash)
            case SnapshotEntry():
                clock.snapshot()
            case RevertEntry():
                clock.revert(entry.number)
            case PaceEntry():
                clock.block_time = entry.block_time
            case BeginEntry() | FeedEntry() | TickEntry() | TickDoneEntry():
                return


def _inside(waiting: "deque[Frame]") -> Iterator[Frame]:
    """Take from ``waiting`` what was submitted in the tick that has just begun."""
    while waiting and isinstance(waiting[0].entry, SubmitEntry):
        yield waiting.popleft()


def _submit(chain: ServedChain, entry: SubmitEntry) -> None:
    with suppress(PoolError):  # it was refused then, too
        chain.submit(entry.data)
