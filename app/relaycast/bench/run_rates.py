"""A relay chain with publishers and subscribers, run by the local engine and by segments on Spark: time and memory."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from relaycast.bench.processes import peaks
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.simulation.run_files import Finished, simulate
from relaycast.simulation.spark_engine import SparkOptions, simulate_with_spark
from relaycast_spark.session import SessionSettings

LOCAL, SPARK = "local engine", "Spark engine"

READ_PUBLISHERS, READ_KEYS, PUBLISHED_KEYS = 4, 5, 10


@dataclass(frozen=True, slots=True)
class RunRate:
    """How long ``what`` took for a run, the session's start included, and what the largest process of each kind held.

    ``run_id`` is the same for both engines.
    """

    what: str
    cores: int
    blocks: int
    seconds: float
    peak_mebibytes: dict[str, int]
    run_id: str

    @property
    def blocks_per_second(self) -> float:
        return self.blocks / self.seconds

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return asdict(self) | {"blocks_per_second": round(self.blocks_per_second, 1)}


def market(blocks: int, publishers: int, subscribers: int, *, changed: int | None = None) -> Scenario:
    """Return a scenario in which publishers have ten keys and every subscriber reads five keys of each of four.

    Every publisher sends in every block ``changed`` of its keys, or all of them.
    """
    readers = [
        ParachainTable(
            id=3_000 + number,
            subscribe=[
                SubscriptionTable(publisher=2_000 + (2 * number + step) % publishers, keys=READ_KEYS)
                for step in range(min(READ_PUBLISHERS, publishers))
            ],
        )
        for number in range(subscribers)
    ]
    publish = PublishTable(keys=PUBLISHED_KEYS, changed=changed)
    writers = [ParachainTable(id=2_000 + number, publish=publish) for number in range(publishers)]
    return Scenario(name="market", blocks=blocks, parachains=[*writers, *readers])


def by_local_engine(scenario: Scenario, out: Path) -> RunRate:
    """Run a scenario in this process."""
    return _rate(LOCAL, 1, scenario, lambda: simulate(scenario, out=out))


def by_segments(scenario: Scenario, out: Path, *, cores: int) -> RunRate:
    """Run a scenario on Spark."""
    options = SparkOptions(session=SessionSettings(master=f"local[{cores}]"))
    return _rate(SPARK, cores, scenario, lambda: simulate_with_spark(scenario, out=out, options=options))


def _rate(what: str, cores: int, scenario: Scenario, run: Callable[[], Finished]) -> RunRate:
    began = time.perf_counter()
    with peaks() as seen:
        finished = run()
    seconds = round(time.perf_counter() - began, 3)
    return RunRate(what, cores, scenario.blocks, seconds, dict(seen), finished.outcome.run_id)
