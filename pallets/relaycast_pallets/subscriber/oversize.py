"""Relay nodes and values that are longer than a read is charged for: which they are, and whose entry they hold.

A version 0 trie has its values inside its nodes, however long they are: ``:code`` may stand on the way to a publisher
that has not published yet.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from relaycast_trie.nibbles import from_nibbles
from relaycast_trie.node import Branch, Empty, Node
from relaycast_xcm.primitives import ParaId


class Oversize(Struct, frozen=True):
    """A node or value of ``size`` bytes of which ``charged_bytes`` are charged; ``publisher`` is who had it read.

    ``publisher`` is ``None`` in the relay chain's top trie. ``key`` is that of the entry inside, ``None`` where there
    is none.
    """

    publisher: ParaId | None
    node_hash: bytes
    size: int
    charged_bytes: int
    key: bytes | None = None

    @property
    def excess_bytes(self) -> int:
        return self.size - self.charged_bytes

    @property
    def name(self) -> str:
        """The key as it is written: ``:code`` plain, others in hex, the node's hash where no key is known."""
        if self.key is None:
            return f"node 0x{self.node_hash.hex()}"
        plain = self.key.startswith(b":") and self.key.isascii() and self.key.decode().isprintable()
        return self.key.decode() if plain else f"0x{self.key.hex()}"

    def __str__(self) -> str:
        return f"{self.name}: {self.size:,} bytes, {self.charged_bytes:,} of them charged"


def entry_key(prefix: bytes, node: Node) -> bytes | None:
    """Return the key whose value ``node`` at the nibbles ``prefix`` holds, ``None`` when it holds none."""
    if isinstance(node, Empty) or node.value is None:
        return None
    path = prefix + node.partial
    return None if len(path) % 2 else from_nibbles(path)


def key_on_the_way(node_hash: bytes, root: bytes, paths: Iterable[bytes], nodes: Mapping[bytes, Node]) -> bytes | None:
    """Return the key of the entry in a node that stands on one of the ``paths`` from ``root``, as ``nodes`` go."""
    for path in paths:
        depth, reference = 0, root
        while (node := nodes.get(reference)) is not None:
            if reference == node_hash:
                return entry_key(path[:depth], node)
            if not isinstance(node, Branch) or not path.startswith(node.partial, depth):
                break
            depth += len(node.partial)
            child = node.children[path[depth]] if depth < len(path) else None
            if child is None:
                break
            depth, reference = depth + 1, child
    return None
