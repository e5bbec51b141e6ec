"""Whole runs on either trie engine: every file is the same, to the byte; small runs wait for no compiler."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from file_contents import contents
from relaycast.run import simulate
from relaycast.scenario import Parachain, Publish, Scenario, Subscription
from relaycast.scenario_file import load_preset
from relaycast_trie.engine import Engine

GROWING = Scenario(
    name="growing",
    seed=11,
    blocks=14,
    parachains=[
        Parachain(id=2000, publish=Publish(keys=400, value_bytes=[20, 60], changed=90, ttl=6)),
        Parachain(id=2001, publish=Publish(keys=30, value_bytes=40, every=2, changed=7)),
        Parachain(id=3000, subscribe=[Subscription(publisher=2000, keys=300), Subscription(publisher=2001)]),
    ],
)
"""Keys come, expire and come again, more than one block takes; the reader's own state grows with what it caches."""


def files(scenario: Scenario, folder: Path, engine: Engine) -> dict[str, bytes | None]:
    finished = simulate(scenario, out=folder, trie_engine=engine)
    assert finished.outcome.invariants.ok
    return {path.removeprefix(str(folder)): data for path, data in contents(folder).items()}


@pytest.mark.parametrize("name", ["oracle", "ring-roots", "config-sync", "growing"])
def test_a_run_writes_the_same_bytes_on_either_engine(name: str, tmp_path: Path) -> None:
    scenario = GROWING if name == "growing" else replace(load_preset(name), blocks=10)
    plain = files(scenario, tmp_path / "plain", "plain")
    assert len(plain) >= 6
    assert files(scenario, tmp_path / "array", "array") == plain


def test_a_small_run_does_not_load_the_compiler() -> None:
    program = (
        "import sys, tempfile, pathlib\n"
        "from relaycast.run import simulate\n"
        "from relaycast.scenario_file import load_preset\n"
        "simulate(load_preset('oracle'), out=pathlib.Path(tempfile.mkdtemp()))\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
