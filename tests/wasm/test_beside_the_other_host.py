"""Random sequences of host functions in this host and in smoldot's, from npm (run with ``-m oracle``).

Node and ``@acala-network/chopsticks-executor`` 1.5.1 are found, never installed, see ``tests/trie/test_oracle.py``. The
other host departs from the specification in a few places: the sequences keep out of them, and each has a test here.
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from peers import missing
from relaycast_pallets.frame.state import State
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import StateVersion
from relaycast_trie.reference import trie_root
from relaycast_trie.scale import encode_bytes, encode_compact, encode_option, encode_u32, encode_vec
from relaycast_wasm import OverlayedChanges, StateBacking, WasmRuntime
from wasm.called_module import Call, Outcome, Room, module_of, read_output
from wasm.naive_overlay import Contents

pytestmark = pytest.mark.oracle

PACKAGE = "@acala-network/chopsticks-executor"
SCRIPT = Path(__file__).parent / "host_calls.mjs"
SEQUENCES = 100
CHILD = ChildInfo(b"a")
LEVELS = ("error", "warn", "info")


@pytest.fixture(scope="module")
def folder() -> Path:
    chosen = Path(os.environ.get("RELAYCAST_ORACLE", ".")).resolve()
    if shutil.which("node") is None:
        missing("node is not installed")
    if not (chosen / "node_modules" / PACKAGE).is_dir():
        missing(f"{PACKAGE} is not in {chosen}/node_modules: set RELAYCAST_ORACLE to a folder that has it")
    return chosen


@dataclass(frozen=True)
class Run:
    """What a sequence left behind: what each call gave, keys written (a child's behind its name), and log lines."""

    outcomes: list[Outcome]
    diff: dict[bytes, bytes | None]
    log: tuple[str, ...]


def state_of(held: Contents) -> State:
    return State(held[None], {CHILD: held[CHILD]}, engine="plain")


def run_here(calls: Sequence[Call], held: Contents) -> Run:
    overlay = OverlayedChanges(StateBacking(state_of(held)))
    answer = WasmRuntime.load(module_of(calls)).call("run", b"", overlay)
    changes = overlay.changes()
    of_child = {CHILD.prefixed_storage_key() + key: value for key, value in changes.get(CHILD, {}).items()}
    return Run(read_output(calls, answer.output), changes[None] | of_child, tuple(answer.log))


def run_there(folder: Path, sequences: Sequence[tuple[Sequence[Call], Contents]]) -> list[Run]:
    questions = [
        {
            "wasm": shown(module_of(calls)),
            "storage": all_shown(dict(state_of(held).top.values)),
            "children": {shown(CHILD.storage_key): all_shown(held[CHILD])},
        }
        for calls, held in sequences
    ]
    command = ["node", str(SCRIPT), str(folder)]
    run = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [told(answer, calls) for answer, (calls, _) in zip(json.loads(run.stdout), sequences, strict=True)]


def told(answer: dict[str, Any], calls: Sequence[Call]) -> Run:
    assert "error" not in answer, answer
    diff = {unshown(key): None if value is None else unshown(value) for key, value in answer["diff"].items()}
    diff.pop(CHILD.prefixed_storage_key(), None)  # the child's root
    log = tuple(f"{LEVELS[line['level']]} {line['target']}: {line['message']}" for line in answer["logs"])
    return Run(read_output(calls, unshown(answer["result"])), diff, log)


def shown(data: bytes) -> str:
    return f"0x{data.hex()}"


def unshown(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def all_shown(values: dict[bytes, bytes]) -> dict[str, str]:
    return {shown(key): shown(value) for key, value in values.items()}


KEYS = [b"a", b"ab", b"abc", b"abd", b"b", b"b\x00", b"ba", b"\xff", b"\xff\xff", b"long" * 20]
VALUES = [b"", b"\x00", b"1", b"value", bytes(32), bytes(33), bytes(100), encode_compact(63) + bytes(63)]


class Writer:
    """Makes up a sequence, and follows what it does, to keep out of where the other host errs."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        keys = [*KEYS, b"vector"]
        self.held: Contents = {
            name: {key: chance.choice(VALUES) for key in chance.sample(keys, chance.randint(0, 8))}
            for name in (None, CHILD)
        }
        self.held[CHILD].setdefault(b"there", b"")
        self.overlay = OverlayedChanges(StateBacking(state_of(self.held)))
        self.calls: list[Call] = []

    def write(self, count: int) -> tuple[list[Call], Contents]:
        acts = [self.set, self.set, self.clear, self.get, self.read, self.exists, self.next_key, self.clear_prefix]
        acts += [self.append, self.start, self.end, self.end, self.hash, self.log, self.root]
        while len(self.calls) < count:
            self.chance.choice(acts)()
        while self.overlay.depth:
            self.end()
        return self.calls, self.held

    def trie(self) -> tuple[str, tuple[bytes, ...], ChildInfo | None]:
        return self.chance.choice([("storage", (), None), ("default_child_storage", (CHILD.storage_key,), CHILD)])

    def key(self) -> bytes:
        return self.chance.choice(KEYS)

    def set(self) -> None:
        name, first, info = self.trie()
        key, value = self.key(), self.chance.choice(VALUES)
        self.calls.append((f"{name}_set_version_1", *first, key, value))
        self.overlay.put(key, value, info)

    def clear(self) -> None:
        name, first, info = self.trie()
        key = self.key()
        self.calls.append((f"{name}_clear_version_1", *first, key))
        self.overlay.put(key, None, info)

    def get(self) -> None:
        name, first, _ = self.trie()
        self.calls.append((f"{name}_get_version_1", *first, self.key()))

    def exists(self) -> None:
        name, first, _ = self.trie()
        self.calls.append((f"{name}_exists_version_1", *first, self.key()))

    def next_key(self) -> None:
        name, first, _ = self.trie()
        self.calls.append((f"{name}_next_key_version_1", *first, self.chance.choice([b"", *KEYS])))

    def read(self) -> None:
        name, first, info = self.trie()
        key = self.key()
        offset = self.chance.randint(0, len(self.overlay.get(key, info) or b""))  # not past the end
        self.calls.append((f"{name}_read_version_1", *first, key, Room(self.chance.choice([0, 4, 200])), offset))

    def append(self) -> None:
        key, item = b"vector", self.chance.choice([b"", b"item"])
        self.calls.append(("storage_append_version_1", key, item))
        self.overlay.append(key, item)

    def clear_prefix(self) -> None:
        name, first, info = self.trie()
        whole = info is not None and self.chance.random() < 0.3
        prefix = b"" if whole else self.chance.choice([b"a", b"ab", b"b", b"\xff", b"none"])
        number = self.chance.choice([None, None, 0, 1, 2])
        written = self.overlay.changes().get(info, {})
        live = [key for key, value in written.items() if value is not None and key.startswith(prefix)]
        if number is not None and live:
            return  # there a limit saves what was written in the block
        if any(key not in self.held[info] for key in live) or prefix in self.held[info] or prefix in written:
            return
        limit = encode_option(None if number is None else encode_u32(number))
        version = self.chance.randint(1, 3 if whole else 2)
        kind = "storage_kill" if whole else "clear_prefix"
        given = first if whole else (*first, prefix)
        self.calls.append((f"{name}_{kind}_version_{version}", *given, *([limit] if version > 1 else [])))
        self.overlay.clear_prefix(prefix, info, limit=None if version == 1 else number)

    def start(self) -> None:
        if self.overlay.depth < 4:
            self.calls.append(("storage_start_transaction_version_1",))
            self.overlay.start_transaction()

    def end(self) -> None:
        if not self.overlay.depth:
            return
        if self.chance.random() < 0.5:
            self.calls.append(("storage_rollback_transaction_version_1",))
            self.overlay.roll_back_transaction()
        else:
            self.calls.append(("storage_commit_transaction_version_1",))
            self.overlay.commit_transaction()

    def hash(self) -> None:
        name = self.chance.choice(["blake2_128", "blake2_256", "keccak_256", "sha2_256", "twox_64"])
        self.calls.append((f"hashing_{name}_version_1", self.chance.choice(VALUES)))

    def log(self) -> None:
        self.calls.append(("logging_log_version_1", self.chance.randint(0, 2), b"target", self.chance.choice(KEYS[:7])))

    def root(self) -> None:
        data = encode_vec(encode_bytes(self.chance.choice(VALUES)) for _ in range(self.chance.randint(0, 5)))
        self.calls.append(("trie_blake2_256_ordered_root_version_2", data, self.chance.randint(0, 1)))


def sequences(count: int, seed: int) -> list[tuple[list[Call], Contents]]:
    chance = random.Random(seed)
    return [Writer(chance).write(chance.randint(30, 60)) for _ in range(count)]


def test_random_sequences_give_and_leave_the_same(folder: Path) -> None:
    written = sequences(SEQUENCES, seed=160)
    for (calls, held), there in zip(written, run_there(folder, written), strict=True):
        here = run_here(calls, held)
        for call, ours, theirs in zip(calls, here.outcomes, there.outcomes, strict=True):
            assert ours == theirs, call
        assert here.diff == there.diff
        assert here.log == there.log


def both(folder: Path, *calls: Call, held: dict[bytes, bytes]) -> tuple[Run, Run]:
    contents: Contents = {None: held, CHILD: {}}
    return run_here(calls, contents), run_there(folder, [(calls, contents)])[0]


def test_there_a_root_is_that_of_the_changes_alone(folder: Path) -> None:
    held = {b"key": b"value"}
    here, there = both(folder, ("storage_set_version_1", b"new", b"1"), ("storage_root_version_2", 1), held=held)
    assert here.outcomes[1].result == trie_root({**held, b"new": b"1"}, state_version=StateVersion.V1)
    assert there.outcomes[1].result == trie_root({b"new": b"1"}, state_version=StateVersion.V1)


def test_there_a_read_past_the_end_has_a_length_that_wraps(folder: Path) -> None:
    here, there = both(folder, ("storage_read_version_1", b"key", Room(2), 7), held={b"key": b"value"})
    assert here.outcomes == [Outcome(b"\x01" + encode_u32(0), (bytes(2),))]  # nothing is left from there on
    assert there.outcomes == [Outcome(b"\x01" + encode_u32(2**32 - 2), (bytes(2),))]


def test_there_a_prefix_that_is_cleared_leaves_keys_that_were_written_in_the_block(folder: Path) -> None:
    here, there = both(
        folder, ("storage_set_version_1", b"p2", b""), ("storage_clear_prefix_version_1", b"p"), held={b"p1": b""}
    )
    assert here.diff == {b"p1": None, b"p2": None}
    assert there.diff == {b"p1": None, b"p2": b""}
    none: Call = ("storage_clear_prefix_version_2", b"p", encode_option(encode_u32(0)))
    here, there = both(folder, ("storage_set_version_1", b"p1", b"new"), none, held={b"p1": b""})
    assert here.outcomes == there.outcomes
    assert (here.diff, there.diff) == ({b"p1": None}, {b"p1": b"new"})  # a limit is for the state below


def test_there_a_prefix_that_is_cleared_leaves_the_key_that_equals_it(folder: Path) -> None:
    here, there = both(folder, ("storage_clear_prefix_version_1", b"p"), held={b"p": b"", b"p1": b""})
    assert here.diff == {b"p": None, b"p1": None}
    assert there.diff == {b"p1": None}


def test_there_a_vector_of_16383_items_loses_a_byte_when_it_grows(folder: Path) -> None:
    held = {b"vector": encode_compact(16_383) + b"x" * 16_383}
    here, there = both(folder, ("storage_append_version_1", b"vector", b"y"), held=held)
    right = encode_compact(16_384) + b"x" * 16_383 + b"y"
    assert here.diff == {b"vector": right}
    assert len(there.diff[b"vector"] or b"") == len(right) - 1


def test_there_a_root_of_keys_and_values_that_are_handed_over_is_wrong_from_two_ways_on(folder: Path) -> None:
    pairs = {b"a": b"value", b"b": b"1"}
    data = encode_vec(encode_bytes(key) + encode_bytes(value) for key, value in pairs.items())
    here, there = both(folder, ("trie_blake2_256_root_version_2", data, 1), held={})
    assert here.outcomes[0].result == trie_root(pairs, state_version=StateVersion.V1) != there.outcomes[0].result
