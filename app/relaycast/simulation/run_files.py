"""The files of a run: ``out/<run-id>/``, written while a simulation passes, all of them or none."""

from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from relaycast.pov.snapshot import render_snapshot
from relaycast.report.verdicts import verdicts
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.alternative import with_alternative
from relaycast.simulation.run_folder import OpenFiles, staged
from relaycast.simulation.simulation import Progress, Simulation
from relaycast_ledger.event_lines import EventLines
from relaycast_ledger.outcome import Outcome
from relaycast_ledger.run_statistics import RunStatistics
from relaycast_trie.engine import Engine


@dataclass(frozen=True, slots=True)
class Finished:
    """A run whose files are in ``folder``."""

    outcome: Outcome
    folder: Path


def simulate(
    scenario: Scenario,
    *,
    out: Path,
    progress: Progress | None = None,
    per_key: bool | None = None,
    trie_engine: Engine = "auto",
    workers: int = 1,
) -> Finished:
    """Run ``scenario`` and write its files into ``out``; raises ``BadInput`` before anything is written.

    ``per_key`` says whether ``keys.parquet`` is among them; unless it does, the number of its rows decides. The bytes
    are the same on either ``trie_engine``, and by any number of ``workers``; raises ``WorkerEnded`` when one is killed.
    """
    simulation = Simulation.prepare(scenario, trie_engine=trie_engine)
    simulation.keep_accounts(per_key=per_key)
    run_id = simulation.run_id
    with staged(out, run_id) as folder:
        with (folder / "events.jsonl").open("wb") as stream, simulation.tables(folder) as tables:
            if workers > 1:
                outcome = _side_by_side(simulation, workers, OpenFiles(stream, tables), progress)
            else:
                outcome = _alone(simulation, OpenFiles(stream, tables), progress)
        write_files(folder, outcome, simulation.echo())
    return Finished(outcome, out / run_id)


def _alone(simulation: Simulation, files: OpenFiles, progress: Progress | None) -> Outcome:
    """Return what a run by this process came to."""
    simulation.tally = RunStatistics(tables=files.tables)
    simulation.chains.listeners.append(EventLines(files.events, simulation.run_id).on_fact)
    return with_alternative(simulation.run(progress), simulation)


def _side_by_side(simulation: Simulation, workers: int, files: OpenFiles, progress: Progress | None) -> Outcome:
    """Return what a run by several processes came to; the other policy is tried by one more of them."""
    # What handles processes is slow to load, and seldom asked for.
    from relaycast.simulation.alternative_aside import probed_aside  # noqa: PLC0415
    from relaycast.simulation.side_by_side import shares_of, team_of  # noqa: PLC0415

    shares = shares_of(simulation, workers)
    if len(shares) < 2:
        return _alone(simulation, files, progress)
    EventLines(files.events, simulation.run_id)
    with probed_aside(simulation) as probe, team_of(simulation, shares, files) as team:
        return with_alternative(team.run(progress), simulation, probe)


def write_files(folder: Path, outcome: Outcome, scenario: Scenario) -> None:
    """Write ``run.json``, ``pov.snapshot.toml`` and ``report.html``."""
    from relaycast.report.page import render_report  # noqa: PLC0415 - the template engine is slow to load

    echoed = {**to_json(outcome), "scenario": msgspec.to_builtins(scenario)}
    text = msgspec.json.format(msgspec.json.encode(echoed), indent=2)
    (folder / "run.json").write_bytes(text + b"\n")
    (folder / "pov.snapshot.toml").write_text(render_snapshot(outcome), encoding="utf-8", newline="\n")
    (folder / "report.html").write_text(render_report(outcome, scenario), encoding="utf-8")


def to_json(outcome: Outcome) -> dict[str, object]:
    """Return what ``run.json`` and ``--json`` say of a run."""
    figures = asdict(outcome)
    for for_the_report in ("series", "latencies", "pictures", "keys", "key_names", "runtime_series"):
        del figures[for_the_report]
    for optional in ("recorded", "alternative"):
        if figures[optional] is None:
            del figures[optional]
    if outcome.upgrades is msgspec.UNSET:
        del figures["upgrades"]
    if not outcome.runtimes:
        del figures["runtimes"], figures["refusals"]
    told = {it.about: it.text for it in verdicts(outcome)}
    return {"schema": figures.pop("schema"), **msgspec.to_builtins(figures), "verdicts": told}
