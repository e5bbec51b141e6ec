"""States as people have them: raw chain specs, exports of keys and values in JSON, CSV or Parquet, and witnesses.

Law: keys and values are taken as they stand, each key once. A child trie whose root stands in the top trie as well must
have that root. What is none of these raises ``BadInput`` with its place.
"""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from relaycast.genesis.chain_spec import ChainSpec, spec_of, without_child_roots
from relaycast.genesis.witness_file import is_witness, witness_of
from relaycast.inputs import MAX_FILE_BYTES, STDIN, parse_hex, parse_json, place_of, read_bytes
from relaycast.refusal import BadInput, plain, shown
from relaycast.terminal import counted
from relaycast_trie import CHILD_STORAGE_PREFIX, StateVersion

EXPECTED = (
    'pairs [["0xkey", "0xvalue"], ...] or {"0xkey": "0xvalue"}, {"top": .., "childrenDefault": {"0xname": ..}}, '
    "the answer of state_getPairs, a raw chain spec, CSV or Parquet"
)
PARQUET_MAGIC = b"PAR1"
COLUMNS = ("key", "value")
CHILD = "child"
"""A third column, where it is there: the child trie's storage key, and nothing for the top trie."""

Place = str
Row = tuple[Place, Any, Any, Any]
"""Where it stands, the child's name or ``None``, key and value, as bytes or 0x hex."""


def read_state(file: str) -> ChainSpec:
    """Return the state in ``file``, gzipped or not; exports are read as states of version 1, raw specs of version 0."""
    name = "state" if file == STDIN else Path(file).name.split(".")[0]
    return state_of(read_bytes(file), place_of(file), name)


def state_of(data: bytes, place: str, name: str = "state") -> ChainSpec:
    """Return the state that ``data`` is; ``place`` is where it comes from."""
    table = _table_rows(data, place)
    if table is not None:
        return _collected(name, place, table)
    content = parse_json(data, place)
    if isinstance(content, dict) and isinstance(content.get("error"), dict):
        raise BadInput(f"{place} at .error", shown(content["error"].get("message")), "an answer with a result")
    if isinstance(content, dict) and "result" in content:
        content, place = content["result"], f"{place} at .result"
    if is_witness(content):
        return witness_of(content, place).spec()
    if isinstance(content, dict) and "genesis" in content:
        return spec_of(content, place)
    return _collected(name, place, _json_rows(content, place))


def read_pairs(file: str) -> dict[bytes, bytes]:
    """Return keys with their values from JSON, CSV or Parquet; a repeated key is refused."""
    place = place_of(file)
    data = read_bytes(file)
    table = _table_rows(data, place)
    pairs: dict[bytes, bytes] = {}
    for here, child, key, value in _pairs(parse_json(data, place), place, None) if table is None else table:
        if child is not None:
            raise BadInput(here, "an entry of a child trie", "pairs of one trie: no column child, or nothing in it")
        entry = _bytes(key, f"{here} (key)")
        if entry in pairs:
            raise BadInput(here, f"the key {shown(f'0x{entry.hex()}')} again", "every key once")
        pairs[entry] = _bytes(value, f"{here} (value)")
    return pairs


def _collected(name: str, place: str, rows: Iterable[Row]) -> ChainSpec:
    top: dict[bytes, bytes] = {}
    children: dict[bytes, dict[bytes, bytes]] = {}
    for here, child, key, value in rows:
        inside = top
        if child is not None:
            inside = children.setdefault(_bytes(child, f"{here} (child)").removeprefix(CHILD_STORAGE_PREFIX), {})
        entry = _bytes(key, f"{here} (key)")
        if entry in inside:
            raise BadInput(here, f"the key {shown(f'0x{entry.hex()}')} again", "every key once")
        inside[entry] = _bytes(value, f"{here} (value)")
    if not top:
        raise BadInput(place, "a state without a key in its top trie", EXPECTED)
    state = ChainSpec(name, top, {child: pairs for child, pairs in children.items() if pairs}, StateVersion.V1)
    return without_child_roots(state, place)


def _json_rows(content: Any, place: str) -> Iterator[Row]:
    if isinstance(content, dict) and "top" in content:
        unknown = [name for name in content if name not in ("top", "childrenDefault")]
        if unknown:
            raise BadInput(
                place, f"the member {shown(unknown[0])}", "top, and childrenDefault where there are children"
            )
        yield from _pairs(content["top"], f"{place} at .top", None)
        children = content.get("childrenDefault", {})
        if not isinstance(children, dict):
            raise BadInput(f"{place} at .childrenDefault", shown(children), 'an object {"0xname": pairs}')
        for name, pairs in children.items():
            yield from _pairs(pairs, f"{place} at .childrenDefault[{shown(name)}]", name)
        return
    yield from _pairs(content, place, None)


def _pairs(content: Any, place: str, child: str | None) -> Iterator[Row]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield f"{place}[{shown(key)}]", child, key, value
        return
    if not isinstance(content, list):
        raise BadInput(place, shown(content), EXPECTED)
    for index, pair in enumerate(content):
        if not isinstance(pair, list) or len(pair) != 2:
            raise BadInput(f"{place} at [{index}]", shown(pair), 'a ["0xkey", "0xvalue"] pair')
        yield f"{place} at [{index}]", child, *pair


def _table_rows(data: bytes, place: str) -> Iterator[Row] | None:
    """Return the rows of Parquet or CSV, whose first line names the columns; ``None`` where it is neither."""
    if data.startswith(PARQUET_MAGIC):
        return _parquet_rows(data, place)
    names = data.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0].replace(b'"', b"").strip().split(b",")
    is_csv = len(names) > 1 and (b"key" in names or place.endswith((".csv", ".csv.gz")))
    return _csv_rows(data, place) if is_csv else None


def _csv_rows(data: bytes, place: str) -> Iterator[Row]:
    csv.field_size_limit(MAX_FILE_BYTES)  # 131,072 characters by default: fewer than a :code has
    try:
        lines = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        names = next(lines)
        _check_columns(names, place)
        for cells in lines:
            here = f"{place} line {lines.line_num:,}"
            if len(cells) != len(names):
                raise BadInput(here, counted(len(cells), "cell"), counted(len(names), "cell"))
            row = dict(zip(names, cells, strict=True))
            yield here, row.get(CHILD) or None, row["key"], row["value"]
    except UnicodeDecodeError as error:
        raise BadInput(f"{place} at byte {error.start}", f"0x{data[error.start]:02x}", "CSV in UTF-8") from None
    except csv.Error as error:
        raise BadInput(f"{place} line {lines.line_num:,}", f"text that is not CSV ({error})", "CSV") from None


def _check_columns(names: Sequence[str], place: str) -> None:
    if not set(COLUMNS) <= set(names) <= {*COLUMNS, CHILD} or len(set(names)) < len(names):
        got = f"the columns {', '.join(map(plain, names))}"
        raise BadInput(place, got, "key and value, and child where there are children")


def _parquet_rows(data: bytes, place: str) -> Iterator[Row]:
    from relaycast.parquet_input import whole_table  # noqa: PLC0415 - slow to load

    table = whole_table(data, place)
    names = table.column_names
    _check_columns(names, place)
    children = table[CHILD].to_pylist() if CHILD in names else [None] * len(table)
    rows = zip(children, table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    for number, (child, key, value) in enumerate(rows, start=1):
        yield f"{place} row {number:,}", child, key, value


def _bytes(data: Any, place: str) -> bytes:
    return data if isinstance(data, bytes) else parse_hex(data, place)
