"""The keys and values of one trie of which some nodes are missing: what is not known is refused by name.

Law: a read, an iteration, a write or a removal that needs a missing node or value raises ``MissingNode`` and changes
nothing. ``values`` holds what is known.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator

from relaycast_pallets.frame.storage import Journal, Storage
from relaycast_trie.exceptions import MissingNode
from relaycast_trie.nibbles import from_nibbles, to_nibbles
from relaycast_trie.plain.partial_trie import NO_GAPS, Gaps, PartialTrie


class PartialStorage(Storage):
    """One trie's known keys and values, and its gaps; see ``Storage``."""

    __slots__ = ("_gaps",)

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self._gaps = NO_GAPS

    def hold(self, known: PartialTrie) -> None:
        """Hold what is known of a trie instead, as sealed; not inside a transaction."""
        self.replace_all(known.values)
        self._gaps = known.gaps

    @property
    def gaps(self) -> Gaps:
        return self._gaps

    def get(self, key: bytes) -> bytes | None:
        value = super().get(key)
        if value is None:
            self._gaps.check(key)
        return value

    def exists(self, key: bytes) -> bool:
        return self.get(key) is not None

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self._values:
            self._gaps.check(key)
        super().put(key, value)

    def kill(self, key: bytes) -> None:
        if key not in self._values:
            self._gaps.check(key)
            return
        self.ensure_removable([key])
        super().kill(key)

    def clear_prefix(self, prefix: bytes) -> int:
        keys = [key for key, _ in self.iter_prefix(prefix)]
        self.ensure_removable(keys)
        for key in keys:
            super().kill(key)
        return len(keys)

    def count_prefix(self, prefix: bytes) -> int:
        self._gaps.check_prefix(prefix)
        return super().count_prefix(prefix)

    def ensure_removable(self, keys: Collection[bytes]) -> None:
        """Raise ``MissingNode`` where a branch would collapse onto a missing node without these ``keys``."""
        if not self._gaps.lone:
            return
        going = set(keys)
        paths = [to_nibbles(key) for key in going]
        for lone in self._gaps.lone:
            if any(path.startswith(lone.branch) for path in paths) and going.issuperset(self._under(lone.branch)):
                raise MissingNode(lone.node_hash, lone.path)

    def _under(self, path: bytes) -> Iterator[bytes]:
        """Yield the known keys whose path in nibbles begins with ``path``."""
        order = self._ordered()
        start = bisect_left(order, from_nibbles(path + b"\x00" * (len(path) % 2)))
        for key in order.islice(start):
            if not to_nibbles(key).startswith(path):
                return
            yield key

    def _next_under(self, prefix: bytes, after: bytes | None) -> bytes | None:
        key = super()._next_under(prefix, after)
        if after is None or after.startswith(prefix):
            self._gaps.check_between(prefix if after is None else after, key, prefix, after=after is not None)
        return key

    def __len__(self) -> int:
        if self._gaps:
            raise self._gaps.first()
        return super().__len__()

    def __bool__(self) -> bool:
        return bool(self._values or self._gaps)

    def __repr__(self) -> str:
        return f"<PartialStorage {len(self._values)} known keys, {self._gaps!r}, {len(self.unsealed)} unsealed>"
