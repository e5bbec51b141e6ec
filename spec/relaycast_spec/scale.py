"""Chapter 1. Bytes: hashes, SCALE, and where a chain's state keeps its items.

Chains exchange and store bytes in SCALE, a format without names or tags: whoever reads must know the type. The file
``types.json`` beside this one lists all types of the specification, and the items of state. A type is spelled so:

=========================  ============================================================
``u8`` to ``u128``         a number of that many bits, little-endian
``c32``, ``p128``          a compact number that fits 32 bits; one of 128 bits that is not zero
``h32``                    exactly 32 bytes
``bytes``, ``bytes2048``   a length and that many bytes; at most 2,048 of them
``*T``, ``3*T``, ``?T``    a list with its length before it; three items; an option
``T,U``                    a tuple
``{"field": T}``           a structure
``[[index, "Name", T]]``   an enumeration; the type is absent where a variant has no content
=========================  ============================================================

``*`` binds loosest, then ``,``, then ``?``: ``*u32,h32`` is a list of pairs. Numbers are ``int``, bytes ``bytes``,
structures ``dict``. A variant is its name, or ``{name: content}``.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

Kind = Any
"""A type: a name or a spelling as text, a structure, or an enumeration."""

_DEFINITIONS = json.loads((Path(__file__).parent / "types.json").read_text())
TYPES: dict[str, Kind] = _DEFINITIONS["types"]
ITEMS: dict[str, Any] = _DEFINITIONS["storage"]
"""Items of state: the pallet, the hasher and type of each key, and the type of the value."""


class Refused(Exception):
    """Bytes, a message, a call or a block are refused: the name of the error, and what belongs to it."""

    def __init__(self, name: str, detail: Any = None) -> None:
        super().__init__(name, detail)
        self.name = name
        self.detail = detail


def refuse_if(condition: object, error: str, detail: Any = None) -> None:
    """Raise ``Refused`` if the condition holds."""
    if condition:
        raise Refused(error, detail)


# Hashes


def blake2_256(data: bytes) -> bytes:
    """Hash with Blake2b, 32 bytes of output.

    Published keys are made with it: ``blake2_256(b"BTC/USD")`` at compile time by the macro ``subscribed_key!``, or at
    run time by ``SubscribedKey::from_data``.

    Scenario: Subscription Handler / Compile-time key hashing
    Scenario: Subscription Handler / Runtime key hashing
    """
    return hashlib.blake2b(data, digest_size=32).digest()


def blake2_128(data: bytes) -> bytes:
    """Hash with Blake2b, 16 bytes of output (which are not the first 16 of ``blake2_256``)."""
    return hashlib.blake2b(data, digest_size=16).digest()


U32_MAX, U64_MAX = 2**32 - 1, 2**64 - 1
PRIME_1, PRIME_2, PRIME_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
PRIME_4, PRIME_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotated(number: int, bits: int) -> int:
    return (number << bits | (number & U64_MAX) >> 64 - bits) & U64_MAX


def _mixed(lane: int, word: int) -> int:
    return _rotated(lane + word * PRIME_2, 31) * PRIME_1


@cache
def twox_64(data: bytes, seed: int = 0) -> bytes:
    """Hash with xxHash64: fast, but not safe against chosen inputs. ``Twox64Concat`` hashes keys of maps with it."""
    lanes = [seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1]
    whole = len(data) // 8
    words = struct.unpack_from(f"<{whole}Q", data)
    in_stripes = whole // 4 * 4
    for number, word in enumerate(words[:in_stripes]):
        lanes[number % 4] = _mixed(lanes[number % 4], word)
    result = seed + PRIME_5
    if in_stripes:
        turns = zip(lanes, (1, 7, 12, 18), strict=True)
        result = sum(_rotated(lane, bits) for lane, bits in turns)
        for lane in lanes:
            result = (result ^ _mixed(0, lane)) * PRIME_1 + PRIME_4
    result += len(data)
    for word in words[in_stripes:]:
        result = _rotated(result ^ _mixed(0, word), 27) * PRIME_1 + PRIME_4
    rest = data[whole * 8 :]
    if len(rest) >= 4:
        half = int.from_bytes(rest[:4], "little")
        result = _rotated(result ^ half * PRIME_1, 23) * PRIME_2 + PRIME_3
        rest = rest[4:]
    for byte in rest:
        result = _rotated(result ^ byte * PRIME_5, 11) * PRIME_1
    for bits, prime in ((33, PRIME_2), (29, PRIME_3), (32, 1)):
        result = ((result & U64_MAX) ^ (result & U64_MAX) >> bits) * prime
    return (result & U64_MAX).to_bytes(8, "little")


def twox_128(data: bytes) -> bytes:
    """Hash with xxHash64 twice, with the seeds 0 and 1. Names of pallets and items are hashed with it."""
    return twox_64(data, 0) + twox_64(data, 1)


HASHERS: Mapping[str, Callable[[bytes], bytes]] = {
    "Twox64Concat": lambda key: twox_64(key) + key,
    "Blake2_128Concat": lambda key: blake2_128(key) + key,
}
"""How a map hashes its keys. Both append the key itself, so that it can be read back from the storage key."""


# SCALE: encoding


def encode(kind: Kind, value: Any) -> bytes:
    """Encode a value."""
    return _encoded(kind, value, _number)


def sort_key(kind: Kind, value: Any) -> bytes:
    """Return bytes that sort as the values do: the encoding, but with every number as 16 big-endian bytes."""
    return _encoded(kind, value, lambda _, number: number.to_bytes(16, "big"))


def compact(number: int) -> bytes:
    """Encode a compact number in the fewest bytes; the two lowest bits of the first byte say how many there are."""
    for mode, bits in enumerate((6, 14, 30)):
        if number < 1 << bits:
            return (number << 2 | mode).to_bytes(1 << mode, "little")
    size = max(4, (number.bit_length() + 7) // 8)
    return bytes([size - 4 << 2 | 3]) + number.to_bytes(size, "little")


def variant(value: Any) -> tuple[str, Any]:
    """Return the name and the content of a variant."""
    return (value, None) if isinstance(value, str) else next(iter(value.items()))


def _definition(kind: Kind) -> Kind:
    return TYPES.get(kind, kind) if isinstance(kind, str) else kind


def _number(kind: str, number: int) -> bytes:
    return number.to_bytes(int(kind[1:]) // 8, "little") if kind[0] == "u" else compact(number)


def _encoded(kind: Kind, value: Any, number: Callable[[str, int], bytes]) -> bytes:  # noqa: PLR0911 - as below
    kind = _definition(kind)
    if isinstance(kind, list):
        name, content = variant(value)
        index, inner = next((index, inner) for index, other, *inner in kind if other == name)
        return bytes([index]) + b"".join(_encoded(one, content, number) for one in inner)
    if isinstance(kind, dict):
        fields = [value[name] for name in kind] if isinstance(value, dict) else value
        return b"".join(_encoded(one, field, number) for one, field in zip(kind.values(), fields, strict=True))
    count, is_list, item = kind.rpartition("*")
    if is_list:
        length = b"" if count else compact(len(value))
        return length + b"".join(_encoded(item, one, number) for one in value)
    if "," in kind:
        return b"".join(_encoded(one, part, number) for one, part in zip(kind.split(","), value, strict=True))
    match kind[0]:
        case "?":
            return b"\0" if value is None else b"\1" + _encoded(kind[1:], value, number)
        case "b":
            return compact(len(value)) + bytes(value)
        case "h":
            return bytes(value)
    return number(kind, int(value))


# SCALE: decoding


class Reader:
    """Reads values from the front of ``data``; what does not decode is refused with ``error``."""

    def __init__(self, data: bytes, error: str = "CodecError") -> None:
        self.data = data
        self.error = error
        self.at = 0

    @property
    def left(self) -> int:
        """The number of bytes that were not read."""
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """Read bytes as they are."""
        refuse_if(size > self.left, self.error)
        self.at += size
        return self.data[self.at - size : self.at]

    def compact(self, bits: int) -> int:
        """Read a compact number of at most so many bits; one that takes more bytes than it needs is refused."""
        start = self.at
        first = self.take(1)[0]
        if first & 3 == 3:
            number = int.from_bytes(self.take((first >> 2) + 4), "little")
        else:
            rest = self.take((1 << (first & 3)) - 1)
            number = int.from_bytes(bytes([first]) + rest, "little") >> 2
        refuse_if(number >= 1 << bits or compact(number) != self.data[start : self.at], self.error)
        return number

    def read(self, kind: Kind) -> Any:  # noqa: PLR0911 - one return for each spelling
        """Read a value."""
        definition = _definition(kind)
        if isinstance(definition, dict):
            return {field: self.read(inner) for field, inner in definition.items()}
        if isinstance(definition, list):
            return self.variant(kind, definition)
        count, is_list, item = definition.rpartition("*")
        if is_list:
            return self.items(item, int(count) if count else self.length(item))
        if "," in definition:
            return tuple(self.read(inner) for inner in definition.split(","))
        match definition[0]:
            case "?":
                is_there = self.take(1)[0]
                refuse_if(is_there > 1, self.error)
                return self.read(definition[1:]) if is_there else None
            case "b":
                data = self.take(self.compact(32))
                refuse_if(definition != "bytes" and len(data) > int(definition[5:]), "BoundExceeded")
                return data
            case "h":
                return self.take(int(definition[1:]))
            case "u":
                return int.from_bytes(self.take(int(definition[1:]) // 8), "little")
        number = self.compact(int(definition[1:]))
        refuse_if(definition[0] == "p" and number == 0, self.error)
        return number

    def variant(self, kind: Kind, variants: list[Any]) -> Any:  # noqa: ARG002 - MessageReader uses kind
        """Read a variant: one byte for the index, then the content."""
        index = self.take(1)[0]
        found = [(name, inner) for number, name, *inner in variants if number == index]
        refuse_if(not found, "UnknownVariant")
        ((name, inner),) = found
        return {name: self.read(inner[0])} if inner else name

    def length(self, kind: Kind) -> int:  # noqa: ARG002 - MessageReader uses kind
        """Read the length of a list. Each item has at least one byte."""
        count = self.compact(32)
        refuse_if(count > self.left, self.error)
        return count

    def items(self, kind: Kind, count: int) -> list[Any]:
        """Read so many items."""
        return [self.read(kind) for _ in range(count)]


def decode(kind: Kind, data: bytes) -> Any:
    """Decode a value that is all of the bytes."""
    reader = Reader(data)
    value = reader.read(kind)
    refuse_if(reader.left, "CodecError")
    return value


# State


class State:
    """The entries of a state by raw key, with access to the pallets' items by name.

    The item ``I`` of the pallet ``P`` has the key ``twox_128(P) ++ twox_128(I)``; a map appends its hashed keys.
    ``hashers`` names the hasher that a placeholder such as ``ttl_key_hasher`` stands for.
    """

    def __init__(self, entries: Iterable[tuple[bytes, bytes]], **hashers: str) -> None:
        self.entries = {bytes(key): bytes(value) for key, value in entries}
        self.hashers = {**HASHERS, **{name: HASHERS[chosen] for name, chosen in hashers.items()}}

    def key(self, item: str, *keys: Any) -> bytes:
        """Return the raw key of an item. With fewer keys than the map has, return the prefix that its entries share."""
        definition = ITEMS[item]
        prefix = twox_128(definition["pallet"].encode()) + twox_128(item.encode())
        parts = zip(definition["keys"], keys, strict=False)
        return prefix + b"".join(self.hashers[hasher](encode(kind, key)) for (hasher, kind), key in parts)

    def get(self, item: str, *keys: Any) -> Any:
        """Return the value of an item, ``None`` if it has none."""
        data = self.entries.get(self.key(item, *keys))
        return None if data is None else decode(ITEMS[item]["value"], data)

    def put(self, item: str, value: Any, *keys: Any) -> bool:
        """Write the value of an item, or remove it if it is ``None``; return whether it had one."""
        key = self.key(item, *keys)
        had_value = self.entries.pop(key, None) is not None
        if value is not None:
            self.entries[key] = encode(ITEMS[item]["value"], value)
        return had_value

    def raw_keys(self, item: str, *keys: Any) -> list[bytes]:
        """Return the raw keys of a map, or of a part of it, in ascending order."""
        prefix = self.key(item, *keys)
        return sorted(key for key in self.entries if key.startswith(prefix))
