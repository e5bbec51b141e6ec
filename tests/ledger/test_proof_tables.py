"""Tables of proofs, as workers make and verify them: the same verdicts as one proof at a time gets."""

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_ledger.exceptions import InputColumns
from relaycast_ledger.proof_tables import (
    LIST,
    PROOFS,
    UNREADABLE,
    VALID,
    VERDICTS,
    TrieTable,
    mixed,
    prove_random,
    prove_requests,
    verify_batch,
    verify_batches,
)
from relaycast_trie import EMPTY_ROOT, MemoryDB, ProofError, StateVersion, StorageProof, TrieDBMut
from relaycast_trie.scale import encode_bytes, encode_vec

KEYS = [bytes([number, number * 7 % 256]) * (1 + number % 3) for number in range(60)]
PAIRS = {key: key * (1 + 9 * (number % 3)) for number, key in enumerate(KEYS)}


@pytest.fixture(scope="module")
def trie() -> TrieDBMut:
    trie = TrieDBMut(MemoryDB())
    for key, value in PAIRS.items():
        trie[key] = value
    trie.commit()
    return trie


def table_of(pairs: dict[bytes, bytes]) -> TrieTable:
    return TrieTable.of(pa.array(list(pairs), pa.binary()), pa.array(list(pairs.values()), pa.binary()))


def batch_of(rows: Sequence[tuple[object, object, object]]) -> pa.RecordBatch:
    columns = [pa.array([row[column] for row in rows], kind) for column, kind in enumerate((pa.binary(), LIST, LIST))]
    ids = pa.array(range(len(rows)), pa.int64())
    return pa.RecordBatch.from_arrays([ids, *columns], ["id", "root", "keys", "nodes"])


def plain_verdict(root: bytes, keys: list[bytes], nodes: list[bytes], *, strict: bool) -> tuple[str, str, int]:
    try:
        held = StorageProof(nodes).verify(root, keys, strict=strict)
    except ProofError as error:
        return type(error).__name__, str(error), 0
    return VALID, "", sum(held[key] is not None for key in keys)


def verdicts(batch: pa.RecordBatch, *, strict: bool) -> list[tuple[str, str, int]]:
    rows = verify_batch(batch, strict=strict).to_pylist()
    return [(row["verdict"], row["message"], row["present"]) for row in rows]


@given(st.randoms(use_true_random=False), st.booleans())
def test_tampered_tables_get_the_verdicts_of_the_plain_verifier(
    trie: TrieDBMut, choice: random.Random, strict: bool
) -> None:
    rows = []
    for _ in range(choice.randrange(6)):
        keys = choice.sample([*KEYS, b"absent", b""], choice.randrange(5))
        nodes = list(StorageProof.generate(trie.db, trie.root, keys))
        root = choice.choice([trie.root, trie.root, trie.root, bytes(32), EMPTY_ROOT])
        for _ in range(choice.randrange(3)):
            tamper(nodes, choice)
        rows.append((root, keys, nodes))
    expected = [plain_verdict(*row, strict=strict) for row in rows]
    assert verdicts(batch_of(rows), strict=strict) == expected


def tamper(nodes: list[bytes], choice: random.Random) -> None:
    at = choice.randrange(len(nodes) + 1)
    match choice.randrange(4):
        case 0:
            nodes.insert(at, b"foreign")
        case 1 if nodes:
            nodes.append(choice.choice(nodes))
        case 2 if at < len(nodes):
            del nodes[at]
        case 3 if at < len(nodes) and nodes[at]:
            nodes[at] = bytes([nodes[at][0] ^ 1]) + nodes[at][1:]


def test_every_proof_that_is_made_holds(trie: TrieDBMut) -> None:
    table = table_of(PAIRS)
    ids = pa.RecordBatch.from_arrays([pa.array(range(40), pa.int64())], ["id"])
    made = list(prove_random(iter([ids]), lambda: table, keys_a_proof=5, seed=3, absent_percent=20))
    rows = [row for batch in made for row in batch.to_pylist()]
    assert {row["root"] for row in rows} == {trie.root}
    for row in rows:
        assert StorageProof(row["nodes"]) == StorageProof.generate(trie.db, trie.root, row["keys"])
    told = [row for batch in verify_batches(iter(made), strict=True) for row in batch.to_pylist()]
    assert {row["verdict"] for row in told} == {VALID}
    assert [row["present"] for row in told] == [sum(key in PAIRS for key in row["keys"]) for row in rows]
    assert 0 < sum(key not in PAIRS for row in rows for key in row["keys"]) < 100
    assert [row["proof_bytes"] for row in told] == [sum(map(len, row["nodes"])) for row in rows]


