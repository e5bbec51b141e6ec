"""Content that kernels are exercised on: keys, values and changes, and foreign bytes that are spoiled or forged."""

import random

from relaycast_trie import ChildInfo, blake2_256

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
