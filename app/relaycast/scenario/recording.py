"""Recorded publications as a scenario replays them: what a trace holds as a whole, and its blocks one after another.

Law: a trace is checked from its first row to its last before anything runs, and goes by in a stream when it runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from relaycast.refusal import BadInput, nearest, shown
from relaycast.scenario.ranges import check_range, range_of
from relaycast.scenario.trace_file import key_names, parts_of, read_trace, refused_row
from relaycast.scenario.workload_dump import PlaybackDump, RecordedDump
from relaycast_spark.publications import PUBLICATIONS, bytes_in, key_of, numbers_in
from relaycast_xcm.checkpoint import CheckpointRefused

Publication = tuple[int, bytes, bytes, int]
"""``(para_id, key, value, ttl)``."""

NAMES_SHOWN = 8
"""Keys of a publisher that an error lists where none resembles the mistyped one."""

Stamp = tuple[tuple[str, int, int], ...]
"""The files of a trace, with their sizes and when they were last written."""


@dataclass(frozen=True, slots=True)
class TraceTerms:
    """What a scenario asks of a trace: who may publish in it, who publishes otherwise, how long a value may be."""

    publishers: frozenset[int]
    by_rule: frozenset[int]
    max_value_bytes: int


@dataclass(frozen=True, slots=True)
class Recording:
    """A trace that was read once from end to end; ``digest`` is of its rows, in whatever format they are written."""

    path: str
    stamp: Stamp
    rows: int
    last_block: int
    digest: bytes
    keys: dict[int, list[bytes]]
    """The keys of every publisher in the order of their first row."""

    def blocks(self, *, after: int = 0) -> Iterator[tuple[int, list[Publication]]]:
        """Give the publications of each block that has some, from the file; raises ``BadInput`` when it has changed."""
        if _stamp(self.path) != self.stamp:
            raise BadInput(self.path, "a file that was changed meanwhile", "the publications that were checked before")
        block, rows = 0, list[Publication]()
        for _, _, batch in read_trace(self.path):
            blocks = numbers_in(batch.column("block"))
            starts = [0, *(np.flatnonzero(blocks[1:] != blocks[:-1]) + 1).tolist(), len(blocks)]
            for start, end in pairwise(starts):
                if start == end or int(blocks[start]) <= after:
                    continue
                if int(blocks[start]) != block and rows:
                    yield block, rows
                    rows = []
                block = int(blocks[start])
                rows += _publications(batch.slice(start, end - start))
        if rows:
            yield block, rows

    def without_keys_but(self, publishers: set[int]) -> "Recording":
        """Return the same with the keys of these publishers alone; the others have none."""
        return replace(
            self, keys={para_id: keys if para_id in publishers else [] for para_id, keys in self.keys.items()}
        )

    def subscribed(self, publisher: int, wanted: int | list[str] | str, place: str) -> list[bytes]:
        """Return the keys that a subscription means: the first N, some by name, or all that come.

        Raises ``BadInput`` for a name that is never published, and for more than there are.
        """
        known = self.keys[publisher]
        if isinstance(wanted, list):
            return self._named(publisher, wanted, place)
        check_range(wanted, len(known), place, f"the {len(known)} keys that {self.path} has of {publisher}")
        return [known[number] for number in range_of(wanted, len(known))]

    def _named(self, publisher: int, names: list[str], place: str) -> list[bytes]:
        known, found = set(self.keys[publisher]), list[bytes]()
        for name in names:
            key = key_of(name)
            if key is None or key not in known:
                hint = _meant(name, key_names(self.path, publisher))
                raise BadInput(place, shown(name), f"a key that {self.path} has of {publisher}", hint)
            found.append(key)
        return found

    def __repr__(self) -> str:
        return f"<Recording {self.path}: {self.rows:,} publications up to block {self.last_block:,}>"


class Playback:
    """A recording under way: ``take`` gives the publications of one block after another."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._at_hand: dict[int, list[Publication]] = {}
        self._go_on(0)

    def _go_on(self, reached: int) -> None:
        """Read what comes after block ``reached``."""
        self._reached = reached
        self._blocks = self.recording.blocks(after=reached)
        self._upcoming: tuple[int, list[Publication]] | None = (0, [])

    def look_ahead(self, last: int) -> None:
        """Have the publications up to block ``last`` at hand."""
        if last <= self._reached:
            return
        while self._upcoming is not None and self._upcoming[0] <= last:
            self._at_hand[self._upcoming[0]] = self._upcoming[1]
            self._upcoming = next(self._blocks, None)
        self._reached = last

    def take(self, block: int) -> list[Publication]:
        """Return what ``block`` publishes, and forget it."""
        self.look_ahead(block)
        return self._at_hand.pop(block, [])

    def dump(self) -> PlaybackDump:
        """Return the publications at hand as data."""
        at_hand = [RecordedDump(block, *row) for block, rows in self._at_hand.items() for row in rows]
        return PlaybackDump(self._reached, at_hand)

    def load(self, dump: PlaybackDump) -> None:
        """Go on from what was put away; the file is read for what comes after it. Raises ``CheckpointRefused``."""
        at_hand: dict[int, list[Publication]] = {}
        for it in dump.at_hand:
            if it.para_id not in self.recording.keys:
                raise CheckpointRefused(f"a publication of {it.para_id}, of which nothing is recorded")
            at_hand.setdefault(it.block, []).append((it.para_id, it.key, it.value, it.ttl))
        self._at_hand = at_hand
        self._go_on(dump.reached)


