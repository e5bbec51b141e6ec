"""Every kernel at work on little content, hostile bytes included, and what the plain engine makes of the same.

A process of its own runs this where numba looks at every index, or compiles nothing (the argument: how many rounds).
The line that it prints names the kernels that ran.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np

from exercise.drawing import Exercise
from exercise.proofs import encoded_proofs, proofs_are_verified
from exercise.states import a_state_passes_blocks, blocks_are_witnessed
from exercise.strings import blocks_are_hashed, bytes_are_copied, long_lengths, strings_are_gathered
from exercise.tries import ROW_WIDTHS, a_forest_grows, a_trie_changes, rows_change, whole_tries
from exercise.walks import nodes_come_and_go, paths_are_followed, two_tries_are_walked
from relaycast_trie import ArrayTrie, MemoryDB, StateVersion, TrieDBMut, kernels
from relaycast_trie.array.array_proofs import decode_proofs, trace_paths, verify_columns, verify_many
from relaycast_trie.array.forest import ArrayForest
from relaycast_trie.array.warm_up import all_kernels
from relaycast_trie.kernels.compiling import JIT


def nothing_at_all() -> None:
    """No keys, no nodes, no proofs, no tries."""
    empty = ArrayTrie(window=1)
    assert empty.commit() == TrieDBMut(MemoryDB()).root
    empty.update([], [])
    empty.remove([])
    assert (empty.items(), empty.get(b""), len(empty.prove([]))) == ([], None, 0)
    assert empty.prove_many([], np.array([0])).proofs() == []
    assert verify_many([], [], []) == []
    assert not trace_paths(bytes(32), [], []).paths
    none = np.zeros(0, np.uint8)
    assert not decode_proofs(none, np.array([0])).spoiled.size
    verdicts = verify_columns(
        none.reshape(0, 32), (none, np.array([0])), np.array([0]), (none, np.array([0])), np.array([0])
    )
    assert not verdicts.present.size
    assert ArrayForest().seal({}, told=True) == ([], [])


def run(rounds: int) -> None:
    """Do everything that has content, other content in every round."""
    long_lengths()
    for seed in range(rounds):
        draw = Exercise(seed)
        a_trie_changes(draw, StateVersion(seed % 2), window=seed % 4)
        a_forest_grows(draw, window=1 + seed % 3)
        a_state_passes_blocks(draw, window=1 + seed % 3)
        blocks_are_witnessed(draw)
        proofs_are_verified(draw)
        encoded_proofs(draw)
        strings_are_gathered(draw)
        bytes_are_copied(draw)
        blocks_are_hashed(draw)
        two_tries_are_walked(draw)
        paths_are_followed(draw)
        nodes_come_and_go(draw)
        rows_change(draw, StateVersion(seed % 2), *ROW_WIDTHS[seed % len(ROW_WIDTHS)])
        if seed % 4 == 0:
            whole_tries(draw)


class Called:
    """Notes which functions of kernel modules are called; compiled ones call one another unseen."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._folder = str(Path(kernels.__file__).parent)

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(self._folder):
            self.names.add(f"{Path(code.co_filename).stem}.{code.co_name}")


def compiled() -> Iterator[str]:
    """Yield the kernels that were compiled; where nothing is kept from earlier runs, because somebody called them."""
    for it in all_kernels():
        if it.overloads:
            yield f"{it.py_func.__module__.rpartition('.')[2]}.{it.py_func.__name__}"


if __name__ == "__main__":
    nothing_at_all()
    called = Called()
    if (
        not JIT
    ):  # where all is compiled nothing is called unseen by ``compiled``, and tracing the compiler takes a minute
        sys.settrace(called)
    run(int(sys.argv[1]))
    sys.settrace(None)
    print(*sorted(called.names.union(compiled())))
