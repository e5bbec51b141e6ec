"""Reads the pieces that metadata of every version is made of: text, lists, options.

Law: a length is checked against the bytes that are left before anything is read, and every refusal is a ``CodecError``
with the offset where it shows.
"""

from collections.abc import Callable
from typing import TypeVar

from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader

T = TypeVar("T")


class MetadataReader(ScaleReader):
    """A ``ScaleReader`` that knows text and lists."""

    __slots__ = ()

    def text(self) -> str:
        """Return a ``String``."""
        start = self.offset
        data = self.bytes_()
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise CodecError(f"text in UTF-8 expected, got 0x{data[error.start]:02x}", start) from None

    def texts(self) -> tuple[str, ...]:
        """Return a ``Vec<String>``."""
        return tuple([self.text() for _ in range(self.length())])

    def optional_text(self) -> str | None:
        """Return an ``Option<String>``."""
        return self.text() if self.option() else None

    def items(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Return the items of a ``Vec``, each of which ``read`` takes at least one byte for."""
        return tuple([read() for _ in range(self.length())])

    def flag(self) -> bool:
        """Return a ``bool``."""
        start = self.offset
        byte = self.u8()
        if byte > 1:
            raise CodecError(f"a bool is 0 or 1, got {byte}", start)
        return byte == 1

    def choice(self, names: tuple[T, ...], what: str) -> T:
        """Return the one of ``names`` whose index comes next; ``what`` they are stands in the refusal."""
        start = self.offset
        index = self.u8()
        if index >= len(names):
            raise CodecError(f"{what} is one of {len(names)}, got index {index}", start)
        return names[index]
