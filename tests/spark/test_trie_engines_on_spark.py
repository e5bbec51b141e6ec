"""Whatever works on the tries, here and in Spark's workers, the folder of a run is the same, to the byte."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.scenario.files import load_preset
from relaycast.scenario.scenario import Scenario
from relaycast.simulation import batch
from relaycast.simulation.batch import BatchSimulation
from relaycast.simulation.run_files import simulate
from relaycast.simulation.simulation import Simulation
from relaycast.simulation.spark_engine import SparkOptions, simulate_with_spark
from relaycast_ledger.exceptions import SegmentFailed
from relaycast_ledger.segments.checkpoint import freeze, thaw
from relaycast_ledger.segments.work_folder import WorkFolder
from relaycast_pallets.frame import tries as state_tries
from relaycast_spark import pipeline, stages
from relaycast_trie.engine import Engine
from spark.scenarios import MANY_KEYS, MARKET, contents, preparation_of, replayed_apart, segments_of

SCENARIOS = [replace(load_preset("ring-roots"), blocks=12), MANY_KEYS]


def by_spark(scenario: Scenario, out: Path, trie_engine: Engine, **options: Any) -> dict[str, bytes]:
    chosen = SparkOptions(trie_engine=trie_engine, segment_blocks=3, **options)
    return contents(simulate_with_spark(scenario, out=out, options=chosen).folder)


def here(scenario: Scenario, out: Path, trie_engine: Engine) -> dict[str, bytes]:
    return contents(simulate(scenario, out=out, trie_engine=trie_engine).folder)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_plain_array_and_spark_leave_the_same_folder(tmp_path: Path, scenario: Scenario) -> None:
    plain = here(scenario, tmp_path / "plain", "plain")
    assert len(plain) >= 6
    assert here(scenario, tmp_path / "array", "array") == plain
    assert by_spark(scenario, tmp_path / "spark", "array") == plain
    ids = [path.name for path in sorted(tmp_path.glob("*/*"))]
    assert len(ids) == 3
    assert len(set(ids)) == 1


def _in_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = Simulation.outcome
    monkeypatch.setattr(
        Simulation, "outcome", lambda self: replace(genuine(self), engine=f"local, {self.network.chains.trie_engine}")
    )


def _in_the_run_id(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine: Any = vars(Simulation)["run_id"]
    told = property(lambda self: f"{genuine.fget(self)}-{self.network.chains.trie_engine}")
    monkeypatch.setattr(Simulation, "run_id", told)


@pytest.mark.parametrize("leak", [_in_the_figures, _in_the_run_id])
def test_a_mutant_that_tells_the_engine_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: Any
) -> None:
    scenario = replace(MARKET, blocks=3)
    leak(monkeypatch)
    folders = [simulate(scenario, out=tmp_path / it, trie_engine=it).folder for it in ("plain", "array")]
    assert contents(folders[0]) != contents(folders[1])


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What sealed tries meanwhile, by class."""
    seals: list[str] = []
    for kind in (state_tries.PlainTries, state_tries.ArrayTries):
        genuine = kind.seal

        def seal(self: Any, *given: Any, genuine: Any = genuine) -> None:
            seals.append(type(self).__name__)
            genuine(self, *given)

        monkeypatch.setattr(kind, "seal", seal)
    return seals


@pytest.mark.parametrize(
    ("made_with", "chosen", "used"),
    [
        ("plain", "array", "ArrayTries"),
        ("array", "plain", "PlainTries"),
        pytest.param("array", "array", "ArrayTries", marks=pytest.mark.slow),
    ],
)
def test_a_worker_takes_the_engine_that_it_is_told(
    sealed: list[str], made_with: Engine, chosen: Engine, used: str
) -> None:
    scenario = replace(MANY_KEYS, blocks=6)
    segments = segments_of(scenario, length=4, trie_engine=made_with)
    expected = replayed_apart(preparation_of(scenario), segments)
    prepare = preparation_of(scenario, trie_engine=chosen)
    sealed.clear()
    assert replayed_apart(prepare, segments) == expected
    assert set(sealed) == {used}


def test_kernels_are_warm_before_a_simulation_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, happened = preparation_of(MARKET, trie_engine="array"), list[object]()
    monkeypatch.setattr(batch, "warm_up_for", lambda engine: happened.append(("warm", engine)))
    monkeypatch.setattr(BatchSimulation, "prepare", lambda *_, trie_engine, **__: happened.append(trie_engine))
    prepare()
    assert happened == [("warm", "array"), "array"]


def test_a_run_that_goes_on_takes_the_engine_that_is_chosen_now(sealed: list[str]) -> None:
    began, now = (BatchSimulation.prepare(MANY_KEYS, trie_engine=it) for it in ("plain", "array"))
    for block in (1, 2):
        began.pass_over(block)
    thaw(freeze(began), now)
    for block in (3, 4):
        began.pass_over(block)
        sealed.clear()
        now.pass_over(block)
    assert set(sealed) == {"ArrayTries"}
    assert now.chains.relay_chain.head.header == began.chains.relay_chain.head.header


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the workers of a batch run are told to take, segment by segment."""
    engines: list[str] = []

    def watched(segments: Any, prepare: Any, **named: Any) -> Any:
        engines.append(prepare.trie_engine)
        return stages.replayed(segments, prepare, **named)

    monkeypatch.setattr(pipeline, "replayed", watched)
    return engines


@pytest.mark.usefixtures("spark")
def test_an_interrupted_run_may_go_on_with_another_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    note = WorkFolder.note

    def damage(self: WorkFolder, segment: Any) -> None:
        note(self, segment)
        if segment.number == 2:
            object.__setattr__(segment, "closing", bytes(32))

    with monkeypatch.context() as damaged:
        damaged.setattr(WorkFolder, "note", damage)
        with pytest.raises(SegmentFailed):
            by_spark(MANY_KEYS, tmp_path / "spark", "array")
    (work,) = (tmp_path / "spark").iterdir()
    assert len(list(work.glob("segment-*"))) == 3
    before = len(told)
    assert by_spark(MANY_KEYS, tmp_path / "spark", "plain") == here(MANY_KEYS, tmp_path / "local", "plain")
    assert told == ["array"] * before + ["plain"], "one segment was left"


@pytest.mark.usefixtures("spark")
def test_the_command_hands_its_choice_to_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(["run", "oracle", "--blocks", "3", "--engine", "spark", "--trie-engine", "array"]) == ExitCode.FINE
    assert set(told) == {"array"}


@pytest.mark.usefixtures("spark")
def test_a_sweep_is_the_same_table_with_every_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text('scenarios = ["oracle", "ring-roots"]\nblocks = 6\n')
    for trie_engine in ("plain", "array"):
        command = ["sweep", "sweep.toml", "--out", f"{trie_engine}.parquet", "--trie-engine", trie_engine]
        assert execute(command) == ExitCode.FINE
    assert Path("plain.parquet").read_bytes() == Path("array.parquet").read_bytes()
