"""How fast many proofs are on Spark, and what Spark costs beside plain processes that make the same calls.

Proofs are drawn from a trie of uniform random keys, made and verified in the worker, and counted. ``processes`` is
``concurrent.futures`` with as many workers as Spark has cores; both are warmed first, and the start of the session is
told apart. The run is a relay chain with publishers and subscribers, by the local engine and by segments on Spark; its
peak memory is that of the largest process, driver, workers and JVM each for itself.

    python benches/bench_spark.py --proofs 100000 --blocks 200 --json spark.json
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from relaycast.run import simulate
from relaycast.scenario import Parachain, Publish, Scenario, Subscription
from relaycast.spark_engine import SparkOptions, simulate_with_spark
from relaycast_spark.proof_tables import TrieTable, prove_random, verify_batches
from relaycast_spark.session import SessionSettings, spark_session

if TYPE_CHECKING:
    from relaycast_spark.session import Spark

KEYS_A_PROOF = 10
BATCH = 1_000
TASKS_A_CORE = 4

Figures = dict[str, Any]


def random_table(keys: int) -> TrieTable:
    """Return a trie's keys and values of 32 random bytes."""
    rng = np.random.default_rng(7)
    offsets = np.arange(keys + 1, dtype=np.int64) * 32
    key_data, value_data = (rng.integers(0, 256, 32 * keys, np.uint8) for _ in range(2))
    return TrieTable((key_data, offsets), (value_data, offsets))


def count_proofs(batches: Iterator[pa.RecordBatch], load: Callable[[], TrieTable]) -> tuple[int, int]:
    """Make and verify proofs for the ids in ``batches``; return how many held, and their bytes."""
    valid = total = 0
    for verdicts in verify_batches(prove_random(batches, load, keys_a_proof=KEYS_A_PROOF, seed=1)):
        valid += verdicts.column("verdict").to_pylist().count("valid")
        total += int(np.sum(verdicts.column("proof_bytes").to_numpy()))
    return valid, total


_TABLE: list[TrieTable] = []


def take_table(table: TrieTable) -> None:
    """Keep the table of a process of the pool."""
    _TABLE[:] = [table]


def count_range(first: int, last: int) -> tuple[int, int]:
    """Do in a process of the pool what a Spark task does."""
    batches = (
        pa.RecordBatch.from_arrays([pa.array(range(start, min(start + BATCH, last)), pa.int64())], ["id"])
        for start in range(first, last, BATCH)
    )
    return count_proofs(batches, lambda: _TABLE[0])


