"""Which engine does the work: plain Python for little, compiled kernels for much, the same bytes from both."""

import sys
from collections.abc import Mapping
from typing import Literal

from relaycast_trie.build import Pairs, build_root
from relaycast_trie.node_codec import StateVersion

Engine = Literal["auto", "plain", "array"]
ENGINES: tuple[Engine, ...] = ("auto", "plain", "array")

ARRAY_FROM = 20_000
"""Keys or nodes from which ``auto`` takes the array engine: below, loading the kernels costs more than it saves."""

ARRAY_FROM_ONCE_LOADED = 500
"""The same when the kernels are in memory already."""


def check_engine(engine: Engine) -> None:
    """Raise ``ValueError`` for what is no engine."""
    if engine not in ENGINES:
        raise ValueError(f"engine is one of {', '.join(ENGINES)}, got {engine!r}")


def kernels_are_loaded() -> bool:
    """Return whether this process has loaded the kernels already."""
    return "relaycast_trie.array_proofs" in sys.modules


def takes_array(engine: Engine, size: int) -> bool:
    """Return whether ``engine`` means the array engine for so many keys or nodes; ``ValueError`` for no engine."""
    check_engine(engine)
    least = ARRAY_FROM_ONCE_LOADED if kernels_are_loaded() else ARRAY_FROM
    return engine == "array" or (engine == "auto" and size >= least)


def trie_root(pairs: Pairs, *, state_version: StateVersion = StateVersion.V1, engine: Engine = "auto") -> bytes:
    """Return the Blake2b-256 root of the trie that holds ``pairs``; of a key that comes twice the last value counts."""
    state_version = StateVersion(state_version)
    known = pairs if isinstance(pairs, Mapping) else dict(pairs)
    if takes_array(engine, len(known)):
        from relaycast_trie.array_trie import ArrayTrie  # noqa: PLC0415 - loads the compiler

        return ArrayTrie.from_pairs(known, state_version=state_version).root
    return build_root(known, state_version=state_version)
