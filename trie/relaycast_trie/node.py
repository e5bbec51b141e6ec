"""A trie node, decoded: empty, a leaf, or a branch with up to sixteen children.

Substrate's tries have no extension nodes: a branch carries its own partial key. A child is named by ``bytes``:
32 of them are a hash, fewer are the child's own encoding, inline in its parent.
"""

from msgspec import Struct

CHILDREN = 16
NO_CHILDREN: tuple[None, ...] = (None,) * CHILDREN


class HashedValue(Struct, frozen=True):
    """A value that is stored outside of its node, under its ``hash`` (state version 1)."""

    hash: bytes


Value = bytes | HashedValue
"""What a node holds: the bytes themselves, or their hash."""


class Empty(Struct, frozen=True):
    """The root of a trie without keys."""


class Leaf(Struct, frozen=True):
    """The end of one path: ``partial`` nibbles, then the value."""

    partial: bytes
    value: Value


class Branch(Struct, frozen=True):
    """``partial`` nibbles, then sixteen ways on, at least one of them open; a value when a key ends here."""

    partial: bytes
    children: tuple[bytes | None, ...]
    value: Value | None = None

    def __repr__(self) -> str:
        ways = "".join(f"{index:x}" for index, child in enumerate(self.children) if child is not None)
        return f"Branch(partial={self.partial!r}, children={ways!r}, value={self.value!r})"


Node = Empty | Leaf | Branch
EMPTY = Empty()
