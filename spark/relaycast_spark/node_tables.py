"""Nodes that many proofs share, kept once: a proof says which by their numbers. No Spark.

Law: the number of a node is its place in the trie that the proofs were made for, so that workers which build the same
trie agree. A number has one node; nodes with the same content at several places have several numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from relaycast_spark.exceptions import InputColumns
from relaycast_trie import ArrayTrie

Ints = npt.NDArray[np.int64]

NUMBERS = "numbers"
NODES_FOLDER = "_nodes"
"""Where the nodes lie in a folder of proofs: Spark and pyarrow take nothing there for rows."""

NUMBER_LIST = pa.list_(pa.int64())

NODE_TABLE = pa.schema([("number", pa.int64()), ("node", pa.large_binary())])
"""The nodes that ``numbers`` stand for."""


@dataclass(frozen=True, slots=True)
class NodeTable:
    """Nodes by number, in the order of the numbers; to be sent to workers."""

    numbers: pa.Array
    nodes: pa.Array

    @classmethod
    def of(cls, table: pa.Table) -> "NodeTable":
        """Return the nodes of a table; raises ``InputColumns`` where it is no ``NODE_TABLE``."""
        if not set(NODE_TABLE.names) <= set(table.schema.names):
            raise InputColumns("the nodes", ", ".join(table.schema.names), " and ".join(NODE_TABLE.names))
        ordered = table.sort_by("number")
        columns = ordered.column("number").cast(pa.int64()), ordered.column("node").cast(pa.large_binary())
        if any(column.null_count for column in columns):
            raise InputColumns("the nodes", "a null among them", "a number and a node in every row")
        return cls(*(column.combine_chunks() for column in columns))

    def listed(self, numbers: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return lists of nodes for lists of numbers, and in which rows a number or the list itself is missing."""
        lists = numbers.cast(NUMBER_LIST)
        wanted = pc.fill_null(lists.flatten(), -1).to_numpy(zero_copy_only=False)
        known = self.numbers.to_numpy(zero_copy_only=False)
        places = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
        missing = known[places] != wanted if len(known) else np.ones(len(wanted), np.bool_)
        spoiled = ~lists.is_valid().to_numpy(zero_copy_only=False)
        if missing.any():
            spoiled[pc.list_parent_indices(lists).to_numpy()[missing]] = True
        taken = self.nodes.take(pa.array(np.where(missing, None, places) if missing.any() else places, pa.int64()))
        ends = np.concatenate(([0], np.cumsum(pc.fill_null(pc.list_value_length(lists), 0).to_numpy())))
        return pa.LargeListArray.from_arrays(pa.array(ends), taken), spoiled


def numbers_used(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the distinct ``numbers`` in all batches, as one batch."""
    used = np.zeros(0, np.int64)
    for batch in batches:
        used = np.union1d(used, batch.column(NUMBERS).flatten().to_numpy(zero_copy_only=False))
    yield pa.RecordBatch.from_arrays([pa.array(used, pa.int64())], ["number"])


def node_table(trie: ArrayTrie, numbers: Ints) -> pa.Table:
    """Return the ``NODE_TABLE`` of some numbers of this trie's nodes."""
    data, offsets = trie.nodes_at(numbers)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    nodes = pa.Array.from_buffers(pa.large_binary(), len(numbers), buffers)
    return pa.Table.from_arrays([pa.array(numbers, pa.int64()), nodes], schema=NODE_TABLE)
