"""Whole questions in one call of a kernel answer what the plain engine answers, and refuse what it refuses."""

import hashlib
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernel_inputs import array, slots, spread
from naive import byte_lists, together
from relaycast_trie import (
    ArrayTrie,
    CodecError,
    DuplicateNode,
    StateVersion,
    StorageProof,
    TrieDB,
    UnusedNodes,
    build_database,
    trie_root,
)
from relaycast_trie.array import array_proofs
from relaycast_trie.array.array_proofs import ArrayProof
from relaycast_trie.array.array_trie import root_of
from relaycast_trie.kernels import at_once, python_lists
from relaycast_trie.kernels.compiling import locked_kernel
from relaycast_trie.kernels.decode import LENGTH_BYTES, write_list
from relaycast_trie.kernels.disk_cache import CHECKED
from relaycast_trie.kernels.memory import Bytes
from relaycast_trie.kernels.python_lists import NOT_BYTES
from relaycast_trie.scale import encode_bytes, encode_vec
from strategies import Pairs, pairs_with_questions, state_versions
from twins import twin_of

needs_compiler = pytest.mark.skipif(not at_once.AT_ONCE, reason="there are no such kernels where nothing is compiled")
STRINGS = st.lists(st.binary(max_size=80), max_size=30)
WAYS = [python_lists.scattered, python_lists.scattered_plainly]


def was_called(kernel: Any) -> bool:
    """Return whether a kernel has been compiled, or loaded, for the kinds of its arguments."""
    return len(kernel.signatures) > 0


NOT_EXACTLY_BYTES: list[Any] = [
    bytearray(b"ab"),
    memoryview(b"ab"),
    "ab",
    5,
    None,
    [b"ab"],
    type("Kin", (bytes,), {})(b"a"),
]


def outcome(work: Any, *given: Any, **options: Any) -> Any:
    """Return what a call returns, or the type and the arguments of what it raises."""
    try:
        return work(*given, **options)
    except Exception as error:
        return type(error), error.args


@twin_of("python_lists._scatter")
@pytest.mark.parametrize("way", WAYS)
@given(strings=st.lists(st.binary(max_size=80) | st.none(), max_size=30))
def test_strings_are_scattered_as_they_were_gathered(way: Any, strings: list[bytes | None]) -> None:
    data, offsets, sizes, _ = together([string or b"" for string in strings])
    there = [string is not None for string in strings]
    starts = np.where(there, np.array(offsets[:-1], np.int64), python_lists.NO_STRING).astype(np.int64)
    assert way(array(data), starts, np.array(sizes, np.int32)) == strings
    assert not at_once.AT_ONCE or was_called(python_lists._scatter)


@pytest.mark.skipif(CHECKED or not at_once.AT_ONCE, reason="every index is looked at")
def test_a_string_for_which_there_is_no_memory_is_not_put_and_no_error_is_left_behind() -> None:
    @locked_kernel
    def put(strings: int, index: int, data: Bytes, at: int, size: int) -> bool:
        return python_lists.put_string(strings, index, data, at, size)

    strings = [None, b"second"]
    assert not put(id(strings), 0, array(b"first"), 0, 1 << 61)
    assert put(id(strings), 1, array(b"first"), 1, 3)
    assert strings == [None, b"irs"]


@twin_of("decode.write_list")
@given(STRINGS, st.data())
def test_lists_are_written_as_scale_says(strings: list[bytes], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(strings))))
    out = np.zeros(sum(map(len, strings)) + LENGTH_BYTES * (len(strings) + 1), np.uint8)
    size = write_list(spread(*strings), slots(*order), out)
    encoded = out[:size].tobytes()
    assert byte_lists(encoded) == [strings[i] for i in order]
    assert encoded == encode_vec(encode_bytes(strings[i]) for i in order)


@twin_of("at_once.decode_at_once")
@needs_compiler
@given(STRINGS.map(lambda strings: encode_vec(map(encode_bytes, strings))) | st.binary(max_size=40))
@example(b"")
@example(b"\x00\x00")
@example(b"\x04\x00\x00")
@example(b"\x02\x00\x00\x00")
@example(b"\xfe\xff\xff\xff")
def test_a_list_is_decoded_as_its_twin_decodes_it(encoded: bytes) -> None:
    count, data, offsets = at_once.decode_at_once(id(encoded), id(bytes))
    expected = byte_lists(encoded)
    assert (count >= 0) == (expected is not None)
    if expected is not None:
        assert [data[a:b].tobytes() for a, b in pairwise(offsets)] == expected


