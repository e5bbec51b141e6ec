"""Recorded message loads: how many bytes arrived in which relay block, from CSV or Parquet.

Law: a block comes once and has whole bytes; blocks that are not there had none. Anything else is refused by its row.
"""

import csv
import io
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct

from relaycast.inputs import place_of, read_bytes
from relaycast.refusal import BadInput, shown
from relaycast_pallets.messaging.relay_queues import MAX_WAITING_BYTES

COLUMNS = ("block", "bytes")
MAX_TRACED_BLOCK = 10_000_000


class LoadTrace(Struct, frozen=True):
    """Bytes by relay block, and a digest of them."""

    bytes_at: dict[int, int]
    last_block: int
    digest: bytes

    def at(self, block: int, *, repeats: bool) -> int:
        """Return the bytes of a block; behind the last one it begins anew, where it ``repeats``."""
        if repeats:
            block = (block - 1) % self.last_block + 1
        return self.bytes_at.get(block, 0)


def read_load_trace(file: str) -> LoadTrace:
    """Return the trace in ``file``, Parquet by its name and CSV otherwise; raises ``BadInput``."""
    rows = _parquet_rows if Path(file).suffix == ".parquet" else _csv_rows
    found: dict[int, int] = {}
    for place, block, size in rows(file):
        number = _number(block, f"{place}, block", 1, MAX_TRACED_BLOCK)
        if number in found:
            raise BadInput(f"{place}, block", f"{number} again", "every block once")
        found[number] = _number(size, f"{place}, bytes", 0, MAX_WAITING_BYTES)
    if not found:
        raise BadInput(place_of(file), "no rows", "a row for each block in which messages arrive")
    text = "\n".join(f"{block},{size}" for block, size in sorted(found.items()))
    return LoadTrace(found, max(found), blake2b(text.encode(), digest_size=32).digest())


def _number(value: Any, place: str, low: int, high: int) -> int:
    text = value if isinstance(value, str) else str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
        raise BadInput(place, shown(value), f"a whole number from {low} to {high:,}")
    return int(text)


def _csv_rows(file: str) -> Iterator[tuple[str, str, str]]:
    place = place_of(file)
    try:
        text = read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{place} at byte {error.start}", f"0x{error.object[error.start]:02x}", "CSV in UTF-8") from None
    reader = csv.reader(io.StringIO(text), strict=True)
    try:
        block, size = _positions(list(next(reader, [])), place)
        for row in reader:
            if row and len(row) != len(COLUMNS):
                raise BadInput(f"{place} line {reader.line_num}", f"{len(row)} fields", "a block and its bytes")
            if row:
                yield f"{place} line {reader.line_num}", row[block].strip(), row[size].strip()
    except csv.Error as error:
        raise BadInput(f"{place} line {reader.line_num}", str(error), "CSV with the columns block and bytes") from None


def _parquet_rows(file: str) -> Iterator[tuple[str, Any, Any]]:
    from relaycast.parquet_input import whole_table  # noqa: PLC0415 - slow to load

    place = place_of(file)
    table = whole_table(read_bytes(file), place)
    _positions(table.column_names, place)
    for number, (block, size) in enumerate(zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)):
        yield f"{place} row {number}", block, size


def _positions(names: list[str], place: str) -> tuple[int, int]:
    """Return where the block and its bytes stand."""
    stripped = [name.strip() for name in names]
    if sorted(stripped) != sorted(COLUMNS):
        raise BadInput(place, f"the columns {', '.join(map(shown, names)) or 'none'}", "the columns block and bytes")
    return stripped.index("block"), stripped.index("bytes")
