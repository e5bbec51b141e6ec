"""Hashes and SCALE, as section 2 of the suite's README has them."""

from __future__ import annotations

import hashlib
import struct
from functools import cache
from typing import Any

# A type is a name of this table, or u32, c32 (compact), h32 (raw bytes), bytes (bytes9: at most 9), *T (a sequence; 3*T
# has no length), ?T (an option), name:T,name:T (a structure), number=Variant/T (an enumeration, a space between).
TYPES = {
    "Weight": "ref_time:c64,proof_size:c64",
    "Entry": "value:bytes,ttl:u32,when_inserted:u32",
    "Publisher": "manager:h32,deposit:u128",
    "Account": "nonce:u32,consumers:u32,providers:u32,sufficients:u32,free:u128,reserved:u128,frozen:u128,flags:u128",
}


class Refused(Exception):
    """Bytes, a message, a call or a block are refused: the error's name, and what goes with it."""


def refuse(wrong: bool, error: str) -> None:
    if wrong:
        raise Refused(error)


def blake2(data: bytes, size: int = 32) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()


def blake_concat(data: bytes) -> bytes:
    return blake2(data, 16) + data


def twox_concat(data: bytes) -> bytes:
    return xxhash(data) + data


def u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


@cache
def prefix(pallet: str, item: str) -> bytes:
    return b"".join(xxhash(name.encode(), seed) for name in (pallet, item) for seed in (0, 1))


