"""Every kernel at work on little content, hostile bytes included, and what the plain engine makes of the same.

A process of its own runs this where numba looks at every index, or compiles nothing (the argument: how many rounds).
The line that it prints names the kernels that ran.
"""

import random
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from relaycast_pallets import State, StateDiscarded
from relaycast_trie import (
    CHILD_STORAGE_PREFIX,
    ArrayTrie,
    ChildInfo,
    CodecError,
    CompactProof,
    MemoryDB,
    ProofError,
    StateVersion,
    StorageProof,
    TrieDB,
    TrieDBMut,
    VerifiedProof,
    blake2_256,
    kernels,
    trie_root,
)
from relaycast_trie.array.array_proofs import trace_paths, verify_many
from relaycast_trie.array.compact import decode_compact
from relaycast_trie.array.compact import encode_compact as encode_proof
from relaycast_trie.array.forest import ArrayForest
from relaycast_trie.array.kept_code import all_kernels
from relaycast_trie.array.proof_columns import decode_proofs, verify_columns
from relaycast_trie.kernels import encode
from relaycast_trie.kernels.gather import NOT_BYTES, gathered
from relaycast_trie.scale import encode_bytes, encode_compact, encode_vec

Entry = TypeVar("Entry", bytes, bytes | None)
Changes = dict[bytes, bytes | None]
Foreign = tuple[bytes, list[bytes]]
"""A root that somebody believes, and the nodes that are sent for it."""

LIES = [b"\xfc", b"\xfd\xff", b"\xfe\xff\xff\xff", b"\x02\x00\x00\x00", b"\x03\xff\xff\xff\xff", b"\x07" + b"\xff" * 5]
LONG = b"\x7f" + b"\xff" * 257
"""The header of a leaf with more nibbles than any key has."""
HEADERS = [
    LONG,
    LONG[:256] + b"\x00" + bytes(33_000),
    b"\x7f\xff\xff",
    b"\x3f\xff",
    b"\x1f\xff\xff\xff",
    b"\xbf\xfe",
    b"\xff\xff",
    b"\x10",
    b"\x20",
    b"\x00",
]
CHILD = ChildInfo(b"child")
ROW_WIDTHS = [(2, 5), (1_100, 33), (3, 40), (1, 0), (32, 32), (33, 600)]
"""Bytes of keys and values. Tables with keys of the longest grow to so many rows that memory is asked for ahead."""


