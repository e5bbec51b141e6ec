"""Chains that go on where they were: ``--data DIR`` keeps a journal of everything that was put into them.

Law: the chains that are served are the very ones that were announced, or nothing is served. What the gateway's log has
not got yet of their blocks is told again, and what it has is not. The log is never ahead of the journal: a tick is on
disk in the journal before it completes, and its events are appended afterwards. A log that is ahead, one that is older
than it was, or an empty one for chains whose events were logged means that files were lost or mixed up.

The chains are determined by what is put into them, so this is all that must be kept: a journal is small, and written in
one place. The blocks are built again at the start, from the last of the journal's points on (``kept_points``).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from relaycast.refusal import BadInput
from relaycast.serve.kept_points import KeptPoints
from relaycast.serve.network import LivingNetwork
from relaycast.version import __version__
from relaycast_gateway.chain_feed import ALL_BLOCKS, ChainFeed
from relaycast_gateway.gateway import Gateway
from relaycast_node.chain_clock import ChainClock
from relaycast_node.journal.entries import FORMAT, BeginEntry, Entry, FeedEntry, TickDoneEntry, TickEntry
from relaycast_node.journal.frames import Frame, JournalDamaged
from relaycast_node.journal.journal import InputJournal, NotNoted
from relaycast_node.journal.replay import JournalReplay, OtherChains
from relaycast_xcm.checkpoint import CheckpointRefused

FOLDER = "chains"
JOURNAL = "inputs.journal"
FOLDER_MODE = 0o700
ACCEPT_LOSS = "--accept-loss to continue without the lost files"

Progress = Callable[[int, int], None]
"""Told how many relay blocks of how many are built again."""


@contextmanager
def keeping(
    network: LivingNetwork,
    data: str | None,
    gateway: Gateway | None,
    *,
    progress: Progress | None = None,
    accept_loss: bool = False,
) -> Iterator[None]:
    """Let chains go on where those in the folder ``data`` were, and keep what is put into them from now on.

    Without a folder nothing is kept. The ``gateway`` holds the folder for this process, and is closed at the end.
    Raises ``BadInput`` for a folder that cannot be used, and for one with other chains. With ``accept_loss`` they
    continue at the end of the journal, even if the log has later blocks or was lost.
    """
    if data is None or gateway is None:
        yield
        return
    with ExitStack() as held:
        held.callback(gateway.close)
        kept = KeptChains.open(network, Path(data), gateway.feeds[0], accept_loss=accept_loss)
        held.callback(kept.close)
        held.callback(gateway.close)
        kept.go_on(progress)
        yield


def journal_in(folder: str | Path) -> Path:
    """Return the place of the journal in a folder."""
    return Path(folder) / FOLDER / JOURNAL


class KeptChains:
    """The chains of a folder, whose events go to ``feed``."""

    def __init__(
        self,
        network: LivingNetwork,
        folder: Path,
        feed: ChainFeed,
        journal: InputJournal,
        frames: list[Frame],
        *,
        accept_loss: bool,
    ) -> None:
        self._network = network
        self._folder = folder
        self._feed = feed
        self._journal = journal
        self._frames = frames
        self._accept_loss = accept_loss
        self._points = KeptPoints(network.clock, feed, journal.file)
        self._is_on = False
        self._feed_entry = next((it.entry for it in reversed(frames) if isinstance(it.entry, FeedEntry)), None)

    @classmethod
    def open(cls, network: LivingNetwork, folder: Path, feed: ChainFeed, *, accept_loss: bool = False) -> "KeptChains":
        """Open the journal in a folder, or make one; raises ``BadInput``."""
        file = journal_in(folder)
        if feed.announced is not None and not accept_loss and not (file.is_file() and file.stat().st_size):
            raise _behind(folder, 0, feed)
        place, expected = f"--data {file}", "a journal of this server, or none"
        try:
            file.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
            journal, frames = InputJournal.open(file)
        except JournalDamaged as damage:
            raise BadInput(f"{place}, byte {damage.at:,}", damage.reason, "what was written there") from None
        except ValueError as error:
            raise BadInput(place, str(error), expected) from None
        except OSError as error:
            got = (error.strerror or "an error").lower()
            raise BadInput(place, got, "a file that can be written") from None
        kept = cls(network, folder, feed, journal, frames, accept_loss=accept_loss)
        try:
            kept._begin()
        except BaseException:
            journal.close()
            raise
        return kept

    @property
    def _clock(self) -> ChainClock:
        return self._network.clock

    def _begin(self) -> None:
        """Note what the chains are made from, or see that it is what it was."""
        found = self._frames[0].entry if self._frames else None
        place = f"--data {self._folder}"
        if found is None:
            try:
                self._journal.note(self._beginning())
            except NotNoted as error:
                raise BadInput(place, error.reason, "a folder that can be written") from None
            return
        if not isinstance(found, BeginEntry) or found.format != FORMAT:
            raise BadInput(place, "chains of another layout", f"layout {FORMAT}, or another folder")
        if self._network.finality not in {None, found.finality}:
            expected = f"{found.finality}, as for the chains in {self._folder}"
            raise BadInput("--finality", str(self._network.finality), expected)
        for chain in self._clock.served():
            chain.finality_lag = found.finality
        wanted = self._beginning()
        if found.scenario != wanted.scenario:
            same = found.title == wanted.title
            got = f"the chains of {found.title}" + (" as it was before it was changed" if same else "")
            raise BadInput(place, got, "the same scenario, or another folder")
        if found.genesis != wanted.genesis:
            raise self._other_chains("other genesis blocks")

    def _beginning(self) -> BeginEntry:
        clock, network = self._clock, self._network
        return BeginEntry(
            FORMAT,
            __version__,
            network.title,
            network.source_digest,
            clock.heads_digest(),
            clock.relay.finality_lag,
        )

    def go_on(self, progress: Progress | None = None) -> None:
        """Put everything in again; raises ``BadInput`` where other chains come of it."""
        clock, feed, pace = self._clock, self._feed, self._clock.block_time
        logged, newest = feed.logged_blocks, feed.announced or b""
        self._resume_feed(newest)
        frames = self._begun_frames()
        total = sum(isinstance(it.entry, TickEntry) for it in frames)
        replay = JournalReplay(
            clock,
            progress=None if progress is None else lambda done: progress(done, total),
            kept_aside=self._journal.kept_aside,
        )
        try:
            replay.run(frames)
        except OtherChains as other:
            raise self._other_chains(other.reason) from None
        self._ensure_announced()
        feed.resume(min(feed.known_blocks, feed.told))
        if self._network.is_paced:
            clock.start_at(pace)
        if clock.halted is None:
            clock.log = self._journal
        if replay.failed is not None:
            self._journal.drop(replay.failed.number, replay.failed.reason)
        elif next((isinstance(it.entry, TickEntry) for it in reversed(frames) if _is_of_tick(it.entry)), False):
            self._journal.tick_done(clock.heads_digest())
        self._note_feed(FeedEntry(feed.log_identity, logged, feed.known_blocks, newest))
        self._is_on = True

    def _resume_feed(self, newest: bytes) -> None:
        """Append the events that the log lacks. If its position was not recorded, look for its ``newest`` block."""
        feed, noted = self._feed, self._noted_of_log
        if noted is None and newest:
            feed.resume(0, awaited=newest)
        elif noted is None or feed.logged_blocks < noted.logged:
            feed.resume(ALL_BLOCKS)
        else:
            more = feed.logged_blocks - noted.logged
            is_noted = not more and noted.newest in {None, newest}
            feed.resume(noted.told + more, awaited=b"" if is_noted else newest)

    def _ensure_announced(self) -> None:
        """Raise ``BadInput`` unless the log's events are of these chains, or a loss is accepted."""
        feed, noted = self._feed, self._noted_of_log
        reached = self._clock.relay.best.number
        if noted is not None and feed.logged_blocks < noted.logged:
            log = f"an older event log, which ends at relay block {feed.announced_relay_block():,}"
            raise _do_not_fit(self._folder, reached, log, f"the newest event log; or none, and {ACCEPT_LOSS}")
        if self._accept_loss:
            return
        if feed.is_behind:
            raise _behind(self._folder, reached, feed)
        if noted is None and self._feed_entry is not None and feed.has_empty_log and feed.told:
            raise _do_not_fit(self._folder, reached, "an empty event log", f"the log of these chains, or {ACCEPT_LOSS}")

    def _begun_frames(self) -> list[Frame]:
        """Let the chains stand at the last point of the journal; return the entries behind it."""
        point = self._points.newest(self._feed.known_blocks)
        if point is not None:
            try:
                self._points.begin(point)
            except CheckpointRefused as refusal:
                raise self._other_chains(str(refusal)) from None
        self._points.follow()
        return self._frames if point is None else [it for it in self._frames if it.end > point.position]

    def close(self) -> None:
        """Close the journal, once the gateway is closed and no more events come."""
        feed = self._feed
        if self._is_on:
            self._note_feed(FeedEntry(feed.log_identity, feed.logged_blocks, feed.told, feed.announced or b""))
        self._journal.close()

    @property
    def _noted_of_log(self) -> FeedEntry | None:
        """The last entry about this event log."""
        noted = self._feed_entry
        return noted if noted is not None and noted.log == self._feed.log_identity else None

    def _note_feed(self, entry: FeedEntry) -> None:
        """Record which blocks the log has, unless already recorded."""
        if entry != self._feed_entry:
            with suppress(NotNoted):
                self._journal.note(entry)
            self._feed_entry = entry

    def _other_chains(self, reason: str) -> BadInput:
        begun = self._frames[0].entry
        made = begun.version if isinstance(begun, BeginEntry) else "another version"
        got = f"chains of relaycast {made}, whose blocks are others in {__version__}: {reason}"
        return BadInput(f"--data {self._folder}", got, "the version that built them, or another folder")


def _is_of_tick(entry: Entry) -> bool:
    return isinstance(entry, TickEntry | TickDoneEntry)


def _behind(folder: Path, reached: int, feed: ChainFeed) -> BadInput:
    announced = feed.announced_relay_block()
    other = "another " if announced <= reached else ""
    log = f"an event log that announced {other}relay block {announced:,}"
    return _do_not_fit(folder, reached, log, f"the journal of these events, or {ACCEPT_LOSS}")


def _do_not_fit(folder: Path, reached: int, log: str, expected: str) -> BadInput:
    return BadInput(f"--data {folder}", f"a journal that reaches relay block {reached:,}, and {log}", expected)
