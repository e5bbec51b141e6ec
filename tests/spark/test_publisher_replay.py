"""Publishers in bulk: their tries follow from publications alone, and are those of a simulated relay chain."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.scenario.workload import publications as sent
from relaycast_ledger.exceptions import InputColumns, TableRefused
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_spark.exceptions import RowRefused
from relaycast_spark.publications import (
    PUBLICATIONS,
    PUBLISHER_ROOTS,
    decoded,
    encoded_entries,
    replay_publishers,
    told_apart,
)
from relaycast_trie import StateVersion, trie_root
from spark.scenarios import replayed_at_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, object]]

FEEDS = Scenario(
    name="feeds",
    blocks=30,
    parachains=[
        ParachainTable(id=1000, publish=PublishTable(keys=9, value_bytes=[16, 400, 0], every=4, changed=3, ttl=6)),
        ParachainTable(id=1001, publish=PublishTable(keys=2, every=9, ttl=3)),
        ParachainTable(id=1002, publish=PublishTable(keys=5, changed=1)),
        ParachainTable(id=3000, subscribe=[SubscriptionTable(publisher=1000)]),
    ],
)
"""Keys that expire, some before they are published again; a trie that is empty now and then."""


def table(rows: list[tuple[int, int, str, bytes, int]]) -> pa.RecordBatch:
    """Return publications as they are recorded: keys as names."""
    names = ("block", "para_id", "key", "value", "ttl")
    return pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows])


def recorded(scenario: Scenario) -> pa.RecordBatch:
    """Return what a scenario publishes by the relay blocks that take it, one after those that send it."""
    return table(
        [
            (block + 1, para_id, str(name), value, ttl)
            for block in range(1, scenario.blocks)
            for para_id, name, value, ttl in sent(scenario, block)
        ]
    )


def replayed(batch: pa.RecordBatch, *, rows_a_batch: int = 1_000, last_block: int = 10**6) -> Rows:
    """Replay publications, publisher by publisher, in batches of some size."""
    known = decoded(batch)
    ordered = pa.Table.from_batches([known]).add_column(0, "row", pa.array(range(len(known))))
    ordered = ordered.sort_by([(name, "ascending") for name in ("para_id", "block", "row")]).drop_columns(["row"])
    batches = iter(ordered.combine_chunks().to_batches(max_chunksize=rows_a_batch))
    made = replay_publishers(batches, state_version=StateVersion.V1, last_block=last_block)
    return [row for part in made for row in part.to_pylist()]


def roots_of_a_run(scenario: Scenario) -> dict[tuple[int, int], bytes | None]:
    """Return the child roots that a simulated relay chain came to, by publisher and block."""
    return {
        (change["para_id"], row["block"]): change["child_root"]
        for row in replayed_at_once(scenario)
        for change in row["child_roots"]
    }


@pytest.mark.parametrize("rows_a_batch", [1, 4, 1_000])
def test_publishers_come_to_the_roots_of_a_relay_chain(rows_a_batch: int) -> None:
    found = replayed(recorded(FEEDS), rows_a_batch=rows_a_batch, last_block=FEEDS.blocks)
    assert {(row["para_id"], row["block"]): row["child_root"] for row in found} == roots_of_a_run(FEEDS)
    assert any(row["child_root"] is None for row in found), "a trie that ran empty"


def test_a_trie_is_what_its_entries_say() -> None:
    rows = [(2, 7, "a", b"1", 0), (2, 7, "a", b"2", 0), (2, 7, "b", b"", 3), (4, 7, "a", b"3" * 40, 0)]
    first, second, third = replayed(table(rows))
    entries = {name: bytes(SubscribedKey.from_data(name.encode())) for name in "ab"}
    a, b = PublishedEntry(b"2", 0, 2).encode(), PublishedEntry(b"", 3, 2).encode()
    later = PublishedEntry(b"3" * 40, 0, 4).encode()
    assert (first["block"], first["changed"], first["child_root"]) == (
        2,
        2,
        trie_root({entries["a"]: a, entries["b"]: b}),
    )
    assert (second["block"], second["changed"]) == (4, 1)
    assert (third["block"], third["changed"], third["child_root"]) == (5, 1, trie_root({entries["a"]: later}))


@pytest.mark.parametrize("rows_a_batch", [1, 7, 1_000])
def test_keys_expire_as_the_last_publication_of_each_says(rows_a_batch: int) -> None:
    """Compared with a dictionary that is looked through in every block."""
    draw = random.Random(11)
    rows = sorted(
        (draw.randint(1, 40), draw.choice([7, 9]), draw.choice("abcdef"), draw.randbytes(3), draw.choice([0, 1, 2, 9]))
        for _ in range(220)
    )
    expected = {}
    for para_id in (7, 9):
        held: dict[bytes, PublishedEntry] = {}
        for block in range(1, 61):
            before = dict(held)
            for _, _, name, value, ttl in (row for row in rows if row[:2] == (block, para_id)):
                held[bytes(SubscribedKey.from_data(name.encode()))] = PublishedEntry(value, ttl, block)
            held = {key: it for key, it in held.items() if it.ttl == 0 or it.when_inserted + it.ttl > block}
            if held != before:
                entries = {key: entry.encode() for key, entry in held.items()}
                expected[para_id, block] = trie_root(entries) if entries else None
    found = replayed(table(rows), rows_a_batch=rows_a_batch, last_block=60)
    assert {(row["para_id"], row["block"]): row["child_root"] for row in found} == expected
    assert [row["changed"] for row in found] == [row["changed"] for row in replayed(table(rows), last_block=60)]


def test_entries_are_encoded_as_the_pallet_does() -> None:
    draw = random.Random(5)
    rows = [
        (block, 7, "k", draw.randbytes(size), block * 3) for block, size in enumerate([0, 1, 63, 64, 300, 2_048], 1)
    ]
    batch = decoded(table(rows))
    for part in (batch, batch.slice(2, 3)):
        assert encoded_entries(part).to_pylist() == [
            PublishedEntry(row["value"], row["ttl"], row["block"]).encode() for row in part.to_pylist()
        ]


def test_publications_and_child_roots_are_stages(spark: "SparkSession") -> None:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    from relaycast_spark import stages  # noqa: PLC0415

    frame = spark.createDataFrame(pa.Table.from_batches([recorded(FEEDS)])).repartition(3, "key")
    ordered = frame.orderBy("block")  # rows of one block may come in any order: here none names a key twice
    known = ordered.transform(stages.publications)
    assert known.schema == from_arrow_schema(PUBLICATIONS)
    roots = stages.child_roots(known, last_block=FEEDS.blocks)
    assert roots.schema == from_arrow_schema(PUBLISHER_ROOTS)
    found = {(row["para_id"], row["block"]): row["child_root"] for row in roots.collect()}
    assert found == roots_of_a_run(FEEDS)


def test_a_key_that_repeats_in_a_block_is_told_by_its_sequence_whatever_file_it_is_in(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Spark reads the largest file first."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from relaycast_spark import stages  # noqa: PLC0415

    rows = [(2, 7, "a", bytes([number]) * 10 ** (number % 5), 0) for number in range(12)]
    for number, row in enumerate(rows):
        batch = table([row]).append_column("sequence", pa.array([number], pa.int32()))
        pq.write_table(pa.Table.from_batches([batch]), tmp_path / f"{number:02}.parquet", compression="none")
    known = spark.read.parquet(str(tmp_path)).transform(stages.publications)
    (expected,) = replayed(table(rows), last_block=2)
    (found,) = known.transform(stages.child_roots, last_block=2).collect()
    assert found.child_root == expected["child_root"]
    with pytest.raises(
        PySparkException, match=r"the publications: got 0x\w+ twice in block 2 of publisher 7, expected"
    ):
        known.drop("sequence").transform(stages.child_roots).collect()


@pytest.mark.parametrize("cut", range(5))
def test_rows_that_nothing_tells_apart_are_refused_in_any_batches(cut: int) -> None:
    order = ("para_id", "block", "key")
    rows = decoded(table([(1, 7, "a", b"", 0), (2, 7, "a", b"", 0), (2, 7, "b", b"", 0), (2, 8, "b", b"", 0)]))
    parts = [rows.slice(0, cut), rows.slice(cut, 0), rows.slice(cut)]
    assert list(told_apart(iter(parts), order)) == parts
    with pytest.raises(TableRefused, match="twice in block 2 of publisher 8, expected a column sequence"):
        list(told_apart(iter([*parts, rows.slice(3)]), order))


def test_a_frame_with_other_columns_is_refused(spark: "SparkSession") -> None:
    from relaycast_spark import stages  # noqa: PLC0415

    with pytest.raises(InputColumns, match=r"got the columns id, expected block, para_id, key, value, ttl"):
        spark.range(3).transform(stages.publications)


def test_a_row_that_is_no_publication_is_refused() -> None:
    with pytest.raises(RowRefused, match=r"^row 2, column ttl: got -1, expected a whole number from 0"):
        decoded(table([(1, 7, "a", b"", 0), (1, 7, "a", b"", -1)]))


def test_keys_that_nobody_has_decoded_are_refused() -> None:
    names = pa.RecordBatch.from_pylist(
        [{"block": 1, "para_id": 7, "key": key, "value": b"", "ttl": 0} for key in (bytes(32), b"name")], PUBLICATIONS
    )
    with pytest.raises(RowRefused, match=r"^row 2, column key: got 4 bytes, expected 32 bytes"):
        list(replay_publishers(iter([names]), state_version=StateVersion.V1))


def test_no_publications_have_no_roots() -> None:
    empty: Iterator[pa.RecordBatch] = iter([pa.RecordBatch.from_pylist([], PUBLICATIONS)])
    assert [part.num_rows for part in replay_publishers(empty, state_version=StateVersion.V1)] == [0]
