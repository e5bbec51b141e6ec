"""Proofs of keys of a random trie, made and verified in workers and counted: by Spark, and by ``concurrent.futures``.

Both make the same calls on the same batches, in turns, with as many workers and after the same warming up.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from relaycast_ledger.proof_tables import VALID, TrieTable, prove_random, verify_batches
from relaycast_spark.jobs import TASKS_A_CORE
from relaycast_spark.session import SessionSettings, spark_session

if TYPE_CHECKING:
    from relaycast_spark.session import Spark

BATCH = 1_000
KEY_BYTES = VALUE_BYTES = 32

SPARK, PROCESSES = "Spark", "processes"


@dataclass(frozen=True, slots=True)
class ProofTerms:
    """``count`` proofs of ``keys`` keys each, of a trie of ``trie_keys``; everything is drawn from ``seed``."""

    count: int
    keys: int
    trie_keys: int
    seed: int = 1

    def table(self) -> TrieTable:
        """Return the trie's keys and values, random bytes."""
        rng = np.random.default_rng(self.seed)
        keys, values = (rng.integers(0, 256, size * self.trie_keys, np.uint8) for size in (KEY_BYTES, VALUE_BYTES))
        ends = np.arange(self.trie_keys + 1, dtype=np.int64)
        return TrieTable((keys, ends * KEY_BYTES), (values, ends * VALUE_BYTES))


@dataclass(frozen=True, slots=True)
class ProofRate:
    """How long ``what`` took for all proofs on that number of ``cores``, the best of ``rounds``."""

    what: str
    cores: int
    rounds: int
    proofs: int
    proof_bytes: int
    seconds: float
    session_seconds: float = 0.0
    """Until a session was there; not in ``seconds``."""

    first_job_seconds: float = 0.0
    """Until the first few proofs came back; not in ``seconds``."""

    @property
    def proofs_per_second(self) -> float:
        return self.proofs / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.proof_bytes / self.seconds

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        rates = {"proofs_per_second": self.proofs_per_second, "bytes_per_second": self.bytes_per_second}
        return asdict(self) | {name: round(rate) for name, rate in rates.items()}


Counted = list[tuple[int, int]]
"""Proofs that hold, and their bytes, for every task."""


def count_proofs(
    batches: Iterator[pa.RecordBatch], load: Callable[[], TrieTable], terms: ProofTerms
) -> tuple[int, int]:
    """Make and verify proofs for the ids in ``batches``; return how many hold, and their bytes."""
    valid = proof_bytes = 0
    for verdicts in verify_batches(prove_random(batches, load, keys_a_proof=terms.keys, seed=terms.seed)):
        valid += verdicts.column("verdict").to_pylist().count(VALID)
        proof_bytes += int(np.sum(verdicts.column("proof_bytes").to_numpy()))
    return valid, proof_bytes


_TABLE: list[TrieTable] = []


def take_table(table: TrieTable) -> None:
    """Keep the table of a process of the pool."""
    _TABLE[:] = [table]


def count_range(first: int, last: int, terms: ProofTerms) -> tuple[int, int]:
    """Do in a process of the pool what a Spark task does."""
    batches = (
        pa.RecordBatch.from_arrays([pa.array(range(start, min(start + BATCH, last)), pa.int64())], ["id"])
        for start in range(first, last, BATCH)
    )
    return count_proofs(batches, lambda: _TABLE[0], terms)


def compared(terms: ProofTerms, *, cores: int, rounds: int = 1) -> tuple[ProofRate, ProofRate]:
    """Count proofs by processes and by Spark in turns, and give the best round of each."""
    table = terms.table()
    pool = ProcessPoolExecutor(cores, mp_context=get_context("spawn"), initializer=take_table, initargs=(table,))
    began = time.perf_counter()
    with pool, spark_session(SessionSettings(master=f"local[{cores}]")) as spark:
        session_seconds = time.perf_counter() - began
        shared = spark.sparkContext.broadcast(table)
        first_job_seconds, _ = _timed(lambda: _on_spark(spark, shared, terms, BATCH * cores, cores))
        for future in [pool.submit(count_range, 0, BATCH, terms) for _ in range(4 * cores)]:
            future.result()
        _on_spark(spark, shared, terms, BATCH * TASKS_A_CORE * cores, cores)
        best: dict[str, tuple[float, Counted]] = {}
        for _ in range(rounds):
            for what, count in (
                (PROCESSES, lambda: _in_processes(pool, terms, cores)),
                (SPARK, lambda: _on_spark(spark, shared, terms, terms.count, cores)),
            ):
                timed = _timed(count)
                best[what] = min(best.get(what, timed), timed)
    starts = {SPARK: (session_seconds, first_job_seconds)}
    first, second = (
        _rate(what, cores, rounds, terms, *best[what], *starts.get(what, ())) for what in (PROCESSES, SPARK)
    )
    return first, second


def _timed(count: Callable[[], Counted]) -> tuple[float, Counted]:
    began = time.perf_counter()
    counted = count()
    return time.perf_counter() - began, counted


def _in_processes(pool: ProcessPoolExecutor, terms: ProofTerms, cores: int) -> Counted:
    tasks = TASKS_A_CORE * cores
    ends = [terms.count * task // tasks for task in range(tasks + 1)]
    futures = [pool.submit(count_range, first, last, terms) for first, last in pairwise(ends)]
    return [future.result() for future in futures]


def _on_spark(spark: "Spark", shared: Any, terms: ProofTerms, count: int, cores: int) -> Counted:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        valid, proof_bytes = count_proofs(batches, lambda: shared.value, terms)
        yield pa.RecordBatch.from_pydict({"valid": [valid], "bytes": [proof_bytes]})

    frame = spark.range(count, numPartitions=TASKS_A_CORE * cores).mapInArrow(work, "valid bigint, bytes bigint")
    return [(row["valid"], row["bytes"]) for row in frame.collect()]


def _rate(
    what: str, cores: int, rounds: int, terms: ProofTerms, seconds: float, counted: Counted, *starts: float
) -> ProofRate:
    valid, proof_bytes = (sum(part) for part in zip(*counted, strict=True))
    assert valid == terms.count, f"{valid} of {terms.count} proofs hold"
    return ProofRate(what, cores, rounds, terms.count, proof_bytes, round(seconds, 3), *(round(it, 3) for it in starts))
