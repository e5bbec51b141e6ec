"""Two tries walked side by side, and what a naive reader finds in them."""

from operator import itemgetter

import numpy as np

from exercise.drawing import Exercise
from relaycast_trie import StateVersion
from relaycast_trie.array import side_by_side
from relaycast_trie.array.side_by_side import (
    KeyColumn,
    NodeTable,
    SideBySide,
    bytes_aside,
    hashes_of,
    paths_through,
    price_lists,
)
from relaycast_trie.hasher import HASH_LENGTH, blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue
from relaycast_trie.paths import descend
from relaycast_trie.plain.build import build_database

PLENTY = 1 << 40
LARGEST = 600


def nodes_of(entries: dict[bytes, bytes], version: StateVersion) -> tuple[bytes, dict[bytes, bytes]]:
    """Return the root and all nodes and external values of a trie, by hash."""
    db, root = build_database(entries, state_version=version)
    return root, {name: node for name in db.references() if (node := db.get(name)) is not None}


def places(paths: list[bytes], root: bytes, nodes: dict[bytes, bytes]) -> set[tuple[bytes, bytes]]:
    """Return the places of hashed nodes on paths: the nibbles above, and the hash."""
    found = descend(paths, root, nodes)
    return {(paths[low][:depth], name) for name, _, _, depth, low, *_ in found if len(name) == HASH_LENGTH}


def drawn_tries(draw: Exercise) -> tuple[list[bytes], dict[bytes, bytes], dict[bytes, bytes]]:
    """Draw some keys, and the entries of an old and a new trie; paths part early, late, and in chains."""
    random = draw.random
    stock = [bytes(random.choice([0, 1, 16, 255]) for _ in range(2)) + bytes(29) + bytes([it]) for it in range(24)]
    old = {key: draw.value()[:500] for key in random.sample(stock, random.randrange(1, 24))}
    new = {**old, **{key: draw.value()[:500] for key in random.sample(stock, random.randrange(9))}}
    for key in random.sample(sorted(new), min(len(new) - 1, random.randrange(5))):
        del new[key]
    return sorted(set(random.sample(stock, random.randrange(1, 24)))), old, new


def two_tries_are_walked(draw: Exercise) -> None:
    """Walk them, and find the changes, the places and the prices that a naive reader finds."""
    keys, old, new = drawn_tries(draw)
    versions = [StateVersion(draw.random.randrange(2)) for _ in range(2)]
    (old_root, kept), (new_root, given) = nodes_of(old, versions[0]), nodes_of(new, versions[1])
    assert hashes_of(list(given.values())) == list(map(blake2_256, given.values()))
    table, cache = NodeTable(given.keys(), given.values()), NodeTable(kept.keys(), kept.values())
    table.unmark_all()
    prices = price_lists([[(what, size) for size in range(LARGEST)] for what in (1, 2, 3)])
    walk = SideBySide(KeyColumn(keys), table, cache, prices, most_above=64)
    walk.begin(0, len(keys), new_root, old_root, (PLENTY, PLENTY))
    while (status := walk.go_on(asks=True, answer=same(walk))) not in {side_by_side.DONE, side_by_side.FULL}:
        assert status in {side_by_side.SAME, side_by_side.ADMIT}
    assert status == side_by_side.DONE
    changed = [(keys[key], walk.bytes_at(source, at, size)) for key, source, at, size in walk.changed]
    assert changed == [(key, new[key]) for key in keys if key in new and new[key] != old.get(key)]
    paths = list(map(to_nibbles, keys))
    gained, lost = (
        {(paths[first][:depth], (table, cache)[source].hashes[node]) for first, depth, source, node in placed.tolist()}
        for placed in walk.placed
    )
    before, after = (places(paths, *it) for it in ((old_root, kept), (new_root, given)))
    assert (gained - lost, lost - gained) == (after - before, before - after)
    read = [(what, (table, table, cache)[what].nodes[node]) for what, node in walk.reads.tolist()]
    spent = [PLENTY - left for left in walk.allowed]
    assert spent == [sum(what + 1 for what, _ in read), sum(min(len(data), LARGEST - 1) for _, data in read)]
    assert not walk.missing


def same(walk: SideBySide) -> bool:
    """Answer whether a value and the hash of one are the same."""
    (new, is_hash), (old, was_hash) = walk.values
    return (new if is_hash else blake2_256(new)) == (old if was_hash else blake2_256(old))


def paths_are_followed(draw: Exercise) -> None:
    """Find the nodes and values on the paths of keys, and the children that none leads to, as a naive reader does."""
    keys, _, entries = drawn_tries(draw)
    root, nodes = nodes_of(entries, StateVersion(draw.random.randrange(2)))
    column, table, paths = KeyColumn(keys), NodeTable(nodes.keys(), nodes.values()), list(map(to_nibbles, keys))
    found, places, aside = [], [], 0
    for name, _, node, depth, low, _, first, value in descend(paths, root, nodes):
        if len(name) == HASH_LENGTH:
            found.append((low, depth, name))
            places.append((low << 7 | depth, table.hashes.index(name)))
            way = paths[low][:depth] + (b"" if isinstance(node, Empty) else node.partial)
            for nibble, child in enumerate(node.children) if isinstance(node, Branch) else ():
                if child is not None and not any(path.startswith(way + bytes([nibble])) for path in paths):
                    aside += 1 + len(child)
        if isinstance(value, HashedValue):
            found.append((first, 2 * HASH_LENGTH, value.hash))
    assert paths_through(column, table, root) == [
        (name, depth, low) for low, depth, name in sorted(found, key=itemgetter(0, 1))
    ]
    at, numbers = np.array(places, np.int64).reshape(-1, 2).T
    assert bytes_aside(column, table, at, numbers) == aside
    missing = draw.random.choice(sorted(nodes))
    others = [it for it in nodes if it != missing]
    reached = paths_through(column, NodeTable(others, [nodes[it] for it in others]), root)
    assert (reached is None) == any(name == missing for _, _, name in found)


def nodes_come_and_go(draw: Exercise) -> None:
    """Insert nodes into a table and remove them, and find those marked that a dictionary has."""
    random, table, model = draw.random, NodeTable(), dict[bytes, bytes]()
    for _ in range(12):
        nodes = [random.randbytes(random.choice([1, 40, 200])) for _ in range(random.randrange(40))]
        again = random.sample(sorted(model), min(len(model), 3))
        some = {**{blake2_256(node): node for node in nodes}, **{name: model[name] for name in again}}
        table.insert(list(some), list(some.values()))
        model |= some
        gone = random.sample(sorted(model), random.randrange(len(model) + 1)) if model else []
        table.remove([*gone, bytes(32)])
        model = {name: node for name, node in model.items() if name not in gone}
        marked = {table.hashes[it]: table.nodes[it] for it in range(len(table)) if table.marks[it]}
        assert (marked, table.count) == (model, len(model))
    table.mark(sorted(model))
    assert table.count == len(model)