class Exercise:
    """Draws content; the same seed draws the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def key(self) -> bytes:
        draw = self.random
        if draw.random() < 0.15:
            return (CHILD.prefixed_storage_key() + b"/")[: draw.choice([1, 8, 14, 15, 16, 30])]
        return bytes(
            draw.choice([0, 1, 16, 17, 240, 255]) for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 4, 9, 20, 160]))
        )

    def keys(self, most: int) -> list[bytes]:
        return [self.key() for _ in range(self.random.randrange(most))]

    def value(self) -> bytes:
        draw = self.random
        return bytes([draw.randrange(4)]) * draw.choice([0, 1, 5, 28, 29, 30, 31, 32, 33, 34, 64, 100, 300, 16_400])

    def pairs(self, most: int) -> dict[bytes, bytes]:
        return {key: self.value() for key in self.keys(most)}

    def changes(self, held: dict[bytes, bytes]) -> Changes:
        """Draw new keys, other values for some of those held, and removals."""
        some = self.random.sample(sorted(held), min(4, len(held)))
        return self.pairs(9) | {key: self.random.choice([None, self.value()]) for key in some + self.keys(3)}

    def questions(self, held: dict[bytes, bytes]) -> list[bytes]:
        return self.keys(5) + self.random.sample(sorted(held), min(5, len(held)))

    def spoiled(self, data: bytes) -> bytes:
        """Cut, flip, lie about a length or a header, add, or put something else in its place."""
        draw = self.random
        at = draw.randrange(len(data) + 1)
        lie = draw.choice(LIES)
        return draw.choice(
            [
                data[:at],
                data[:at] + bytes(byte ^ 1 << draw.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :],
                data[:at] + lie + data[at + len(lie) :],
                data[:at] + lie + data[at:],
                draw.choice(HEADERS) + data[draw.randrange(3) :],
                data + draw.randbytes(draw.randrange(40)),
                draw.randbytes(draw.randrange(60)),
            ]
        )

    def forged(self, root: bytes, nodes: list[bytes]) -> Foreign:
        """Spoil a node and put its new hash where the old one stood, up to the root: so it is found, and decoded."""
        nodes = list(nodes)
        at = self.random.randrange(len(nodes))
        changed = [(blake2_256(nodes[at]), blake2_256(new := self.spoiled(nodes[at])))]
        nodes[at] = new
        while changed:
            old, now = changed.pop()
            root = now if root == old else root
            for i, node in enumerate(nodes):
                if old in node:
                    nodes[i] = node.replace(old, now)
                    changed.append((blake2_256(node), blake2_256(nodes[i])))
        return root, nodes


def applied(held: dict[bytes, bytes], changed: Changes) -> dict[bytes, bytes]:
    """Return what is held after changes."""
    return {key: value for key, value in (held | changed).items() if value is not None}


def change_plainly(trie: TrieDBMut, changed: Changes) -> None:
    for key, value in changed.items():
        if value is None:
            trie.remove(key)
        else:
            trie.insert(key, value)


def result(call: Callable[..., object], *arguments: object, **options: object) -> object:
    """Return what a call returns, or the error that it raises, in a form that compares."""
    try:
        return call(*arguments, **options)
    except (CodecError, ProofError, StateDiscarded) as error:
        return type(error), error.args


def refuses(call: Callable[..., object], *arguments: object) -> bool:
    """Return whether a call says that its arguments are none."""
    try:
        call(*arguments)
    except ValueError:
        return True
    return False


def outcome(verified: object) -> object:
    """Return the values of a proof that holds, and an error in a form that compares."""
    if isinstance(verified, VerifiedProof):
        return dict(verified.values)
    return (type(verified), verified.args) if isinstance(verified, ProofError) else verified


def a_trie_changes(draw: Exercise, version: StateVersion, window: int) -> None:
    """Puts, removals and commits; every version in the window answers as its plain twin, the present one too."""
    held = draw.pairs(30)
    trie = ArrayTrie.from_pairs(held, state_version=version, window=window)
    db = MemoryDB()
    plain = TrieDBMut(db, state_version=version)
    change_plainly(plain, dict(held))
    kept = {plain.commit(prune=False): held}
    for block in range(5):
        if block == 3:
            trie.state_version = plain.state_version = StateVersion(1 - version)
        changed = draw.changes(held)
        put = {key: value for key, value in changed.items() if value is not None}
        trie.update(list(put), list(put.values()))
        trie.remove([key for key, value in changed.items() if value is None])
        change_plainly(plain, put | {key: None for key, value in changed.items() if value is None})
        held = applied(held, changed)
        kept[plain.commit(prune=False)] = held
        assert trie.commit() == plain.root
        for root in {*trie.roots, plain.root} if window else {plain.root}:
            reads(draw, trie, db, kept[root], root if window else None, root)
    assert len(trie) == len(held)


def reads(
    draw: Exercise, trie: ArrayTrie, db: MemoryDB, held: dict[bytes, bytes], at: bytes | None, root: bytes
) -> None:
    """Ask a version of a trie for everything that can be asked, many proofs in one call among it."""
    assert trie.items(at=at) == sorted(held.items())
    groups = [draw.questions(held) for _ in range(4)] + [[]]
    wanted = [key for group in groups for key in group]
    data, offsets, found = trie.get_many(wanted, at=at)
    values = [data[start:end].tobytes() for start, end in pairwise(offsets)]
    assert [value if there else None for value, there in zip(values, found, strict=True)] == [
        held.get(key) for key in wanted
    ]
    made = trie.prove_many(wanted, np.cumsum([0, *map(len, groups)]), at=at).proofs()
    assert made == [StorageProof.generate(db, root, group) for group in groups]
    assert trie.prove(groups[0], at=at) == made[0]


def whole_tries(draw: Exercise) -> None:
    """Tries built at once from columns of every shape: sorted or not, of one width or many, with keys that repeat."""
    noise = np.random.default_rng(draw.random.randrange(99))
    for count, width, value_width in ((0, 4, 5), (1, 0, 0), (40, 1, 32), (60, 2, 5), (70, 32, 33), (300, 9, 40)):
        keys = noise.integers(0, 4 if width > 2 else 256, (count, width), np.uint8)
        values = noise.integers(0, 256, (count, value_width), np.uint8)
        held = {key.tobytes(): value.tobytes() for key, value in zip(keys, values, strict=True)}
        db = MemoryDB()
        plain = TrieDBMut(db)
        change_plainly(plain, dict(held))
        root = plain.commit(prune=False)
        trie = ArrayTrie.from_arrays(keys, values, window=1)
        assert trie.commit() == root
        reads(draw, trie, db, held, root, root)
        same_shape = {key[::-1]: held[key][::-1] for key in sorted(held)[::9]}
        for more in (same_shape, draw.pairs(count + 2), {bytes([0x22]) * length: draw.value() for length in range(60)}):
            trie.update(list(more), list(more.values()))
            change_plainly(plain, dict(more))
            held |= more
            root = plain.commit(prune=False)
            assert trie.root == root
        assert trie.prove(list(held)) == StorageProof.generate(db, root, held)
        assert trie.prove([bytes([0x22]) * 59]) == StorageProof.generate(db, root, [bytes([0x22]) * 59])


def rows_change(draw: Exercise, version: StateVersion, key_width: int, value_width: int) -> None:
    """Matrices of a few keys and values, which are put as they are and hashed at once if a root was asked for before.

    Some are for tables of other widths or too full, some have fewer values than keys.
    """
    noise = np.random.default_rng(draw.random.randrange(99))

    def rows(count: int, width: int) -> Any:
        some = np.array([0, 1, 16, 255], np.uint8)[noise.integers(0, 4, (count, width))]
        some[:, : width // 2] = 17
        return some

    keys, values = rows(40, key_width), noise.integers(0, 256, (40, value_width), np.uint8)
    trie = ArrayTrie.from_arrays(keys, values, state_version=version)
    held = {key.tobytes(): value.tobytes() for key, value in zip(keys, values, strict=True)}
    for turn in range(12):
        count, width = draw.random.randrange(5), value_width + (turn == 9)
        some = draw.random.choice([rows(count, key_width), keys[noise.integers(0, 40, count)]])
        new = noise.integers(0, 256, (count, width), np.uint8)
        assert refuses(trie.update, some, new[1:]) == (count > 0)
        assert refuses(trie.update, some[:0], new) == (count > 0)
        trie.update(some, new)
        held |= {key.tobytes(): value.tobytes() for key, value in zip(some, new, strict=True)}
        if turn == 6:
            trie.remove(keys[:9])
            held = applied(held, {key.tobytes(): None for key in keys[:9]})
        if turn % 5 != 3:
            assert trie.root == trie_root(held, state_version=version, engine="plain")
    assert trie.items() == sorted(held.items())


def a_forest_grows(draw: Exercise, window: int) -> None:
    """Several tries sealed together; what is told of nodes that come and go is what a plain database holds."""
    forest, told, plain = ArrayForest(window=window), MemoryDB(), MemoryDB()
    tries, held = [TrieDBMut(plain) for _ in range(3)], [draw.pairs(20) for _ in range(3)]
    for _ in tries:
        forest.add()
    for block in range(5):
        changed = {number: draw.changes(held[number]) for number in draw.random.sample(range(3), 2)}
        if block == 3:
            changed = {0: dict.fromkeys(held[0]), 1: draw.changes(held[1])}
        told.emplace_all(*forest.seal(changed, told=True))
        told.remove_all(forest.close(told=True))
        for number, some in changed.items():
            change_plainly(tries[number], some)
            tries[number].commit()
            held[number] = applied(held[number], some)
        assert [forest.root(number) for number in range(3)] == [trie.root for trie in tries]
        hashes, nodes = forest.hashed()
        assert set(hashes) == set(told.references())
        assert [blake2_256(node) for node in nodes] == hashes
        for trie in tries:
            wanted = draw.keys(6)
            assert forest.prove(trie.root, wanted) == StorageProof.generate(plain, trie.root, wanted)
            assert [forest.get(trie.root, key) for key in wanted] == [trie.get(key) for key in wanted]
    for _ in range(window):
        told.remove_all(forest.close(told=True))
    assert told.references() == plain.references()


def ordinary(entries: dict[bytes, Entry]) -> dict[bytes, Entry]:
    """Return what is no root of a child trie: a state writes those itself."""
    return {key: value for key, value in entries.items() if not key.startswith(CHILD_STORAGE_PREFIX)}


class Undone(Exception):
    """A transaction ends badly."""


def a_state_passes_blocks(draw: Exercise, window: int) -> None:
    """Blocks with transactions that roll back and roots that leave the window, on arrays and on plain tries."""
    top = ordinary(draw.pairs(20))
    array = State(top, {CHILD: top}, window=window, engine="array")
    plain = State(top, {CHILD: top}, window=window, engine="plain")
    roots = [plain.root]
    for block in range(4):
        changed, undone, wanted = draw.changes(top), draw.changes(top), draw.questions(top)
        for state in (array, plain):
            write(state, changed)
            try:
                with state.transaction():
                    write(state, undone)
                    raise Undone
            except Undone:
                state.commit()
            if block == 2:
                state.migrate(StateVersion.V0)
        roots.append(plain.root)
        assert array.root == plain.root
        for root in roots:
            assert result(array.prove_read, root, wanted) == result(plain.prove_read, root, wanted)
            below = [result(state.prove_child_read, root, CHILD, wanted) for state in (array, plain)]
            assert below[0] == below[1]
    assert {node_hash: array.db.get(node_hash) for node_hash in array.db} == {
        node_hash: plain.db.get(node_hash) for node_hash in plain.db
    }


def write(state: State, changed: Changes) -> None:
    for storage in (state.top, state.child(CHILD)):
        for key, value in ordinary(changed).items():
            if value is None:
                storage.kill(key)
            else:
                storage.put(key, value)


def foreign_proofs(draw: Exercise) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
    """Yield roots, nodes and keys: some sound, some spoiled, some forged, some short of a node or with one too many."""
    held = draw.pairs(25)
    trie = ArrayTrie.from_pairs(held, state_version=draw.random.choice(list(StateVersion)))
    wanted = draw.questions(held)
    nodes = sorted(trie.prove(wanted).nodes)
    yield trie.root, nodes, wanted
    yield trie.root, [], wanted
    yield trie.root, nodes, []
    yield trie.root, nodes[1:], wanted
    yield trie.root, [*nodes, *nodes[:1], draw.spoiled(b"more" * 9)], wanted
    for header in HEADERS:
        junk = header + draw.random.randbytes(50)
        yield blake2_256(junk), [junk], wanted
    for _ in range(4 if nodes else 0):
        yield *draw.forged(trie.root, nodes), wanted
        yield trie.root, [draw.spoiled(node) if draw.random.random() < 0.3 else node for node in nodes], wanted


def proofs_are_verified(draw: Exercise) -> None:
    """Verify many foreign proofs in one call, as sets and in columns; follow their paths; write them compactly."""
    batch = [one for _ in range(3) for one in foreign_proofs(draw)]
    roots, sent, wanted = (list(part) for part in zip(*batch, strict=True))
    proofs = [StorageProof(nodes) for nodes in sent]
    for strict in (False, True):
        expected = [
            outcome(result(proof.verify, root, keys, strict=strict))
            for root, proof, keys in zip(roots, proofs, wanted, strict=True)
        ]
        assert [outcome(it) for it in verify_many(roots, proofs, wanted, strict=strict)] == expected
        verdicts = verify_columns(
            np.frombuffer(b"".join(roots), np.uint8).reshape(-1, 32),
            *in_columns(sent),
            *in_columns(wanted),
            strict=strict,
        )
        for number, said in enumerate(expected):
            error = verdicts.errors.get(number)
            assert (type(error), error.args) == said if error else isinstance(said, dict)
            present = sum(said[key] is not None for key in wanted[number]) if isinstance(said, dict) else 0
            assert verdicts.present[number] == present
    for root, nodes, keys in batch:
        paths_are_followed(draw, root, nodes, keys)
        compact_proofs(draw, root, StorageProof(nodes))


def in_columns(groups: list[list[bytes]]) -> tuple[tuple[Any, Any], Any]:
    """Return all strings of all groups with their offsets, and where each group ends."""
    strings = [string for group in groups for string in group]
    data = np.frombuffer(b"".join(strings), np.uint8)
    return (data, np.cumsum([0, *map(len, strings)])), np.cumsum([0, *map(len, groups)])


def paths_are_followed(draw: Exercise, root: bytes, nodes: list[bytes], keys: list[bytes]) -> None:
    """What pruning asks: which nodes keys need beside a cache. A key that the plain engine reads has a whole path."""
    cached = [node for node in nodes if draw.random.random() < 0.4]
    given = [node for node in nodes if draw.random.random() < 0.8]
    known = {blake2_256(node): node for node in cached + given}
    traced = trace_paths(root, given, keys, cached=cached)
    assert traced.proof_bytes.tolist() == [len(node) for node in given]
    read = [root in known and not isinstance(result(TrieDB(known, root).get, key), tuple) for key in keys]
    assert traced.complete.tolist() == read
    whole = [key for key, complete in zip(keys, read, strict=True) if complete]
    if whole:
        needed = [node for node, is_needed in zip(given, traced.needed, strict=True) if is_needed]
        StorageProof([*needed, *cached]).verify(root, whole)


def compact_proofs(draw: Exercise, root: bytes, proof: StorageProof) -> None:
    """Compact proofs both ways, also of foreign nodes, and spoiled once they are compact."""
    expected = result(CompactProof.encode, proof, root)
    assert result(encode_proof, proof, root) == expected
    if not isinstance(expected, CompactProof):
        return
    nodes = list(expected.nodes)
    given = [nodes, nodes[:-1], [*nodes, b""]]
    for _ in range(3):
        at = draw.random.randrange(len(nodes))
        given.append([*nodes[:at], draw.spoiled(nodes[at]), *nodes[at + 1 :]])
    for some in given:
        compact = CompactProof(tuple(some))
        assert result(decode_compact, compact) == result(compact.decode)


def encoded_proofs(draw: Exercise) -> None:
    """Decode many encoded proofs in one call, spoiled ones between sound ones, behind bytes that belong to nobody."""
    sound = [
        encode_vec(encode_bytes(draw.value() * draw.random.choice([1, 60])) for _ in range(draw.random.randrange(5)))
        for _ in range(9)
    ]
    sent = [one for proof in sound for one in (proof, draw.spoiled(proof), draw.random.choice(LIES), b"")]
    ends = 3 + np.cumsum([0, *map(len, sent)])
    found = decode_proofs(np.frombuffer(b"abc" + b"".join(sent), np.uint8), ends)
    strings, offsets = found.nodes
    for number, proof in enumerate(sent):
        first, end = found.node_ends[number : number + 2]
        nodes = [strings[offsets[i] : offsets[i + 1]].tobytes() for i in range(first, end)]
        said = result(StorageProof.decode, proof)
        assert found.spoiled[number] == isinstance(said, tuple)
        assert nodes == [] if found.spoiled[number] else StorageProof(nodes) == said


class Pretender(bytes):
    """Bytes that say there are more of them than there are."""

    def __len__(self) -> int:
        return 1 << 40


def strings_are_gathered(draw: Exercise) -> None:
    """Strings out of Python lists; where something only looks like bytes, nothing is read of it."""
    strings = [draw.value() for _ in range(draw.random.randrange(40))]
    data, offsets, sizes, width = gathered(strings)
    assert data.tobytes() == b"".join(strings)
    assert (np.diff(offsets).tolist(), sizes.tolist()) == (list(map(len, strings)),) * 2
    assert width == (-1 if len({*sizes.tolist()}) > 1 else max(sizes, default=0))
    for other in (Pretender(b"ab"), bytearray(b"ab"), memoryview(b"ab"), "ab", None, 5, strings):
        mixed: list[Any] = [*strings, other, *strings]
        draw.random.shuffle(mixed)
        assert gathered(mixed)[3] == NOT_BYTES


def long_lengths() -> None:
    """Lengths that no trie of this size has."""
    out = np.zeros(8, np.uint8)
    for number in (1 << 30, (1 << 32) - 1):
        size = encode.write_compact(out, 0, number)
        assert out[:size].tobytes() == encode_compact(number)


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
        proofs_are_verified(draw)
        encoded_proofs(draw)
        strings_are_gathered(draw)
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
    sys.settrace(called)
    run(int(sys.argv[1]))
    sys.settrace(None)
    print(*sorted(called.names.union(compiled())))