def recording(path: str, terms: TraceTerms) -> Recording:
    """Return what a trace holds, once all of it is checked; raises ``BadInput``."""
    return _recording(path, _stamp(path), terms)


@lru_cache(maxsize=8)
def _recording(path: str, stamp: Stamp, terms: TraceTerms) -> Recording:
    rows, last = 0, 0
    digests = {name: blake2b() for name in (*PUBLICATIONS.names, "lengths")}
    keys: dict[int, dict[bytes, None]] = {}
    for place, before, batch in read_trace(path):
        if batch.num_rows:
            last = _check_rows(batch, place, before, last, terms)
            _digest(batch, digests)
            _note_keys(batch, keys)
            rows += batch.num_rows
    if not rows:
        raise BadInput(path, "no rows", "at least one publication")
    digest = blake2b(b"".join(it.digest() for it in digests.values()), digest_size=32).digest()
    return Recording(path, stamp, rows, last, digest, {para_id: list(known) for para_id, known in sorted(keys.items())})


def _check_rows(batch: pa.RecordBatch, place: str, before: int, last: int, terms: TraceTerms) -> int:
    """Raise ``BadInput`` for a row that does not fit the scenario; return the batch's last block."""
    blocks, publishers = numbers_in(batch.column("block")), numbers_in(batch.column("para_id"))
    backward = np.flatnonzero(np.diff(blocks, prepend=last) < 0)
    if len(backward):
        row = int(backward[0])
        got = f"{blocks[row]} after {blocks[row - 1] if row else last}"
        raise refused_row(place, before + row, "block", got, "rows in the order of their blocks")
    strange = np.flatnonzero(~np.isin(publishers, np.fromiter(terms.publishers, np.int64, len(terms.publishers))))
    if len(strange):
        raise _strange_publisher(place, before + int(strange[0]), int(publishers[strange[0]]), terms)
    _, ends = bytes_in(batch.column("value"))
    long = np.flatnonzero((ends[1:] - ends[:-1]) > terms.max_value_bytes)
    if len(long):
        row = int(long[0])
        expected = f"at most relaychain.max_value_bytes = {terms.max_value_bytes:,}"
        raise refused_row(place, before + row, "value", f"{ends[row + 1] - ends[row]:,} bytes", expected)
    return int(blocks[-1])


def _strange_publisher(place: str, row: int, publisher: int, terms: TraceTerms) -> BadInput:
    if publisher in terms.by_rule:
        got, expected = f"{publisher}, which has publish in the scenario", "either publish, or recorded publications"
        return refused_row(place, row, "para_id", got, expected)
    hint = nearest(str(publisher), [str(known) for known in sorted(terms.publishers)])
    return refused_row(place, row, "para_id", str(publisher), "the id of one of the scenario's parachains", hint=hint)


def _digest(batch: pa.RecordBatch, digests: dict[str, Any]) -> None:
    """Take a batch into the digests of its columns: they do not depend on how rows are cut into batches."""
    for name in ("block", "para_id", "ttl"):
        digests[name].update(numbers_in(batch.column(name)).astype("<i8").tobytes())
    for name in ("key", "value"):
        data, ends = bytes_in(batch.column(name))
        digests[name].update(data[ends[0] : ends[-1]])
    digests["lengths"].update((ends[1:] - ends[:-1]).astype("<i4").tobytes())


def _note_keys(batch: pa.RecordBatch, keys: dict[int, dict[bytes, None]]) -> None:
    """Note the keys of every publisher, in the order in which they come."""
    data, ends = bytes_in(batch.column("key"))
    matrix = np.frombuffer(data[ends[0] : ends[-1]], np.uint8).reshape(-1, 32)
    pairs = np.empty((len(matrix), 40), np.uint8)
    pairs[:, :8] = numbers_in(batch.column("para_id")).astype("<i8").view(np.uint8).reshape(-1, 8)
    pairs[:, 8:] = matrix
    _, firsts = np.unique(pairs.view("V40").reshape(-1), return_index=True)
    for pair in pairs[np.sort(firsts)]:
        whole = pair.tobytes()
        keys.setdefault(int.from_bytes(whole[:8], "little"), {})[whole[8:]] = None


def _publications(batch: pa.RecordBatch) -> list[Publication]:
    columns = (batch.column(name).to_pylist() for name in ("para_id", "key", "value", "ttl"))
    return list(zip(*columns, strict=True))


def _stamp(path: str) -> Stamp:
    found = [(part, part.stat()) for part in parts_of(path)]
    return tuple((str(part), stat.st_size, stat.st_mtime_ns) for part, stat in found)


def _meant(name: str, names: list[str]) -> str:
    """Return a hint that names the nearest of many names, or the first few of them."""
    hint = nearest(name, names)
    return hint if hint.startswith("did") or len(names) <= NAMES_SHOWN else nearest(name, names[:NAMES_SHOWN]) + ", ..."
