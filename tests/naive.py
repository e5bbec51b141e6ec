"""Slow twins of compiled kernels, written from the definition of what each computes."""


def nibbles(key: bytes) -> list[int]:
    return [half for byte in key for half in (byte >> 4, byte & 15)]


def shared_nibbles(left: bytes, right: bytes) -> int:
    shared = 0
    for a, b in zip(nibbles(left), nibbles(right), strict=False):
        if a != b:
            break
        shared += 1
    return shared


def ascending_unique(strings: list[bytes]) -> list[int]:
    """Return the order in which strings ascend; of equal ones the one that comes last."""
    last = {string: index for index, string in enumerate(strings)}
    return [last[string] for string in sorted(last)]


def by_height(heights: list[int]) -> list[list[int]]:
    """Return the numbers of the nodes of each height."""
    levels = range(max(heights, default=-1) + 1)
    return [[node for node, height in enumerate(heights) if height == level] for level in levels]


def branches(keys: list[bytes]) -> dict[bytes, tuple[int, bytes | None, list[int]]]:
    """Return the branches of a trie by their paths: depth, the key that ends there, and the nibbles that go on."""
    paths = [bytes(nibbles(key)) for key in keys]
    found = {}
    for path in {a[: shared_nibbles_of(a, b)] for a in paths for b in paths if a != b}:
        below = [other for other in paths if other.startswith(path)]
        ways = sorted({other[len(path)] for other in below if len(other) > len(path)})
        ends = keys[paths.index(path)] if path in paths else None
        if len(ways) + (ends is not None) > 1:
            found[path] = (len(path), ends, ways)
    return found


def shared_nibbles_of(left: bytes, right: bytes) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def together(strings: list[bytes]) -> tuple[bytes, list[int], list[int], int]:
    """Return strings one after another, where each starts and the last ends, their sizes, and their only one or -1."""
    sizes = [len(string) for string in strings]
    width = 0 if not sizes else sizes[0] if len(set(sizes)) == 1 else -1
    return b"".join(strings), [sum(sizes[:i]) for i in range(len(sizes) + 1)], sizes, width


def byte_lists(encoded: bytes) -> list[bytes] | None:
    """Return the strings of a SCALE ``Vec<Vec<u8>>``, ``None`` for anything else, from the definition of compact."""
    found = _with_length(encoded)
    if found is None:
        return None
    count, rest = found
    strings: list[bytes] = []
    while len(strings) < count:
        found = _with_length(rest)
        if found is None:
            return None
        size, rest = found
        strings.append(rest[:size])
        rest = rest[size:]
    return None if rest else strings


def _with_length(data: bytes) -> tuple[int, bytes] | None:
    """Return the length at the start, in the fewest bytes that hold it, and what follows, at least as long."""
    for size, shape in ((1, 0), (2, 1), (4, 2), (5, 3)):
        number = int.from_bytes(data[:size], "little")
        if len(data) < size or number & 3 != shape:
            continue
        length = number >> 8 if shape == 3 else number >> 2
        fewest = 1 if length < 2**6 else 2 if length < 2**14 else 4 if length < 2**30 else 5
        if fewest == size and (shape != 3 or data[0] == 3) and length <= len(data) - size:
            return length, data[size:]
    return None


def packed(path: list[int]) -> bytes:
    """Return nibbles two to a byte, an odd first one alone."""
    padded = [0] * (len(path) % 2) + path
    return bytes(high << 4 | low for high, low in zip(padded[::2], padded[1::2], strict=True))