@twin_of("at_once.encode_at_once")
@needs_compiler
@given(STRINGS | st.lists(st.sampled_from([b"", b"\0", b"\0" * 9, b"\0" * 8 + b"a"]), max_size=20))
def test_few_strings_are_sorted_and_encoded_as_their_twin_does(strings: list[bytes]) -> None:
    (data, offsets, _, _), encoded = python_lists.gathered(strings), [b""]
    assert at_once.encode_at_once(data, offsets, id(encoded)) == 0
    assert encoded == [encode_vec(map(encode_bytes, sorted(set(strings))))]


@needs_compiler
@pytest.mark.parametrize("other", NOT_EXACTLY_BYTES)
def test_nothing_is_read_of_what_is_not_exactly_bytes(other: Any) -> None:
    held = [b"k", other]
    sound, out, taken = [b"k", bytes(32)], [None, None], id(held)
    assert at_once.decode_at_once(id(other), id(bytes))[0] == NOT_BYTES
    for nodes, keys in ((taken, id(sound)), (id(sound), taken), (0, taken)):
        none = array_proofs.NO_BYTES, array_proofs.NO_OFFSETS
        assert at_once.verify_at_once(nodes, *none, keys, id(bytes), id(out)) == NOT_BYTES
    assert at_once.root_at_once(taken, id(sound), id(bytes), 33, id(out)) == NOT_BYTES
    assert at_once.root_at_once(id(sound), taken, id(bytes), 33, id(out)) == NOT_BYTES
    trie = ArrayTrie.from_pairs({b"k": b"v"})
    arena = trie._arena
    assert at_once.get_at_once(arena.tables, arena.root, taken, id(bytes), id(out)) == NOT_BYTES
    assert at_once.prove_at_once(arena.tables, arena.root, arena.longest_node, taken, id(bytes))[0] == NOT_BYTES
    assert out == [None, None]


@twin_of("at_once.get_at_once", "at_once.prove_at_once")
@needs_compiler
@given(pairs_with_questions(), state_versions)
def test_reads_of_a_trie_are_those_of_the_plain_engine(case: tuple[Pairs, list[bytes]], version: StateVersion) -> None:
    held, wanted = case
    db, root = build_database(held, state_version=version)
    trie = ArrayTrie.from_pairs(held, state_version=version)
    assert trie.root == root
    arena = trie._arena
    if arena.root:
        values: list[bytes | None] = [None] * len(wanted)
        assert at_once.get_at_once(arena.tables, arena.root, id(wanted), id(bytes), id(values)) == 0
        assert values == [TrieDB(db, root).get(key) for key in wanted]
        count, data, offsets = at_once.prove_at_once(
            arena.tables, arena.root, arena.longest_node, id(wanted), id(bytes)
        )
        assert count == len(offsets) - 1
        assert ArrayProof.of_arrays(data, offsets) == StorageProof.generate(db, root, wanted)
    assert [trie.get(key) for key in wanted] == [held.get(key) for key in wanted]
    assert trie.prove(wanted) == StorageProof.generate(db, root, wanted)


@twin_of("at_once.verify_at_once")
@given(pairs_with_questions(), state_versions, st.data())
def test_one_proof_is_verified_as_the_plain_engine_does(
    case: tuple[Pairs, list[bytes]], version: StateVersion, data: st.DataObject
) -> None:
    held, wanted = case
    db, root = build_database(held, state_version=version)
    nodes = list(StorageProof.generate(db, root, wanted))
    change = data.draw(st.sampled_from(["none", "drop", "add", "spoil", "twice", "other root"]))
    if nodes and change in ("drop", "spoil", "twice"):
        at = data.draw(st.integers(0, len(nodes) - 1))
        put = {"drop": [], "spoil": [nodes[at][:-1] + b"\xff"], "twice": [nodes[at], nodes[at]]}
        nodes[at : at + 1] = put[change]
    if change == "add":
        nodes.append(data.draw(st.binary(max_size=40)))
    if change == "other root":
        root = bytes(32)
    encoded = encode_vec(map(encode_bytes, nodes))
    for strict in (False, True):
        plain = StorageProof(nodes)
        expected = outcome(plain.verify_plainly, root, wanted, strict=strict)
        for proof in (plain, array_proofs.decode_one(encoded) or plain):
            found = outcome(array_proofs.verify_one, proof, root, wanted, strict=strict)
            if isinstance(expected, tuple):
                assert found == expected
            else:
                assert (found.root, found.values) == (root, expected.values)
                assert list(found.values) == list(expected.values)
    assert not at_once.AT_ONCE or was_called(at_once.verify_at_once)


