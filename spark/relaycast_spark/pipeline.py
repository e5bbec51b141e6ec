"""A batch run: the spine goes ahead in this process, and Spark replays the segments behind it, side by side.

Every segment is a job of its own, handed in as soon as the spine has passed it, so that no worker waits for a wave to
fill. What comes back goes to the work folder; memory holds as many segments as there are workers, and few more.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from relaycast_ledger.exceptions import SegmentFailed
from relaycast_ledger.segments.checkpoint import closing_digest, thaw
from relaycast_ledger.segments.fast_forward import Segment, fast_forward
from relaycast_ledger.segments.simulated import Preparation, Progress, Simulated, Unseen
from relaycast_ledger.segments.work_folder import WorkFolder
from relaycast_spark.exceptions import JobFailed
from relaycast_spark.jobs import jobs_as_done
from relaycast_spark.replay import REPLAYED, SEGMENTS, Replay, rows_to_batch
from relaycast_spark.session import JVM_GONE, reason_of
from relaycast_spark.stages import replayed
from relaycast_xcm.checkpoint import CheckpointRefused

SPINE, REPLAY = "relay chain", "replayed"
MOST_SEGMENT_BLOCKS = 250


@dataclass(slots=True)
class BatchRun:
    """``blocks`` blocks of ``simulation``, in segments; ``fail_fast`` gives up at the first block that fails."""

    spark: SparkSession
    folder: WorkFolder
    blocks: int
    segment_blocks: int
    keep_proofs: bool = False
    fail_fast: bool = False
    progress: Progress = field(default_factory=Unseen)
    _failed: list[SegmentFailed] = field(default_factory=list)
    _left: set[int] = field(default_factory=set)
    """Segments that are replayed from checkpoints of an earlier run."""

    def run(self, simulation: Simulated) -> None:
        """Complete the run and leave the simulation at its end; it stands before block 1.

        What an earlier run left and cannot be loaded is made again. Raises ``SegmentFailed`` when a block could not be
        replayed, after all the others were.
        """
        prepare = simulation.preparation()
        self._check_left(prepare)
        self.progress.begin(SPINE, self.blocks)
        self.progress.begin(REPLAY, self.blocks, done=self.folder.done_blocks)
        segments = self._begin(simulation)
        with closing(jobs_as_done(self.spark, segments, lambda it: self._replay(it, prepare), _job_name)) as jobs:
            for segment, job in jobs:
                self._collect(segment, job)
        if self._failed:
            first = min(self._failed, key=lambda failure: failure.block)
            raise SegmentFailed(first.block, first.reason, len(self._failed) - 1)

    def _check_left(self, prepare: Preparation) -> None:
        """Forget the checkpoints of an earlier run that do not load, or do not follow from the segment before them."""
        folder, newest = self.folder, self.folder.newest
        for number in folder.waiting() + ([] if newest is None else [newest]):
            segment, probe = folder.segment(number), prepare()
            try:
                thaw(segment.checkpoint, probe)
                follows = closing_digest(probe).hex() == folder.entries[number - 1].closing
            except CheckpointRefused:
                follows = False
            if follows:
                self._left.add(number)
            else:
                folder.forget(number, "checkpoint")

    def _begin(self, simulation: Simulated) -> Iterator[Segment]:
        """Take the simulation to where the spine goes on, and return the segments that are to be replayed."""
        folder, newest = self.folder, self.folder.newest
        if newest is not None:
            entry = folder.segment(newest)
            thaw(entry.checkpoint, simulation)
            done = entry.first - 1
        else:
            row = Replay(simulation, segment=0, keep_proofs=self.keep_proofs).block(1)
            if not folder.is_replayed(0):
                table = pa.Table.from_batches([rows_to_batch([row])])
                folder.keep(0, table, closing=closing_digest(simulation))
                self.progress.advance(REPLAY, 1)
            done = 1
        self.progress.advance(SPINE, done)
        return self._segments(simulation, done)

    def _segments(self, simulation: Simulated, done: int) -> Iterator[Segment]:
        for number in self.folder.waiting():
            yield self.folder.segment(number)
        for segment in fast_forward(simulation, done=done, blocks=self.blocks, segment_blocks=self.segment_blocks):
            self.progress.advance(SPINE, segment.last - segment.first + 1)
            self.folder.note(segment)
            if not self.folder.is_replayed(segment.number):
                yield segment

    def _replay(self, segment: Segment, prepare: Preparation) -> pa.Table:
        """Replay one segment on a worker: a job with one task."""
        row = {
            "segment": segment.number,
            "first": segment.first,
            "last": segment.last,
            "checkpoint": segment.checkpoint,
            "closing": segment.closing,
        }
        frame = self.spark.createDataFrame(pa.Table.from_pylist([row], SEGMENTS))
        rows = replayed(frame, prepare, keep_proofs=self.keep_proofs)
        table: pa.Table = rows.toArrow()
        return table.cast(REPLAYED)

    def _collect(self, segment: Segment, job: Future[pa.Table]) -> None:
        """Keep a replayed segment; one in which a block failed is noted."""
        try:
            table = job.result()
        except (ConnectionError, Py4JNetworkError) as error:
            raise JobFailed(JVM_GONE) from error
        except Exception as error:
            failure = SegmentFailed(segment.first, reason_of(error))
        else:
            errors = table.column("error").drop_null()
            if not len(errors):
                self.folder.keep(segment.number, table)
                self.progress.advance(REPLAY, segment.last - segment.first + 1)
                return
            failure = SegmentFailed(table.column("block")[-1].as_py(), errors[0].as_py())
        if segment.number in self._left:
            self.folder.forget(segment.number, "checkpoint")
        if self.fail_fast:
            raise failure
        self._failed.append(failure)


def _job_name(segment: Segment) -> str:
    return f"replay: blocks {segment.first}-{segment.last}"


def segment_length(blocks: int, workers: int) -> int:
    """Return how many blocks make a segment: four segments a worker, none too long to be lost in a kill."""
    return max(1, min(MOST_SEGMENT_BLOCKS, -(-(blocks - 1) // (4 * workers))))
