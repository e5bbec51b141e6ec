"""What side by side can give a run: each block of each chain is timed in one process, then the graph is worked out.

::

    python benches/bench_side_by_side.py [PRESET] [--blocks N] [--workers 1 2 4 8] [--json FILE]

A reader's block depends on the relay block before it and on the reader's own block before it, and on nothing else. The
next relay block depends on the heads of all readers. So with N processes a tick takes what every process does (the
relay block, publishers, workload, and sealing all states together) plus the largest share of the readers. One process
also joins what all tell.
``every reader alone`` is the bound by the protocol: as many processes as readers. Processor time of one process is
measured.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("trie", "xcm", "pallets", "collator", "ledger", "spark", "app")
sys.path[:0] = [str(ROOT / room) for room in ROOMS]

from msgspec.structs import replace  # noqa: E402 - the rooms are put on the path above

from relaycast.gc_policy import OBJECTS_OF_A_RUN, collect_seldom  # noqa: E402
from relaycast.scenario.files import load_preset  # noqa: E402
from relaycast.simulation.run_estimate import shares_of  # noqa: E402
from relaycast.simulation.run_files import write_files  # noqa: E402
from relaycast.simulation.side_by_side import ticks_a_part  # noqa: E402
from relaycast.simulation.simulation import Simulation  # noqa: E402
from relaycast_ledger.event_lines import EventLines  # noqa: E402
from relaycast_ledger.run_part import PartInTheMaking, add_parts  # noqa: E402
from relaycast_ledger.run_statistics import RunStatistics  # noqa: E402
from relaycast_xcm import ParaId  # noqa: E402

Tick = dict[int, float]
"""Seconds of each chain's blocks in a tick, by parachain; what all processes do is under ``ALL``."""

ALL, FILES = 0, -1
"""Whose time is everybody's, and whose is that of the process that joins what all tell."""


def traced(simulation: Simulation, folder: Path) -> tuple[list[Tick], float]:
    """Let all blocks pass; return what each chain took in each tick, and what the rest took."""
    chains, now, ticks = simulation.chains, time.process_time, list[Tick]()
    begin_block, tell = chains._begin_block, chains._tell

    def count(para_id: ParaId, begin: float) -> None:
        ticks[-1][int(para_id)] = ticks[-1].get(int(para_id), 0.0) + now() - begin

    def timed_begin(para_id: ParaId, *given: Any) -> Any:
        begin = now()
        begun = begin_block(para_id, *given)
        count(para_id, begin)
        return begun

    def timed_tell(begun: Any, *given: Any, **named: Any) -> None:
        begin = now()
        tell(begun, *given, **named)
        count(begun.collator.parachain.para_id, begin)

    chains._begin_block, chains._tell = timed_begin, timed_tell  # type: ignore[method-assign,assignment]
    simulation.keep_accounts()
    began = now()
    with (folder / "events.jsonl").open("wb") as stream, simulation.tables(folder) as tables:
        simulation.tally, making = RunStatistics(), PartInTheMaking(simulation.rows())
        ticks_together = ticks_a_part(simulation)
        order = {int(para_id): place for place, para_id in enumerate(chains.parachains)}
        chains.listeners.append(EventLines(stream, simulation.run_id).on_fact)
        begun = now()
        for block in range(1, simulation.scenario.blocks + 1):
            ticks.append({})
            begin = now()
            simulation.begin(block)
            records = simulation.network.ledger.step()
            ticks[-1][ALL] = now() - begin - sum(ticks[-1].values())
            for record in records:
                begin = now()
                making.add(record)
                ticks[-1][int(record.para_id)] += now() - begin
            begin = now()
            if block % ticks_together == 0 or block == simulation.scenario.blocks:
                add_parts([making.take()], order, simulation.tally, tables)
            ticks[-1][FILES] = now() - begin
        ended = now()
        outcome = simulation.outcome()
    write_files(folder, outcome, simulation.echo())
    return ticks, begun - began + now() - ended


def span(ticks: list[Tick], rest: float, shares: list[list[ParaId]]) -> float:
    """Return how long a run takes whose readers are shared like this."""
    shared = {int(para_id) for share in shares for para_id in share}
    total = rest
    for tick in ticks:
        everybody = sum(seconds for chain, seconds in tick.items() if chain not in shared and chain != FILES)
        parts = [sum(tick.get(int(para_id), 0.0) for para_id in share) for share in shares] or [0.0]
        total += everybody + max(parts[0] + tick[FILES], *parts)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="?", default="hundred-subscribers")
    parser.add_argument("--blocks", type=int)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    scenario = load_preset(given.preset)
    scenario = replace(scenario, blocks=given.blocks or scenario.blocks)
    for _ in Simulation.prepare(replace(scenario, blocks=2)).blocks():
        pass  # what is loaded with the first blocks does not count
    simulation = Simulation.prepare(scenario)
    collect_seldom(OBJECTS_OF_A_RUN)  # as the command does: else every tick ends with a search for garbage
    with tempfile.TemporaryDirectory() as folder:
        ticks, rest = traced(simulation, Path(folder))
    spans = {str(workers): span(ticks, rest, shares_of(simulation, workers)) for workers in given.workers}
    spans["every reader alone"] = span(ticks, rest, shares_of(simulation, len(simulation.scenario.parachains)))
    one = span(ticks, rest, shares_of(simulation, 1))
    parts = {
        "every process": sum(tick[ALL] for tick in ticks),
        "joined, by tick": sum(tick[FILES] for tick in ticks),
        "before and after": rest,
    }
    parts["chains"] = one - sum(parts.values())
    readers = len(scenario.subscribers())
    print(f"{scenario.name}, {scenario.blocks} blocks, {readers} readers: {one:.2f} s of processor time")
    for name, seconds in parts.items():
        print(f"{name:>20} {seconds:8.2f} s {100 * seconds / one:5.1f} %")
    for name, seconds in spans.items():
        print(f"{name:>20} {seconds:8.2f} s {one / seconds:5.2f} times as fast")
    if given.json is not None:
        given.json.write_text(json.dumps({"parts": parts, "spans": spans}) + "\n")


if __name__ == "__main__":
    main()
