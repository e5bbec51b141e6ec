"""What hypothesis draws: keys, values, tries, nodes and sequences of changes, crowded around the boundaries.

Most keys come from a small stock made of four bytes, so that they share prefixes, end inside one another, part inside a
byte, and so that a change meets a key that is there. Values crowd around 32 bytes, where state version 1 stores them
outside of their node, and around the size of an inline node.
"""

from itertools import product

from hypothesis import strategies as st

from relaycast_trie.node import CHILDREN, Branch, HashedValue, Leaf, Node, Value
from relaycast_trie.node_codec import StateVersion

Pairs = dict[bytes, bytes]
Changes = list[tuple[bytes, bytes | None]]

HEADER_EDGES = (0, 1, 13, 14, 15, 16, 29, 30, 31, 32, 61, 62, 63, 64, 65, 268, 269, 270, 285, 286, 287, 317, 318, 319)
"""Partial key lengths around which a header takes one byte more."""

state_versions = st.sampled_from(list(StateVersion))
hashes = st.binary(min_size=32, max_size=32)
STOCK = [bytes(letters) for length in range(4) for letters in product((0x00, 0x01, 0x10, 0xFF), repeat=length)]
crowded_keys = st.sampled_from(STOCK)
long_keys = st.builds(lambda head, body: head + body * 20, crowded_keys, st.binary(min_size=1, max_size=4))
rare_keys = st.one_of(st.binary(max_size=4), hashes, long_keys)
keys = st.integers(0, 9).flatmap(lambda chance: crowded_keys if chance < 8 else rare_keys)
value_sizes = st.sampled_from([0, 1, 2, 5, 22, 23, 24, 26, 27, 28, 29, 30, 31, 32, 33, 34, 63, 64, 65, 100])
values = st.builds(lambda byte, size: bytes([byte]) * size, st.integers(0, 1), value_sizes)
entries = st.tuples(keys, values)
pairs: st.SearchStrategy[Pairs] = st.lists(entries, max_size=24).map(dict)
some_pairs: st.SearchStrategy[Pairs] = st.lists(entries, min_size=1, max_size=24).map(dict)
changes: st.SearchStrategy[Changes] = st.lists(st.tuples(keys, st.none() | values), max_size=12)

nibble = st.integers(0, 15)
short_paths = st.lists(nibble, max_size=12).map(bytes)
edge_paths = st.builds(
    lambda length, seed: (seed * length)[:length],
    st.sampled_from(HEADER_EDGES),
    st.lists(nibble, min_size=1, max_size=3).map(bytes),
)
paths = st.one_of(short_paths, edge_paths)

stored_values: st.SearchStrategy[Value] = st.one_of(values, st.binary(max_size=70), hashes.map(HashedValue))
leaves = st.builds(Leaf, paths, stored_values)
child_references = st.one_of(hashes, st.binary(min_size=1, max_size=31))


@st.composite
def branches(draw: st.DrawFn) -> Branch:
    ways = draw(st.sets(nibble, min_size=1))
    children = tuple(draw(child_references) if index in ways else None for index in range(CHILDREN))
    return Branch(draw(paths), children, draw(st.none() | stored_values))


nodes: st.SearchStrategy[Node] = st.one_of(leaves, branches())


def prefixes(held: Pairs) -> set[bytes]:
    """Return keys that end on the way to those held."""
    return {key[:size] for key in held for size in range(min(len(key), 4))}


@st.composite
def pairs_with_questions(draw: st.DrawFn) -> tuple[Pairs, list[bytes]]:
    """Pairs, and keys to ask for: some that are there, some that are near, some that are far."""
    held = draw(some_pairs)
    there = draw(st.lists(st.sampled_from(sorted(held)), max_size=4))
    near = [draw(st.sampled_from([key + b"\x00", key[:-1], key[:-1] + b"\x17"])) for key in there[:2]]
    far = draw(st.lists(keys, max_size=2))
    return held, there + near + far
