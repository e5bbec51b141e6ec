"""How long a filter of a subscription takes for one event: the dialects compiled, and CloudEvents SQL.

::

    python benches/bench_gateway_filters.py [--rounds 200]

Nanoseconds for one evaluation over a plain dict of attributes, the best of many short rounds, and microseconds to
compile. No peer runs here: Knative's compiled filters (Go) are published at 425 to 1,713 ns.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

from relaycast_gateway.cloudevents import compile_filter

EVALUATIONS = 5_000
"""In one round."""

EVENT: Mapping[str, object] = {
    "specversion": "1.0",
    "id": "00Z8",
    "source": "/chains/2000",
    "type": "io.relaycast.data.published",
    "subject": "0x70726963652f444f54",
    "datacontenttype": "application/json",
    "sequence": "00000000000000001000",
    "blocknumber": 1_000,
}

TYPE = {"exact": {"type": "io.relaycast.data.published"}}
SOURCE = {"prefix": {"source": "/chains/"}}
SUBJECT = {"suffix": {"subject": "444f54"}}

FILTERS: Mapping[str, dict[str, Any]] = {
    "exact": TYPE,
    "prefix": SOURCE,
    "suffix": SUBJECT,
    "not": {"not": TYPE},
    "exact, absent": {"exact": {"other": "x"}},
    "exact, integer": {"exact": {"blocknumber": "1000"}},
    "all of 2": {"all": [TYPE, SOURCE]},
    "all of 3": {"all": [TYPE, SOURCE, SUBJECT]},
    "any of 3, the last": {"any": [{"exact": {"type": "a"}}, {"exact": {"type": "b"}}, TYPE]},
    "sql: =": {"sql": "type = 'io.relaycast.data.published'"},
    "sql: LIKE": {"sql": "source LIKE '/chains/%'"},
    "sql: IN": {"sql": "type IN ('a', 'b', 'io.relaycast.data.published')"},
    "sql: = AND LIKE AND LIKE": {
        "sql": "type = 'io.relaycast.data.published' AND source LIKE '/chains/%' AND subject LIKE '%444f54'"
    },
    "sql: arithmetic": {"sql": "INT(blocknumber) % 10 = 0"},
    "sql: absent": {"sql": "other = 'x'"},
}


def nanoseconds(predicate: Callable[[Mapping[str, object]], bool], rounds: int) -> float:
    """Return the time of one evaluation, the call included."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter_ns()
        for _ in range(EVALUATIONS):
            predicate(EVENT)
        best = min(best, (time.perf_counter_ns() - began) / EVALUATIONS)
    return best


def compile_microseconds(given: dict[str, Any], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter_ns()
        compile_filter(given)
        best = min(best, (time.perf_counter_ns() - began) / 1_000)
    return best


def measure_filters(rounds: int) -> None:
    print(f"{'filter':<28}{'ns each':>9}{'us to compile':>15}")
    for name, given in FILTERS.items():
        evaluation = nanoseconds(compile_filter(given), rounds)
        print(f"{name:<28}{evaluation:>9.0f}{compile_microseconds(given, rounds):>15.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    measure_filters(parser.parse_args().rounds)
