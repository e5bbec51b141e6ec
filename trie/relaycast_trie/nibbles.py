r"""Paths through a trie: half bytes, one to a byte, so that slicing and comparing are plain ``bytes`` work.

``b"\x01\x0f"`` is the path ``1f``. Packed, an odd path has its first nibble alone in the low half of the first byte.
"""

from collections.abc import Sequence

_VALUES = bytes(int(chr(code), 16) if chr(code) in "0123456789abcdef" else 0 for code in range(256))
_DIGITS = bytes(ord("0123456789abcdef"[value & 15]) for value in range(256))

NIBBLES = tuple(bytes([nibble]) for nibble in range(16))
"""Each path of one nibble."""

Prefix = tuple[bytes, int | None]
"""A path as trie-db hands it to a database: whole bytes, then an odd nibble in the high half of a byte, or ``None``."""


def to_nibbles(key: bytes) -> bytes:
    """Return the path of ``key``: two nibbles a byte, high half first; ``TypeError`` when it is not bytes."""
    try:
        return key.hex().encode().translate(_VALUES)
    except AttributeError:
        raise TypeError(f"a key is bytes, got {type(key).__name__}") from None


def all_to_nibbles(keys: Sequence[bytes]) -> list[bytes]:
    """Return the path of each key; ``TypeError`` when one is not bytes. Keys of one length are converted together."""
    if {type(key) for key in keys} != {bytes} or len({len(key) for key in keys}) != 1 or not keys[0]:
        return [to_nibbles(key) for key in keys]
    paths, size = to_nibbles(b"".join(keys)), 2 * len(keys[0])
    return [paths[start : start + size] for start in range(0, len(paths), size)]


def from_nibbles(path: bytes) -> bytes:
    """Return the key of an even ``path``."""
    if len(path) % 2:
        raise ValueError(f"a key has whole bytes, got {len(path)} nibbles")
    return bytes.fromhex(path.translate(_DIGITS).decode())


def pack(path: bytes) -> bytes:
    """Return ``path`` as a node encodes its partial key: right-aligned, an odd first nibble alone in its byte."""
    if not path:
        return b""
    digits = path.translate(_DIGITS).decode()
    return bytes.fromhex("0" + digits if len(path) % 2 else digits)


def unpack(packed: bytes, count: int) -> bytes:
    """Return the ``count`` nibbles of a packed partial key."""
    path = to_nibbles(packed)
    return path[1:] if count % 2 else path


def digits(path: bytes) -> str:
    """Return ``path`` as hexadecimal digits, for people."""
    return path.translate(_DIGITS).decode()


def shared_length(left: bytes, right: bytes) -> int:
    """Return how many nibbles two paths have in common before they part."""
    size = min(len(left), len(right))
    if left[:size] == right[:size]:
        return size
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle
    return low


def shared_key_nibbles(left: bytes, right: bytes) -> int:
    """Return how many nibbles two keys have in common before they part."""
    size = min(len(left), len(right))
    difference = int.from_bytes(left[:size], "big") ^ int.from_bytes(right[:size], "big")
    return (8 * size - difference.bit_length()) // 4


def prefix_of(path: bytes) -> Prefix:
    """Return ``path`` as a database prefix (hash-db's ``Prefix``)."""
    even = len(path) & ~1
    return from_nibbles(path[:even]), path[even] << 4 if len(path) % 2 else None


def prefixed_key(path: bytes, node_hash: bytes) -> bytes:
    """Return the key of a node in a database that keeps nodes apart by path (memory-db's ``PrefixedKey``)."""
    whole, odd = prefix_of(path)
    return whole + (b"" if odd is None else bytes([odd])) + node_hash
