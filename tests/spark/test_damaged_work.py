"""Every kind of damage to every kind of work file: the run is completed, with the bytes of one that met no damage."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relaycast.simulation.run_files import simulate
from relaycast.simulation.spark_engine import SparkOptions, simulate_with_spark
from relaycast_ledger.exceptions import SegmentFailed
from relaycast_ledger.segments.checkpoint import packed
from relaycast_ledger.segments.work_folder import WorkFolder
from spark.scenarios import MARKET, SCARCE, contents

pytestmark = pytest.mark.usefixtures("spark")

Manifest = dict[str, Any]


class Work:
    """The work folder of a run that has replayed segments 0, 1, 2 and 4 of five, and waits for 3."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.victim = folder.parent.parent / "victim.checkpoint"
        self.victim.write_bytes(b"a file of somebody's own")
        self.manifest_file = folder / "manifest.json"

    @property
    def manifest(self) -> Manifest:
        manifest: Manifest = json.loads(self.manifest_file.read_bytes())
        return manifest

    def segment(self, number: int) -> Path:
        return self.folder / f"segment-{number:06}.parquet"

    def checkpoint(self, number: int) -> Path:
        return self.folder / f"{self.manifest['segments'][str(number)]['checkpoint']}.checkpoint"

    def change(self, number: int, **members: object) -> None:
        """Write other things of a segment into the manifest."""
        manifest = self.manifest
        manifest["segments"][str(number)] |= members
        self.manifest_file.write_text(json.dumps(manifest))

    def forge_checkpoint(self, number: int, data: bytes) -> None:
        digest = blake2b(data, digest_size=16).hexdigest()
        (self.folder / f"{digest}.checkpoint").write_bytes(data)
        self.change(number, checkpoint=digest)

    def forge_segment(self, number: int, table: pa.Table) -> None:
        pq.write_table(table, self.segment(number))
        self.change(number, replayed=blake2b(self.segment(number).read_bytes(), digest_size=16).hexdigest())

    def rename_column(self, name: str, other: str) -> None:
        """Leave what a version left that had another name for a column."""
        for number, entry in self.manifest["segments"].items():
            if entry["replayed"]:
                table = pq.read_table(self.segment(int(number)))
                self.forge_segment(int(number), table.rename_columns({name: other}))
        manifest = self.manifest
        columns = manifest["terms"]["columns"]
        columns[columns.index(name)] = other
        self.manifest_file.write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output folder of a run whose third segment failed."""
    out, note = tmp_path_factory.mktemp("interrupted") / "out", WorkFolder.note

    def damage(self: WorkFolder, segment: Any) -> None:
        note(self, segment)
        if segment.number == 3:
            object.__setattr__(segment, "closing", bytes(32))

    with pytest.MonkeyPatch.context() as damaged:
        damaged.setattr(WorkFolder, "note", damage)
        with pytest.raises(SegmentFailed):
            simulate_with_spark(MARKET, out=out, options=SparkOptions(segment_blocks=4))
    return out


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return contents(simulate(MARKET, out=tmp_path_factory.mktemp("local")).folder)


@pytest.fixture
def work(interrupted: Path, tmp_path: Path) -> Iterator[Work]:
    out = tmp_path / "out"
    shutil.copytree(interrupted, out)
    (folder,) = out.iterdir()
    work = Work(folder)
    yield work
    assert work.victim.read_bytes() == b"a file of somebody's own"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "victim.checkpoint"]


def completed(work: Work) -> dict[str, bytes]:
    """Run until the end; what does not read is told once at most."""
    out = work.folder.parent
    for _ in range(2):
        try:
            folder = simulate_with_spark(MARKET, out=out, options=SparkOptions()).folder
        except SegmentFailed:
            continue
        assert [path.name for path in out.iterdir()] == [folder.name]
        return contents(folder)
    pytest.fail("the run was refused twice")


FILES: dict[str, Callable[[Work], tuple[Path, Path]]] = {
    "segment": lambda work: (work.segment(1), work.segment(2)),
    "waiting checkpoint": lambda work: (work.checkpoint(3), work.checkpoint(4)),
    "newest checkpoint": lambda work: (work.checkpoint(4), work.checkpoint(3)),
    "first segment": lambda work: (work.segment(0), work.segment(1)),
    "manifest": lambda work: (work.manifest_file, work.segment(1)),
}
"""A file of each kind, and another to swap it with."""


def flip(file: Path, _: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)


def swap(file: Path, other: Path) -> None:
    mine = file.read_bytes()
    file.write_bytes(other.read_bytes())
    other.write_bytes(mine)


DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "truncated": lambda file, _: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "empty": lambda file, _: file.write_bytes(b""),
    "flipped": flip,
    "swapped": swap,
    "deleted": lambda file, _: file.unlink(),
    "other bytes": lambda file, _: file.write_bytes(b"\0\xff" * 5_000),
}


def after(first: str, others: Iterable[str]) -> list[object]:
    """Return all of them; those that are not the ``first`` are for the slow suite."""
    return [name if name == first else pytest.param(name, marks=pytest.mark.slow) for name in others]


@pytest.mark.parametrize("damage", after("flipped", DAMAGE))
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_is_made_again(work: Work, expected: dict[str, bytes], file: str, damage: str) -> None:
    DAMAGE[damage](*FILES[file](work))
    assert completed(work) == expected


FORGERIES: dict[str, Callable[[Work], object]] = {
    "a path in place of a digest": lambda work: work.change(1, checkpoint="../../victim"),
    "an absolute path in place of a digest": lambda work: work.change(1, replayed=str(work.victim)),
    "a file of the layout before": lambda work: work.change(1, file="../../victim.checkpoint"),
    "a gap between segments": lambda work: work.change(2, first=7),
    "segments that overlap": lambda work: work.change(1, last=6),
    "blocks behind the last": lambda work: work.change(4, last=18),
    "a segment of no blocks": lambda work: work.change(1, first=2, last=1),
    "another end of a replayed segment": lambda work: work.change(1, closing="00" * 32),
    "another end of a waiting segment": lambda work: work.change(3, closing="00" * 32),
    "the checkpoint of another segment": lambda work: work.change(3, checkpoint=work.checkpoint(4).stem),
    "the newest with the checkpoint of another": lambda work: work.change(4, checkpoint=work.checkpoint(3).stem),
    "a checkpoint that is none": lambda work: work.forge_checkpoint(4, b"none"),
    "a checkpoint without content": lambda work: work.forge_checkpoint(3, packed(b"\x80")),
    "a segment with rows of another": lambda work: work.forge_segment(1, pq.read_table(work.segment(2))),
    "a segment without rows": lambda work: work.forge_segment(1, pq.read_table(work.segment(1)).slice(0, 0)),
    "a segment without columns": lambda work: work.forge_segment(1, pa.table({"block": [2, 3, 4, 5]})),
    "segments of other columns": lambda work: work.rename_column("told", "records"),
    "a manifest nested too deeply": lambda work: work.manifest_file.write_bytes(b'{"terms":' * 100_000),
    "a manifest with numbers too large": lambda work: work.change(1, first=10**400),
}


@pytest.mark.parametrize("forgery", after("a checkpoint that is none", FORGERIES))
def test_a_forged_file_is_made_again(work: Work, expected: dict[str, bytes], forgery: str) -> None:
    FORGERIES[forgery](work)
    assert completed(work) == expected


def test_the_work_of_another_run_is_made_again(work: Work, expected: dict[str, bytes], tmp_path: Path) -> None:
    """A folder under this run's name, in which another one was interrupted."""
    with pytest.raises(KeyboardInterrupt):
        simulate_with_spark(SCARCE, out=tmp_path / "out", options=SparkOptions(), progress=Interrupting())
    (other,) = set((tmp_path / "out").iterdir()) - {work.folder}
    shutil.rmtree(work.folder)
    other.rename(work.folder)
    assert completed(work) == expected


class Interrupting:
    """A progress that interrupts once something was replayed."""

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        pass

    def advance(self, stage: str, rows: int) -> None:
        if stage == "replayed" and rows > 1:
            raise KeyboardInterrupt


def test_files_of_others_stay_where_they_are(work: Work, expected: dict[str, bytes]) -> None:
    (work.folder / "notes.txt").write_text("mine")
    (work.folder / "deep").mkdir()
    (work.folder / "segment-1.parquet.bak").write_text("mine, too")
    out = work.folder.parent
    folder = simulate_with_spark(MARKET, out=out, options=SparkOptions()).folder
    assert contents(folder) == expected
    assert sorted(path.name for path in work.folder.iterdir()) == ["deep", "notes.txt", "segment-1.parquet.bak"]
