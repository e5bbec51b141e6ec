"""Where decoding stands in a message, what it may still cost, and the values that need no plan.

A value costs 1, a record 1 more for each field. Values without bytes cost as much as others: a message of a few bytes
cannot claim a thousand million of them. A reader raises ``IndexError`` or ``struct.error`` where the message ends.
"""

from collections.abc import Callable
from struct import Struct

from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.leb128 import signed_at, unsigned_at
from relaycast_gateway.candid.type_graph import BOOL, DEEPEST, INT, NAT, NAT8, PRINCIPAL, RESERVED, TEXT
from relaycast_gateway.candid.type_graph import NULL as NULL_TYPE
from relaycast_gateway.candid.values import LONGEST_PRINCIPAL, FuncReference, Principal


class Cursor:
    """A position in ``data``, the depth there, and the costs left for values that are kept or skipped."""

    __slots__ = ("data", "depth", "left", "pos", "skips_left")

    def __init__(self, data: bytes, pos: int, decoding_quota: int, skipping_quota: int) -> None:
        self.data = data
        self.pos = pos
        self.depth = 0
        self.left = decoding_quota
        self.skips_left = skipping_quota

    def refused(self, reason: str) -> CandidError:
        """Return a refusal at this byte."""
        return CandidError(reason, f"byte {self.pos}")

    def pay(self, cost: int) -> None:
        """Take the cost of values that are kept."""
        self.left -= cost
        if self.left < 0:
            raise self.refused("the decoding quota is used up")

    def pay_skipped(self, cost: int) -> None:
        """Take the cost of values that are skipped."""
        self.skips_left -= cost
        if self.skips_left < 0:
            raise self.refused("the skipping quota is used up")

    def too_deep(self) -> CandidError:
        """Return the refusal of a value that nests too deep."""
        return self.refused(f"values nest at most {DEEPEST} deep")

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        end = self.pos + count
        if end > len(self.data):
            raise self.refused(f"expected {count} more bytes, the message ends after {len(self.data) - self.pos}")
        found = self.data[self.pos : end]
        self.pos = end
        return found

    def count(self) -> int:
        """Return the natural number here."""
        found, self.pos = unsigned_at(self.data, self.pos)
        return found


Read = Callable[[Cursor], object]


def read_nat(cursor: Cursor) -> int:
    byte = cursor.data[cursor.pos]
    if byte < 0x80:
        cursor.pos += 1
        return byte
    found, cursor.pos = unsigned_at(cursor.data, cursor.pos)
    return found


def read_int(cursor: Cursor) -> int:
    found, cursor.pos = signed_at(cursor.data, cursor.pos)
    return found


def read_bool(cursor: Cursor) -> bool:
    byte = cursor.data[cursor.pos]
    if byte > 1:
        raise cursor.refused(f"a bool is 0 or 1, got {byte}")
    cursor.pos += 1
    return byte == 1


def read_nat8(cursor: Cursor) -> int:
    byte = cursor.data[cursor.pos]
    cursor.pos += 1
    return byte


def read_nothing(_cursor: Cursor) -> None:
    return None


def read_text(cursor: Cursor) -> str:
    try:
        return _read_sized(cursor, "text").decode()
    except UnicodeDecodeError as error:
        raise cursor.refused("a text must be UTF-8") from error


def read_blob(cursor: Cursor) -> bytes:
    return _read_sized(cursor, "blob")


def _read_sized(cursor: Cursor, what: str) -> bytes:
    data = cursor.data
    size = data[cursor.pos]
    if size < 0x80:
        cursor.pos += 1
    else:
        size = cursor.count()
    start = cursor.pos
    end = start + size
    if end > len(data):
        raise cursor.refused(f"a {what} of {size} bytes goes beyond the end of the message")
    cursor.pos = end
    return data[start:end]


def read_empty(cursor: Cursor) -> object:
    raise cursor.refused("there is no value of the type empty")


def read_principal(cursor: Cursor) -> Principal:
    if cursor.data[cursor.pos] != 1:
        raise cursor.refused("a reference must be transparent: expected the byte 1")
    cursor.pos += 1
    size = cursor.count()
    if size > LONGEST_PRINCIPAL:
        raise cursor.refused(f"a principal is at most {LONGEST_PRINCIPAL} bytes long, got {size}")
    return Principal(cursor.take(size))


def read_func(cursor: Cursor) -> FuncReference:
    if cursor.data[cursor.pos] != 1:
        raise cursor.refused("a reference must be transparent: expected the byte 1")
    cursor.pos += 1
    service = read_principal(cursor)
    return FuncReference(service, read_text(cursor))


def skip_future(cursor: Cursor) -> None:
    """Pass over a value of a future type: its length, the number of references, its bytes."""
    size = cursor.count()
    references = cursor.count()
    if references:
        raise cursor.refused("a message holds no references of future types")
    if size > len(cursor.data) - cursor.pos:
        raise cursor.refused(f"a value of {size} bytes goes beyond the end of the message")
    cursor.pos += size


FORMATS = {-5: "B", -6: "H", -7: "I", -8: "Q", -9: "b", -10: "h", -11: "i", -12: "q", -13: "f", -14: "d"}
"""Numbers of a fixed size, by type, in the words of ``struct``; all are little-endian."""
SIZES = {of: Struct("<" + letter).size for of, letter in FORMATS.items()}


def _fixed(letter: str) -> Read:
    form = Struct("<" + letter)
    unpack, size = form.unpack_from, form.size

    def read(cursor: Cursor) -> object:
        (found,) = unpack(cursor.data, cursor.pos)
        cursor.pos += size
        return found

    return read


READS: dict[int, Read] = {
    **{of: _fixed(letter) for of, letter in FORMATS.items()},
    NULL_TYPE: read_nothing,
    RESERVED: read_nothing,
    BOOL: read_bool,
    NAT: read_nat,
    INT: read_int,
    NAT8: read_nat8,
    TEXT: read_text,
    -17: read_empty,
    PRINCIPAL: read_principal,
}
"""How a value of a primitive type is read at the same type."""
