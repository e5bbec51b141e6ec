"""What runs in Spark's Python workers: arrays in batches, kernels that lie compiled, one thread."""

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import relaycast_trie
from relaycast_ledger import proof_tables
from relaycast_ledger.proof_tables import LIST, TrieTable, prove_random, prove_requests, verify_batches
from relaycast_spark.publications import PUBLICATIONS, replay_publishers
from relaycast_trie import StateVersion, warm_up
from relaycast_trie.scale import encode_bytes, encode_vec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = [bytes([number % 251]) * 31 + bytes([number // 251]) for number in range(500)]
TABLE = TrieTable.of(pa.array(KEYS, pa.binary()), pa.array(KEYS, pa.binary()))


def numbered(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": pa.array(range(rows), pa.int64())})


def requests(rows: int) -> pa.RecordBatch:
    wanted = [[KEYS[row % len(KEYS)], b"absent"] for row in range(rows)]
    return pa.RecordBatch.from_pydict({"id": pa.array(range(rows), pa.int64()), "keys": pa.array(wanted, LIST)})


def proofs(rows: int) -> pa.RecordBatch:
    (made,) = prove_random(iter([numbered(rows)]), lambda: TABLE, keys_a_proof=3, seed=1)
    return made


def encoded(rows: int) -> pa.RecordBatch:
    made = proofs(rows)
    scale = [encode_vec(map(encode_bytes, nodes)) for nodes in made.column("nodes").to_pylist()]
    columns = [made.column("root"), made.column("keys"), pa.array(scale, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["root", "keys", "proof"])


def publications(rows: int) -> pa.RecordBatch:
    """Return what one publisher gives away in four blocks, half of which expires."""
    held = np.arange(rows)
    return pa.RecordBatch.from_pydict(
        {
            "block": pa.array(held * 4 // rows + 1),
            "para_id": pa.array(np.full(rows, 2_000)),
            "key": pa.array([KEYS[row % len(KEYS)] for row in range(rows)], pa.binary()),
            "value": pa.array([bytes(row % 90) for row in range(rows)], pa.binary()),
            "ttl": pa.array(held % 2 * 6),
        }
    ).cast(PUBLICATIONS)


STAGES: dict[
    str, tuple[Callable[[int], pa.RecordBatch], Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]]
] = {
    "verify nodes": (proofs, verify_batches),
    "verify strictly": (proofs, lambda batches: verify_batches(batches, strict=True)),
    "verify encoded proofs": (encoded, verify_batches),
    "prove what is drawn": (
        numbered,
        lambda batches: prove_random(batches, lambda: TABLE, keys_a_proof=3, seed=1, absent_percent=20),
    ),
    "prove what is asked for": (requests, lambda batches: prove_requests(batches, lambda: TABLE)),
    "replay publishers": (publications, lambda batches: replay_publishers(batches, state_version=StateVersion.V1)),
}


def steps(work: Callable[[], object]) -> int:
    """Return how many instructions of Python ``work`` takes; what C and compiled kernels do counts nothing."""
    counted = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    gc.disable()  # what other tests left behind may run Python when it goes
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return counted


@pytest.mark.parametrize("stage", STAGES)
def test_no_python_runs_for_each_row(stage: str) -> None:
    make, work = STAGES[stage]
    few, many = make(80), make(2_080)
    list(work(iter([few])))
    taken = [steps(lambda batch=batch: list(work(iter([batch])))) for batch in (few, many)]  # type: ignore[misc]
    assert taken[1] - taken[0] < 1_000, "2,000 rows more"


def test_steps_tell_a_loop_over_rows() -> None:
    assert steps(lambda: [None for _ in range(2_080)]) - steps(lambda: [None for _ in range(80)]) > 2_000


@pytest.mark.parametrize(
    ("module", "name", "work"),
    [
        (proof_tables, "warm_up", STAGES["verify nodes"][1]),
        (proof_tables, "warm_up", STAGES["prove what is drawn"][1]),
        (proof_tables, "warm_up", STAGES["prove what is asked for"][1]),
        (relaycast_trie, "warm_up", STAGES["replay publishers"][1]),
    ],
)
def test_kernels_are_warm_before_the_first_batch_is_taken(
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    name: str,
    work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> None:
    happened: list[object] = []
    monkeypatch.setattr(module, name, lambda: happened.append("warm"))

    def batches() -> Iterator[pa.RecordBatch]:
        happened.append("batch")
        yield from ()

    list(work(batches()))
    assert happened == ["warm", "batch"]


KNOWN = """
import sys
sys.path[:0] = {path}
from relaycast_trie import warm_up
warm_up()
from relaycast_trie.array.warm_up import all_kernels
known = {{kernel: set(kernel.signatures) for kernel in all_kernels()}}
from spark.scenarios import MANY_KEYS, preparation_of, replayed_apart, segments_of
from spark.test_workers import STAGES
for make, work in STAGES.values():
    list(work(iter([make(60), make(7)])))
segments = segments_of(MANY_KEYS, length=4, trie_engine="array")
replayed_apart(preparation_of(MANY_KEYS, trie_engine="array"), segments)
more = {{kernel.py_func.__qualname__: set(kernel.signatures) - known[kernel] for kernel in all_kernels()}}
assert not any(more.values()), {{name: found for name, found in more.items() if found}}
print(sum(map(len, known.values())))
"""


def test_a_worker_calls_no_kernel_that_warming_up_has_not_loaded() -> None:
    """What ``warm_up`` compiles once for a machine is then all that there is to compile there."""
    program = KNOWN.format(path=[path for path in sys.path if path])
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 30


def told_of_itself(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make and verify proofs, and tell what that took: a worker's work."""
    import os  # noqa: PLC0415 - of the worker's own

    import psutil  # noqa: PLC0415
    from numba import config  # noqa: PLC0415

    from relaycast_trie.array.warm_up import all_kernels  # noqa: PLC0415

    made = (batch.select(["id"]) for batch in batches)
    rows = sum(batch.num_rows for batch in verify_batches(prove_random(made, lambda: TABLE, keys_a_proof=3, seed=1)))
    stats = [kernel.stats for kernel in all_kernels()]
    busy = sum(it.user_time + it.system_time > 0 for it in psutil.Process().threads())
    told = {
        "pid": os.getpid(),
        "rows": rows,
        "compiled": sum(sum(it.cache_misses.values()) for it in stats),
        "loaded": sum(sum(it.cache_hits.values()) for it in stats),
        "numba_threads": config.NUMBA_NUM_THREADS,  # type: ignore[attr-defined]
        "arrow_threads": pa.cpu_count(),
        "omp_threads": int(os.environ["OMP_NUM_THREADS"]),
        "busy_threads": busy,
    }
    yield pa.RecordBatch.from_pylist([told])


def cache_files() -> dict[str, int]:
    """Return the files of compiled code with the times when they were written."""
    from relaycast_trie.array.warm_up import kept_code  # noqa: PLC0415

    folder = kept_code().folder
    assert folder is not None
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.nb[ic]")}


def test_no_worker_of_a_second_application_compiles_anything_or_takes_a_second_thread(spark: "SparkSession") -> None:
    warm_up()
    before = cache_files()
    columns = "pid long, rows long, compiled long, loaded long, numba_threads long, arrow_threads long, "
    columns += "omp_threads long, busy_threads long"
    told = spark.range(4_000, numPartitions=4).mapInArrow(told_of_itself, columns).collect()
    assert sum(row.rows for row in told) == 4_000
    assert {row.compiled for row in told} == {0}
    assert min(row.loaded for row in told) > 20
    for name in ("numba_threads", "arrow_threads", "omp_threads", "busy_threads"):
        assert {row[name] for row in told} == {1}, name
    assert before
    assert cache_files() == before
