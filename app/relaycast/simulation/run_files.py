"""The files of a run: ``out/<run-id>/``, written while a simulation passes, all of them or none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from relaycast.pov.snapshot import render_snapshot
from relaycast.report.verdicts import verdicts
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.alternative import with_alternative
from relaycast.simulation.run_estimate import Shares, passed_alone, shares_of
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
    say: Callable[[str], None] | None = None,
) -> Finished:
    """Run ``scenario`` and write its files into ``out``; raises ``BadInput`` before anything is written.

    ``per_key`` says whether ``keys.parquet`` is among them; unless it does, the number of its rows decides. The bytes
    are the same on either ``trie_engine``, and by any number of ``workers``; raises ``WorkerEnded`` when one is killed.
    With ``say``, as many workers as pay begin once what is left is worth them, and one line says so.
    """
    simulation = Simulation.prepare(scenario, trie_engine=trie_engine)
    simulation.keep_accounts(per_key=per_key)
    run_id = simulation.run_id
    with staged(out, run_id) as folder:
        with (folder / "events.jsonl").open("wb") as stream, simulation.tables(folder) as tables:
            outcome = _built(simulation, OpenFiles(stream, tables), workers, progress, say)
        write_files(folder, outcome, simulation.echo())
    return Finished(outcome, out / run_id)


def _built(
    simulation: Simulation,
    files: OpenFiles,
    workers: int,
    progress: Progress | None,
    say: Callable[[str], None] | None,
) -> Outcome:
    """Return what a run came to; where several processes build it, the other policy is tried by one more of them."""
    chains, log = simulation.chains, EventLines(files.events, simulation.run_id).on_fact
    simulation.tally = RunStatistics(tables=files.tables)
    chains.listeners.append(log)
    shares: Shares = [[]]
    if workers > 1:
        shares = shares_of(simulation, workers) if say is None else passed_alone(simulation, workers, progress)
    if len(shares) < 2:
        return with_alternative(simulation.run(progress), simulation)
    # What handles processes is slow to load, and seldom needed.
    from relaycast.simulation.alternative_aside import probed_aside  # noqa: PLC0415
    from relaycast.simulation.side_by_side import team_of  # noqa: PLC0415

    if say is not None:
        say(f"{len(shares)} processes build the blocks after {chains.tick:,}; --workers 1 keeps one")
    chains.listeners.remove(log)
    files.events.flush()  # what is not written yet would be forked, too
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
