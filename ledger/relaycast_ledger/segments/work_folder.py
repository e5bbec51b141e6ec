"""What a batch run has done so far, on disk: segments, checkpoints, and the manifest that says which of them count.

Law: files are written beside their place and moved there; the manifest is moved last. Whatever the moment of a kill,
a segment is there whole or not at all, and nobody reads what the manifest does not name. A file that is not what the
manifest says of it is made again, and so is all of them where the manifest does not fit the run.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Meta, Struct
from msgspec.structs import replace

from relaycast_ledger.exceptions import SegmentFailed
from relaycast_ledger.segments.fast_forward import Segment
from relaycast_ledger.staged_file import LOCK, alone_in, staged
from relaycast_xcm.checkpoint import CheckpointRefused

SCHEMA_VERSION = 5

MANIFEST = "manifest.json"

OWN_NAME = re.compile(r"manifest\.json|segment-\d{6,}\.parquet|[0-9a-f]{32}\.checkpoint")
"""Names of files in the folder; a hidden one, with a suffix, is a file that is being written."""

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class ManifestEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A segment as the manifest has it: digests of its files as hex, ``None`` while there is no such file.

    Names of files follow from numbers and digests: a manifest cannot name any other file.
    """

    first: int
    last: int
    closing: Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")] = ""
    checkpoint: Digest | None = None
    replayed: Digest | None = None


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What counts of a folder, and on which terms it was made."""

    schema: int
    terms: dict[str, Any]
    segments: dict[int, ManifestEntry]


class WorkFolder:
    """The folder of one run of ``blocks`` blocks; ``with`` keeps other processes out of it.

    A replayed segment is a table of these ``columns``, one row for each ``block``. ``terms`` is everything that the
    content depends on: what was done on other terms, or has other columns, is thrown away.
    """

    def __init__(self, path: Path, terms: dict[str, object], *, blocks: int, columns: pa.Schema) -> None:
        self.path = path
        self.terms = {**terms, "columns": columns.names}
        self.blocks = blocks
        self.columns = columns
        self.entries: dict[int, ManifestEntry] = {}
        self._is_removed = False
        self._held = ExitStack()

    def __enter__(self) -> "WorkFolder":
        with ExitStack() as held:
            held.enter_context(alone_in(self.path, works_on=self.path))
            self._read_manifest()
            self._held, self._is_removed = held.pop_all(), False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._held:
            if not self.entries and not self._is_removed:  # else it may be the folder of the next process
                self.remove()

    @property
    def done_blocks(self) -> int:
        """Blocks in segments that are replayed."""
        return sum(entry.last - entry.first + 1 for entry in self.entries.values() if entry.replayed)

    @property
    def segment_blocks(self) -> int | None:
        """Blocks of the longest segment in the manifest; ``None`` before there is one behind block 1."""
        return max((entry.last - entry.first + 1 for number, entry in self.entries.items() if number), default=None)

    @property
    def newest(self) -> int | None:
        """The segment whose checkpoint fast forward goes on from, so that it passes all that is lost.

        ``None`` where it must begin anew.
        """
        lost = [number for number, entry in self.entries.items() if not (entry.replayed or entry.checkpoint)]
        noted = (number for number, entry in self.entries.items() if entry.checkpoint)
        return max((number for number in noted if not lost or number <= min(lost)), default=None)

    def clear(self) -> None:
        """Throw away all that was done; files that a run did not write stay."""
        for path in self.path.iterdir():
            if OWN_NAME.fullmatch(path.name) or (path.name[0] == "." and OWN_NAME.fullmatch(path.stem[1:])):
                path.unlink()
        self.entries = {}

    def remove(self) -> None:
        """Remove the folder, the run is done; it stays where somebody put files of their own."""
        self.clear()
        self._is_removed = True
        (self.path / LOCK).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def note(self, segment: Segment) -> None:
        """Save a segment's checkpoint: if this process is killed, the next one can replay the segment from it.

        Rows that an earlier run replayed up to another state are replayed again.
        """
        digest = _digest(segment.checkpoint)
        self._write(f"{digest}.checkpoint", segment.checkpoint)
        entry = ManifestEntry(segment.first, segment.last, segment.closing.hex(), digest)
        before = self.entries.get(segment.number, entry)
        is_same = replace(before, checkpoint=digest, replayed=None) == entry
        self.entries[segment.number] = replace(entry, replayed=before.replayed if is_same else None)
        self._write_manifest()
        self._drop_checkpoints()

    def keep(self, number: int, table: pa.Table, *, closing: bytes = b"") -> None:
        """Keep a replayed segment, rows in the order of their blocks; ``closing`` is for one that was not noted."""
        ordered = table.sort_by("block")
        sink = pa.BufferOutputStream()
        pq.write_table(ordered, sink, compression="zstd")
        data = sink.getvalue().to_pybytes()
        self._write(_segment_name(number), data)
        blocks = ordered.column("block")
        before = self.entries.get(number, ManifestEntry(blocks[0].as_py(), blocks[-1].as_py(), closing.hex()))
        self.entries[number] = replace(before, replayed=_digest(data))
        self._write_manifest()
        self._drop_checkpoints()

    def forget(self, number: int, what: Literal["checkpoint", "replayed"]) -> None:
        """Let a file of a segment be made again."""
        self.entries[number] = replace(self.entries[number], **{what: None})
        self._write_manifest()

    def segment(self, number: int) -> Segment:
        """Return a noted segment, to be replayed."""
        entry = self.entries[number]
        checkpoint = (self.path / f"{entry.checkpoint}.checkpoint").read_bytes()
        return Segment(number, entry.first, entry.last, checkpoint, bytes.fromhex(entry.closing))

    def is_replayed(self, number: int) -> bool:
        """Whether a segment is there, whole."""
        return number in self.entries and self.entries[number].replayed is not None

    def waiting(self) -> list[int]:
        """Return the segments before the newest that nobody has replayed."""
        newest = self.newest or 0
        return sorted(number for number, entry in self.entries.items() if number < newest and not entry.replayed)

    def replayed(self) -> list[int]:
        """Return the segments that are replayed, in order."""
        return sorted(number for number, entry in self.entries.items() if entry.replayed)

    @contextmanager
    def table(self, number: int) -> Iterator[pa.Table]:
        """Give the rows of a replayed segment; where they do not read, the next run replays it again.

        Raises ``SegmentFailed``.
        """
        entry = self.entries[number]
        try:
            table = pq.read_table(self.path / _segment_name(number), schema=self.columns)
            if table.column("block").to_pylist() != list(range(entry.first, entry.last + 1)):
                raise ValueError(f"its rows are not blocks {entry.first:,} to {entry.last:,}")
            yield table
        except (CheckpointRefused, pa.ArrowException, LookupError, TypeError, ValueError) as error:
            self.forget(number, "replayed")
            raise SegmentFailed(entry.first, f"its rows do not read ({type(error).__name__}: {error})") from error

    def _read_manifest(self) -> None:
        try:
            manifest = msgspec.json.decode((self.path / MANIFEST).read_bytes(), type=Manifest)
            is_ours = (manifest.schema, manifest.terms) == (SCHEMA_VERSION, self.terms)
            entries = manifest.segments if is_ours and self._are_tiles(manifest.segments) else {}
        except (FileNotFoundError, msgspec.DecodeError, ValueError, RecursionError):
            entries = {}
        if not entries:
            self.clear()
        self.entries = {number: self._checked(number, entry) for number, entry in entries.items()}

    def _are_tiles(self, entries: dict[int, ManifestEntry]) -> bool:
        """Return whether entries are block 1 and, from there on, segments of one length; the last may be shorter."""
        length = entries[1].last - 1 if 1 in entries else 1
        for number, entry in enumerate(entries.get(it) for it in range(len(entries))):
            first = 2 + (number - 1) * length if number else 1
            last = min(first + length - 1, self.blocks) if number else 1
            if entry is None or first > last or (entry.first, entry.last) != (first, last):
                return False
            if number == 0 and entry.checkpoint:
                return False
        return True

    def _checked(self, number: int, entry: ManifestEntry) -> ManifestEntry:
        """Return what of an entry is still there as it was left."""
        if not self._holds(_segment_name(number), entry.replayed):
            entry = replace(entry, replayed=None)
        if not self._holds(f"{entry.checkpoint}.checkpoint", entry.checkpoint):
            entry = replace(entry, checkpoint=None)
        return entry

    def _holds(self, name: str, digest: str | None) -> bool:
        try:
            return digest is not None and _digest((self.path / name).read_bytes()) == digest
        except FileNotFoundError:
            return False

    def _write_manifest(self) -> None:
        segments = dict(sorted(self.entries.items()))
        manifest = Manifest(SCHEMA_VERSION, self.terms, segments)
        self._write(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))

    def _drop_checkpoints(self) -> None:
        """Remove the checkpoints of segments that are replayed, but not the one that fast forward goes on from."""
        newest = self.newest
        needed = {entry.checkpoint for number, entry in self.entries.items() if number == newest or not entry.replayed}
        for number, entry in self.entries.items():
            if entry.checkpoint and entry.checkpoint not in needed:
                (self.path / f"{entry.checkpoint}.checkpoint").unlink(missing_ok=True)
                self.entries[number] = replace(entry, checkpoint=None)

    def _write(self, name: str, data: bytes) -> None:
        with staged(self.path / name) as stream:
            stream.write(data)


def _segment_name(number: int) -> str:
    return f"segment-{number:06}.parquet"


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
