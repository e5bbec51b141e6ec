"""Chains that go on where they were: ``--data DIR`` keeps a journal of everything that was put into them.

Law: the chains that are served are the very ones that were announced, or nothing is served. What the gateway's log has
not got yet of their blocks is told again, and what it has is not.

The chains are determined by what is put into them, so this is all that must be kept: a journal is small, and written in
one place. The blocks are built again at the start, from the last of the journal's points on (``kept_points``).
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from relaycast.refusal import BadInput
from relaycast.serve.kept_points import KeptPoints
from relaycast.serve.network import LivingNetwork
from relaycast.version import __version__
from relaycast_gateway.chain_feed import ChainFeed
from relaycast_gateway.gateway import Gateway
from relaycast_node.journal.entries import FORMAT, BeginEntry, FeedEntry, TickEntry
from relaycast_node.journal.frames import Frame, JournalDamaged
from relaycast_node.journal.journal import InputJournal, NotNoted
from relaycast_node.journal.replay import JournalReplay, OtherChains
from relaycast_node.live import Live
from relaycast_xcm.checkpoint import CheckpointRefused

FOLDER = "chains"
JOURNAL = "inputs.journal"
FOLDER_MODE = 0o700

Progress = Callable[[int, int], None]
"""Told how many relay blocks of how many are built again."""


@contextmanager
def keeping(
    network: LivingNetwork, data: str | None, gateway: Gateway | None, *, progress: Progress | None = None
) -> Iterator[None]:
    """Let chains go on where those in the folder ``data`` were, and keep what is put into them from now on.

    Without a folder nothing is kept. The ``gateway`` holds the folder for this process, and is closed at the end.
    Raises ``BadInput`` for a folder that cannot be used, and for one with other chains.
    """
    if data is None or gateway is None:
        yield
        return
    with ExitStack() as held:
        held.callback(gateway.close)
        kept = KeptChains.open(network, Path(data), gateway.feeds[0])
        held.callback(kept.close)
        held.callback(gateway.close)
        kept.go_on(progress)
        yield


class KeptChains:
    """The chains of a folder, whose events go to ``feed``."""

    def __init__(
        self, network: LivingNetwork, folder: Path, feed: ChainFeed, journal: InputJournal, frames: list[Frame]
    ) -> None:
        self._network = network
        self._folder = folder
        self._feed = feed
        self._journal = journal
        self._frames = frames
        self._points = KeptPoints(network.live, feed, journal.file)
        self._is_on = False
        self._feed_entry = next((it.entry for it in reversed(frames) if isinstance(it.entry, FeedEntry)), None)

    @classmethod
    def open(cls, network: LivingNetwork, folder: Path, feed: ChainFeed) -> "KeptChains":
        """Open the journal in a folder, or make one; raises ``BadInput``."""
        file = folder / FOLDER / JOURNAL
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
        kept = cls(network, folder, feed, journal, frames)
        try:
            kept._begin()
        except BaseException:
            journal.close()
            raise
        return kept

    @property
    def _live(self) -> Live:
        return self._network.live

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
        for chain in self._live.served():
            chain.finality_lag = found.finality
        wanted = self._beginning()
        if found.scenario != wanted.scenario:
            same = found.title == wanted.title
            got = f"the chains of {found.title}" + (" as it was before it was changed" if same else "")
            raise BadInput(place, got, "the same scenario, or another folder")
        if found.genesis != wanted.genesis:
            raise self._other_chains("other genesis blocks")

    def _beginning(self) -> BeginEntry:
        live, network = self._live, self._network
        return BeginEntry(
            FORMAT,
            __version__,
            network.title,
            network.source_digest,
            live.heads_digest(),
            live.relay.finality_lag,
        )

    def go_on(self, progress: Progress | None = None) -> None:
        """Put everything in again; raises ``BadInput`` where other chains come of it."""
        live, feed, pace = self._live, self._feed, self._live.block_time
        frames = self._begun_frames()
        logged, feed.known_blocks = feed.logged_blocks, self._known_blocks()
        total = sum(isinstance(it.entry, TickEntry) for it in frames)
        replay = JournalReplay(live, progress=None if progress is None else lambda done: progress(done, total))
        try:
            replay.run(frames)
        except OtherChains as other:
            raise self._other_chains(other.reason) from None
        feed.known_blocks = min(feed.known_blocks, feed.told)
        live.block_time = pace if self._network.is_paced else live.block_time
        live.log = self._journal
        if frames and isinstance(frames[-1].entry, TickEntry):
            self._journal.tick_done(live.heads_digest())
        self._note_feed(FeedEntry(feed.log_identity, logged, feed.known_blocks))
        self._is_on = True

    def _begun_frames(self) -> list[Frame]:
        """Let the chains stand at the last point of the journal; return the entries behind it."""
        point = self._points.newest()
        if point is not None:
            try:
                self._points.begin(point)
            except CheckpointRefused as refusal:
                raise self._other_chains(str(refusal)) from None
        self._points.follow()
        return self._frames if point is None else [it for it in self._frames if it.end > point.position]

    def close(self) -> None:
        """Close the journal, once the gateway is closed and no more events come."""
        if self._is_on:
            self._note_feed(FeedEntry(self._feed.log_identity, self._feed.logged_blocks, self._feed.told))
        self._journal.close()

    def _known_blocks(self) -> int:
        """Return how many of the first blocks the log has got; all of them where it is a new one."""
        noted = self._feed_entry
        if noted is None or noted.log != self._feed.log_identity:
            return sys.maxsize
        return noted.told + self._feed.logged_blocks - noted.logged

    def _note_feed(self, entry: FeedEntry) -> None:
        """Note which blocks the log has got, unless that follows from what was noted before."""
        noted = self._feed_entry
        if noted is None or noted.log != entry.log or noted.logged - noted.told != entry.logged - entry.told:
            with suppress(NotNoted):
                self._journal.note(entry)
            self._feed_entry = entry

    def _other_chains(self, reason: str) -> BadInput:
        begun = self._frames[0].entry
        made = begun.version if isinstance(begun, BeginEntry) else "another version"
        got = f"chains of relaycast {made}, whose blocks are others in {__version__}: {reason}"
        return BadInput(f"--data {self._folder}", got, "the version that built them, or another folder")
