"""Values that grow at their end: SCALE vectors that a runtime appends to, such as the events of a block."""

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader, encode_compact

MAX_ITEMS = 2**32


class Appended:
    """A SCALE vector of ``count`` items; it never changes. Vectors that grew out of one another share their parts."""

    __slots__ = ("_length", "_parts", "_whole", "count")

    def __init__(self, count: int, parts: list[bytes], length: int) -> None:
        self.count = count
        self._parts = parts
        self._length = length
        self._whole: bytes | None = None

    @classmethod
    def of(cls, value: bytes) -> "Appended":
        """Return the vector that ``value`` is by its length; one that begins with no length counts as empty."""
        reader = ScaleReader(value)
        try:
            count = reader.compact()
        except CodecError:
            return cls(0, [], 0)
        return cls(count, [value[reader.offset :]], 1) if count < MAX_ITEMS else cls(0, [], 0)

    def with_item(self, item: bytes) -> "Appended":
        """Return the vector with one more ``item``, which is encoded."""
        parts = self._parts if len(self._parts) == self._length else self._parts[: self._length]
        parts.append(item)
        return Appended((self.count + 1) % MAX_ITEMS, parts, self._length + 1)

    def whole(self) -> bytes:
        """Return the vector's bytes."""
        if self._whole is None:
            self._whole = encode_compact(self.count) + b"".join(self._parts[: self._length])
        return self._whole
