"""The X-ray of a proof as a page: the trie view of every trie in it."""

from collections.abc import Collection, Iterable

from relaycast.genesis.storage_names import storage_name
from relaycast.report.templates import render
from relaycast.report.trie_view import GIVEN, UNUSED, Room, Trail, TrieView, view_of
from relaycast.xray.nodes import Place, Xray, places
from relaycast_ledger.proof_picture import VALUE_BYTES_KEPT, PicturedNode
from relaycast_trie import StorageProof
from relaycast_trie.exceptions import CodecError
from relaycast_trie.nibbles import digits, to_nibbles
from relaycast_trie.node import Branch, Leaf, Node
from relaycast_trie.node_codec import decode_known_node

MAX_ROWS = 1_200
MAX_NODES = 2_000
"""Limits of a page, all its tries together."""

MAX_UNREACHED = 200


def render_xray(
    name: str,
    proof: StorageProof,
    picture: Xray,
    *,
    keys: Collection[bytes] = (),
    unused: Iterable[bytes] = (),
    error: str = "",
) -> str:
    """Return the page of a proof that was read from ``name``; ``keys`` have the first rows.

    ``unused`` are hashes of nodes that the keys do not need, ``error`` says why the keys are not proven.
    """
    hashes = frozenset(unused)
    unreached = [view for view in picture.nodes if view.kind == "unreached"]
    return render(
        "xray.html.j2",
        name=name,
        picture=picture,
        totals=picture.totals,
        tries=trie_views(proof, picture, keys=list(keys), unused=hashes),
        asked=len(keys),
        unused=len(hashes),
        error=error,
        unreached=unreached[:MAX_UNREACHED],
        more_unreached=max(0, len(unreached) - MAX_UNREACHED),
    )


def trie_views(
    proof: StorageProof, picture: Xray, *, keys: list[bytes], unused: frozenset[bytes] = frozenset()
) -> list[TrieView]:
    """Return a view of each trie that the roots lead to, child tries among them."""
    blobs = proof.by_hash()
    groups: dict[tuple[str, bytes], list[Place]] = {}
    for place in places(proof, *(bytes.fromhex(root[2:]) for root in picture.roots)):
        groups.setdefault((place.label, place.root), []).append(place)
    count = max(1, len(groups))
    room = Room(MAX_ROWS // count, MAX_NODES // count)

    def siblings(_: PicturedNode, node: Node | None) -> int:
        children = node.children if isinstance(node, Branch) else ()
        return sum(33 for child in children if child is not None and len(child) == 32 and child not in blobs)

    views = []
    for (label, root), found in groups.items():
        pictured = [_pictured(place, unused) for place in found]
        trails = _trails(found, keys if not label else [])
        views.append(view_of(_title(label), root, pictured, trails, siblings=siblings, room=room))
    return views


def _pictured(place: Place, unused: frozenset[bytes]) -> PicturedNode:
    cause = UNUSED if place.node_hash in unused else "value" if place.is_value else GIVEN
    data = place.data[:VALUE_BYTES_KEPT] if place.is_value else place.data
    return PicturedNode(place.path, place.node_hash, len(place.data), data, cause, place.is_value, place.is_again)


def _trails(found: list[Place], keys: list[bytes]) -> list[Trail]:
    """Return the keys, then every other path that ends at a value or at a node with nothing below it."""
    asked = [Trail(to_nibbles(key), f"0x{key.hex()}", storage_name(key) or "asked for") for key in keys]
    known = {trail.path for trail in asked}
    has_more = {place.path[:-1] for place in found if place.path}
    for place in found:
        node = None if place.is_value else _decoded(place.data)
        if not isinstance(node, Leaf | Branch):
            continue
        path = place.path + node.partial
        if path in known or (node.value is None and path in has_more):
            continue
        known.add(path)
        name = storage_name(bytes.fromhex(digits(path))) if len(path) % 2 == 0 else ""
        asked.append(Trail(path, _key(path), name, is_key=node.value is not None))
    return asked


def _key(path: bytes) -> str:
    """Return a path as a key; one that ends inside a byte is no key."""
    return f"0x{digits(path)}" if len(path) % 2 == 0 else f"{digits(path)} (nibbles)"


def _title(label: str) -> str:
    if not label:
        return "Trie"
    key = bytes.fromhex(label.rstrip(":"))
    return f"{storage_name(key).capitalize()} at 0x{key.hex()}"


def _decoded(data: bytes) -> Node | None:
    try:
        return decode_known_node(data)
    except CodecError:
        return None
