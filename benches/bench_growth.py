"""How the time of a run grows: with its blocks, its subscribers, its publishers, and its keys; one core, no files.

Each kind is doubled while the others stay. The exponent is the slope of a line through the logarithms of sizes and
times: 1 where twice as many take twice as long. Prints one JSON object for each kind::

    python benches/bench_growth.py [--rounds 3] [--doublings 4]
"""

import argparse
import json
import platform
import time
from math import log
from statistics import linear_regression

from relaycast.gc_policy import OBJECTS_OF_A_RUN, collect_seldom
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.run_statistics import RunStatistics

FIRST_PUBLISHER, FIRST_SUBSCRIBER = 2_000, 3_000

BASE = {"blocks": 8, "subscribers": 4, "publishers": 4, "keys": 10}
"""What stays while one of them grows; ``keys`` are those of each publisher: all are read, and one changes a block."""

FIRST = {"blocks": 16, "subscribers": 4, "publishers": 4, "keys": 100}
"""The smallest size of what grows."""


def scenario(*, blocks: int, subscribers: int, publishers: int, keys: int) -> Scenario:
    """Return a run in which every subscriber reads every key of every publisher."""
    senders = range(FIRST_PUBLISHER, FIRST_PUBLISHER + publishers)
    readers = range(FIRST_SUBSCRIBER, FIRST_SUBSCRIBER + subscribers)
    read = [SubscriptionTable(publisher=publisher) for publisher in senders]
    return Scenario(
        parachains=[
            *(ParachainTable(id=it, publish=PublishTable(keys=keys, changed=1)) for it in senders),
            *(ParachainTable(id=it, subscribe=read) for it in readers),
        ],
        blocks=blocks,
    )


def seconds(run: Scenario) -> float:
    """Return the CPU time that its blocks take after they were prepared."""
    simulation = Simulation.prepare(run, trie_engine="plain")
    simulation.keep_accounts()
    simulation.tally = RunStatistics()
    began = time.process_time()
    for _ in simulation.blocks():
        pass
    return time.process_time() - began


def growth(kind: str, *, doublings: int, rounds: int) -> dict[str, object]:
    """Return the times of ``kind`` at each size, the best of ``rounds``, and what power of the size they follow."""
    sizes = [FIRST[kind] << doubling for doubling in range(doublings)]
    runs = [scenario(**BASE | {kind: size}) for size in sizes]
    best = [min(seconds(run) for _ in range(rounds)) for run in runs]
    fitted = linear_regression(list(map(log, sizes)), list(map(log, best)))
    return {
        "bench": "growth",
        "python": platform.python_version(),
        "of": kind,
        "sizes": sizes,
        "ms": [round(each * 1_000, 1) for each in best],
        "exponent": round(fitted.slope, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--doublings", type=int, default=4)
    arguments = parser.parse_args()
    collect_seldom(OBJECTS_OF_A_RUN)
    for kind in BASE:
        print(json.dumps(growth(kind, doublings=arguments.doublings, rounds=arguments.rounds)), flush=True)


if __name__ == "__main__":
    main()
