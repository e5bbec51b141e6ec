"""Places of a trie where nodes or values are missing: what lies there is neither known nor known to be absent.

Law: a gap never closes. Nothing is written below a missing node, and no branch may collapse onto one, so the gaps of a
trie are the same in all of its later versions.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relaycast_trie.exceptions import MissingNode
from relaycast_trie.nibbles import to_nibbles


@dataclass(frozen=True, slots=True)
class LoneGap:
    """A branch that ends at ``branch`` (nibbles), all children of which are known but the one at ``path``.

    The branch collapses onto that child when everything else below it goes.
    """

    branch: bytes
    path: bytes
    node_hash: bytes


class Gaps:
    """The missing ``nodes`` of one trie by their path in nibbles, and the missing ``values`` by the path of their key.

    Both are given with their hashes. No missing node stands below another.
    """

    __slots__ = ("_hashes", "_node_paths", "_value_paths", "_values", "lone")

    def __init__(
        self, nodes: Mapping[bytes, bytes], values: Mapping[bytes, bytes], lone: Iterable[LoneGap] = ()
    ) -> None:
        self._hashes = dict(nodes)
        self._values = dict(values)
        self._node_paths = sorted(nodes)
        self._value_paths = sorted(values)
        self.lone = tuple(lone)
        """Gaps that a removal could need."""

    @property
    def nodes(self) -> Mapping[bytes, bytes]:
        """The missing nodes: hashes by path."""
        return self._hashes

    @property
    def values(self) -> Mapping[bytes, bytes]:
        """The missing values: hashes by the path of their key."""
        return self._values

    def check(self, key: bytes) -> None:
        """Raise ``MissingNode`` unless it is known whether there is a value under ``key``, and which."""
        if self._hashes or self._values:
            path = to_nibbles(key)
            if path in self._values:
                raise MissingNode(self._values[path], path)
            self._check_above(path)

    def check_prefix(self, prefix: bytes) -> None:
        """Raise ``MissingNode`` unless every key and value under ``prefix`` is known."""
        self.check_between(prefix, None, prefix)

    def check_between(self, low: bytes, high: bytes | None, prefix: bytes, *, after: bool = False) -> None:
        """Raise ``MissingNode`` where there may be an unknown key under ``prefix`` from ``low`` up to ``high``.

        ``high`` is ``None`` for the end of the prefix; ``after`` leaves out ``low`` itself.
        """
        if not (self._hashes or self._values):
            return
        start, within = to_nibbles(low), to_nibbles(prefix)
        end = None if high is None else to_nibbles(high)
        self._check_above(start)
        for paths, hashes in ((self._node_paths, self._hashes), (self._value_paths, self._values)):
            place = bisect_right(paths, start) if after else bisect_left(paths, start)
            if place < len(paths) and (paths[place].startswith(within) if end is None else paths[place] <= end):
                raise MissingNode(hashes[paths[place]], paths[place])

    def first(self) -> MissingNode:
        """Return the error for the first gap."""
        path = min([*self._node_paths[:1], *self._value_paths[:1]])
        return MissingNode(self._hashes[path] if path in self._hashes else self._values[path], path)

    def _check_above(self, path: bytes) -> None:
        """Raise ``MissingNode`` where a missing node stands at ``path`` or above it."""
        place = bisect_right(self._node_paths, path) - 1
        if place >= 0 and path.startswith(above := self._node_paths[place]):
            raise MissingNode(self._hashes[above], above)

    def __bool__(self) -> bool:
        return bool(self._hashes or self._values)

    def __repr__(self) -> str:
        return f"<Gaps: {len(self._hashes)} nodes and {len(self._values)} values are missing>"


NO_GAPS = Gaps({}, {})
