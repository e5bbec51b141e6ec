"""Whole runs on either trie engine: every file is the same, to the byte; small runs wait for no compiler."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from command_line import Command, Refused
from file_contents import contents
from kernel_process import run
from relaycast.network import Network
from relaycast.scenario.files import load_preset
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.simulation.run_files import simulate
from relaycast_pallets.frame.tries import EngineChoice
from relaycast_trie.engine import ENGINES, Engine
from relaycast_xcm import ParaId

GROWING = Scenario(
    name="growing",
    seed=11,
    blocks=9,
    parachains=[
        ParachainTable(id=2000, publish=PublishTable(keys=400, value_bytes=[20, 60], changed=90, ttl=4)),
        ParachainTable(id=2001, publish=PublishTable(keys=30, value_bytes=40, every=2, changed=7)),
        ParachainTable(
            id=3000, subscribe=[SubscriptionTable(publisher=2000, keys=300), SubscriptionTable(publisher=2001)]
        ),
    ],
)
"""Keys come, expire and come again, more than one block takes; the reader's own state grows with what it caches."""


def files(scenario: Scenario, folder: Path, engine: Engine) -> dict[str, bytes | None]:
    finished = simulate(scenario, out=folder, trie_engine=engine)
    assert finished.outcome.invariants.ok
    return {path.removeprefix(str(folder)): data for path, data in contents(folder).items()}


@pytest.mark.parametrize("name", ["oracle", "ring-roots", "config-sync", "growing"])
def test_a_run_writes_the_same_bytes_on_either_engine(name: str, tmp_path: Path) -> None:
    scenario = GROWING if name == "growing" else replace(load_preset(name), blocks=9)
    plain = files(scenario, tmp_path / "plain", "plain")
    assert len(plain) >= 6
    assert files(scenario, tmp_path / "array", "array") == plain


COMMANDS = [
    ("demo", "oracle", "--blocks", "6", "--json"),
    ("run", "ring-roots", "--blocks", "6", "--json"),
    ("compare", "oracle", "--policy", "cache=none", "--blocks", "8", "--json"),
    ("pov", "snapshot", "config-sync", "--json"),
    ("attack", "spam", "--blocks", "3", "--parachains", "2", "--json"),
    ("attack", "depth", "--limit", "5", "--blocks", "9", "--json"),
    ("attack", "churn", "--keys", "16", "--blocks", "10", "--json"),
    ("attack", "squat", "--blocks", "8", "--json"),
    ("attack", "omit", "--blocks", "2", "--samples", "1", "--json"),
    ("attack", "extra", "--blocks", "2", "--samples", "1", "--json"),
    ("attack", "price", "depth", "heartbeat", "--keys", "4", "--blocks", "2", "--json"),
]

LONG_ATTACKS = ("churn", "squat")
"""Take a second and more; the other attacks show with every check that the verb tells its engine on."""

HARMS = ("attack", "squat")
"""Ends with 1 in any case: the drafts' rule harms others."""


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What chains are told to work on their tries with meanwhile."""
    engines: set[str] = set()
    genuine = EngineChoice.__init__

    def choose(self: EngineChoice, engine: Engine) -> None:
        engines.add(engine)
        genuine(self, engine)

    monkeypatch.setattr(EngineChoice, "__init__", choose)
    return engines


@pytest.mark.parametrize(
    ("command", "engines"),
    [
        pytest.param(command, engines, marks=marks, id=" ".join([*command, *engines]))
        for command in COMMANDS
        for engines, marks in (
            (("plain", "array"), [pytest.mark.slow] if command[1] in LONG_ATTACKS else []),
            (ENGINES, [pytest.mark.slow]),
        )
    ],
)
def test_every_verb_that_runs_chains_takes_the_engine_and_tells_the_same(
    command: tuple[str, ...],
    engines: tuple[Engine, ...],
    relaycast: Command,
    chosen: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for engine in engines:
        folder = tmp_path / engine
        folder.mkdir()
        monkeypatch.chdir(folder)
        chosen.clear()
        ended = relaycast(*command, "--trie-engine", engine)
        assert chosen == {engine}
        found.append(
            (ended.code, ended.out, {path.relative_to(folder): path.read_bytes() for path in files_in(folder)})
        )
    assert all(each == found[0] for each in found)
    assert found[0][0] == int(command[:2] == HARMS)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("verb", ["demo oracle", "run oracle", "compare oracle", "sweep s.toml", "pov snapshot oracle"])
def test_an_engine_that_is_none_is_refused_with_the_nearest(verb: str, refused: Refused) -> None:
    line = refused(*verb.split(), "--trie-engine", "aray")
    assert '"aray" for --trie-engine' in line
    assert 'Did you mean "array"?' in line


def test_a_network_in_python_takes_the_engine_and_may_change_it(chosen: set[str]) -> None:
    told = []
    for engine in ENGINES:
        net = Network(seed=3, trie_engine=engine)
        feed = net.publisher(2000).publish("price", b"1")
        net.subscriber(3000, keys=[feed])
        net.run(blocks=3)
        assert chosen == {engine} == {net.chains.trie_engine}
        net.chains.trie_engine = "plain"
        net.run(blocks=2)
        assert net.chains.parachains[ParaId(3000)].state.engine == "plain"
        told.append(net.chains.relay_chain.head.header)
        chosen.clear()
    assert told[0] == told[1] == told[2]


def test_a_small_run_does_not_load_the_compiler() -> None:
    program = (
        "import sys, tempfile, pathlib\n"
        "from msgspec.structs import replace\n"
        "from relaycast.simulation.run_files import simulate\n"
        "from relaycast.scenario.files import load_preset\n"
        "simulate(replace(load_preset('oracle'), blocks=9), out=pathlib.Path(tempfile.mkdtemp()))\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
def test_a_run_of_many_small_blocks_neither_loads_nor_compiles_a_kernel(tmp_path: Path) -> None:
    """Where nothing is compiled yet, half a minute of waiting is more than 1,500 such blocks would ever get back."""
    cache = tmp_path / "cache"
    program = (
        "import sys, pathlib\n"
        "from msgspec.structs import replace\n"
        "from relaycast.simulation.run_files import simulate\n"
        "from relaycast.scenario.files import load_preset\n"
        "scenario = replace(load_preset('oracle'), blocks=1_500)\n"
        f"assert simulate(scenario, out=pathlib.Path({str(tmp_path)!r})).outcome.invariants.ok\n"
        "print('numba' in sys.modules)\n"
    )
    assert run("-c", program, NUMBA_CACHE_DIR=str(cache)).split() == ["False"]
    assert not cache.exists()
