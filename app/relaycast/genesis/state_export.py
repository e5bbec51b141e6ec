"""States as people have them: raw chain specs, exports of keys and values in JSON or Parquet, and witnesses.

Law: keys and values are taken as they stand, each key once. A child trie whose root stands in the top trie as well must
have that root. What is none of these raises ``BadInput`` with its place.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from relaycast.genesis.chain_spec import ChainSpec, spec_of, without_child_roots
from relaycast.genesis.witness_file import is_witness, witness_of
from relaycast.inputs import STDIN, parse_hex, parse_json, place_of, read_bytes
from relaycast.refusal import BadInput, shown
from relaycast_trie import CHILD_STORAGE_PREFIX, StateVersion

EXPECTED = (
    'pairs [["0xkey", "0xvalue"], ...] or {"0xkey": "0xvalue"}, {"top": .., "childrenDefault": {"0xname": ..}}, '
    "the answer of state_getPairs, a raw chain spec, or Parquet"
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
    if data.startswith(PARQUET_MAGIC):
        return _collected(name, place, _parquet_rows(data, place))
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


def _parquet_rows(data: bytes, place: str) -> Iterator[Row]:
    from relaycast.parquet_input import whole_table  # noqa: PLC0415 - slow to load

    table = whole_table(data, place)
    names = table.column_names
    if not set(COLUMNS) <= set(names) <= {*COLUMNS, CHILD}:
        raise BadInput(place, f"the columns {', '.join(names)}", "key and value, and child where there are children")
    children = table[CHILD].to_pylist() if CHILD in names else [None] * len(table)
    rows = zip(children, table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    for number, (child, key, value) in enumerate(rows, start=1):
        yield f"{place} row {number:,}", child, key, value


def _bytes(data: Any, place: str) -> bytes:
    return data if isinstance(data, bytes) else parse_hex(data, place)
