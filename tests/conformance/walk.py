"""A publisher's part of a pass, and the walk through two tries: sections 9.2, 9.5 and 9.6 of the suite's README."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.scale import blake2, decode, refuse, u32
from conformance.tries import CHILD, Node, Weight, lookup

if TYPE_CHECKING:
    from conformance.subscriber import Subscriber


class Stop(Exception):
    """The budget or the proof ends here."""


class TooDeep(Exception):
    """The path has too many nodes."""


class Place(NamedTuple):
    """A node: the nibbles above it, its hash or inline bytes, the hashed nodes above it."""

    depth: int
    reference: bytes
    above: int

    def down_to(self) -> int:
        return self.above + (len(self.reference) == 32)


class End(NamedTuple):
    """A value, or its hash."""

    value: bytes
    hashed: bool

    def hash(self) -> bytes:
        return self.value if self.hashed else blake2(self.value)


Side = Place | End | None


class Publisher:
    """The state of a publisher during a pass."""

    def __init__(self, block: Subscriber, para: int) -> None:
        self.block, self.para, self.keys = block, para, sorted(block.wanted[para])
        self.paths, self.digest = [key.hex() for key in self.keys], blake2(b"".join(self.keys))
        digest, known = block.digests.get(para, bytes(32)), block.get("SubscribedKeys", para) or []
        gone, ranges, root = set(known) - set(self.keys), block.get("UnfinishedPublishers", para), block.roots.get(para)
        kinds = {self.digest: "NONE", bytes(32): "NEW"}
        self.change = kinds.get(digest, "REMOVED" if gone else "ADDED")
        self.root = root if self.change in ("NONE", "ADDED") else None

        def base(key: bytes) -> bytes | None:
            inside = [one["base"] for one in ranges or () if one["first"] <= key <= one["last"]]
            return inside[0] if inside else root

        self.bases: list[bytes | None] | None = None
        if self.change == "ADDED" or (self.change == "NONE" and ranges is not None):
            self.bases = [None if self.change == "ADDED" and key not in known else base(key) for key in self.keys]
        former, bitmap = self.keys if digest == self.digest else known, block.get("DeliveredKeys", para)
        bits = [base(key) is not None for key in former]
        if bitmap is not None:
            bits = [bool(bitmap[n // 8] >> n % 8 & 1) for n in range(len(former))]
        self.delivered = {key for key, bit in zip(former, bits, strict=True) if bit} & set(self.keys)
        cached = {} if self.change == "REMOVED" else block.under("CachedTrieNodes", para)
        self.cache = {key[-32:]: decode("bytes", node) for key, node in cached.items()}
        self.paid, self.fresh, self.dealt = set[bytes](), dict[bytes, bytes](), set[int]()
        self.changes: list[tuple[bytes, bytes]] = []
        self.deleted: list[bytes] = []
        self.weights: list[Weight] = []  # of what is told
        self.new: bytes | None = None
        self.looked_up = self.disabled = False
        self.first = self.at = 0
        self.stopped: int | None = None

    def all_bases(self) -> list[bytes | None]:
        return self.bases or [self.root] * len(self.keys)

    def runs(self, low: int, high: int) -> Iterator[tuple[int, int, bytes | None]]:
        """Cut a range of keys into runs with the same base."""
        bases = self.all_bases()
        for base, run in groupby(range(low, high), lambda number: bases[number]):
            numbers = list(run)
            yield numbers[0], numbers[-1] + 1, base

    def ranges(self) -> list[dict[str, Any]]:
        """Give the runs of keys whose base is not the publisher's root."""
        runs = self.runs(0, len(self.keys))
        return [
            {"first": self.keys[a], "last": self.keys[b - 1], "base": base} for a, b, base in runs if base != self.root
        ]

    def note_absent(self, low: int, high: int) -> None:
        """Note keys that were delivered as deleted (9.11)."""
        for number in range(low, high):
            if self.block.policies.get("deletion") == "told" and self.keys[number] in self.delivered:
                self.at = number
                self.weights.append(self.block.callback_weight(self.para, self.keys[number]))
                self.deleted.append(self.keys[number])

    def changed(self) -> bool:
        """Tell whether its child root was read and there is something to do."""
        return self.looked_up and (self.new is None or self.new != self.root or self.bases is not None)

    def deal(self, low: int, high: int) -> None:
        """Deal with a range of keys (9.5)."""
        self.at = low
        if not self.looked_up:
            node = lookup(self.block.v["relay_root"], CHILD + b"pubsub" + u32(self.para), self.block.relay)
            refuse(node is not None and (node.hashed or len(node.value or b"") != 32), "InvalidChildRoot")
            self.new, self.looked_up, self.first = node and node.value, True, low
        if self.new is None:
            self.note_absent(low, high)
        elif self.changed() and not self.disabled:
            for a, b, base in self.runs(low, high):
                unknown = base is None or self.block.policies.get("callback") == "all-keys"
                self.visit(a, b, Place(0, self.new, 0), None if unknown else Place(0, base or b"", 0))

    def visit(self, low: int, high: int, new: Side, old: Side) -> None:
        if new is None and old is None:
            self.note_absent(low, high)
        if new == old:
            return
        self.at = low
        if isinstance(new, Place) and isinstance(old, Place) and new.depth == old.depth:
            if new.reference != old.reference or new.above > old.above:
                self.both(low, high, new, old)
        elif isinstance(new, Place) and (not isinstance(old, Place) or new.depth < old.depth):
            for a, b, side in self.ways(low, high, new, self.read(new)):
                self.visit(a, b, side, old)
        elif isinstance(old, Place):
            for a, b, side in self.ways(low, high, old, self.read_old(old)):
                self.visit(a, b, new, side)
        elif not isinstance(new, End):
            self.note_absent(low, low + 1)
        elif not isinstance(old, End) or new.hash() != old.hash():
            weight = self.block.callback_weight(self.para, self.keys[low])
            entry = self.block.relay(new.value, structure=False) if new.hashed else new.value
            self.weights.append(weight)
            self.changes.append((self.keys[low], entry))

    def both(self, low: int, high: int, new: Place, old: Place) -> None:
        n, o = self.read(new), self.read_old(old)
        if Node() in (n, o) or n.partial != o.partial or bool(n.children) != bool(o.children):
            for a, b, side in self.ways(low, high, new, n):
                self.visit(a, b, side, old)
            return
        ways = self.ways(low, high, new, n, alone=True), self.ways(low, high, old, o, alone=True)
        for (a, b, side), (_, _, other) in zip(*ways, strict=True):
            if side != other or new.down_to() > old.down_to():
                self.visit(a, b, side, other)

    def ways(
        self, low: int, high: int, place: Place, node: Node, alone: bool = False
    ) -> Iterator[tuple[int, int, Side]]:
        """Give how the keys go on below a node; `alone` leaves out keys beside its partial key."""
        if node == Node():
            yield low, high, None
            return
        stem = self.paths[low][: place.depth] + node.partial

        def way(number: int) -> str | bool:
            path = self.paths[number]
            return path[: len(stem) + 1] if path.startswith(stem) else path > stem

        for head, group in groupby(range(low, high), way):
            numbers = list(group)
            side: Side = None
            if isinstance(head, str) and head == stem and node.value is not None:
                side = End(node.value, node.hashed)
            elif isinstance(head, str) and node.children:
                child = node.children[int(head[-1], 16)]
                side = None if child is None else Place(len(head), child, place.down_to())
            if isinstance(head, str) or not alone:
                yield numbers[0], numbers[-1] + 1, side

    def cached(self, wanted: bytes) -> bytes | None:
        if wanted in self.cache and wanted not in self.paid:
            self.block.pay(len(self.cache[wanted]))
            self.paid.add(wanted)
        return self.cache.get(wanted)

    def read(self, place: Place) -> Node:
        wanted = place.reference
        if len(wanted) != 32:
            return Node.of(wanted)
        if place.above == self.block.config["max_trie_depth"]:
            raise TooDeep
        data = self.cached(wanted)
        if data is None:
            data = self.fresh[wanted] = self.block.relay(wanted)
        return Node.of(data)

    def read_old(self, place: Place) -> Node:
        data = self.cached(place.reference) if len(place.reference) == 32 else place.reference
        return Node() if data is None else Node.of(data)
