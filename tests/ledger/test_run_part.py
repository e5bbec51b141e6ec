"""Parts of a run: however blocks are shared out and cut, their parts join to the tables and figures of one process."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from relaycast.scenario.scenario import Scenario
from relaycast.simulation.batch import BatchSimulation
from relaycast_ledger import BlockRecord, run_part, run_statistics, run_tables
from relaycast_ledger.record_fields import merge_in, total_names
from relaycast_ledger.run_part import (
    BlockPlace,
    PartInTheMaking,
    RunPart,
    add_part,
    add_parts,
)
from relaycast_ledger.run_statistics import RunStatistics, SubscriberStatistics
from relaycast_ledger.run_tables import RunTables, TableRows
from relaycast_xcm.checkpoint import CheckpointRefused, decoded, encoded
from searches import examples
from spark.scenarios import MARKET, SCARCE, UPGRADED

Told = tuple[dict[str, bytes], dict[int, SubscriberStatistics]]

SCENARIOS = {it.name: it for it in (MARKET, SCARCE, UPGRADED)}

OTHERWISE_MERGED = {
    "points",
    "uncharged",
    "fullest_block",
    "_fullest_load",
    "accounts",
    "endings",
    "keys",
}


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files have many groups and parts many batches, so that they end inside of each other."""
    monkeypatch.setattr(run_part, "ROWS_A_BATCH", 30)
    monkeypatch.setattr(run_tables, "ROWS_A_GROUP", 100)


@cache
def records_of(name: str) -> list[list[BlockRecord]]:
    """Return the records of each relay block of a run, with accounts by key."""
    scenario: Scenario = SCENARIOS[name]
    batch = BatchSimulation.prepare(scenario, per_key=True)
    return [batch.advance(block).records for block in range(1, scenario.blocks + 1)]


@cache
def at_once(name: str) -> Told:
    """Return what one process writes and counts."""
    with TemporaryDirectory() as folder, tables_in(folder) as tables:
        score = RunStatistics(tables=tables)
        for block in records_of(name):
            for record in block:
                score.add(record)
        tables.close()  # the folder goes with the block
        return files(folder), score.subscribers


def tables_in(folder: str) -> RunTables:
    return RunTables(Path(folder), "run", TableRows(by_key=True))


def files(folder: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def part_of(records: Sequence[BlockRecord]) -> RunPart:
    """Return a part that has travelled."""
    making = PartInTheMaking(TableRows(by_key=True))
    for record in records:
        making.add(record)
    return decoded(encoded(making.take()), RunPart)


def with_types(value: Any) -> Any:
    """Return a value as plain tuples that name every type in it: a number that is a parachain equals its number."""
    if isinstance(value, msgspec.Struct):
        return type(value), [(name, with_types(getattr(value, name))) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return type(value), [(with_types(key), with_types(each)) for key, each in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [with_types(each) for each in value]
    return type(value), value


@pytest.mark.parametrize("name", SCENARIOS)
@given(data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_parts_one_after_another_are_one_run(name: str, data: st.DataObject) -> None:
    records = records_of(name)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(records) - 1))))
    with TemporaryDirectory() as folder, tables_in(folder) as tables:
        score = RunStatistics()
        for first, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
            add_part(part_of([record for block in records[first:end] for record in block]), score, tables)
        tables.close()
        expected_files, expected = at_once(name)
        assert files(folder) == expected_files
    assert with_types(score.subscribers) == with_types(expected)


@pytest.mark.parametrize("name", ["market"])
@given(data=st.data())
@settings(max_examples=examples(20), deadline=None)
def test_parts_side_by_side_are_one_run(name: str, data: st.DataObject) -> None:
    records = records_of(name)
    readers = [chain.id for chain in SCENARIOS[name].subscribers()]
    order = {para_id: place for place, para_id in enumerate(readers)}
    owner = {para_id: data.draw(st.integers(0, 2)) for para_id in readers}
    length = data.draw(st.integers(1, len(records)))
    with TemporaryDirectory() as folder, tables_in(folder) as tables:
        score = RunStatistics()
        for first in range(0, len(records), length):
            some = [record for block in records[first : first + length] for record in block]
            shares = [[it for it in some if owner[int(it.para_id)] == number] for number in range(3)]
            add_parts([part_of(share) for share in shares], order, score, tables)
        tables.close()
        expected_files, expected = at_once(name)
        assert files(folder) == expected_files
    assert with_types(score.subscribers) == with_types(expected)


