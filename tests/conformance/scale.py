"""Hashes, SCALE and storage, as section 2 of the suite's README has them; types and items stand in its types.json."""

import hashlib
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

TYPES: dict[str, Any] = {}  # a structure has named fields, an enumeration a list of index, name and perhaps a type
STORAGE: dict[str, Any] = {}  # the items of storage: pallet, hasher and type of each key, type of the value
ONES, P1, P2, P3 = 2**64 - 1, 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


class Refused(Exception):
    """Bytes, a message, a call or a block are refused: the error's name, and what goes with it."""


def refuse(wrong: bool, *error: Any) -> None:
    if wrong:
        raise Refused(*error)


def attempt(name: str, work: Callable[[], Any]) -> dict[str, Any]:
    """Give a result under its name, or the error."""
    try:
        return {name: work()}
    except Refused as error:
        return dict(zip(("error", "cause"), error.args, strict=False))


def blake2(data: bytes, size: int = 32) -> bytes:
    return hashlib.blake2b(data, digest_size=size).digest()


@cache
def xxhash(data: bytes, seed: int = 0) -> bytes:
    def turn(x: int, bits: int) -> int:
        return (x << bits | (x & ONES) >> 64 - bits) & ONES

    def mix(x: int, lane: int) -> int:
        return turn(x + lane * P2, 31) * P1

    x, lanes, whole = seed + P5, [seed + P1 + P2, seed + P2, seed, seed - P1], len(data) // 8
    words, rounds, rest = struct.unpack_from(f"<{whole}Q", data), whole // 4 * 4, data[whole * 8 :]
    for number, word in enumerate(words[:rounds]):
        lanes[number % 4] = mix(lanes[number % 4], word)
    if rounds:
        x = sum(turn(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            x = (x ^ mix(0, lane)) * P1 + P4
    x += len(data)
    for word in words[rounds:]:
        x = turn(x ^ mix(0, word), 27) * P1 + P4
    if len(rest) >= 4:
        x, rest = turn(x ^ int.from_bytes(rest[:4], "little") * P1, 23) * P2 + P3, rest[4:]
    for byte in rest:
        x = turn(x ^ byte * P5, 11) * P1
    for bits, prime in ((33, P2), (29, P3), (32, 1)):
        x = ((x & ONES) ^ (x & ONES) >> bits) * prime
    return (x & ONES).to_bytes(8, "little")


HASHERS = {"Twox64Concat": lambda key: xxhash(key) + key, "Blake2_128Concat": lambda key: blake2(key, 16) + key}


def named(value: Any) -> tuple[str, Any]:
    """Give a variant's name and content."""
    return (value, None) if isinstance(value, str) else next(iter(value.items()))


def encode(kind: Any, value: Any, ordered: bool = False) -> bytes:  # noqa: PLR0911
    """Write a value; `ordered` gives bytes that sort as the values do."""
    kind = TYPES.get(kind, kind) if isinstance(kind, str) else kind
    if isinstance(kind, list):
        index, *inner = next((index, *inner) for index, name, *inner in kind if name == named(value)[0])
        return bytes([index]) + b"".join(encode(one, named(value)[1], ordered) for one in inner)
    count, is_list, item = ("", "", "") if isinstance(kind, dict) else kind.rpartition("*")
    if is_list:
        return (b"" if count else encode("c32", len(value))) + b"".join(encode(item, one, ordered) for one in value)
    if isinstance(kind, dict) or "," in kind:
        values = [value[name] for name in kind] if isinstance(value, dict) else value
        kinds = kind.values() if isinstance(kind, dict) else kind.split(",")
        return b"".join(encode(inner, one, ordered) for inner, one in zip(kinds, values, strict=True))
    if kind[0] == "?":
        return b"\0" if value is None else b"\1" + encode(kind[1:], value, ordered)
    if kind[0] in "hb":
        return (encode("c32", len(value)) if kind[0] == "b" else b"") + bytes(value)
    if ordered or kind[0] == "u":
        return int(value).to_bytes(16 if ordered else int(kind[1:]) // 8, "big" if ordered else "little")
    mode, size = (value >= 1 << 6) + (value >= 1 << 14) + (value >= 1 << 30), max(4, (value.bit_length() + 7) // 8)
    big = bytes([size - 4 << 2 | 3]) + int(value).to_bytes(size, "little")
    return big if mode == 3 else int(value << 2 | mode).to_bytes(1 << mode, "little")


class Input:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes, error: str = "CodecError") -> None:
        self.data, self.error, self.at, self.depth, self.instructions = data, error, 0, 0, 0

    def take(self, size: int) -> bytes:
        refuse(size > len(self.data) - self.at, self.error)
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, bits: int) -> int:
        start, first = self.at, self.take(1)[0]
        big = first & 3 == 3
        value = int.from_bytes(self.take((first >> 2) + 4 if big else (1 << (first & 3)) - 1), "little")
        value = value if big else (value << 8 | first) >> 2
        refuse(value >> bits > 0 or encode("c128", value) != self.data[start : self.at], self.error)
        return value

    def read(self, name: Any) -> Any:  # noqa: PLR0911
        kind = TYPES.get(name, name) if isinstance(name, str) else name
        if isinstance(kind, dict):
            return {field: self.read(inner) for field, inner in kind.items()}
        if isinstance(kind, list):
            index = self.take(1)[0]
            variants = {number: (variant, *inner) for number, variant, *inner in kind}
            refuse(index not in variants, self.error if name == "WeightLimit" else "UnknownVariant")
            variant, *inner = variants[index]
            return {variant: self.read(inner[0])} if inner else variant
        count, is_list, item = kind.rpartition("*")
        if is_list:
            return self.items(item, int(count) if count else self.number(32))
        if "," in kind:
            return tuple(self.read(inner) for inner in kind.split(","))
        if kind[0] == "?":
            refuse((flag := self.take(1)[0]) > 1, self.error)
            return self.read(kind[1:]) if flag else None
        if kind[0] == "b":
            data = self.take(self.number(32))
            refuse(len(data) > int(kind[5:] or len(data)), "BoundExceeded")
            return data
        if kind[0] == "h":
            return self.take(int(kind[1:]))
        value = (
            int.from_bytes(self.take(int(kind[1:]) // 8), "little") if kind[0] == "u" else self.number(int(kind[1:]))
        )
        refuse(kind[0] == "p" and value == 0, self.error)
        return value

    def items(self, kind: str, size: int) -> list[Any]:
        """Read the items of a list, within the limits of XCM (section 5)."""
        nests = kind in ("Instruction", "Asset", "Junction")
        self.depth, self.instructions = self.depth + nests, self.instructions + size * (kind == "Instruction")
        refuse(self.instructions > 100, "TooManyInstructions")
        refuse(size > len(self.data) - self.at and kind != "Instruction", self.error)
        refuse(kind == "Asset" and size > 20, "BoundExceeded")
        refuse(self.depth > 8, "TooDeep")
        values = [self.read(kind) for _ in range(size)]
        self.depth -= nests
        ids = [encode("Location", value["id"], ordered=True) for value in values] if kind == "Asset" else []
        refuse(ids != sorted(set(ids)), self.error)
        return values


def decode(kind: str, data: bytes) -> Any:
    """Read a value that is all of the bytes."""
    source = Input(data)
    value = source.read(kind)
    refuse(source.at < len(data), "CodecError")
    return value


class Storage:
    """Raw entries, by the items of storage that they belong to."""

    def __init__(self, entries: Any, **hashers: str) -> None:
        self.entries, self.hashers = dict[bytes, bytes](entries), HASHERS | {n: HASHERS[h] for n, h in hashers.items()}

    def at(self, item: str, *keys: Any) -> bytes:
        place = b"".join(xxhash(name.encode(), seed) for name in (STORAGE[item]["pallet"], item) for seed in (0, 1))
        parts = zip(STORAGE[item]["keys"], keys, strict=False)
        return place + b"".join(self.hashers[hasher](encode(kind, key)) for (hasher, kind), key in parts)

    def get(self, item: str, *keys: Any) -> Any:
        data = self.entries.get(self.at(item, *keys))
        return None if data is None else decode(STORAGE[item]["value"], data)

    def put(self, item: str, value: Any, *keys: Any) -> bool:
        """Write a value, or remove it where it is none; tell whether there was one."""
        there = self.entries.pop(self.at(item, *keys), None) is not None
        self.entries |= {} if value is None else {self.at(item, *keys): encode(STORAGE[item]["value"], value)}
        return there

    def under(self, item: str, *keys: Any) -> list[bytes]:
        """Give the raw keys that begin with an item and keys, ascending."""
        return sorted(key for key in self.entries if key.startswith(self.at(item, *keys)))
