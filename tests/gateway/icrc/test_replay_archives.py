"""What replays read: events that fit their hashes, from the log and from archives of what it dropped."""

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
from relaycast_gateway.icrc16 import array, blob, nat
from relaycast_gateway.log.retention import Retention
from relaycast_gateway.record import EventDraft


@pytest.mark.matrix("ICRC77-46")
def test_an_event_that_does_not_fit_its_hash_ends_the_replay_before_it_is_sent() -> None:
    wrong = (("icrc72:eventData:hash", blob(bytes(32))),)
    right = (("icrc72:eventData:hash", blob(eventdata_hash(nat(1)))),)
    with ReplayingStage() as stage:
        stage.register()
        stage.subscribe(READER)
        stage.log.append(EventDraft(NAMESPACE, nat(1), PUBLISHER, 0, event_id=1, headers=right))
        stage.broadcaster.catch_up()
        good = stage.request()
        assert stage.state(good) == Variant("completed", 1)
        stage.log.append(EventDraft(NAMESPACE, nat(2), PUBLISHER, 0, event_id=2, headers=wrong))
        stage.broadcaster.catch_up()
        stage.run()
        bad = stage.request(start=2)
        assert stage.state(bad) == Variant("errored", f"the event 2 of {NAMESPACE} does not fit its hash")
        assert event_ids(replayed(stage.subscriber(READER), bad)) == []


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
def test_an_archive_serves_what_the_log_has_dropped(tmp_path: Path) -> None:
    archive = tmp_path / "events.parquet"
    with ReplayingStage(retention=Retention(count=30), archive=ParquetArchive(archive)) as stage:
        stage.register()
        stage.subscribe(READER)
        stage.publish_many(25)
        stage.log.export_parquet(archive)
        stage.publish_many(25)
        assert stage.log.history_start == 21

        replay_id = stage.request(start=3, config={"skip": array(nat(4), nat(1))})

        again = replayed(stage.subscriber(READER))
        assert event_ids(again) == [it for it in range(3, 51) if it % 4 == 1]
        assert {header(it, "icrc77:replay:start_id") for it in again} == {None}
        assert {it["source"].raw for it in again} == {PUBLISHER}
        assert stage.state(replay_id) == Variant("completed", 12)


@pytest.mark.matrix("ICRC77-46", "ICRC77-49")
def test_a_damaged_archive_ends_the_replay_and_nothing_of_it_is_delivered(tmp_path: Path) -> None:
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
        assert stage.state(replay_id) == Variant("errored", f"the event 3 of {NAMESPACE} does not fit its hash")
        assert replayed(stage.subscriber(READER)) == []


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
