"""Large kernels stand once in a process, and kept code finds what it calls in every process."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from relaycast_trie.kernels.blake2b import IV
from relaycast_trie.kernels.memory import CHECKED
from rooms import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHECKED, reason="where indices are checked or nothing is compiled, other code is kept"),
]

ROOT_OF_A_TRIE = """
from relaycast_trie.array.array_trie import ArrayTrie
from relaycast_trie.kernels.announce import ANNOUNCER
keys = sorted(bytes([i % 7, i]) for i in range(40))
root = ArrayTrie.from_arrays(keys, [key * 40 for key in keys]).root
print(root.hex(), ANNOUNCER.compiled)
"""

HASH_ALONE = """
import numpy as np
from relaycast_trie.kernels.blake2b import LANES, ROWS, Rooms, mix, mix_one, mix_short
rooms = Rooms(np.zeros(ROWS, np.uint64), np.zeros(128 * LANES, np.uint8), 128)
mix(rooms, 1), mix_short(rooms), mix_one(rooms, 1)
"""


def run(script: str, folder: Path) -> str:
    environment = {"PYTHONPATH": str(ROOT / "trie"), "NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    ).stdout


def root_and_compiled(folder: Path) -> tuple[str, int]:
    """Return the root of a trie, as a process has it that keeps code in ``folder``, and how much it compiled."""
    root, compiled = run(ROOT_OF_A_TRIE, folder).split()
    return root, int(compiled)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    assert root_and_compiled(folder)[1] > 20
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "kept"))


def code_of_hashing(folder: Path) -> list[Path]:
    return sorted(folder.rglob("blake2b.mix*.nbc"))


def test_the_rounds_stand_in_the_code_of_hashing_alone(folder: Path) -> None:
    constant = IV[1].to_bytes(8, "little")
    assert sorted(file for file in folder.rglob("*.nbc") if constant in file.read_bytes()) == code_of_hashing(folder)
    assert code_of_hashing(folder)


def test_a_kernel_that_is_gone_is_compiled_and_those_that_call_it_are_not(folder: Path) -> None:
    root, compiled = root_and_compiled(folder)
    assert compiled == 0
    gone = code_of_hashing(folder)
    for file in gone:
        file.unlink()
    assert root_and_compiled(folder) == (root, len(gone))
    assert root_and_compiled(folder) == (root, 0)


def test_a_kernel_that_another_process_compiled_is_found(folder: Path, tmp_path: Path) -> None:
    root, _ = root_and_compiled(folder)
    run(HASH_ALONE, tmp_path / "other")
    for file in code_of_hashing(folder):
        file.unlink()
    for file in (tmp_path / "other").rglob("blake2b.mix*"):
        shutil.copy(file, next(folder.iterdir()))
    assert root_and_compiled(folder) == (root, 0)
