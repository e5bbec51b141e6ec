"""Which engine does the work: plain Python for little, compiled kernels for much, the same bytes from both."""

from collections.abc import Mapping
from typing import Literal

from relaycast_trie.build import Pairs, build_root
from relaycast_trie.node_codec import StateVersion

Engine = Literal["auto", "plain", "array"]
ENGINES: tuple[Engine, ...] = ("auto", "plain", "array")

ARRAY_FROM = 20_000
"""Keys from which ``auto`` takes the array engine: below, loading the kernels costs more than it saves."""


def trie_root(pairs: Pairs, *, state_version: StateVersion = StateVersion.V1, engine: Engine = "auto") -> bytes:
    """Return the Blake2b-256 root of the trie that holds ``pairs``; of a key that comes twice the last value counts."""
    if engine not in ENGINES:
        raise ValueError(f"engine is one of {', '.join(ENGINES)}, got {engine!r}")
    known = pairs if isinstance(pairs, Mapping) else dict(pairs)
    if engine == "array" or (engine == "auto" and len(known) >= ARRAY_FROM):
        from relaycast_trie.array_trie import ArrayTrie  # noqa: PLC0415 - loads the compiler

        return ArrayTrie.from_pairs(known, state_version=state_version).root
    return build_root(known, state_version=state_version)