def ranges(proofs: int, tasks: int) -> list[tuple[int, int]]:
    ends = [proofs * task // tasks for task in range(tasks + 1)]
    return list(pairwise(ends))


def compared(table: TrieTable, proofs: int, cores: int, rounds: int) -> Iterator[Figures]:
    """Count proofs by processes and by Spark in turns, and give the best round of each."""
    began = time.perf_counter()
    pool = ProcessPoolExecutor(cores, mp_context=get_context("spawn"), initializer=take_table, initargs=(table,))
    with pool, spark_session(SessionSettings(master=f"local[{cores}]")) as spark:
        shared = spark.sparkContext.broadcast(table)
        _count_on_spark(spark, shared, BATCH * cores, cores)
        started = time.perf_counter() - began
        for future in [pool.submit(count_range, 0, BATCH) for _ in range(4 * cores)]:
            future.result()
        _count_on_spark(spark, shared, BATCH * TASKS_A_CORE * cores, cores)
        counts = {
            "processes": lambda: list(pool.map(count_range, *zip(*ranges(proofs, TASKS_A_CORE * cores), strict=True))),
            "spark": lambda: _count_on_spark(spark, shared, proofs, cores),
        }
        timed: dict[str, list[tuple[float, list[Any]]]] = {what: [] for what in counts}
        for _ in range(rounds):
            for what, count in counts.items():
                timed[what].append(_timed(count))
    for what, rounds_of_it in timed.items():
        seconds, counted = min(rounds_of_it, key=lambda it: it[0])
        yield _rates(what, cores, proofs, counted, seconds) | {"session_and_first_job_s": round(started, 2)}


def _timed(count: Callable[[], list[Any]]) -> tuple[float, list[Any]]:
    began = time.perf_counter()
    counted = count()
    return time.perf_counter() - began, counted


def _count_on_spark(spark: "Spark", shared: Any, proofs: int, cores: int) -> list[Any]:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        valid, total = count_proofs(batches, lambda: shared.value)
        yield pa.RecordBatch.from_pydict({"valid": [valid], "bytes": [total]})

    frame = spark.range(proofs, numPartitions=TASKS_A_CORE * cores).mapInArrow(count, "valid bigint, bytes bigint")
    return [(row["valid"], row["bytes"]) for row in frame.collect()]


def _rates(what: str, cores: int, proofs: int, counted: list[Any], seconds: float) -> Figures:
    valid, total = (sum(part) for part in zip(*counted, strict=True))
    assert valid == proofs, f"{valid} of {proofs} proofs hold"
    rates = {"proofs_per_s": round(proofs / seconds), "megabytes_per_s": round(total / seconds / 1e6, 1)}
    return {"what": what, "cores": cores, "proofs": proofs, "seconds": round(seconds, 2), **rates}


def market(blocks: int, publishers: int, subscribers: int) -> Scenario:
    """Return a scenario in which every subscriber reads five keys of each of four publishers."""
    readers = [
        Parachain(
            id=3000 + number,
            subscribe=[
                Subscription(publisher=2000 + (2 * number + step) % publishers, keys=5)
                for step in range(min(4, publishers))
            ],
        )
        for number in range(subscribers)
    ]
    writers = [Parachain(id=2000 + number, publish=Publish(keys=10)) for number in range(publishers)]
    return Scenario(name="market", blocks=blocks, parachains=[*writers, *readers])


def by_local_engine(scenario: Scenario, out: Path) -> Figures:
    """Run a scenario in this process."""
    began = time.perf_counter()
    with peaks() as seen:
        finished = simulate(scenario, out=out)
    return _run_figures("local engine", 1, scenario, time.perf_counter() - began, seen, finished.outcome.run_id)


def by_segments(scenario: Scenario, out: Path, cores: int) -> Figures:
    """Run a scenario on Spark; the start of the session counts."""
    began = time.perf_counter()
    options = SparkOptions(session=SessionSettings(master=f"local[{cores}]"))
    with peaks() as seen:
        finished = simulate_with_spark(scenario, out=out, options=options)
    return _run_figures("spark engine", cores, scenario, time.perf_counter() - began, seen, finished.outcome.run_id)


def _run_figures(
    what: str, cores: int, scenario: Scenario, seconds: float, seen: dict[str, int], run_id: str
) -> Figures:
    rate = round(scenario.blocks / seconds, 1)
    figures = {"what": what, "cores": cores, "blocks": scenario.blocks, "seconds": round(seconds, 2)}
    return {**figures, "blocks_per_s": rate, "peak_mib": dict(seen), "run_id": run_id}


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """Give the largest resident size, in MiB, that any process below this one reaches, by its program's name."""
    seen: dict[str, int] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            for name, size in _family():
                seen[name] = max(seen.get(name, 0), size >> 20)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def _family() -> Iterator[tuple[str, int]]:
    """Yield the name and the resident bytes of this process and all below it."""
    parents: dict[int, int] = {}
    known: dict[int, tuple[str, int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            head, _, rest = (folder / "stat").read_text().rpartition(")")
            pages = int((folder / "statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        number = int(folder.name)
        parents[number] = int(rest.split()[1])
        known[number] = head.partition("(")[2], pages * 4096
    own = int(Path("/proc/self").resolve().name)
    for number, (name, size) in known.items():
        ancestor = number
        while ancestor not in {0, own}:
            ancestor = parents.get(ancestor, 0)
        if ancestor == own:
            yield ("driver" if number == own else name), size


def main() -> None:
    """Measure and print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--proofs", type=int, default=1_000_000)
    parser.add_argument("--blocks", type=int, default=1_000)
    parser.add_argument("--publishers", type=int, default=20)
    parser.add_argument("--subscribers", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    results: list[Figures] = []

    def tell(figures: Figures) -> None:
        results.append(figures)
        print("  ".join(f"{name} {value}" for name, value in figures.items()), flush=True)

    if asked.proofs:
        table = random_table(asked.keys)
        for cores in (asked.cores, 1):
            for figures in compared(table, asked.proofs, cores, asked.rounds):
                tell(figures)
        processes, many, _, one = (row["seconds"] for row in results)
        print(f"spark over processes {many / processes:.2f}, one core over {asked.cores}: {one / many:.2f}")
    if asked.blocks:
        scenario = market(asked.blocks, asked.publishers, asked.subscribers)
        with tempfile.TemporaryDirectory() as out:
            tell(by_local_engine(scenario, Path(out)))
            tell(by_segments(scenario, Path(out), asked.cores))
            tell(by_segments(scenario, Path(out), 1))
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