@cache
def xxhash(data: bytes, seed: int = 0) -> bytes:
    """Give XXH64, little-endian."""
    p1, p2, p3, p4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63
    p5, ones = 0x27D4EB2F165667C5, 2**64 - 1

    def turn(x: int, bits: int) -> int:
        return (x << bits | (x & ones) >> 64 - bits) & ones

    def mix(x: int, lane: int) -> int:
        return turn(x + lane * p2, 31) * p1

    x, lanes, rest = seed + p5, [seed + p1 + p2, seed + p2, seed, seed - p1], data
    while len(rest) >= 32:
        lanes, rest = [mix(*pair) for pair in zip(lanes, struct.unpack("<4Q", rest[:32]), strict=True)], rest[32:]
    if len(data) >= 32:
        x = sum(turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            x = (x ^ mix(0, lane)) * p1 + p4
    x += len(data)
    while len(rest) >= 8:
        x, rest = turn(x ^ mix(0, int.from_bytes(rest[:8], "little")), 27) * p1 + p4, rest[8:]
    if len(rest) >= 4:
        x, rest = turn(x ^ int.from_bytes(rest[:4], "little") * p1, 23) * p2 + p3, rest[4:]
    for byte in rest:
        x = turn(x ^ byte * p5, 11) * p1
    for bits, prime in ((33, p2), (29, p3), (32, 1)):
        x = ((x & ones) ^ (x & ones) >> bits) * prime
    return (x & ones).to_bytes(8, "little")


@cache
def variants(spec: str) -> dict[int, tuple[str, str]]:
    parts = [part.replace("=", "/").split("/") for part in spec.split()]
    return {int(number): (name, inner[0] if inner else "") for number, name, *inner in parts}


@cache
def fields(spec: str) -> list[list[str]]:
    return [field.split(":") for field in spec.split(",")]


def named(value: Any) -> tuple[str, Any]:
    """Give a variant's name and content."""
    return (value, None) if isinstance(value, str) else next(iter(value.items()))


def encode(kind: str, value: Any, ordered: bool = False) -> bytes:  # noqa: PLR0911
    """Write a value; `ordered` gives bytes that sort as the values do."""
    spec = TYPES.get(kind, kind)
    if spec[0] == "?":
        return b"\0" if value is None else b"\1" + encode(spec[1:], value, ordered)
    if "*" in spec[:2]:
        size, inner = spec.split("*", 1)
        return (b"" if size else encode("c", len(value))) + b"".join(encode(inner, one, ordered) for one in value)
    if "=" in spec:
        index, inner = next((n, inner) for n, (name, inner) in variants(spec).items() if name == named(value)[0])
        return bytes([index]) + (encode(inner, named(value)[1], ordered) if inner else b"")
    if ":" in spec:
        return b"".join(encode(inner, value[name], ordered) for name, inner in fields(spec))
    if spec[0] in "hb":
        return (b"" if spec[0] == "h" else encode("c", len(value))) + bytes(value)
    if ordered or spec[0] == "u":
        return int(value).to_bytes(16 if ordered else int(spec[1:]) // 8, "big" if ordered else "little")
    mode = (value >= 1 << 6) + (value >= 1 << 14) + (value >= 1 << 30)
    size = max(4, (value.bit_length() + 7) // 8)
    big = bytes([size - 4 << 2 | 3]) + int(value).to_bytes(size, "little")
    return big if mode == 3 else int(value << 2 | mode).to_bytes(1 << mode, "little")


class Input:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth, self.instructions = data, 0, 0, 0

    def take(self, size: int) -> bytes:
        refuse(size > len(self.data) - self.at, "CodecError")
        self.at += size
        return self.data[self.at - size : self.at]

    def compact(self, bits: int) -> int:
        start, first = self.at, self.take(1)[0]
        big = first & 3 == 3
        value = int.from_bytes(self.take((first >> 2) + 4 if big else (1 << (first & 3)) - 1), "little")
        value = value if big else (value << 8 | first) >> 2
        refuse(value >> bits > 0 or encode("c", value) != self.data[start : self.at], "CodecError")
        return value

    def length(self) -> int:
        size = self.compact(32)
        refuse(size > len(self.data) - self.at, "CodecError")
        return size

    def read(self, kind: str) -> Any:  # noqa: PLR0911
        """Read a value."""
        spec = TYPES.get(kind, kind)
        if spec[0] == "?":
            flag = self.take(1)[0]
            refuse(flag > 1, "CodecError")
            return self.read(spec[1:]) if flag else None
        if "*" in spec[:2]:
            return self.sequence(*spec.split("*", 1))
        if "=" in spec:
            name, inner = variants(spec).get(self.take(1)[0], ("", ""))
            refuse(not name, "CodecError" if kind == "WeightLimit" else "UnknownVariant")
            return {name: self.read(inner)} if inner else name
        if ":" in spec:
            return {name: self.read(inner) for name, inner in fields(spec)}
        if spec[0] == "b":
            data = self.take(self.length())
            refuse(len(data) > int(spec[5:] or len(data)), "BoundExceeded")
            return data
        if spec[0] == "h":
            return self.take(int(spec[1:]))
        if spec[0] == "u":
            return int.from_bytes(self.take(int(spec[1:]) // 8), "little")
        value = self.compact(int(spec[1:4]))
        refuse(not value and spec.endswith("positive"), "CodecError")
        return value

    def sequence(self, count: str, kind: str) -> list[Any]:
        """Read a sequence, within the limits of XCM (section 5)."""
        nests = kind in ("Instruction", "Asset", "Junction")
        size = int(count or 0) or (self.compact(32) if kind == "Instruction" else self.length())
        self.depth += nests
        self.instructions += size if kind == "Instruction" else 0
        refuse(self.instructions > 100, "TooManyInstructions")
        refuse(kind == "Asset" and size > 20, "BoundExceeded")
        refuse(self.depth > 8, "TooDeep")
        values = [self.read(kind) for _ in range(size)]
        self.depth -= nests
        ids = [encode("Location", value["id"], ordered=True) for value in values] if kind == "Asset" else []
        refuse(ids != sorted(set(ids)), "CodecError")
        return values


def decode(kind: str, data: bytes) -> Any:
    """Read a value that is all of the bytes."""
    source = Input(data)
    value = source.read(kind)
    refuse(source.at < len(data), "CodecError")
    return value
