"""Tables of proofs, made and verified by the compiled engine a batch at a time: what every engine of workers calls.

A table of proofs has the columns ``root``, ``keys`` and ``nodes``. In place of ``nodes`` there may be ``proof`` as
SCALE, or ``numbers`` of nodes that are in a table of their own. Other columns stay. Work is done a batch at a time: no
row is looked at alone unless something is wrong with it.

Law: the number of a node is its place in the trie that the proofs were made for, so that workers which build the same
trie agree. A number has one node; nodes with the same content at several places have several numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from relaycast_ledger.exceptions import InputColumns
from relaycast_ledger.parquet_files import Batches, Footer, ParquetTable
from relaycast_trie import ArrayTrie, StateVersion, warm_up
from relaycast_trie.array.array_proofs import decode_proofs, verify_columns
from relaycast_trie.array.columns import MAX_KEY_BYTES

Ints = npt.NDArray[np.int64]

NUMBERS = "numbers"
NODES_FOLDER = "_nodes"
"""Where the nodes lie in a folder of proofs: Spark and pyarrow take nothing there for rows."""

NUMBER_LIST = pa.list_(pa.int64())

NODE_TABLE = pa.schema([("number", pa.int64()), ("node", pa.large_binary())])
"""The nodes that ``numbers`` stand for."""

Strings = tuple[npt.NDArray[np.uint8], Ints]
"""All strings one after another, and the offsets where each starts and the last one ends."""

MOST_KEYS_A_BATCH = 1 << 15
"""Keys that are proven in one call, unless one proof has more: what they weigh stays far below what a column holds."""

MOST_BINARY_BYTES = 2**31 - 1

ROOT, KEYS, NODES, PROOF = "root", "keys", "nodes", "proof"
LIST = pa.list_(pa.binary())

PROOF_FORMS = {NODES: LIST, PROOF: pa.binary(), NUMBERS: NUMBER_LIST}
"""The columns that may hold a proof; the first of them that a table has is read."""

REQUESTED = pa.schema([("id", pa.int64()), (KEYS, LIST)])

VALID = "valid"
UNREADABLE = "UnreadableRow"
"""The verdict on a row in which something is missing or has no fitting size."""

VERDICTS = pa.schema(
    [
        ("verdict", pa.string()),
        ("message", pa.string()),
        ("proof_bytes", pa.int64()),
        ("node_count", pa.int64()),
        ("key_count", pa.int64()),
        ("present", pa.int64()),
    ]
)
"""What is added: ``valid`` or the kind of failure, and what there is to say of it; ``present`` counts keys found."""

PROOFS = pa.schema([("id", pa.int64()), (ROOT, pa.binary()), (KEYS, LIST), (NODES, LIST)])
NUMBERED_PROOFS = pa.schema([("id", pa.int64()), (ROOT, pa.binary()), (KEYS, LIST), (NUMBERS, NUMBER_LIST)])
JUDGED_PROOFS = pa.schema([("id", pa.int64()), (ROOT, pa.binary()), *VERDICTS])

Form = Literal["nodes", "numbers", "verdicts"]
"""How proofs are kept: with their nodes, with numbers of nodes that are kept once, or not at all but for verdicts."""

FORMS: dict[Form, pa.Schema] = {"nodes": PROOFS, "numbers": NUMBERED_PROOFS, "verdicts": JUDGED_PROOFS}
"""The columns of proofs in each form."""


REQUEST_TOTALS = pa.schema(
    [("rows", pa.int64()), ("first", pa.int64()), ("last", pa.int64()), ("digest", pa.string()), ("nulls", pa.int64())]
)
"""What requests come to: rows, ids, a digest whatever the order of the rows, and nulls in place of keys."""


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


@dataclass(frozen=True, slots=True)
class TrieTable:
    """The keys and values of a trie in columns, to be sent to workers."""

    keys: Strings
    values: Strings
    state_version: StateVersion = StateVersion.V1

    @classmethod
    def of(cls, keys: pa.Array, values: pa.Array, *, state_version: StateVersion = StateVersion.V1) -> "TrieTable":
        """Return the table of two binary columns."""
        return cls(_strings(keys), _strings(values), state_version)

    def build(self) -> ArrayTrie:
        """Return the trie."""
        return ArrayTrie.from_arrays(self.keys, self.values, state_version=self.state_version)

    def drawn(self, chosen: Ints, altered: npt.NDArray[np.bool_]) -> Strings:
        """Return the keys with these numbers, the last byte of the ``altered`` ones turned round.

        An empty key is altered to one byte.
        """
        data, offsets = self.keys
        sizes = offsets[chosen + 1] - offsets[chosen]
        grown = altered & (sizes == 0)
        ends = np.concatenate(([0], np.cumsum(sizes + grown)))
        places = np.repeat(offsets[chosen] - ends[:-1], sizes + grown) + np.arange(ends[-1])
        taken = data[np.minimum(places, len(data) - 1)] if len(data) else np.zeros(len(places), np.uint8)
        taken[ends[:-1][grown]] = 0
        taken[ends[1:][altered] - 1] ^= 0xFF
        return taken, ends

    def __len__(self) -> int:
        return len(self.keys[1]) - 1


def verified_schema(schema: pa.Schema, place: str = "the proofs") -> pa.Schema:
    """Return the columns of the verdicts on a table of proofs; raises ``InputColumns`` when it is none."""
    names = set(schema.names)
    if not {ROOT, KEYS} <= names or not names & set(PROOF_FORMS):
        expected = f"{ROOT}, {KEYS} and {NODES} (or {PROOF}, or {NUMBERS})"
        raise InputColumns(place, ", ".join(schema.names), expected)
    _check_types(schema, {ROOT: pa.binary(), KEYS: LIST, **PROOF_FORMS}, place)
    taken = [name for name in schema.names if name.lower() in VERDICTS.names]
    if taken:
        raise InputColumns(place, ", ".join(taken), "other names than those of the verdicts")
    return pa.schema([field for field in schema if field.name not in {KEYS, *PROOF_FORMS}] + list(VERDICTS))


def proof_table(footers: Sequence[Footer]) -> ParquetTable:
    """Return a table of proofs in the form that its first file has; raises ``InputColumns``.

    All other columns are kept, see ``parquet_files``.
    """
    first = footers[0]
    form = next((name for name in PROOF_FORMS if name in first.schema.names), NODES)

    def wanted(schema: pa.Schema, place: str) -> list[str]:
        verified_schema(schema, place)
        if form not in schema.names:
            raise InputColumns(place, ", ".join(schema.names), f"{form}, as in {first.place}")
        return [name for name in schema.names if name == form or name not in PROOF_FORMS]

    return ParquetTable.of(footers, wanted)


def request_table(footers: Sequence[Footer]) -> ParquetTable:
    """Return the ``REQUESTED`` columns of a table; raises ``InputColumns``."""

    def wanted(schema: pa.Schema, place: str) -> list[str]:
        if not set(REQUESTED.names) <= set(schema.names):
            raise InputColumns(place, ", ".join(schema.names), " and ".join(REQUESTED.names))
        _check_types(schema, {field.name: field.type for field in REQUESTED}, place)
        return list(REQUESTED.names)

    return ParquetTable.of(footers, wanted)


def _check_types(schema: pa.Schema, kinds: dict[str, pa.DataType], place: str) -> None:
    for name, kind in kinds.items():
        if name in schema.names and not _fits(schema.field(name).type, kind):
            raise InputColumns(place, f"{name} as {schema.field(name).type}", f"{name} as {kind}")


def is_numbered(names: Iterable[str]) -> bool:
    """Return whether a table with these columns says the nodes of its proofs by number."""
    return NUMBERS in names and not {NODES, PROOF} & set(names)


def verify_batches(
    batches: Batches, *, strict: bool = False, load_nodes: Callable[[], NodeTable] | None = None
) -> Batches:
    """Verify tables of proofs and give them back with verdicts, without keys and nodes."""
    warm_up()
    for batch in batches:
        yield verify_batch(batch, strict=strict, nodes=None if load_nodes is None else load_nodes())


def verify_batch(batch: pa.RecordBatch, *, strict: bool = False, nodes: NodeTable | None = None) -> pa.RecordBatch:
    """Return the verdicts on one batch of proofs; ``nodes`` are those that ``numbers`` stand for."""
    schema = verified_schema(batch.schema)
    count = batch.num_rows
    listed, spoiled = _nodes_of(batch, nodes)
    keys, roots = batch.column(KEYS).cast(LIST), batch.column(ROOT).cast(pa.binary())
    readable = _readable(roots, keys, listed) & ~spoiled
    proofs = pa.RecordBatch.from_arrays([roots, keys, listed], [ROOT, KEYS, NODES]).filter(pa.array(readable))
    node_strings, node_ends = _lists(proofs.column(NODES))
    key_strings, key_ends = _lists(proofs.column(KEYS))
    root_data, root_offsets = _strings(proofs.column(ROOT))
    matrix = root_data[root_offsets[0] : root_offsets[-1]].reshape(-1, 32)
    verdicts = verify_columns(matrix, node_strings, node_ends, key_strings, key_ends, strict=strict)
    verdict = np.where(readable, VALID, UNREADABLE).astype(object)
    message = np.where(readable, "", "a root of 32 bytes, keys and a proof, none of them null").astype(object)
    rows = np.flatnonzero(readable)
    for number, error in verdicts.errors.items():
        verdict[rows[number]], message[rows[number]] = type(error).__name__, str(error)
    bytes_before = node_strings[1][node_ends]
    figures = {
        "proof_bytes": bytes_before[1:] - bytes_before[:-1],
        "node_count": node_ends[1:] - node_ends[:-1],
        "key_count": key_ends[1:] - key_ends[:-1],
        "present": verdicts.present,
    }
    columns: dict[str, pa.Array] = {name: batch.column(name) for name in schema.names if name in batch.schema.names}
    columns |= {"verdict": pa.array(verdict, pa.string()), "message": pa.array(message, pa.string())}
    for name, values in figures.items():
        column = np.zeros(count, np.int64)
        column[rows] = values
        columns[name] = pa.array(column)
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def prove_random(
    batches: Batches,
    load: Callable[[], TrieTable],
    *,
    keys_a_proof: int,
    seed: int,
    absent_percent: int = 0,
    form: Form = "nodes",
) -> Batches:
    """Prove keys drawn for each ``id``: the same for an id whatever batch it comes in.

    ``absent_percent`` of the keys are altered, so that most likely the trie does not hold them.
    """
    table, trie = load_trie(load)
    for batch in batches:
        ids = np.asarray(batch.column("id").to_numpy(zero_copy_only=False), np.int64)
        draws = mixed(ids[:, None] * keys_a_proof + np.arange(keys_a_proof), seed).reshape(-1)
        chosen = (draws % np.uint64(len(table))).astype(np.int64)
        altered = (mixed(draws.astype(np.int64), seed + 1) % np.uint64(100)) < absent_percent
        ends = np.arange(len(ids) + 1, dtype=np.int64) * keys_a_proof
        yield from _proved(trie, batch.column("id"), table.drawn(chosen, altered), ends, form)


def prove_requests(batches: Batches, load: Callable[[], TrieTable], *, form: Form = "nodes") -> Batches:
    """Prove the ``keys`` of each row; ``id`` says which row a proof answers. Raises ``InputColumns`` for a null."""
    _, trie = load_trie(load)
    for batch in batches:
        column = batch.column(KEYS).cast(LIST)
        if _lists_with_nulls(column):
            raise InputColumns("the requests", "keys with a null among them", "keys without")
        keys, ends = _lists(column)
        yield from _proved(trie, batch.column("id"), keys, ends, form)


def total_requests(batches: Batches) -> Batches:
    """Give the ``REQUEST_TOTALS`` of all batches, as one batch."""
    rows = nulls = digest = 0
    first, last = None, None
    for batch in batches:
        ids, column = batch.column("id").cast(pa.int64()), batch.column(KEYS).cast(LIST)
        rows += len(ids)
        nulls += _lists_with_nulls(column)
        (data, offsets), ends = _lists(pc.fill_null(column, []))
        starts, sizes = offsets[ends], np.diff(offsets).astype(np.int64)
        for number, place in enumerate(ids.to_pylist()):
            keys = data[starts[number] : starts[number + 1]].tobytes()
            hashed = blake2b(keys, digest_size=8, key=str(place).encode())
            hashed.update(sizes[ends[number] : ends[number + 1]].tobytes())
            digest += int.from_bytes(hashed.digest(), "little")
        known = ids.drop_null()
        if len(known):
            least, most = pc.min_max(known).as_py().values()
            first, last = min(least, least if first is None else first), max(most, most if last is None else last)
    totals = {"rows": [rows], "first": [first], "last": [last], "digest": [f"{digest % 2**64:x}"], "nulls": [nulls]}
    yield pa.RecordBatch.from_pydict(totals, schema=REQUEST_TOTALS)


def request_totals(totals: pa.Table) -> tuple[int, int, int, str]:
    """Return rows, first and last id and digest of requests from the ``REQUEST_TOTALS`` of all of their parts.

    Raises ``InputColumns`` where keys are missing.
    """
    if pc.sum(totals.column("nulls")).as_py():
        raise InputColumns("the requests", "keys with a null among them", "keys without")
    first, last = (pc.min_max(totals.column(name)).as_py()[most] for name, most in (("first", "min"), ("last", "max")))
    digest = sum(int(text, 16) for text in totals.column("digest").to_pylist()) % 2**64
    return pc.sum(totals.column("rows")).as_py() or 0, first or 0, last or 0, f"{digest:016x}"


def _lists_with_nulls(column: pa.Array) -> int:
    """Return how many nulls there are in place of lists, or in them."""
    nulls: int = column.null_count + column.flatten().null_count
    return nulls


def _proved(trie: ArrayTrie, ids: pa.Array, keys: Strings, ends: Ints, form: Form) -> Batches:
    """Prove the keys from ``ends[p]`` to ``ends[p + 1]`` for each id, as batches in a ``form`` of a bounded size."""
    first = 0
    while first < len(ids):
        last = int(np.searchsorted(ends, ends[first] + MOST_KEYS_A_BATCH, side="right")) - 1
        last = min(max(last, first + 1), len(ids))
        data, offsets = keys[0], keys[1][ends[first] : ends[last] + 1]
        part = data[offsets[0] : offsets[-1]], offsets - offsets[0]
        yield _made(trie, ids.slice(first, last - first), part, ends[first : last + 1] - ends[first], form)
        first = last


def _made(trie: ArrayTrie, ids: pa.Array, keys: Strings, ends: Ints, form: Form) -> pa.RecordBatch:
    """Return for each id the proof of the keys between two ``ends``; offsets begin at 0.

    Nodes are numbered by their places in the trie. Where verdicts alone are kept, proofs are verified strictly.
    """
    root = np.frombuffer(trie.root, np.uint8)
    roots = np.tile(root, len(ids)), np.arange(len(ids) + 1) * len(root)
    about = [ids.cast(pa.int64()), _binary(*roots), _listed(_binary(*keys), ends)]
    if form == "numbers":
        placed = trie.place_many(keys, ends)
        numbers = _listed(pa.array(placed.places), placed.ends)
        return pa.RecordBatch.from_arrays([*about, numbers], schema=NUMBERED_PROOFS)
    made = trie.prove_many(keys, ends)
    nodes = _listed(_binary(made.data, made.offsets), made.ends)
    batch = pa.RecordBatch.from_arrays([*about, nodes], schema=PROOFS)
    return verify_batch(batch, strict=True) if form == "verdicts" else batch


def _listed(values: pa.Array, ends: Ints) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), values)


def _binary(data: npt.NDArray[np.uint8], offsets: Ints) -> pa.Array:
    if offsets[-1] > MOST_BINARY_BYTES:
        raise InputColumns("the proofs", f"{offsets[-1]:,} bytes in one batch", f"at most {MOST_BINARY_BYTES:,}")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def load_trie(load: Callable[[], TrieTable]) -> tuple[TrieTable, ArrayTrie]:
    """Return a table with its trie, built once a process and kept for the tasks that come after."""
    warm_up()
    table = load()
    if not (_BUILT and _BUILT[0][0] is table):
        _BUILT[:] = [(table, table.build())]
    return _BUILT[0]


_BUILT: list[tuple[TrieTable, ArrayTrie]] = []


GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio."""


