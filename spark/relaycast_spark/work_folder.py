"""What a batch run has done so far, on disk: segments, checkpoints, and the manifest that says which of them count.

Law: files are written beside their place and moved there; the manifest is moved last. Whatever the moment of a kill,
a segment is there whole or not at all, and nobody reads what the manifest does not name.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast_ledger.segments.spine import Segment
from relaycast_spark.exceptions import WorkFolderInUse
from relaycast_spark.tables import REPLAYED

SCHEMA_VERSION = 3


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A segment as the manifest has it; ``file`` is there once it is replayed. Digests are hex."""

    first: int
    last: int
    closing: str = ""
    checkpoint: str | None = None
    file: str | None = None
    digest: str | None = None


class WorkFolder:
    """The folder of one run; ``with`` keeps other processes out of it.

    ``terms`` is everything that the content depends on: what was done on other terms is thrown away.
    """

    def __init__(self, path: Path, terms: dict[str, object]) -> None:
        self.path = path
        self.terms = terms
        self.entries: dict[int, ManifestEntry] = {}
        self._lock = -1

    def __enter__(self) -> "WorkFolder":
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = os.read(self._lock, 32).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise WorkFolderInUse(str(self.path), pid) from None
        os.ftruncate(self._lock, 0)
        os.write(self._lock, str(os.getpid()).encode())
        self._read_manifest()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._lock)

    @property
    def done_blocks(self) -> int:
        """Blocks in segments that are replayed."""
        return sum(entry.last - entry.first + 1 for entry in self.entries.values() if entry.file)

    @property
    def segment_blocks(self) -> int | None:
        """How long the segments are that are there already."""
        return max((entry.last - entry.first + 1 for number, entry in self.entries.items() if number), default=None)

    @property
    def newest(self) -> int | None:
        """The last segment that the spine has passed; ``None`` before it has passed any."""
        return max((number for number, entry in self.entries.items() if entry.checkpoint), default=None)

    def clear(self) -> None:
        """Throw away all that was done."""
        for path in self.path.iterdir():
            if path.name != "lock":
                path.unlink()
        self.entries = {}

    def remove(self) -> None:
        """Remove the folder: the run is done."""
        shutil.rmtree(self.path, ignore_errors=True)

    def note(self, segment: Segment) -> None:
        """Keep a segment's checkpoint, so that it can be replayed by whoever comes after a kill."""
        name = f"{blake2b(segment.checkpoint, digest_size=16).hexdigest()}.checkpoint"
        self._write(name, segment.checkpoint)
        before = self.entries.get(segment.number, ManifestEntry(segment.first, segment.last))
        self.entries[segment.number] = replace(before, closing=segment.closing.hex(), checkpoint=name)
        self._write_manifest()
        self._drop_checkpoints()

    def keep(self, number: int, table: pa.Table) -> None:
        """Keep a replayed segment, rows in the order of their blocks."""
        name = f"segment-{number:06}.parquet"
        ordered = table.sort_by("block")
        staged = self.path / f".{name}.{os.getpid()}"
        pq.write_table(ordered, staged, compression="zstd")
        _settle(staged, self.path / name)
        blocks = ordered.column("block")
        before = self.entries.get(number, ManifestEntry(blocks[0].as_py(), blocks[-1].as_py()))
        digest = _digest((self.path / name).read_bytes())
        self.entries[number] = replace(before, file=name, digest=digest)
        self._write_manifest()
        self._drop_checkpoints()

    def segment(self, number: int) -> Segment:
        """Return a noted segment, to be replayed."""
        entry = self.entries[number]
        assert entry.checkpoint is not None
        checkpoint = (self.path / entry.checkpoint).read_bytes()
        return Segment(number, entry.first, entry.last, checkpoint, bytes.fromhex(entry.closing))

    def waiting(self) -> list[int]:
        """Return the segments that the spine has passed and nobody has replayed."""
        return sorted(number for number, entry in self.entries.items() if not entry.file)

    def tables(self) -> Iterator[pa.Table]:
        """Give the replayed segments in order, one at a time."""
        for number in sorted(self.entries):
            file = self.entries[number].file
            if file is not None:
                yield pq.read_table(self.path / file, schema=REPLAYED)

    def _read_manifest(self) -> None:
        try:
            manifest = json.loads((self.path / "manifest.json").read_bytes())
            entries = {int(number): ManifestEntry(**entry) for number, entry in manifest["segments"].items()}
            is_ours = manifest["schema"] == SCHEMA_VERSION and manifest["terms"] == self.terms
        except (OSError, ValueError, KeyError, TypeError):
            is_ours, entries = False, {}
        if not is_ours:
            self.clear()
            return
        self.entries = {number: self._checked(entry) for number, entry in entries.items()}
        if any(not entry.file and not entry.checkpoint for entry in self.entries.values()):
            self.clear()

    def _checked(self, entry: ManifestEntry) -> ManifestEntry:
        """Return what of an entry is still there as it was left."""
        if entry.file:
            path = self.path / entry.file
            if not path.is_file() or _digest(path.read_bytes()) != entry.digest:
                entry = replace(entry, file=None, digest=None)
        if entry.checkpoint and not (self.path / entry.checkpoint).is_file():
            entry = replace(entry, checkpoint=None)
        return entry

    def _write_manifest(self) -> None:
        segments = {str(number): asdict(entry) for number, entry in sorted(self.entries.items())}
        manifest = {"schema": SCHEMA_VERSION, "terms": self.terms, "segments": segments}
        self._write("manifest.json", json.dumps(manifest, indent=1).encode())

    def _drop_checkpoints(self) -> None:
        """Remove the checkpoints of segments that are replayed, but not the one that the spine goes on from."""
        newest = self.newest
        needed = {entry.checkpoint for number, entry in self.entries.items() if number == newest or not entry.file}
        for number, entry in self.entries.items():
            if entry.checkpoint and entry.checkpoint not in needed:
                (self.path / entry.checkpoint).unlink(missing_ok=True)
                self.entries[number] = replace(entry, checkpoint=None)

    def _write(self, name: str, data: bytes) -> None:
        staged = self.path / f".{name}.{os.getpid()}"
        staged.write_bytes(data)
        _settle(staged, self.path / name)


def _settle(staged: Path, place: Path) -> None:
    """Move a file to its place once all of it is on disk."""
    with staged.open("rb") as stream:
        os.fsync(stream.fileno())
    staged.replace(place)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
