"""How fast the engines are: ``relaycast bench engine``, whose workloads stand in ``relaycast.bench.engine``.

Runs from a clone that is not installed, given what the project depends on::

    python benches/bench_engine.py --sizes 1000 10000 --values 32 --json engine.json
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / room) for room in ("trie", "xcm", "pallets", "collator", "spark", "app")]

from relaycast.cli.command import execute  # noqa: E402 - the rooms are put on the path above

if __name__ == "__main__":
    sys.exit(execute(["bench", "engine", *sys.argv[1:]]))
