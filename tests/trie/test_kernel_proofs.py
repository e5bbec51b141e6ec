"""Kernels that read foreign proofs, plain and compact ones, do what the plain engine and the definitions do."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernel_inputs import array, column, numbers, slots, spread
from naive import followed, header_count, nibbles, unfolded, values_of_known, with_length
from relaycast_trie import (
    CHILD_STORAGE_PREFIX,
    CodecError,
    CompactProof,
    StateVersion,
    StorageProof,
    blake2_256,
    build_database,
)
from relaycast_trie.kernels import compact, decode, verify
from relaycast_trie.kernels.build import order_by_height
from relaycast_trie.kernels.decode import PLAN
from relaycast_trie.kernels.memory import Bytes, Int32s
from relaycast_trie.kernels.multibuffer_hash import new_rooms
from relaycast_trie.kernels.python_lists import gathered
from relaycast_trie.scale import encode_compact
from strategies import Pairs, pairs_with_questions, state_versions
from twins import twin_of

lengths = st.sampled_from([0, 1, 63, 64, 90, 16_383, 16_384, 2**30 - 1, 2**30, 2**32 - 1, 2**40]).map(encode_compact)


@twin_of("decode.read_length")
@given(lengths | st.binary(max_size=6), st.integers(0, 100), st.binary(max_size=3), st.binary(max_size=3))
def test_a_length_is_read_as_its_definition_says(data: bytes, more: int, before: bytes, behind: bytes) -> None:
    data += bytes(more)
    end = len(before) + len(data)
    expected = with_length(data)
    found = decode.read_length(array(before + data + behind), len(before), end)
    assert found == ((-1, 0) if expected is None else (expected[0], end - len(expected[1])))


@twin_of("decode._partial_count")
@given(
    st.sampled_from([0x3F, 0x1F, 0x0F]), st.integers(0, 63), st.integers(0, 260), st.binary(max_size=2), st.booleans()
)
def test_a_header_counts_the_nibbles_that_its_definition_says(
    mask: int, first: int, full: int, behind: bytes, cut: bool
) -> None:
    data = bytes([mask if full else first & mask]) + b"\xff" * full + (b"" if cut else b"\x07") + behind
    count, end = decode._partial_count(array(b"?" + data), 1, 1 + len(data), mask)
    expected = header_count(data, mask)
    assert (count, end - 1) == expected if expected else count == -1


@twin_of("decode._same_bytes")
@given(st.binary(max_size=40), st.data())
def test_bytes_are_the_same_as_slices_are(left: bytes, data: st.DataObject) -> None:
    right = bytearray(left)
    if left and data.draw(st.booleans()):
        right[data.draw(st.integers(0, len(left) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    both = array(b"??" + left + b"?" + right)
    assert decode._same_bytes(both, 2, both, 3 + len(left), len(left)) == (left == right)


@twin_of("verify.hash_strings", "verify._same_hash", "verify._slot_of", "verify.fill_table", "verify.look_up")
@given(st.lists(st.binary(max_size=3) | st.binary(min_size=120, max_size=300), max_size=20), st.integers(0, 5))
def test_nodes_are_found_by_their_hashes_as_in_a_dict(strings: list[bytes], first: int) -> None:
    first = min(first, len(strings))
    expected = [blake2_256(string) for string in strings]
    hashes = np.zeros(32 * len(strings), np.uint8)
    verify.hash_strings(tuple(spread(*strings)), len(strings), hashes)
    assert hashes.tobytes() == b"".join(expected)
    known = dict(reversed([*enumerate(expected)][first:]))
    by_hash = {node_hash: node for node, node_hash in known.items()}
    table, mask, used = np.full(64, 77, np.int32), 63, np.zeros(len(strings), np.uint8)
    verify.fill_table(hashes, first, len(strings), table, mask, used)
    assert sorted(table[table > 0] - 1) == sorted(by_hash.values())
    repeated = [node >= first and by_hash[node_hash] != node for node, node_hash in enumerate(expected)]
    assert used.tolist() == [verify.TWIN if is_repeated else 0 for is_repeated in repeated]
    for wanted in [*expected, bytes(32)]:
        assert verify.look_up(hashes, table, mask, array(b"?" + wanted), 1) == by_hash.get(wanted, -1)
        assert verify._slot_of(array(wanted), 0, mask) == (int.from_bytes(wanted[:8], "big") >> 16) % 64
        for node, other in enumerate(expected):
            assert verify._same_hash(hashes, 32 * node, array(wanted), 0) == (wanted == other)


Asked = tuple[Pairs, list[bytes]]


def sent_nodes(asked: Asked, version: StateVersion, data: st.DataObject) -> tuple[bytes, list[bytes]]:
    """Return a root and the nodes of a proof, of which some may be left out, repeated or not of it."""
    db, root = build_database(asked[0], state_version=version)
    nodes = [*StorageProof.generate(db, root, asked[1])]
    kept = data.draw(st.lists(st.sampled_from([*nodes, b"\x41\x05junk"]), max_size=9)) if nodes else []
    return root, data.draw(st.sampled_from([nodes, [*nodes, *kept], kept]))


@twin_of("verify.verify_proofs")
@given(st.lists(st.tuples(pairs_with_questions(), state_versions), max_size=3), st.data(), st.integers(0, 4))
def test_walks_pass_the_nodes_and_find_the_values_that_the_definition_says(
    batch: list[tuple[Asked, StateVersion]], data: st.DataObject, share: int
) -> None:
    proofs = [(*sent_nodes(asked, version, data), asked[1]) for asked, version in batch]
    strings, wanted = [node for _, sent, _ in proofs for node in sent], [key for *_, keys in proofs for key in keys]
    node_ends = np.cumsum([0, *(len(sent) for _, sent, _ in proofs)])
    key_ends = np.cumsum([0, *(len(keys) for *_, keys in proofs)])
    held, hashes = spread(*strings), np.zeros(32 * len(strings), np.uint8)
    verify.hash_strings(tuple(held), len(strings), hashes)
    used, status = np.zeros(len(strings), np.uint8), np.full(len(proofs), 9, np.uint8)
    values, trails = numbers(*[-9] * 3 * len(wanted)), numbers(*[-9] * share * len(wanted))
    table, plans, links = verify.room_to_walk(node_ends)
    roots, asked = array(b"".join(root for root, *_ in proofs)), tuple(column(*wanted))
    verify.verify_proofs(
        tuple(held), hashes, node_ends, roots, asked, key_ends, table, plans, links, used, values, trails, status, True
    )
    for number, (root, sent, keys) in enumerate(proofs):
        first = int(node_ends[number])
        known = {blake2_256(node): node for node in sent}
        index = {blake2_256(node): first + at for at, node in reversed([*enumerate(sent)])}
        touched, whole = set[bytes](), root in known
        for key in range(key_ends[number], key_ends[number + 1]):
            passed, value, sound = followed(known, root, keys[key - key_ends[number]])
            start, size, count = values[3 * key : 3 * key + 3]
            if root not in known:
                assert count == -1
                continue
            assert count == (len(passed) if sound else ~len(passed))
            assert (held.data[start : start + size].tobytes() if start >= 0 else None) == value
            seen = trails[share * key : share * (key + 1)][: len(passed)].tolist()
            assert seen == [index[node_hash] for node_hash in passed][:share]
            touched |= {*passed, *([blake2_256(value)] if value and blake2_256(value) in known else [])}
            whole &= sound
        spare = any(blake2_256(node) not in touched for node in sent)
        assert status[number] == (verify.FAILS if not whole else verify.UNUSED if spare else verify.HOLDS)


def hashed(nodes: list[bytes]) -> tuple[Bytes, Int32s, int]:
    """Return the hashes of nodes, and a filled table with its mask."""
    hashes, table = array(b"".join(map(blake2_256, nodes))), np.zeros(4 << len(nodes).bit_length(), np.int32)
    verify.fill_table(hashes, 0, len(nodes), table, len(table) - 1, np.zeros(len(nodes), np.uint8))
    return hashes, table, len(table) - 1


def proof_of(asked: Asked, version: StateVersion) -> tuple[bytes, list[bytes]]:
    db, root = build_database(asked[0], state_version=version)
    return root, [*StorageProof.generate(db, root, asked[1] or [b""])]


@twin_of("compact.encode_walk")
@given(pairs_with_questions(), state_versions, st.sampled_from(["room", "few offsets", "few bytes"]))
def test_compact_nodes_are_those_of_the_plain_codec(asked: Asked, version: StateVersion, there_is: str) -> None:
    root, nodes = proof_of(asked, version)
    start = [blake2_256(node) for node in nodes].index(root)
    expected = [*CompactProof.encode(StorageProof(nodes), root).nodes]
    hashes, table, mask = hashed(nodes)
    count, whole = len(expected), len(b"".join(expected))
    out = np.zeros(whole - 1 if there_is == "few bytes" else whole + max(map(len, nodes)) + 3, np.uint8)
    offsets = numbers(*[-1] * (count if there_is == "few offsets" else count + 3))
    plan, stack = numbers(*[0] * PLAN), numbers(*[0] * (16 * count + 32))
    held = spread(*nodes)
    written = compact.encode_walk(held, hashes, table, mask, start, numbers(), plan, stack, out, offsets)
    if there_is != "room":
        assert written == compact.GIVE_UP
    else:
        assert [out[a:b].tobytes() for a, b in pairwise(offsets[: written + 1])] == expected


@twin_of("compact.plan_compact", "compact.link_children", "compact.decode_levels", "compact.full_list")
@given(pairs_with_questions(), state_versions)
def test_compact_nodes_are_unfolded_to_the_nodes_of_the_plain_codec(asked: Asked, version: StateVersion) -> None:
    root, nodes = proof_of(asked, version)
    given_nodes = [*CompactProof.encode(StorageProof(nodes), root).nodes]
    count, held = len(given_nodes), spread(*given_nodes)
    plans, offsets = numbers(*[0] * PLAN * count), numbers(*[0] * (count + 1))
    parents, heights, left, ends = (slots(*[-9] * count) for _ in range(4))
    assert compact.plan_compact(held, count, plans, parents, heights, left, ends, offsets) == count
    expected = unfolded(given_nodes)
    assert [*zip(parents.tolist(), heights.tolist(), strict=True)] == expected
    following = slots(*[-9] * 2 * count)
    compact.link_children(parents, count, following)
    for node in range(count):
        children, child = list[int](), int(following[2 * node])
        while child != compact.NO_NODE:
            children.append(child)
            child = int(following[2 * child + 1])
        assert children == [at for at, element in enumerate(expected) if element.parent == node]
    order, levels = slots(*[0] * count), numbers(*[0] * (max(heights) + 2))
    steps = order_by_height(heights, count, order, levels)
    out, hashes, places = (
        np.zeros(offsets[-1] + 64, np.uint8),
        np.zeros(32 * count, np.uint8),
        numbers(*[0] * 3 * count),
    )
    compact.decode_levels(
        held, plans, ends, following, order, levels[: steps + 1], out, offsets, hashes, places, new_rooms()
    )
    decoded = [out[a:b].tobytes() for a, b in pairwise(offsets)]
    assert CompactProof(tuple(given_nodes)).decode() == (StorageProof(decoded), root)
    assert hashes.tobytes() == b"".join(map(blake2_256, decoded))
    whole, places, top = compact.full_list(*gathered(given_nodes)[:2], array(CHILD_STORAGE_PREFIX))
    assert ([whole[a:b].tobytes() for a, b in pairwise(places)], top.tobytes()) == (decoded, root)


@given(pairs_with_questions(), state_versions, st.sampled_from(["drop", "add", "repeat", "cut"]), st.data())
def test_nodes_of_a_trie_that_is_not_whole_are_given_up(
    asked: Asked, version: StateVersion, spoilt: str, data: st.DataObject
) -> None:
    root, sent = proof_of(asked, version)
    nodes = [*CompactProof.encode(StorageProof(sent), root).nodes]
    at = data.draw(st.integers(0, len(nodes) - 1))
    middle = {"drop": [], "add": [nodes[at], b""], "repeat": [nodes[at]] * 2, "cut": [nodes[at][:-1]]}[spoilt]
    nodes[at : at + 1] = middle
    count = len(nodes)
    whole, rest = count > 0, nodes
    try:
        while rest:
            rest = rest[len(unfolded(rest)) :]
    except (CodecError, IndexError):
        whole = False
    parents, heights, left, ends = (slots(*[0] * count) for _ in range(4))
    plans, offsets = numbers(*[0] * PLAN * count), numbers(*[0] * (count + 1))
    planned = compact.plan_compact(spread(*nodes), count, plans, parents, heights, left, ends, offsets)
    assert planned == (count if whole else compact.GIVE_UP)
    full, places, top = compact.full_list(*gathered(nodes)[:2], array(CHILD_STORAGE_PREFIX))
    if len(top):
        decoded = StorageProof(full[a:b].tobytes() for a, b in pairwise(places))
        assert CompactProof(tuple(nodes)).decode_plainly() == (decoded, top.tobytes())


@twin_of("compact.name_children")
@given(pairs_with_questions(), state_versions, st.data())
def test_roots_of_child_tries_are_the_values_under_the_prefix(
    asked: Asked, version: StateVersion, data: st.DataObject
) -> None:
    root, nodes = proof_of(asked, version)
    nodes = [node for node in nodes if blake2_256(node) == root or data.draw(st.booleans())]
    known, held = {blake2_256(node): node for node in nodes}, spread(*nodes)
    start = [*known].index(root)
    hashes, table, mask = hashed(nodes)
    stack, children = numbers(*[0] * 4_000), numbers(*[0] * 500)
    for key in [*asked[0], *asked[1]]:
        prefix = key[: data.draw(st.integers(0, len(key)))]
        named = [it for path, it in values_of_known(known, root) if path.startswith(bytes(nibbles(prefix)))]
        found = compact.name_children(
            held, hashes, table, mask, start, array(prefix), numbers(*[0] * PLAN), stack, children
        )
        if all(isinstance(value, bytes) and len(value) == 32 for value in named):
            assert [held.data[at : at + 32].tobytes() for at in children[:found]] == named
            few = compact.name_children(
                held, hashes, table, mask, start, array(prefix), numbers(*[0] * PLAN), stack[:40], children
            )
            assert few in (found, compact.GIVE_UP)
        else:
            assert found == compact.GIVE_UP


@given(pairs_with_questions(), state_versions)
def test_child_tries_follow_where_nodes_name_their_roots(asked: Asked, version: StateVersion) -> None:
    """Number ``i`` of ``children`` is where the hash of a known node lies, or of an unknown one."""
    root, nodes = proof_of(asked, version)
    nodes = [*nodes, b"".join([root, bytes(32), root])]
    place = sum(map(len, nodes[:-1]))
    held, (hashes, table, mask) = spread(*nodes), hashed(nodes)
    expected = [*CompactProof.encode(StorageProof(nodes), root).nodes]
    out, offsets = np.zeros(3 * held.data.size + 64, np.uint8), numbers(*[0] * (3 * len(expected) + 4))
    start, children = [blake2_256(node) for node in nodes].index(root), numbers(place, place + 32, place + 64)
    plan, stack = numbers(*[0] * PLAN), numbers(*[0] * (16 * len(nodes) + 64))
    written = compact.encode_walk(held, hashes, table, mask, start, children, plan, stack, out, offsets)
    if written != compact.GIVE_UP:  # many places share a node
        assert [out[a:b].tobytes() for a, b in pairwise(offsets[: written + 1])] == 3 * expected