def test_what_is_drawn_does_not_depend_on_batches() -> None:
    table = table_of(PAIRS)

    def drawn(*sizes: int) -> list[object]:
        ends = np.cumsum([0, *sizes])
        batches = [
            pa.RecordBatch.from_arrays([pa.array(range(first, last), pa.int64())], ["id"])
            for first, last in pairwise(ends)
        ]
        made = prove_random(iter(batches), lambda: table, keys_a_proof=3, seed=1)
        return [row for batch in made for row in batch.to_pylist()]

    assert drawn(9) == drawn(2, 0, 7)
    assert len({tuple(row["keys"]) for row in drawn(9)}) == 9  # type: ignore[index]


@pytest.mark.parametrize("most", [1, 4, 7, 1_000])
def test_how_many_keys_are_proven_at_once_does_not_matter(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    table = table_of(PAIRS)
    wanted = [[KEYS[3], b"nobody"], [], [KEYS[9]] * 5, [KEYS[1], KEYS[2], KEYS[3]]]
    requests = pa.RecordBatch.from_pydict({"id": range(4), "keys": pa.array(wanted, LIST)})
    ids = pa.RecordBatch.from_pydict({"id": pa.array(range(9), pa.int64())})

    def made() -> list[list[object]]:
        drawn = prove_random(iter([ids]), lambda: table, keys_a_proof=3, seed=1)
        asked = prove_requests(iter([requests, requests.slice(2)]), lambda: table)
        return [[row for batch in batches for row in batch.to_pylist()] for batches in (drawn, asked)]

    at_once = made()
    monkeypatch.setattr("relaycast_ledger.proof_tables.MOST_KEYS_A_BATCH", most)
    assert made() == at_once


def test_altered_keys_end_otherwise() -> None:
    table = TrieTable.of(pa.array([b"", b"ab", b""], pa.binary()), pa.array([b"1", b"2", b"3"], pa.binary()))
    data, ends = table.drawn(np.array([0, 1, 1, 2, 0]), np.array([True, False, True, False, True]))
    taken = [data[first:last].tobytes() for first, last in pairwise(ends)]
    assert taken == [b"\xff", b"ab", b"a" + bytes([ord("b") ^ 0xFF]), b"", b"\xff"]


def test_requests_with_nothing_in_place_of_keys_are_refused() -> None:
    for wanted in ([[KEYS[3]], None], [[KEYS[3], None], []]):
        batch = pa.RecordBatch.from_pydict({"id": [1, 2], "keys": pa.array(wanted, LIST)})
        with pytest.raises(InputColumns, match="keys with a null among them"):
            list(prove_requests(iter([batch]), lambda: table_of(PAIRS)))


def test_requests_are_answered_row_by_row(trie: TrieDBMut) -> None:
    wanted = [[KEYS[3], b"nobody"], [], [KEYS[9]]]
    batch = pa.RecordBatch.from_arrays([pa.array([5, 6, 9], pa.int64()), pa.array(wanted, LIST)], ["id", "keys"])
    (made,) = prove_requests(iter([batch]), lambda: table_of(PAIRS))
    assert made.schema == PROOFS
    rows = made.to_pylist()
    assert [(row["id"], row["keys"]) for row in rows] == list(zip([5, 6, 9], wanted, strict=True))
    assert [StorageProof(row["nodes"]) for row in rows] == [
        StorageProof.generate(trie.db, trie.root, keys) for keys in wanted
    ]


@pytest.mark.parametrize("state_version", list(StateVersion))
def test_a_table_is_a_trie_of_its_state_version(state_version: StateVersion) -> None:
    trie = TrieDBMut(MemoryDB(), state_version=state_version)
    for key, value in PAIRS.items():
        trie[key] = value
    keys, values = pa.array(list(PAIRS), pa.binary()), pa.array(list(PAIRS.values()), pa.binary())
    table = TrieTable.of(keys.slice(0), values.slice(0), state_version=state_version)
    assert table.build().root == trie.commit()
    assert len(table) == len(PAIRS)
    data, ends = table.drawn(np.array([4]), np.array([False]))
    assert (data.tobytes(), ends.tolist()) == (KEYS[4], [0, len(KEYS[4])])


@pytest.mark.parametrize(
    "row",
    [
        (None, [b"k"], []),
        (bytes(31), [b"k"], []),
        (bytes(32), None, []),
        (bytes(32), [b"k", None], []),
        (bytes(32), [b"k"], None),
        (bytes(32), [b"k"], [None]),
        (bytes(32), [bytes(0x8000)], []),  # longer than any path
    ],
    ids=["no root", "a short root", "no keys", "a null key", "no nodes", "a null node", "a long key"],
)
def test_a_row_that_cannot_be_read_says_so_and_spares_the_others(
    trie: TrieDBMut, row: tuple[object, object, object]
) -> None:
    good = (trie.root, [KEYS[0]], list(StorageProof.generate(trie.db, trie.root, [KEYS[0]])))
    told = verdicts(batch_of([good, row, good]), strict=False)
    assert [verdict for verdict, _, _ in told] == [VALID, UNREADABLE, VALID]
    assert [present for _, _, present in told] == [1, 0, 1]


@pytest.mark.parametrize("strict", [False, True])
def test_encoded_proofs_get_the_verdicts_of_their_nodes(trie: TrieDBMut, strict: bool) -> None:
    nodes = sorted(StorageProof.generate(trie.db, trie.root, [KEYS[5]]).nodes)
    tables = [nodes, [*nodes, nodes[0]], [*nodes, b"junk"], nodes[1:], [], nodes[:1]]
    about = {
        "root": pa.array([trie.root] * len(tables), pa.binary()),
        "keys": pa.array([[KEYS[5]]] * len(tables), LIST),
    }
    listed = pa.RecordBatch.from_pydict({**about, "nodes": pa.array(tables, LIST)})
    proofs = [encode_vec(map(encode_bytes, some)) for some in tables]
    for kind in (pa.binary(), pa.large_binary()):
        encoded = pa.RecordBatch.from_pydict({**about, "proof": pa.array(proofs, kind)})
        assert verify_batch(encoded, strict=strict) == verify_batch(listed, strict=strict)
        sliced = encoded.slice(2, 3)
        assert verify_batch(sliced, strict=strict) == verify_batch(listed, strict=strict).slice(2, 3)


def test_encoded_proofs_are_verified_as_well(trie: TrieDBMut) -> None:
    proof = StorageProof.generate(trie.db, trie.root, [KEYS[5]])
    encoded = pa.array([proof.encode(), proof.encode() + b"\x00", None], pa.binary())
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["a", "b", "c"]), pa.array([trie.root] * 3, pa.binary()), pa.array([[KEYS[5]]] * 3, LIST), encoded],
        ["name", "root", "keys", "proof"],
    )
    told = verify_batch(batch)
    assert told.schema.names == ["name", "root", *VERDICTS.names]
    assert told.column("verdict").to_pylist() == [VALID, UNREADABLE, UNREADABLE]
    assert told.column("node_count").to_pylist() == [len(proof), 0, 0]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["root", "keys"], "got the columns root, keys, expected root, keys and nodes"),
        (["id"], "got the columns id"),
    ],
)
def test_a_table_without_proofs_is_refused(names: list[str], complaint: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([], pa.binary()) for _ in names], names)
    with pytest.raises(InputColumns, match=complaint):
        verify_batch(batch)


def test_numbers_are_mixed_as_splitmix64_does() -> None:
    """The first outputs of the public-domain generator for the seed 1234567."""
    states = np.array([1234567 + step * 0x9E3779B97F4A7C15 % 2**64 for step in range(3)], object) % 2**64
    outputs = mixed(states.astype(np.uint64).view(np.int64), 0)
    assert outputs.tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_proofs_of_keys_with_equal_values_hold_no_node_twice() -> None:
    """A value that is hashed is one node, under however many keys it stands."""
    table = table_of(dict.fromkeys(KEYS, bytes(40)))
    rows = pa.RecordBatch.from_pydict({"id": pa.array([1, 2]), "keys": pa.array([KEYS[:9], KEYS[5:30]], LIST)})
    made = list(prove_requests(iter([rows]), lambda: table))
    told = [row for batch in verify_batches(iter(made), strict=True) for row in batch.to_pylist()]
    assert [(row["verdict"], row["present"]) for row in told] == [(VALID, 9), (VALID, 25)]
