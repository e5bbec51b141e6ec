"""The trie view: a proof path by path, as a template draws it.

Every key is a row, from the root on the left to its end on the right, bytes to scale. A node that several keys share is
drawn in full in the first row that has it, and pale in the others. What is drawn in full adds up to the proof.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from relaycast.report.icicle import NARROWEST, icicle
from relaycast_ledger.accounting import IN_THE_PROOF, NodeTotals, sibling_bytes
from relaycast_ledger.proof_picture import STATIC, PicturedNode, PicturedTrie
from relaycast_pallets.subscriber.subscription import SubscribedPaths
from relaycast_trie.exceptions import CodecError
from relaycast_trie.nibbles import digits, to_nibbles
from relaycast_trie.node import Branch, Empty, HashedValue, Leaf, Node
from relaycast_trie.node_codec import decode_known_node

GIVEN = "given"
"""The cause of a node of which nothing is known but that it is there."""

UNUSED = "unused"
"""The cause of a node that what is asked for does not need."""

CAUSES = {
    STATIC: "the keys that every parachain block proves",
    "top": "the relay chain's top trie, on the way to a publisher",
    "new": "nodes where there was none before",
    "changed": "nodes in the place of another one",
    "unseen": "nodes read again: what was there is not in the node cache",
    "value": "published values of more than 23 bytes, which are nodes of their own",
    GIVEN: "nodes of the proof",
    UNUSED: "nodes that what is asked for does not need",
}
"""What bytes of a proof are for, from the bottom of a chart to its top."""

LEFT_OUT = {
    "pruned_unchanged": "left out: nothing below it moved",
    "cached": "left out: read from the node cache",
    "pruned_cached": "left out: read from the node cache",
    "pruned_beyond_budget": "left out: the budget ended before",
    "pruned_disabled": "left out: the publisher is disabled",
    "": "left out",
}

HEX_BYTES = 96
"""Bytes of a node that are shown; the rest is counted."""

HOVER_BYTES = 32


class Room(Struct, frozen=True):
    """What a page has room for: rows and nodes of a table, and the pixels from which a node is drawn at a glance."""

    rows: int
    nodes: int
    narrowest: float = NARROWEST


class Trail(Struct, frozen=True):
    """What is looked for: a ``path`` in nibbles, under its ``name`` and its ``key`` where they are known."""

    path: bytes
    key: str
    name: str = ""
    is_changed: bool = False
    is_key: bool = True
    """Whether something is looked for; otherwise the path is there because the proof has a node at its end."""


class PathSegment(Struct, frozen=True):
    """A node in a row; ``style`` names its cause; ``width`` and ``siblings`` are percent of the row and of the node."""

    style: str
    width: float
    siblings: float
    title: str


class PathRow(Struct, frozen=True):
    """A key's row; ``alone_bytes`` is what of its path the proof has, ``added_bytes`` what no row above has."""

    trail: Trail
    segments: tuple[PathSegment, ...]
    nodes: int
    alone_bytes: int
    added_bytes: int
    left_out_bytes: int
    ending: str


class NodeRow(Struct, frozen=True):
    """A node with everything that is known of it."""

    path: str
    kind: str
    style: str
    cause: str
    node_bytes: int
    sibling_bytes: int
    hash: str
    hex: str


class TrieView(Struct, frozen=True):
    """One trie; ``more_rows`` and ``more_nodes`` are those there was no room for."""

    title: str
    root: str
    rows: tuple[PathRow, ...]
    more_rows: int
    nodes: tuple[NodeRow, ...]
    more_nodes: int
    sums: dict[str, NodeTotals] = field(default_factory=dict)
    sibling_bytes: int = 0
    note: str = ""
    glance: str = ""
    """All of it as an SVG, where it is more than one node."""

    @property
    def proof_bytes(self) -> int:
        """What of it is in the proof."""
        return sum(it.node_bytes for style, it in self.sums.items() if style in CAUSES)

    @property
    def left_out_bytes(self) -> int:
        """What was collected and left out."""
        return sum(it.node_bytes for style, it in self.sums.items() if style not in CAUSES)


