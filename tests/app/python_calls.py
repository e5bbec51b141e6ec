"""How many Python functions a run calls for one more subscriber or publisher of ten keys, in a block of a steady run.

A count is the same on every machine. Run as a program, this file prints a table by module::

    python tests/app/python_calls.py --trie-engine array
"""

import argparse
import sys
from collections import Counter
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType

from msgspec.structs import replace

from relaycast.scenario.files import load_preset
from relaycast.scenario.scenario import ParachainTable, Scenario
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.event_lines import EventLines
from relaycast_ledger.run_statistics import RunStatistics
from relaycast_trie.engine import Engine

STEADY = 10
"""Relay blocks after which every block of a subscriber does what the one before did."""

COUNTED = 4

Calls = Counter[CodeType]


def of_subscriber(engine: Engine) -> Calls:
    """Return the calls of one more subscriber, in ``COUNTED`` blocks."""
    return _more(_scenario(subscribers=4), _scenario(subscribers=5), engine)


def of_publisher(engine: Engine) -> Calls:
    """Return the calls of one more publisher, which nobody reads, in ``COUNTED`` blocks."""
    return _more(_scenario(publishers=2), _scenario(publishers=3), engine)


def a_block(calls: Calls) -> int:
    """Return the calls in one block."""
    return round(calls.total() / COUNTED)


def by_module(calls: Calls) -> Counter[str]:
    """Return the calls in one block by module, those that a run calls most first."""
    found: Counter[str] = Counter()
    for code, count in calls.items():
        found[_module(code)] += count
    return Counter({module: round(count / COUNTED) for module, count in found.most_common()})


def _scenario(*, subscribers: int = 2, publishers: int = 1) -> Scenario:
    hundred = load_preset("hundred-subscribers")
    oracle, reader = (next(it for it in hundred.parachains if it.reads == reads) for reads in (False, True))
    assert oracle.publish is not None
    oracle = replace(oracle, publish=replace(oracle.publish, keys=10))
    chains: list[ParachainTable] = [replace(oracle, id=2000 + at, name=f"oracle {at}") for at in range(publishers)]
    chains += [replace(reader, id=3000 + at, name=f"reader {at}", copies=1) for at in range(subscribers)]
    return replace(hundred, parachains=chains, blocks=STEADY + COUNTED)


def _more(fewer: Scenario, more: Scenario, engine: Engine) -> Calls:
    for scenario in (fewer, more):
        _counted(scenario, engine)  # loads kernels, and fills what is remembered by type
    calls = _counted(more, engine)
    calls.subtract(_counted(fewer, engine))
    return calls


def _counted(scenario: Scenario, engine: Engine) -> Calls:
    """Return the calls of the last blocks of a run that writes all that a run writes while it passes."""
    calls: Calls = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    simulation = Simulation.prepare(scenario, trie_engine=engine)
    simulation.keep_accounts()
    with TemporaryDirectory() as out, simulation.tables(Path(out)) as tables:
        simulation.tally = RunStatistics(tables=tables)
        simulation.chains.listeners.append(EventLines(BytesIO(), simulation.run_id).on_fact)
        for passed in simulation.blocks():
            if passed.block == STEADY:
                sys.setprofile(note)
            elif passed.block == STEADY + COUNTED:
                sys.setprofile(None)
    return calls


def _module(code: CodeType) -> str:
    parts = Path(code.co_filename).parts
    ours = [at for at, part in enumerate(parts) if part == "relaycast" or part.startswith("relaycast_")]
    return "/".join(parts[ours[-1] :] if ours else parts[-2:])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trie-engine", choices=["plain", "array"], default="plain")
    engine: Engine = parser.parse_args().trie_engine
    for name, calls in (("subscriber", of_subscriber(engine)), ("publisher", of_publisher(engine))):
        print(f"{a_block(calls):6} calls a {name}-block, {engine} tries")
        for module, count in by_module(calls).items():
            if count:
                print(f"{count:6}   {module}")


if __name__ == "__main__":
    main()
