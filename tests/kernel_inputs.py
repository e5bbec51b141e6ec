"""What kernels are handed in tests: arrays they may write to, and columns of byte strings."""

import numpy as np

from relaycast_trie.array.columns import column_of_list, spread_out
from relaycast_trie.kernels import memory, tables


def array(data: bytes) -> memory.Bytes:
    return np.frombuffer(bytearray(data), np.uint8)


def column(*strings: bytes) -> tables.Column:
    return column_of_list(strings)[0]


def spread(*strings: bytes) -> tables.Column:
    """Return a column with the place of each string beside the data."""
    return spread_out(*column_of_list(strings))


def numbers(*items: int) -> memory.Int64s:
    return np.array(items, np.int64)


def slots(*items: int) -> memory.Int32s:
    return np.array(items, np.int32)
