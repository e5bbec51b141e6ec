"""What replays read: events that fit their hashes, from the log and from archives of what it dropped."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gateway.icrc.replay_stage import (
    READER,
    ReplayingStage,
    event_ids,
    replayed,
)
from gateway.icrc.stage import NAMESPACE, PUBLISHER, header
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.replay.archive import ParquetArchive
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc16 import Icrc16, array, blob, nat, text
from relaycast_gateway.log.retention import Retention
from relaycast_gateway.record import EventDraft


@pytest.mark.matrix("ICRC77-46")
@pytest.mark.parametrize("wrong", [blob(bytes(32)), text("no hash")])
def test_an_event_that_does_not_fit_its_hash_is_left_out_and_counted(
    wrong: Icrc16, caplog: pytest.LogCaptureFixture
) -> None:
    hashes = {1: blob(eventdata_hash(nat(1))), 2: wrong, 3: blob(eventdata_hash(nat(3))), 4: wrong}
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        for number, given in hashes.items():
            headers = (("icrc72:eventData:hash", given),)
            stage.log.append(EventDraft(NAMESPACE, nat(number), PUBLISHER, 0, event_id=number, headers=headers))
        stage.broadcaster.catch_up()
        stage.run()
        stage.subscriber(READER).calls.clear()

        replay_id = stage.request()

        again = replayed(stage.subscriber(READER))
        assert event_ids(again) == [1, 3]
        assert {header(it, "icrc77:replay:end_id") for it in again} == {3}  # an id that arrives
        assert stage.state(replay_id) == Variant("completed", 2)
        assert stage.replay_stats(replay_id) == {"sent": 2, "skipped": 2}
        assert f"the event 2 of {NAMESPACE} does not match its hash" in caplog.text


@pytest.mark.matrix("ICRC77-46")
@pytest.mark.parametrize("bad", [[1], [2], [7, 8, 40], [50], list(range(1, 51))])
def test_an_event_that_cannot_be_decoded_is_left_out_of_a_replay(tmp_path: Path, bad: list[int]) -> None:
    with ReplayingStage(folder=tmp_path) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(50)
        stage.subscriber(READER).calls.clear()
        with closing(sqlite3.connect(tmp_path / "log")) as database, database:
            database.executemany("UPDATE events SET body = x'c1' WHERE seq = ?", [(it,) for it in bad])
        replay_id = stage.request()
        sound = [it for it in range(1, 51) if it not in bad]
        assert event_ids(replayed(stage.subscriber(READER))) == sound
        assert stage.state(replay_id) == Variant("completed", len(sound))
        assert stage.replay_stats(replay_id) == {"sent": len(sound), "skipped": len(bad)}


@pytest.mark.matrix("ICRC77-20")
def test_a_range_from_before_retention_begins_at_the_first_event_kept_and_says_so() -> None:
    with ReplayingStage(retention=Retention(count=4)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(10)
        stage.request(start=2)
        again = replayed(stage.subscriber(READER))
        assert event_ids(again) == [7, 8, 9, 10]
        assert {header(it, "icrc77:replay:start_id") for it in again} == {7}
        stage.subscriber(READER).calls.clear()
        stage.request(start=8)
        assert {header(it, "icrc77:replay:start_id") for it in replayed(stage.subscriber(READER))} == {None}


@pytest.mark.matrix("ICRC77-49")
@pytest.mark.parametrize("is_older", [False, True])
def test_an_archive_serves_what_the_log_has_dropped(tmp_path: Path, is_older: bool) -> None:
    archive = tmp_path / "events.parquet"
    with ReplayingStage(retention=Retention(count=30), archive=ParquetArchive(archive)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(25)
        stage.log.export_parquet(archive)
        if is_older:  # the principal was the source
            table = pq.read_table(archive)
            table = table.set_column(table.schema.get_field_index("source"), "source", table["principal"])
            pq.write_table(table.drop_columns(["principal"]), archive)
        stage.publish_many(25)
        assert stage.log.history_start == 21

        replay_id = stage.request(start=3, config={"skip": array(nat(4), nat(1))})

        again = replayed(stage.subscriber(READER))
        assert event_ids(again) == [it for it in range(3, 51) if it % 4 == 1]
        assert {header(it, "icrc77:replay:start_id") for it in again} == {None}
        assert {it["source"].raw for it in again} == {PUBLISHER}
        assert stage.state(replay_id) == Variant("completed", 12)


@pytest.mark.matrix("ICRC77-46", "ICRC77-49")
def test_a_damaged_event_of_an_archive_is_left_out_and_counted(tmp_path: Path) -> None:
    archive = tmp_path / "events.parquet"
    with ReplayingStage(retention=Retention(count=5), archive=ParquetArchive(archive)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(5)
        stage.log.export_parquet(archive)
        table = pq.read_table(archive)
        changed = ["7" if value.as_py() == "3" else value.as_py() for value in table["data"]]
        pq.write_table(table.set_column(table.schema.get_field_index("data"), "data", pa.array(changed)), archive)
        stage.publish_many(5)
        replay_id = stage.request()
        assert stage.state(replay_id) == Variant("completed", 9)
        assert event_ids(replayed(stage.subscriber(READER))) == [1, 2, *range(4, 11)]
        assert stage.replay_stats(replay_id) == {"sent": 9, "skipped": 1}


@pytest.mark.matrix("ICRC77-49")
@pytest.mark.parametrize("content", [b"no archive", b"PAR1" + bytes(100) + b"PAR1", None])
def test_a_file_that_is_no_archive_ends_the_replay_with_its_name(tmp_path: Path, content: bytes | None) -> None:
    archive = tmp_path / "events.parquet"
    if content is None:
        pq.write_table(pa.table({"seq": [1]}), archive)
    else:
        archive.write_bytes(content)
    with ReplayingStage(retention=Retention(count=5), archive=ParquetArchive(archive)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(10)
        state = stage.state(stage.request())
        assert (state.tag, "events.parquet is no archive of events" in str(state.value)) == ("errored", True)