def test_every_figure_of_a_tally_is_counted_in() -> None:
    assert sorted([*total_names(SubscriberStatistics), *OTHERWISE_MERGED]) == sorted(
        SubscriberStatistics.__struct_fields__
    )


@pytest.mark.parametrize("figure", ["callbacks", "incomplete_blocks"])
def test_a_mutant_that_forgets_a_sum_is_found_out(figure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(before: msgspec.Struct, after: msgspec.Struct) -> None:
        kept = getattr(before, figure, None)
        merge_in(before, after)
        if isinstance(before, SubscriberStatistics):
            setattr(before, figure, kept)

    monkeypatch.setattr(run_statistics, "merge_in", forgetful)
    records, score = records_of("scarce"), RunStatistics()
    with TemporaryDirectory() as folder, tables_in(folder) as tables:
        for block in records:
            add_part(part_of(block), score, tables)
    assert score.subscribers != at_once("scarce")[1]


def test_equal_blocks_give_equal_bytes() -> None:
    making = [PartInTheMaking(TableRows(by_key=True)) for _ in range(2)]
    for it in making:
        for record in records_of("scarce")[5]:
            it.add(record)
    once, again = (encoded(it.take()) for it in making)
    assert once == again == encoded(decoded(once, RunPart))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "truncated"),
        (b"\xc1", "invalid"),  # no MessagePack
        (b"\x01", "Expected `object`"),  # a number where a part belongs
        (b"\x80", "missing required field"),  # a part without anything
    ],
)
def test_what_is_no_part_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(CheckpointRefused, match=why):
        decoded(data, RunPart)


def test_rows_that_are_none_are_refused() -> None:
    part = part_of(records_of("scarce")[5])
    cut = {name: [data[:-8] for data in given] for name, given in part.rows.items()}
    for rows, why in (
        (cut, "a part of the table"),
        ({"blocks": []}, "a part of the table blocks"),
        ({"prices": [b""]}, "got the table 'prices', expected one of blocks"),
    ):
        with pytest.raises(CheckpointRefused, match=why):
            replace(part, rows=rows).batches()


def test_points_that_are_not_whole_are_refused() -> None:
    part = part_of(records_of("scarce")[5])
    (score,) = part.tallies.values()
    score.points._numbers.append(1)
    with pytest.raises(CheckpointRefused, match="points of a chart are not whole"):
        decoded(encoded(part), RunPart)


@pytest.mark.parametrize("points", [[[1 << 63], [], [0]], [b"", b""], [b"1", b"", bytes(8)]])
def test_points_that_are_none_are_refused(points: object) -> None:
    with pytest.raises(CheckpointRefused):
        decoded(forged(points=points), RunPart)


def test_a_count_that_is_none_is_refused() -> None:
    with pytest.raises(CheckpointRefused, match="Expected `int`"):
        decoded(forged(latencies={1: "b"}), RunPart)


def forged(**members: object) -> bytes:
    """Return a part with a score that holds something else."""
    whole = msgspec.msgpack.decode(encoded(part_of(records_of("scarce")[5])), strict=False)
    (score,) = whole["tallies"].values()
    score.update(members)
    return msgspec.msgpack.encode(whole)


def test_a_parachain_that_is_none_is_refused() -> None:
    forged = encoded(part_of(records_of("scarce")[5])).replace(b"\xa9publisher\xcd\x07\xd0", b"\xa9publisher\xff")
    with pytest.raises(CheckpointRefused, match="u32"):
        decoded(forged, RunPart)


def test_a_part_with_other_rows_than_it_says_is_refused() -> None:
    part = part_of(records_of("scarce")[5])
    places = [BlockPlace(it.tick, it.para_id, {**it.rows, "deliveries": 3}) for it in part.places]
    with TemporaryDirectory() as folder, tables_in(folder) as tables, pytest.raises(CheckpointRefused, match="3"):
        add_parts([replace(part, places=places)], {3000: 0}, RunStatistics(), tables)