@twin_of("at_once.root_at_once")
@given(pairs_with_questions(), state_versions)
def test_a_root_in_one_call_is_that_of_the_plain_engine(case: tuple[Pairs, list[bytes]], version: StateVersion) -> None:
    held, _ = case
    assert root_of(held, version) == trie_root(held, state_version=version, engine="plain")
    assert not at_once.AT_ONCE or was_called(at_once.root_at_once)


@needs_compiler
def test_keys_that_do_not_ascend_and_keys_that_are_too_long_have_no_root() -> None:
    out = [b""]
    for keys, answer in (([b"b", b"a"], -1), ([b"a", b"a"], -1), ([bytes(0x8000)], at_once.TOO_LONG)):
        values = [b"v"] * len(keys)
        assert at_once.root_at_once(id(keys), id(values), id(bytes), 33, id(out)) == answer
    assert out == [b""]
    with pytest.raises(ValueError, match="a key has at most 32767 bytes, got 32768"):
        root_of({bytes(0x8000): b"v"}, StateVersion.V1)


@given(STRINGS)
def test_proofs_are_encoded_and_decoded_as_in_python(nodes: list[bytes]) -> None:
    plain = StorageProof(nodes)
    encoded = encode_vec(encode_bytes(node) for node in plain)
    assert array_proofs.encode_one(plain) == array_proofs.encode_one(ArrayProof(nodes)) == encoded
    given_twice = encode_vec(map(encode_bytes, nodes + nodes[:1]))
    found = array_proofs.decode_one(given_twice)
    if found is not None:
        assert (found, found.repeated, len(found)) == (plain, StorageProof(nodes + nodes[:1]).repeated, len(plain))
        assert type(pickle.loads(pickle.dumps(found))) is StorageProof
        assert pickle.loads(pickle.dumps(found)).repeated == found.repeated


def test_large_proofs_go_through_arrays_and_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What users call, at every size from which arrays are taken and at those below."""
    held = {hashlib.sha256(bytes([i])).digest(): bytes([i]) * 40 for i in range(200)}
    trie = ArrayTrie.from_pairs(held)
    wanted = [*held, b"absent"]
    proof = StorageProof(trie.prove(wanted).nodes)
    encoded = proof.encode()
    assert encoded == encode_vec(encode_bytes(node) for node in sorted(proof.nodes))
    decoded = StorageProof.decode(encoded)
    assert (type(decoded), decoded) == (ArrayProof if at_once.AT_ONCE else StorageProof, proof)
    for strict in (False, True):
        for some in (proof, decoded):
            assert some.verify(trie.root, wanted, strict=strict).values == {**held, b"absent": None}
    with pytest.raises(UnusedNodes):
        decoded.verify(trie.root, wanted[:-2], strict=True)
    twice = StorageProof.decode(encode_vec(map(encode_bytes, [*proof, *proof])))
    with pytest.raises(DuplicateNode):
        twice.verify(trie.root, wanted, strict=True)
    with pytest.raises(CodecError):
        StorageProof.decode(encoded[:-1])
    monkeypatch.setattr(array_proofs, "MOST_AT_ONCE", 3)
    assert decoded.verify(trie.root, wanted).values == {**held, b"absent": None}
    assert outcome(decoded.verify, bytes(32), wanted) == outcome(decoded.verify_plainly, bytes(32), wanted)
    assert outcome(decoded.verify, bytes(31), wanted) == outcome(decoded.verify_plainly, bytes(31), wanted)
