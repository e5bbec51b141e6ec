"""The call instructions of a function's code: which functions it calls, and how to let it call others.

Knows the instructions of WebAssembly's first version with sign extension and saturating conversions. A body with any
other one is left as it is.
"""

from collections.abc import Mapping

from relaycast_wasm.engine.sections import leb128

CALL, BRANCH_TABLE, CONVERSIONS = 0x10, 0x0E, 0xFC
LAST_CONVERSION = 7
PADDED_BYTES = 5
"""Linkers write function numbers with as many bytes as the longest number has."""

NUMBERS_BEHIND: Mapping[int, int] = {
    **dict.fromkeys([0x00, 0x01, 0x05, 0x0B, 0x0F, 0x1A, 0x1B, *range(0x45, 0xC5)], 0),
    **dict.fromkeys([0x02, 0x03, 0x04, 0x0C, 0x0D, 0x3F, 0x40, 0x41, 0x42, *range(0x20, 0x25)], 1),
    **dict.fromkeys([0x11, *range(0x28, 0x3F)], 2),
}
"""How many LEB128 numbers follow an instruction."""

ADDRESSED = range(0x28, 0x3F)
NAMES_MEMORY = 0x40
"""Set in the alignment of a load or store that says which memory it goes to."""

BYTES_BEHIND = {0x43: 4, 0x44: 8}
"""How many bytes follow a constant with a floating point."""


def redirected(body: bytes, targets: Mapping[int, int]) -> bytes:
    """Return a function's body, locals included, whose calls of the keys of ``targets`` are calls of their values."""
    if not any(pattern in body for called in targets for pattern in _encodings(called)):
        return body
    try:
        return _redirected(body, targets)
    except (IndexError, KeyError):
        return body


def _redirected(body: bytes, targets: Mapping[int, int]) -> bytes:
    groups, at = _number(body, 0)
    for _ in range(groups):
        at = _number(body, at)[1] + 1
    parts, copied = [], 0
    while at < len(body):
        code, start = body[at], at
        at += 1
        if code == CALL:
            called, at = _number(body, at)
            if called in targets:
                parts += [body[copied:start], bytes([CALL]), leb128(targets[called])]
                copied = at
        elif code == BRANCH_TABLE:
            count, at = _number(body, at)
            for _ in range(count + 1):
                at = _number(body, at)[1]
        elif code == CONVERSIONS:
            kind, at = _number(body, at)
            if kind > LAST_CONVERSION:
                return body
        elif code in BYTES_BEHIND:
            at += BYTES_BEHIND[code]
        else:
            names_memory = code in ADDRESSED and body[at] & NAMES_MEMORY
            for _ in range(NUMBERS_BEHIND[code] + bool(names_memory)):
                while body[at] & 0x80:
                    at += 1
                at += 1
    return b"".join([*parts, body[copied:]])


def _encodings(called: int) -> tuple[bytes, bytes]:
    """Return how a call of a function is written, short and padded."""
    short = leb128(called)
    padded = bytes(it | 0x80 for it in short.ljust(PADDED_BYTES - 1, b"\x00")) + b"\x00"
    return bytes([CALL]) + short, bytes([CALL]) + padded


def _number(body: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned number in LEB128 and where it ends."""
    found = shift = 0
    while True:
        byte = body[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
        shift += 7
