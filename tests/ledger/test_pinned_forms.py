"""What files hold is data here: columns of tables, names in ``run.json``, and the bytes of checkpoints and parts."""

import json
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec import inspect

from relaycast.simulation.batch import BatchSimulation
from relaycast_ledger.face_deliveries import FACE_DELIVERIES
from relaycast_ledger.outcome import Outcome, Point, RuntimePoint
from relaycast_ledger.run_tables import TABLES
from relaycast_ledger.segments.checkpoint import freeze, unpacked
from relaycast_ledger.segments.simulated import PublisherCount
from relaycast_xcm.checkpoint import DumpRow
from spark.scenarios import MARKET, SCARCE, UPGRADED

PINNED: dict[str, Any] = json.loads((Path(__file__).parent / "pinned_forms.json").read_text())
FOR_THE_REPORT = {"series", "latencies", "pictures", "keys", "key_names", "runtime_series"}
SCENARIOS = {it.name: it for it in (MARKET, SCARCE, UPGRADED)}


def columns(schema: pa.Schema) -> list[str]:
    return [f"{field.name} {field.type}{'' if field.nullable else ' required'}" for field in schema]


def names(kind: object, path: str = "") -> Iterator[str]:
    """Yield the place of every member below a type, as JSON and MessagePack name it, in order."""
    for inner in _structs(inspect.type_info(kind)):
        for place, field in enumerate(inner.fields):
            name = f"{path}.{place if inner.array_like else field.encode_name}"
            yield name if field.required else f"{name}?"
            if path or field.encode_name not in FOR_THE_REPORT:
                yield from (below for it in _structs(field.type) for below in names(it.cls, name))


def _structs(info: object) -> Iterator[inspect.StructType]:
    match info:
        case inspect.StructType():
            yield info
        case inspect.Metadata():
            yield from _structs(info.type)
        case inspect.UnionType():
            yield from (it for kind in info.types for it in _structs(kind))
        case inspect.DictType():
            yield from _structs(info.value_type)
        case inspect.ListType() | inspect.CollectionType() | inspect.VarTupleType():
            yield from _structs(info.item_type)


def bytes_of(name: str) -> dict[str, str]:
    """Return digests of a checkpoint and of a part after each of a few blocks."""
    batch = BatchSimulation.prepare(SCENARIOS[name], per_key=True)
    found = {}
    for block in range(1, 9):
        batch.advance(block)
        batch.look_ahead(block)
        found[f"checkpoint {block}"] = _digest(unpacked(freeze(batch)))
        part = msgspec.msgpack.decode(batch.take_told(), strict=False)
        found[f"part {block}"] = _digest(msgspec.msgpack.encode([part["places"], part["tallies"]]))
    return found


def _digest(data: bytes) -> str:
    return f"{len(data)} {blake2b(data, digest_size=12).hexdigest()}"


def test_tables_have_the_columns_that_are_pinned() -> None:
    tables = {**{name: table.schema for name, table in TABLES.items()}, "face_deliveries": FACE_DELIVERIES}
    assert {name: columns(schema) for name, schema in tables.items()} == PINNED["tables"]


def test_a_run_has_the_names_that_are_pinned() -> None:
    assert list(names(Outcome)) == PINNED["run.json"]


def test_charts_have_the_figures_that_are_pinned() -> None:
    kinds = {"subscriber": Point, "runtime": RuntimePoint}
    assert {name: list(kind.__struct_fields__) for name, kind in kinds.items()} == PINNED["points"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_checkpoints_and_parts_have_the_bytes_that_are_pinned(name: str) -> None:
    assert bytes_of(name) == PINNED["bytes"][name]


def rows_of_dumps(kind: type[msgspec.Struct] = DumpRow) -> Iterator[type[msgspec.Struct]]:
    for row in kind.__subclasses__():
        yield row
        yield from rows_of_dumps(row)


def test_a_row_of_a_checkpoint_has_all_its_fields() -> None:
    """With a default for the last one, a shorter row would load as if it had been written."""
    found: list[type[msgspec.Struct]] = [*rows_of_dumps(), PublisherCount]
    assert len(found) > 10
    assert not [(row.__name__, it.name) for row in found for it in msgspec.structs.fields(row) if not it.required]
