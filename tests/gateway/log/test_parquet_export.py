"""The log as a Parquet table."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc16 import array, blob, map_of, nat, text
from relaycast_gateway.log import EventLog
from relaycast_gateway.log.record_codec import record_hash
from relaycast_gateway.record import EventDraft, Visibility


def test_each_column_says_what_its_name_says(tmp_path: Path) -> None:
    with EventLog.open(clock=VirtualClock(7 * SECOND + 1_999)) as log:
        data = map_of({"key": blob(b"\xab"), "list": array(nat(1), text("ä"))})
        headers = (("ce:source", text("/a")), ("ce:source", nat(5)))
        hidden = Visibility(eligible_authrole=("admin",))
        log.append(EventDraft("a.b", data, b"\x04", 3 * SECOND + 5, event_id=1 << 65, headers=headers, subject="s"))
        log.append(EventDraft("a.b", nat(1 << 90), b"", -1, visibility=hidden, topic="a.b.p2000"))
        assert log.export_parquet(tmp_path / "events.parquet") == 2
        records = log.read()
    first, second = pq.read_table(tmp_path / "events.parquet").to_pylist()
    assert first == {
        "seq": 1,
        "ordinal": 1,
        "id": "10000000000000",
        "prev_id": None,
        "event_id": str(1 << 65),
        "pub_id": records[0].pub_id,
        "occurred_ns": 3_000_000_005,
        "received_ns": 7_000_001_999,
        "occurred_at": datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC),
        "received_at": datetime(1970, 1, 1, 0, 0, 7, 1, tzinfo=UTC),
        "namespace": "a.b",
        "topic": "a.b",
        "subject": "s",
        "source": "/principal/2vxsx-fae/a.b",
        "principal": "2vxsx-fae",
        "data": '{"key":"0xab","list":[1,"ä"]}',
        "headers": '[["ce:source","/a"],["ce:source",5]]',
        "visibility": None,
        "hash": record_hash(records[0]),
    }
    assert second["ordinal"] == 2
    assert (second["prev_id"], second["subject"], second["occurred_ns"]) == ("10000000000000", None, -1)
    assert (second["namespace"], second["topic"]) == ("a.b", "a.b.p2000")
    assert json.loads(second["data"]) == {"$Nat": str(1 << 90)}
    assert json.loads(second["visibility"])["eligible_authrole"] == ["admin"]


def test_an_empty_log_is_an_empty_table(tmp_path: Path) -> None:
    with EventLog.open() as log:
        assert log.export_parquet(tmp_path / "events.parquet") == 0
    assert pq.read_table(tmp_path / "events.parquet").num_rows == 0


def test_nothing_is_left_where_the_table_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EventLog.open() as log:
        log.append(EventDraft("a", nat(1), b"", 0))
        with pytest.raises(FileNotFoundError):
            log.export_parquet(tmp_path / "missing" / "events.parquet")
        (tmp_path / "folder.parquet").mkdir()
        with pytest.raises(OSError, match=r"folder\.parquet"):
            log.export_parquet(tmp_path / "folder.parquet")
        assert [path.name for path in tmp_path.iterdir()] == ["folder.parquet"]


def test_a_log_does_without_pyarrow_until_it_is_exported() -> None:
    code = "import sys, relaycast_gateway.log as log; log.EventLog.open().close(); print('pyarrow' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"