def picture_view(trie: PicturedTrie, *, title: str, names: dict[bytes, str], room: Room, note: str = "") -> TrieView:
    """Return the view of a pictured trie; changed keys come first."""
    changed = set(trie.changed if trie.publisher is not None else trie.keys)
    trails = [Trail(to_nibbles(key), f"0x{key.hex()}", names.get(key, ""), key in changed) for key in trie.keys]
    wanted = SubscribedPaths(tuple(trie.keys), tuple(trail.path for trail in trails))  # type: ignore[arg-type]
    trails.sort(key=lambda trail: not trail.is_changed)

    def siblings(node: PicturedNode, decoded: Node | None) -> int:
        return sibling_bytes(wanted, node.prefix, decoded) if isinstance(decoded, Branch) else 0

    return view_of(title, trie.root, trie.nodes, trails, siblings=siblings, room=room, note=note)


def view_of(
    title: str,
    root: bytes,
    nodes: Sequence[PicturedNode],
    trails: Sequence[Trail],
    *,
    siblings: Callable[[PicturedNode, Node | None], int],
    room: Room,
    note: str = "",
) -> TrieView:
    """Return the view of ``nodes`` along ``trails``, with at most that many rows and nodes."""
    drawn = _Drawn(nodes, siblings)
    shown = list(trails[: room.rows])
    paths = [drawn.on_path(trail.path) for trail in shown]
    scale = max((drawn.row_bytes(path) for path in paths), default=1) or 1
    rows = tuple(drawn.row(trail, path, scale) for trail, path in zip(shown, paths, strict=True))
    listed = sorted(nodes, key=lambda node: (node.prefix, node.is_value))[: room.nodes]
    return TrieView(
        title,
        f"0x{root.hex()}",
        rows,
        len(trails) - len(shown),
        tuple(map(drawn.node_row, listed)),
        len(nodes) - len(listed),
        drawn.sums(),
        sum(drawn.siblings[id(node)] for node in drawn.counted() if node.cause in CAUSES),
        note,
        drawn.glance(f"{title}: every node as wide as the bytes at and below it", room.narrowest),
    )


