"""Random tries against an independent implementation: smoldot's, from npm (run with ``-m oracle``).

Node and ``@acala-network/chopsticks-executor`` 1.5.1 are found, never installed: the package in the folder that the
environment variable ``RELAYCAST_ORACLE`` names, or in the folder that the tests run in.
"""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from long_hauls import soak
from peers import missing
from relaycast_trie import StateVersion, StorageProof, build_database
from strategies import Pairs

pytestmark = pytest.mark.oracle

PACKAGE = "@acala-network/chopsticks-executor"
SCRIPT = Path(__file__).parent / "oracle.mjs"
TRIES = 300
SEED = 160


@pytest.fixture(scope="module")
def folder() -> Path:
    chosen = Path(os.environ.get("RELAYCAST_ORACLE", ".")).resolve()
    if shutil.which("node") is None:
        missing("node is not installed")
    if not (chosen / "node_modules" / PACKAGE).is_dir():
        missing(f"{PACKAGE} is not in {chosen}/node_modules: set RELAYCAST_ORACLE to a folder that has it")
    return chosen


@pytest.fixture(scope="module")
def tries() -> list[Pairs]:
    chance = random.Random(SEED)
    return [{}, {b"": b""}, {b"": bytes(33)}, *(random_pairs(chance) for _ in range(TRIES))]


def ask(folder: Path, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    run = subprocess.run(
        ["node", SCRIPT, folder], input=json.dumps(questions), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    answers = json.loads(run.stdout)
    assert len(answers) == len(questions)
    return [dict(answer) for answer in answers]


@soak(rounds=100)
def test_many_more_tries_have_the_roots_of_the_oracle(folder: Path, soak_round: int) -> None:
    chance = random.Random(1_000 + soak_round)
    compare_roots(folder, [random_pairs(chance) for _ in range(10 * TRIES)])


def test_random_tries_have_the_roots_of_the_oracle(folder: Path, tries: list[Pairs]) -> None:
    compare_roots(folder, tries)


def compare_roots(folder: Path, tries: list[Pairs]) -> None:
    asked = [(held, version) for held in tries for version in StateVersion]
    answers = ask(folder, [{"entries": shown(held), "version": int(version)} for held, version in asked])
    for (held, version), answer in zip(asked, answers, strict=True):
        _, root = build_database(held, state_version=version)
        assert answer == {"root": "0x" + root.hex()}


def test_the_oracle_reads_our_proofs(folder: Path, tries: list[Pairs]) -> None:
    chance = random.Random(SEED + 1)
    asked: list[tuple[Pairs, list[bytes], bytes, StorageProof]] = []
    for held in tries[1:]:
        for version in StateVersion:
            db, root = build_database(held, state_version=version)
            keys = [*chance.sample(sorted(held), min(len(held), 4)), chance.randbytes(3)]
            asked.append((held, keys, root, StorageProof.generate(db, root, keys)))
    answers = ask(
        folder,
        [{"root": "0x" + root.hex(), "nodes": ["0x" + node.hex() for node in proof]} for *_, root, proof in asked],
    )
    for (held, keys, _, _), answer in zip(asked, answers, strict=True):
        read = dict(answer["entries"])
        for key in keys:
            assert read.get("0x" + key.hex()) == (None if key not in held else "0x" + held[key].hex())
        assert read.items() <= dict(shown(held)).items()


def test_the_oracle_refuses_what_strict_verification_refuses(folder: Path) -> None:
    db, root = build_database({b"\x10": bytes(40), b"\x20": bytes(41)}, state_version=StateVersion.V1)
    proof = list(StorageProof.generate(db, root, [b"\x10"]))
    wrong = {"DuplicateProofEntry": [*proof, proof[0]], "UnusedProofEntry": [*proof, b"\x40\x04junk"]}
    answers = ask(
        folder, [{"root": "0x" + root.hex(), "nodes": ["0x" + n.hex() for n in nodes]} for nodes in wrong.values()]
    )
    for name, answer in zip(wrong, answers, strict=True):
        assert name in answer["error"]


def shown(held: Pairs) -> list[tuple[str, str]]:
    return [("0x" + key.hex(), "0x" + value.hex()) for key, value in sorted(held.items())]


def random_pairs(chance: random.Random) -> Pairs:
    """Return up to 60 pairs; keys share stems and values crowd around 32 bytes, where state versions differ."""
    stems = [chance.randbytes(chance.choice([0, 1, 2, 16, 32, 40, 160])) for _ in range(4)]
    pairs: Pairs = {}
    for _ in range(chance.randint(1, 60)):
        key = chance.choice(stems) + chance.choice(
            [b"", chance.randbytes(1), chance.randbytes(4), chance.randbytes(32)]
        )
        pairs[key] = chance.randbytes(chance.choice([0, 1, 22, 27, 28, 29, 31, 32, 33, 34, 64, 200, 5_000]))
    return pairs
