"""Ethereum's trie from PyPI: also sixteen ways a branch, but RLP and Keccak-256, and one proof for each key.

Its roots and proofs are another format's: only how many keys a second become a root can be compared.
"""

import importlib
import importlib.util
from typing import Any

from relaycast.bench.sheet import Sheet
from relaycast.bench.yardstick import timed
from relaycast_trie.extras import install_command

NAME = "trie"
MOST_KEYS = 10_000


def missing() -> str:
    """Return why it cannot run; a folder that happens to be called ``trie`` is not the package."""
    found = importlib.util.find_spec("trie")
    if found is None or found.origin is None:
        return f"Ethereum's trie package is not installed, expected: {install_command('bench')}"
    return ""


def run(sheet: Sheet) -> None:
    """Build a root from nothing; all nodes are written to its database when the batch ends."""
    ethereum: Any = importlib.import_module("trie")
    pairs = sheet.pairs

    def build() -> bytes:
        trie = ethereum.HexaryTrie({})
        with trie.squash_changes() as batch:
            for key, value in pairs.items():
                batch[key] = value
        return bytes(trie.root_hash)

    sheet.add(NAME, "bulk root, ns/key", timed(build, budget=0.1, least=1), units=sheet.count)