class _Drawn:
    """The nodes of one trie while its rows are drawn."""

    def __init__(self, nodes: Sequence[PicturedNode], siblings: Callable[[PicturedNode, Node | None], int]) -> None:
        self._nodes = nodes
        self._at = {(node.prefix, node.is_value): node for node in nodes}
        self._decoded = {id(node): _decoded(node) for node in nodes}
        self.siblings = {id(node): siblings(node, self._decoded[id(node)]) for node in nodes}
        self._drawn: set[int] = set()

    def counted(self) -> Iterable[PicturedNode]:
        """Return the nodes that have bytes of their own."""
        return (node for node in self._nodes if node.node_hash is not None and not node.is_again)

    def on_path(self, path: bytes) -> list[PicturedNode]:
        """Return the nodes that ``path`` leads through, the value last."""
        prefixes = (path[:length] for length in range(len(path) + 1))
        found = [node for prefix in prefixes if (node := self._at.get((prefix, False))) is not None]
        value = self._at.get((path, True))
        return found if value is None else [*found, value]

    def row_bytes(self, path: list[PicturedNode]) -> int:
        return sum(node.node_bytes for node in path if node.node_hash is not None)

    def row(self, trail: Trail, path: list[PicturedNode], scale: int) -> PathRow:
        """Return the row of one key; nodes that it is the first to have count as drawn from now on."""
        fresh = {id(node) for node in path} - self._drawn
        segments = [self._segment(node, path[index + 1 :], scale, id(node) in fresh) for index, node in enumerate(path)]
        self._drawn |= fresh
        own = [node for node in path if node.node_hash is not None]
        there = [node for node in own if _style(node) in CAUSES]
        return PathRow(
            trail=trail,
            segments=tuple(segments),
            nodes=len(own),
            alone_bytes=sum(node.node_bytes for node in there),
            added_bytes=sum(node.node_bytes for node in there if id(node) in fresh and not node.is_again),
            left_out_bytes=sum(node.node_bytes for node in own if _style(node) not in CAUSES),
            ending=self._ending(trail, path),
        )

    def node_row(self, node: PicturedNode) -> NodeRow:
        return NodeRow(
            path=digits(node.prefix) or "root",
            kind=self._kind(node),
            style=_style(node),
            cause=_label(node),
            node_bytes=node.node_bytes,
            sibling_bytes=self.siblings[id(node)],
            hash="" if node.node_hash is None else f"0x{node.node_hash.hex()}",
            hex=_hex(node.data, node.node_bytes, HEX_BYTES),
        )

    def glance(self, label: str, narrowest: float) -> str:
        """Return all nodes at a glance."""

        def title(node: PicturedNode) -> str:
            return self._title(node, 0, True).partition("\n")[0]

        return icicle(self._nodes, style=_style, title=title, label=label, narrowest=narrowest)

    def sums(self) -> dict[str, NodeTotals]:
        """Return nodes and bytes by cause, in the order of the causes."""
        found: dict[str, NodeTotals] = {}
        for node in self.counted():
            found[_style(node)] = found.get(_style(node), NodeTotals()).plus(node.node_bytes)
        return {style: found[style] for style in (*CAUSES, *LEFT_OUT) if style in found}

    def _segment(self, node: PicturedNode, below: list[PicturedNode], scale: int, fresh: bool) -> PathSegment:
        inline = sum(it.node_bytes for it in below[:1] if it.node_hash is None)
        shown = max(0, node.node_bytes - inline)
        siblings = self.siblings[id(node)]
        style = _style(node) if fresh else f"{_style(node)} again"
        share = min(100.0, 100 * siblings / shown) if shown else 0.0
        return PathSegment(style, round(100 * shown / scale, 2), round(share, 1), self._title(node, siblings, fresh))

    def _title(self, node: PicturedNode, siblings: int, fresh: bool) -> str:
        where = f"at {digits(node.prefix)}" if node.prefix else "at the root"
        lines = [f"{self._kind(node)} {where}: {node.node_bytes:,} bytes, {_label(node)}"]
        if not fresh:
            return f"{lines[0]}; shared with a row above"
        if siblings:
            lines.append(f"{siblings:,} bytes are references to siblings")
        if node.node_hash is not None:
            lines.append(f"hash 0x{node.node_hash.hex()}")
        lines.append(_hex(node.data, node.node_bytes, HOVER_BYTES))
        return "\n".join(lines)

    def _kind(self, node: PicturedNode) -> str:
        decoded, inline = self._decoded[id(node)], "inline " if node.node_hash is None else ""
        match decoded:
            case Branch(_, children, value):
                ways = sum(child is not None for child in children)
                return f"{inline}branch, {ways} ways{'' if value is None else ' and a value'}"
            case Leaf(_, value):
                inside = "" if isinstance(value, HashedValue) else f", {len(value)} bytes of value"
                return f"{inline}leaf{inside}"
            case Empty():
                return "empty trie"
            case _:
                return "value" if node.is_value else "does not decode"

    def _ending(self, trail: Trail, path: list[PicturedNode]) -> str:
        if not trail.is_key:
            return "no value"
        if not path:
            return "not collected"
        last, node = path[-1], self._decoded[id(path[-1])]
        if isinstance(node, Leaf | Branch):
            return _leads_to(trail.path, last.prefix + node.partial, node)
        return "absent" if isinstance(node, Empty) else ""


def _leads_to(path: bytes, end: bytes, node: Leaf | Branch) -> str:
    """Return what a ``node`` whose own path is ``end``, the last one found, says of a longer ``path`` or of it."""
    if end == path and node.value is not None:
        return "value not in the proof" if isinstance(node.value, HashedValue) else ""
    goes_on = isinstance(node, Branch) and path != end and path.startswith(end) and node.children[path[len(end)]]
    return "ends here" if goes_on else "absent"


def _decoded(node: PicturedNode) -> Node | None:
    if node.is_value:
        return None
    try:
        return decode_known_node(node.data)
    except CodecError:
        return None


def _style(node: PicturedNode) -> str:
    """Return the cause as templates name it: what is in the proof by its cause, the rest by its reason."""
    return node.cause if node.cause in CAUSES else node.cause or "pruned_unchanged"


def _label(node: PicturedNode) -> str:
    if node.is_in_proof:
        return "inside its parent" if node.node_hash is None else node.cause
    if node.cause in {GIVEN, UNUSED}:
        return "in the proof" if node.cause == GIVEN else "in the proof, not needed"
    return LEFT_OUT[node.cause]


def _hex(data: bytes, length: int, most: int) -> str:
    shown = data[:most].hex()
    return f"0x{shown}" if length <= most else f"0x{shown}… ({length:,} bytes)"


assert set(IN_THE_PROOF) < set(CAUSES)
