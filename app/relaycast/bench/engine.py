"""How fast the engines are: backend by workload, over uniform random tries, seeded and warmed.

Each backend is a module with ``missing``, the reason why it cannot run here or ``""``, and ``run``, which fills a
``Sheet``. ``trie`` is Ethereum's package from PyPI (the extra ``bench``) and ``chopsticks`` smoldot's trie as
WebAssembly, from npm through node.
"""

import importlib
import platform
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from relaycast.bench import peer
from relaycast.bench.sheet import MeasuredWorkload, Sheet
from relaycast.bench.yardstick import Yardstick, cpu_name
from relaycast_trie import warm_up

Backend = Literal["array", "plain", "trie", "chopsticks"]

MODULES: dict[Backend, str] = {
    "array": "relaycast.bench.array_engine",
    "plain": "relaycast.bench.plain_engine",
    "trie": "relaycast.bench.py_trie",
    "chopsticks": "relaycast.bench.chopsticks",
}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
WIDTHS = (32, 100)


class EngineBench:
    """One run: which backends there are, what one thing costs here, and the sheets one after another."""

    def __init__(self, backends: Iterable[Backend], *, seed: int = 1) -> None:
        self.seed = seed
        self.first_call_seconds, self.warm_call_seconds = warm_up(), warm_up()
        self.yardstick = Yardstick()
        modules = {name: importlib.import_module(MODULES[name]) for name in dict.fromkeys(backends)}
        reasons = {name: module.missing() for name, module in modules.items()}
        self.left_out = {name: reason for name, reason in reasons.items() if reason}
        self.modules = {name: module for name, module in modules.items() if name not in self.left_out}
        self.sheets: list[Sheet] = []

    def sheets_of(self, sizes: Iterable[int], widths: Iterable[int]) -> Iterator[Sheet]:
        """Yield one filled sheet for each number of keys and bytes of a value; backends skip what is too large."""
        for count in sizes:
            for width in widths:
                sheet = Sheet(count, width, self.yardstick, seed=self.seed)
                for module in self.modules.values():
                    if count <= module.MOST_KEYS:
                        module.run(sheet)
                self.sheets.append(sheet)
                yield sheet

    def report(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "hashlib_ns": self.yardstick.hashlib_ns,
            "lane_block_ns": self.yardstick.lane_block_ns,
            "lanes": self.yardstick.lanes,
            "first_call_seconds": self.first_call_seconds,
            "warm_call_seconds": self.warm_call_seconds,
            "python": platform.python_version(),
            "cpu": cpu_name(),
            "peer": {"name": peer.NAME, "cpu": peer.CPU},
            "seed": self.seed,
            "left_out": self.left_out,
            "rows": [row.as_dict() for sheet in self.sheets for row in sheet.rows()],
        }


__all__ = ["SIZES", "WIDTHS", "Backend", "EngineBench", "MeasuredWorkload", "Sheet"]
