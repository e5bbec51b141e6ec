"""The compiled engine as other CPUs get it: four lanes in AVX2 registers, and no vector instructions beyond SSE2.

``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` describe such a CPU to numba; whatever it can do, this machine can too.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

from searches import QUICK

ROOT = Path(__file__).parents[2]
SUITES = ("test_multibuffer_hash.py", "test_array_trie.py", "test_array_rows.py", "test_roots.py")

AVX2 = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2"}
NO_VECTORS = {"NUMBA_CPU_NAME": "generic"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not binding.get_host_cpu_features().get("avx2"), reason="this CPU has no AVX2"),
]


def run(cpu: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    rooms = os.pathsep.join(str(ROOT / room) for room in ("trie", "tests"))
    environment = {"PYTHONPATH": rooms, "NUMBA_CACHE_DIR": str(folder), "HOME": str(folder), **cpu}
    environment |= {"HYPOTHESIS_PROFILE": QUICK}  # other code, not other content
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )


@pytest.mark.parametrize("cpu", [AVX2, NO_VECTORS], ids=["AVX2", "no vectors"])
def test_hashes_tries_and_roots_are_the_same_on(cpu: dict[str, str], tmp_path: Path) -> None:
    suites = [str(ROOT / "tests" / "trie" / name) for name in SUITES]
    ended = run(cpu, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *suites)
    assert ended.returncode == 0, ended.stdout[-4_000:]
    assert re.search(r"\d{2,} passed", ended.stdout)


@pytest.mark.parametrize(
    ("cpu", "used", "unused"),
    [
        (AVX2, "ymm", "zmm"),  # four words of 64 bits in one register
        (NO_VECTORS, "xmm", "ymm"),  # two, the least that a CPU of 64 bits has
    ],
    ids=["AVX2", "no vectors"],
)
def test_the_rounds_stay_in_registers_that_are_there(
    cpu: dict[str, str], used: str, unused: str, tmp_path: Path
) -> None:
    script = (
        "import numpy as np\n"
        "from relaycast_trie.kernels.multibuffer_hash import ROWS, LANES, Rooms, mix\n"
        "assert LANES == 4\n"
        "mix(Rooms(np.zeros(ROWS, np.uint64), np.zeros(128 * LANES, np.uint8), 128), 1)\n"
        "print(next(iter(mix.inspect_asm().values())))\n"
    )
    ended = run(cpu, tmp_path, "-c", script)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count(f"%{used}") > 12 * 8 * 8
    assert f"%{unused}" not in ended.stdout
