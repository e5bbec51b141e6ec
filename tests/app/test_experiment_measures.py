"""What experiments measure with, against slow twins written from the definition."""

import subprocess
import sys

import numpy as np
import pytest

from relaycast.experiments.e02_keys_in_a_budget import largest
from relaycast.experiments.e09_depth import depths_of
from relaycast.experiments.e14_encodings import binary_bytes, binary_proof
from relaycast.experiments.ground.contest import fairness
from relaycast.experiments.ground.exact_tries import ExactTrie, Keys, hashed_keys, prover
from relaycast.experiments.ground.simulations import crossing, mean, percentile
from relaycast.predict.closed_forms import entry_bytes
from relaycast_trie import StateVersion, StorageProof
from relaycast_trie.plain.build import build_database

COUNTS = (1, 2, 17, 300)


def listed(keys: Keys) -> list[bytes]:
    return [row.tobytes() for row in keys]


def entry(key: bytes, size: int) -> bytes:
    return (key * (size // 32 + 1))[:size]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("value_bytes", [16, 23, 24, 384])  # inside the node, the longest there, outside of it
def test_a_proof_weighs_what_one_of_whole_entries_weighs(count: int, value_bytes: int) -> None:
    keys, size = hashed_keys(count, seed=count), entry_bytes(value_bytes)
    pairs = {key: entry(key, size) for key in listed(keys)}
    db, root = build_database(pairs, state_version=StateVersion.V1)
    plain, compiled = (ExactTrie(keys, entry_bytes=size, engine=engine) for engine in ("plain", "array"))
    for read in {1, (count + 1) // 2, count}:
        proof = StorageProof.generate(db, root, listed(keys[:read]))
        found = plain.proof_size(keys[:read])
        assert found == compiled.proof_size(keys[:read])
        assert (found.proof_bytes, found.nodes + found.values) == (proof.proof_bytes, len(proof))


@pytest.mark.parametrize("version", StateVersion)
def test_both_engines_make_the_same_compact_proofs(version: StateVersion) -> None:
    keys = hashed_keys(60, seed=1)
    values = np.tile(keys, (1, 2))[:, :40]
    plain, compiled = (prover(keys, values, state_version=version, engine=engine) for engine in ("plain", "array"))
    for read in (1, 7, 60):
        proof, same = plain.prove(keys[:read]), compiled.prove(keys[:read])
        assert proof == same
        assert plain.weight(proof) == compiled.weight(same)
        assert plain.compact(proof) == compiled.compact(same)


@pytest.mark.slow
def test_small_experiments_compile_nothing() -> None:
    code = (
        "import sys\n"
        "import relaycast_trie.engine as engine\n"
        "engine.kernels_are_compiled = lambda work=None: False\n"
        "from relaycast.experiments import load\n"
        "from relaycast.experiments.experiment import Scale\n"
        "for name in ('E1', 'E14'): load(name).run(Scale(quick=True))\n"
        "print('numba' in sys.modules)"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout == "False\n"


@pytest.mark.parametrize("count", COUNTS)
def test_depths_are_the_nodes_on_the_way_to_each_key(count: int) -> None:
    keys = hashed_keys(count, seed=count)
    db, root = build_database({key: key[:20] for key in listed(keys)}, state_version=StateVersion.V1)
    ways = [len(StorageProof.generate(db, root, [key])) for key in sorted(listed(keys))]
    assert depths_of(keys).tolist() == ways


def binary_by_hand(keys: list[str], wanted: set[str]) -> tuple[int, int]:
    """Return siblings and branches on the way to the wanted keys, of which there are some."""
    if len(keys) == 1:
        return 0, 0
    sides = [[key[1:] for key in keys if key[0] == bit] for bit in "01"]
    found = [{key[1:] for key in wanted if key[0] == bit} for bit in "01"]
    if not all(sides):
        side = bool(sides[1])
        return binary_by_hand(sides[side], found[side])
    below = [binary_by_hand(side, some) for side, some in zip(sides, found, strict=True) if some]
    siblings = sum(it[0] for it in below) + (len(below) == 1)
    return siblings, sum(it[1] for it in below) + 1


@pytest.mark.parametrize("count", COUNTS)
def test_binary_proofs_are_counted_as_by_hand(count: int) -> None:
    keys = hashed_keys(count, seed=count)
    bits = [f"{int.from_bytes(key, 'big'):0256b}" for key in listed(keys)]
    for read in {1, (count + 1) // 2, count}:
        siblings, branches = binary_by_hand(bits, set(bits[:read]))
        assert binary_proof(keys, np.arange(read)) == (siblings, branches)
        assert binary_bytes(siblings, branches) == 32 * siblings + (2 * branches + 7) // 8


def test_the_largest_number_that_fits_is_found() -> None:
    for limit in range(60):
        by_hand = max(count for count in range(8) if count * count <= limit)
        assert largest(lambda count: count * count, limit, 7) == by_hand


def test_sums_say_nothing_of_nothing() -> None:
    assert (mean([]), mean([1, 2]), mean([1, 1, 2], digits=2)) == (0.0, 1.5, 1.33)
    assert (percentile([], 50), percentile([3, 1, 2], 50), percentile([3, 1, 2], 99)) == (None, 2, 3)
    assert (fairness([2, 2]), fairness([4, 0]), fairness([0, 0])) == (1.0, 0.5, 1.0)
    assert crossing([(0.0, 4.0), (2.0, -4.0)]) == 1.0
    assert crossing([(0.0, 4.0), (2.0, 1.0)]) is None