def mixed(numbers: Ints, seed: int) -> npt.NDArray[np.uint64]:
    """Return numbers that look random, from numbers that do not (splitmix64)."""
    state = numbers.astype(np.uint64) + np.uint64((seed + 1) * GOLDEN % 2**64)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def _fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(wanted):
        return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _fits(kind.value_type, wanted.value_type)
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(kind))
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _nodes_of(batch: pa.RecordBatch, nodes: NodeTable | None) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the nodes of all proofs, decoded where they are encoded, and in which rows that fails."""
    spoiled = np.zeros(batch.num_rows, np.bool_)
    if NODES in batch.schema.names:
        return batch.column(NODES).cast(LIST), spoiled
    if PROOF not in batch.schema.names:
        if nodes is None:
            raise InputColumns("the proofs", f"{NUMBERS} without a table of nodes", f"{NODES}, {PROOF}, or that table")
        return nodes.listed(batch.column(NUMBERS))
    column = batch.column(PROOF)
    data, ends = _strings(column)
    found = decode_proofs(data, ends)
    strings, offsets = found.nodes
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(strings)]
    values = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    nodes = pa.LargeListArray.from_arrays(pa.array(found.node_ends), values)
    return nodes, found.spoiled | ~column.is_valid().to_numpy(zero_copy_only=False)


def _readable(roots: pa.Array, keys: pa.Array, nodes: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which rows have a root of 32 bytes, keys that are not too long, and nothing that is null."""
    sizes = pc.fill_null(pc.equal(pc.binary_length(roots), 32), fill_value=False)
    readable = sizes.to_numpy(zero_copy_only=False) & keys.is_valid().to_numpy(zero_copy_only=False)
    readable &= nodes.is_valid().to_numpy(zero_copy_only=False)
    for lists, longest in ((keys, MAX_KEY_BYTES), (nodes, 2**31 - 1)):
        lengths = pc.fill_null(pc.binary_length(lists.flatten()), -1).to_numpy(zero_copy_only=False)
        wrong = (lengths < 0) | (lengths > longest)
        if wrong.any():
            readable[pc.list_parent_indices(lists).to_numpy()[wrong]] = False
    return cast(npt.NDArray[np.bool_], readable)


def _lists(column: pa.Array) -> tuple[Strings, Ints]:
    """Return the strings in a column of lists, and where those of each list start and end."""
    offsets = column.offsets.to_numpy().astype(np.int64)
    return _strings(column.flatten()), offsets - offsets[0]


def _strings(column: pa.Array) -> Strings:
    """Return the bytes of a binary column without nulls, one after another, and where each string starts and ends."""
    plain = column.cast(pa.large_binary())
    _, offsets, data = plain.buffers()
    ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1] if offsets else _NONE
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return content, ends


_NONE = np.zeros(1, np.int64)
