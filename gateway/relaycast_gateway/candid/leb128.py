"""LEB128: integers of any size as bytes of seven bits each, the lowest first.

Work is linear in the number of bytes. Long numbers are read eight groups at a time, which are seven bytes, and written
through base 2, whose conversion is linear in Python.
Source: DWARF 4, section 7.6; Candid specification, "Notation".
"""

import re

_SHORT = 10
"""Up to this many bytes shifting is faster."""
_SHORT_BITS = 7 * _SHORT

_CHUNK = 4_096
_CONTINUED = re.compile(rb"[\x80-\xff]*")


def _lanes(width: int) -> tuple[int, int]:
    """Return masks of the lower and the upper half of each lane: ``width`` bytes that hold 7 bits for each byte."""
    low = (1 << 7 * width // 2) - 1
    repeated = int.from_bytes((1).to_bytes(width, "little") * (_CHUNK // width), "little")
    return low * repeated, (low << 4 * width) * repeated


_STEPS = tuple((*_lanes(width), width // 2) for width in (2, 4, 8))
"""Masks, and how far the upper half is shifted down to meet the lower one: by 1, 2 and 4 bits."""


def unsigned_at(data: bytes, pos: int) -> tuple[int, int]:
    """Return the natural number at ``pos`` and the position behind it; ``IndexError`` where the data ends inside."""
    value = shift = 0
    end = pos
    while shift < _SHORT_BITS:
        byte = data[end]
        end += 1
        if byte < 0x80:
            return value | byte << shift, end
        value |= (byte & 0x7F) << shift
        shift += 7
    end = _end(data, end)
    return _joined(data[pos:end]), end


def signed_at(data: bytes, pos: int) -> tuple[int, int]:
    """Return the integer at ``pos`` and the position behind it; ``IndexError`` where the data ends inside."""
    byte = data[pos]
    if byte < 0x80:
        return byte - ((byte & 0x40) << 1), pos + 1
    end = _end(data, pos)
    value = _joined(data[pos:end])
    return (value - (1 << 7 * (end - pos)) if data[end - 1] & 0x40 else value), end


def unsigned(value: int) -> bytes:
    """Return the shortest form of a natural number."""
    if value < 0x80:
        return bytes((value,))
    if value.bit_length() > _SHORT_BITS:
        return _parted(value, -(-value.bit_length() // 7))
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def signed(value: int) -> bytes:
    """Return the shortest form of an integer."""
    if -0x40 <= value < 0x40:
        return bytes((value & 0x7F,))
    count = (value if value >= 0 else ~value).bit_length() // 7 + 1
    return _parted(value & ((1 << 7 * count) - 1), count)


def _end(data: bytes, pos: int) -> int:
    found = _CONTINUED.match(data, pos)
    end = pos if found is None else found.end()
    return end + (data[end] < 0x80)


def _joined(groups: bytes) -> int:
    if len(groups) > _SHORT:
        packed = [_packed(groups[at : at + _CHUNK]) for at in range(0, len(groups), _CHUNK)]
        return int.from_bytes(b"".join(packed), "little")
    value = 0
    for shift, byte in enumerate(groups):
        value |= (byte & 0x7F) << 7 * shift
    return value


def _packed(groups: bytes) -> bytes:
    """Return groups without their highest bits, seven bytes for each eight."""
    value = int.from_bytes(groups, "little")
    for low, high, shift in _STEPS:
        value = value & low | (value & high) >> shift
    found = bytearray(value.to_bytes(-(-len(groups) // 8) * 8, "little"))
    del found[7::8]
    return bytes(found)


def _parted(value: int, count: int) -> bytes:
    if count > _SHORT:
        bits = f"{value:b}".zfill(7 * count)
        groups = bytearray(int(bits[at - 7 : at], 2) | 0x80 for at in range(7 * count, 0, -7))
    else:
        groups = bytearray(value >> 7 * at & 0x7F | 0x80 for at in range(count))
    groups[-1] &= 0x7F
    return bytes(groups)
