"""The programs of the clients' guide print what the guide says (run with ``-m clients``)."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from clients.conversation import node_packages, npm_project, python_of
from clients.descriptors import WEB_SOCKETS, add_descriptors, ran
from clients.served import Served
from docs.code_blocks import ROOT, blocks_of

pytestmark = pytest.mark.clients

PROGRAMS = {block.title: block.text for block in blocks_of(ROOT / "docs" / "guides" / "clients.md") if block.title}
SAID = re.compile(r"(?:#|//) (.+)$", re.MULTILINE)
"""A program's one comment: what it prints."""

ADDRESS = "ws://127.0.0.1:9944"


def test_the_guide_has_a_program_for_each_client() -> None:
    assert {
        "polkadot-js.mjs",
        "papi.ts",
        "substrate_interface_client.py",
        "async_substrate_interface_client.py",
    } <= set(PROGRAMS)


@pytest.mark.parametrize("name", ["polkadot-js.mjs", "publish.mjs"])
def test_a_program_with_polkadot_js(name: str, tmp_path: Path, served: Served) -> None:
    npm_project(tmp_path, node_packages("@polkadot/api"), ())
    assert printed(name, ["node", name], tmp_path, served) == expected(name)


def test_a_program_with_papi(tmp_path: Path, served: Served) -> None:
    npm_project(tmp_path, node_packages("polkadot-api"), ())
    add_descriptors(tmp_path, {"relay": served.url})
    settings = {"strict": True, "module": "esnext", "moduleResolution": "bundler", "target": "es2022"}
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**settings, "skipLibCheck": True}}))
    write("papi.ts", tmp_path, served)
    ran(tmp_path, "tsc")
    assert printed("papi.ts", ["node", WEB_SOCKETS, "papi.js"], tmp_path, served) == expected("papi.ts")


@pytest.mark.parametrize("peer", ["substrate-interface", "async-substrate-interface"])
def test_a_program_in_python(peer: str, tmp_path: Path, served: Served) -> None:
    name = f"{peer.replace('-', '_')}_client.py"
    assert printed(name, [python_of(peer), name], tmp_path, served) == expected(name)


def expected(name: str) -> str:
    (said,) = SAID.findall(PROGRAMS[name].replace("ws://", "ws:"))
    return str(said)


def write(name: str, folder: Path, served: Served) -> None:
    assert ADDRESS in PROGRAMS[name]
    (folder / name).write_text(PROGRAMS[name].replace(ADDRESS, served.url))


def printed(name: str, command: list[str | Path], folder: Path, served: Served) -> str:
    """Return the last line that a program prints, once the first publications have arrived."""
    served.wait_for(block=4)
    write(name, folder, served)
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout.strip().splitlines()[-1]
