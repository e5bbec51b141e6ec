"""The states that are kept: their roots, and what each block after the oldest of them replaced.

Going back block by block leads from what a state holds now to every state that can be proven from.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TypeVar

from msgspec import Struct, field

from relaycast_pallets.frame.state_tries import Name, TrieContents, long_keys
from relaycast_pallets.frame.storage import Values
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import StateVersion

V = TypeVar("V")

Inline = dict[Name, set[bytes]]
"""Keys of long values that stand in their nodes, by trie: what was written in version 0."""


class Replaced(Struct, frozen=True):
    """A block's changes, backwards: the values that it replaced, and which of these were ``inline``.

    The entries of child tries in the top trie are not among them. ``root`` is the state's after the block.
    """

    root: bytes
    state_version: StateVersion
    values: dict[Name, Values]
    inline: Inline = field(default_factory=dict)


class Step(Struct, frozen=True):
    """The same block forwards: what it wrote."""

    root: bytes
    state_version: StateVersion
    written: dict[Name, Values]


class History:
    """The last ``window`` states that were sealed, the first of which has the root ``oldest``."""

    __slots__ = ("_kept", "blocks", "inline", "oldest", "unbuilt", "window")

    def __init__(self, oldest: bytes, inline: Inline, *, window: int) -> None:
        self.window = window
        self.oldest = oldest
        self.inline = inline
        self.blocks: deque[Replaced] = deque()
        self.unbuilt = 0
        """The number of blocks, the oldest ones, that were loaded and that the tries know nothing of."""

        self._kept = Counter([oldest])

    @property
    def roots(self) -> list[bytes]:
        """The roots of the states that are kept, the oldest first; some may be equal."""
        return [self.oldest, *(block.root for block in self.blocks)]

    def note(self, root: bytes, state_version: StateVersion, changes: Mapping[Name, tuple[Values, Values]]) -> None:
        """Note a block that left the state with this ``root``: what it wrote to each trie, and what stood there."""
        inline = {}
        for name, (written, _) in changes.items():
            known = self.inline.setdefault(name, set())
            if known:
                inline[name] = known & written.keys()
                known.difference_update(written)
            if state_version is StateVersion.V0:
                known.update(long_keys({key: value for key, value in written.items() if value is not None}))
        before = {name: replaced for name, (_, replaced) in changes.items()}
        self.add(Replaced(root, state_version, before, {name: keys for name, keys in inline.items() if keys}))

    def add(self, block: Replaced) -> None:
        """Add a block; the oldest state goes if there are too many."""
        self.blocks.append(block)
        self._kept[block.root] += 1
        while len(self.blocks) >= self.window:
            self._kept[self.oldest] -= 1
            if not self._kept[self.oldest]:
                del self._kept[self.oldest]
            self.oldest = self.blocks.popleft().root
            self.unbuilt = max(0, self.unbuilt - 1)

    def blocks_before(self, root: bytes) -> int | None:
        """Return how many blocks stand before the last state with this root if the tries know nothing of that state."""
        if not self.unbuilt or root in self.roots[self.unbuilt :]:
            return None
        return max(at for at, known in enumerate(self.roots[: self.unbuilt]) if known == root)

    def unwound(self, held: dict[Name, dict[bytes, bytes]], first: int) -> tuple[dict[Name, TrieContents], list[Step]]:
        """Return what was held after the ``first`` blocks, and the blocks after them; changes what is ``held`` now."""
        inline = {name: set(keys) for name, keys in self.inline.items()}
        steps = []
        for block in islice(reversed(self.blocks), len(self.blocks) - first):
            written = {}
            for name, replaced in block.values.items():
                values = held.setdefault(name, {})
                written[name] = {key: values.get(key) for key in replaced}
                put_back(values, replaced)
                inline[name] = (inline.get(name, set()) - replaced.keys()) | block.inline.get(name, set())
            steps.append(Step(block.root, block.state_version, written))
        without_child_roots(held[None], [name for name in held if name is not None])
        return {name: TrieContents(values, inline.get(name, set())) for name, values in held.items()}, steps[::-1]

    def __contains__(self, root: bytes) -> bool:
        return root in self._kept


def put_back(values: dict[bytes, bytes], replaced: Values) -> None:
    """Undo the changes that ``replaced`` these values."""
    for key, value in replaced.items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value


def without_child_roots(values: dict[bytes, V], children: Iterable[ChildInfo]) -> dict[bytes, V]:
    """Take the entries of these child tries out of values of the top trie."""
    for info in children:
        values.pop(info.prefixed_storage_key(), None)
    return values
