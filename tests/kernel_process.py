"""Processes of their own, for what an environment variable or a first import decides."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str, **environment: str) -> str:
    """Return what Python says of a command with these variables; a warning is an error."""
    known = {name: os.environ[name] for name in ("PATH", "HOME", "NUMBA_CACHE_DIR") if name in os.environ}
    rooms = os.pathsep.join(str(ROOT / room) for room in ("trie", "xcm", "pallets"))
    result = subprocess.run(
        [sys.executable, "-W", "error", *command],
        capture_output=True,
        text=True,
        check=False,
        env={**known, "PYTHONPATH": rooms, **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr
