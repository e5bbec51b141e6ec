"""The work folder: what counts after a kill, and what does not."""

import os
import pickle
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from relaycast_ledger.exceptions import SegmentFailed, WorkFolderInUse
from relaycast_ledger.segments.fast_forward import Segment
from relaycast_ledger.segments.work_folder import WorkFolder

COLUMNS = pa.schema([("segment", pa.int64()), ("block", pa.int64()), ("events", pa.binary())])
TERMS: dict[str, object] = {"run_id": "one", "keep_proofs": False}


def work_in(path: Path, terms: dict[str, object] = TERMS) -> WorkFolder:
    return WorkFolder(path, terms, blocks=9, columns=COLUMNS)


def table(*blocks: int) -> pa.Table:
    return pa.Table.from_pylist([{"segment": 0, "block": block, "events": b"e%d" % block} for block in blocks], COLUMNS)


def segment_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("segment-*.parquet")}


def segment(number: int) -> Segment:
    return Segment(number, 4 * number - 2, 4 * number + 1, b"state before %d" % number, bytes([number]) * 32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder with three segments: the first two replayed, of the third its checkpoint."""
    with work_in(tmp_path / "work") as folder:
        folder.keep(0, table(1))
        folder.note(segment(1))
        folder.note(segment(2))
        folder.keep(1, table(3, 2, 5, 4))
    return tmp_path / "work"


def test_what_was_done_is_there_for_the_next_process(path: Path) -> None:
    with work_in(path) as folder:
        assert folder.done_blocks == 5
        assert (folder.replayed(), folder.waiting(), folder.newest) == ([0, 1], [], 2)
        assert folder.segment(2) == segment(2)
        assert folder.segment_blocks == 4


def test_blocks_come_back_in_order(path: Path) -> None:
    with work_in(path) as folder:
        blocks = []
        for number in folder.replayed():
            with folder.table(number) as rows:
                blocks += rows.column("block").to_pylist()
        assert blocks == [1, 2, 3, 4, 5]


def test_the_same_segments_give_the_same_files_in_any_order(tmp_path: Path, path: Path) -> None:
    with work_in(tmp_path / "other") as folder:
        folder.keep(1, table(2, 3, 4, 5))
        folder.keep(0, table(1))
        folder.keep(0, table(1))
    assert segment_files(tmp_path / "other") == segment_files(path)


def test_checkpoints_go_when_their_segment_is_replayed_but_for_the_newest(path: Path) -> None:
    with work_in(path) as folder:
        assert len(list(path.glob("*.checkpoint"))) == 1
        folder.keep(2, table(6, 7, 8, 9))
        assert folder.newest == 2
        assert folder.segment(2).checkpoint == segment(2).checkpoint
        folder.note(segment(3))
        assert [folder.segment(3)] == [segment(3)]
        assert len(list(path.glob("*.checkpoint"))) == 1


def test_a_file_that_the_manifest_does_not_name_does_not_count(path: Path) -> None:
    (path / ".segment-000002.parquet.77").write_bytes(b"half a segm")
    (path / "segment-000002.parquet").write_bytes(b"moved, and then the power went")
    with work_in(path) as folder:
        assert folder.replayed() == [0, 1]


def test_a_damaged_segment_alone_is_made_again(path: Path) -> None:
    (path / "segment-000001.parquet").write_bytes(b"not what was written")
    with work_in(path) as folder:
        assert (folder.replayed(), folder.newest) == ([0], None)
        folder.note(segment(1))
        assert (folder.replayed(), folder.waiting(), folder.newest) == ([0], [1], 2)


def test_a_link_in_place_of_the_lock_is_not_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (path / "lock").symlink_to(tmp_path / "victim")
    with (
        pytest.raises(OSError, match=f"symbolic links: '{path / 'lock'}'"),
        work_in(path),
    ):
        pass
    assert (tmp_path / "victim").read_text() == "mine"


def test_nothing_is_left_of_a_folder_in_which_nothing_was_done(tmp_path: Path) -> None:
    with work_in(tmp_path / "deep" / "below" / "work") as folder:
        assert folder.path.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "manifest", [b"", b"{", b"[]", b'{"schema": 1}', b'{"schema": 9, "terms": {}, "segments": {}}']
)
def test_a_manifest_that_cannot_be_read_is_as_good_as_none(path: Path, manifest: bytes) -> None:
    (path / "manifest.json").write_bytes(manifest)
    with work_in(path) as folder:
        assert folder.entries == {}


def test_other_terms_start_over(path: Path) -> None:
    with work_in(path, {**TERMS, "keep_proofs": True}) as folder:
        assert folder.entries == {}


def test_two_processes_do_not_work_on_one_run(path: Path) -> None:
    with (
        work_in(path),
        pytest.raises(WorkFolderInUse, match=f"got process {os.getpid()} that writes there, expected no other process"),
        work_in(path),
    ):
        pass
    with work_in(path) as folder:
        assert folder.done_blocks == 5


def test_a_run_that_is_done_leaves_the_folder_to_the_next_process(path: Path) -> None:
    """Between the end of the work and that of the process there is Spark, which takes its time."""
    with ExitStack() as process:
        first = process.enter_context(work_in(path))
        first.remove()
        with work_in(path) as second:
            second.keep(0, table(1))
            process.close()
            with pytest.raises(WorkFolderInUse), work_in(path):
                pass
    with work_in(path) as again:
        assert again.done_blocks == 1


@pytest.mark.parametrize(
    "error",
    [
        SegmentFailed(7, "OverflowError: too much", 2),
        WorkFolderInUse("w", "1"),
    ],
)
def test_refusals_survive_a_pickle(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
