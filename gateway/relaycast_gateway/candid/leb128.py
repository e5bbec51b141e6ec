"""LEB128: integers of any size as bytes of seven bits each, the lowest first.

Work is linear in the number of bytes: long numbers go through base 2, whose conversions are linear in Python.
Source: DWARF 4, section 7.6; Candid specification, "Notation".
"""

_SEVEN_BITS = [f"{byte & 0x7F:07b}" for byte in range(256)]
_SHORT = 10
"""Up to this many bytes shifting is faster than base 2."""
_SHORT_BITS = 7 * _SHORT


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
    while data[pos] >= 0x80:
        pos += 1
    return pos + 1


def _joined(groups: bytes) -> int:
    if len(groups) > _SHORT:
        return int("".join([_SEVEN_BITS[byte] for byte in reversed(groups)]), 2)
    value = 0
    for shift, byte in enumerate(groups):
        value |= (byte & 0x7F) << 7 * shift
    return value


def _parted(value: int, count: int) -> bytes:
    if count > _SHORT:
        bits = f"{value:b}".zfill(7 * count)
        groups = bytearray(int(bits[at - 7 : at], 2) | 0x80 for at in range(7 * count, 0, -7))
    else:
        groups = bytearray(value >> 7 * at & 0x7F | 0x80 for at in range(count))
    groups[-1] &= 0x7F
    return bytes(groups)
