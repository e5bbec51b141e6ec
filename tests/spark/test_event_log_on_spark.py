"""The exported event log, read by Spark: the same events."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc16 import blob, map_of, nat, to_json
from relaycast_gateway.log import EventLog
from relaycast_gateway.log.record_codec import record_hash
from relaycast_gateway.record import EventDraft

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.matrix("X-06")
def test_spark_reads_the_count_the_ids_and_the_hashes_of_the_log(spark: "SparkSession", tmp_path: Path) -> None:
    with EventLog.open(tmp_path / "log", clock=VirtualClock(1_700_000_000 * SECOND + 123_456_789)) as log:
        for batch in range(5):
            log.append(
                *(
                    EventDraft(
                        f"io.relaycast.n{number % 3}",
                        map_of({"value": blob(bytes([number])), "large": nat(number << 60)}),
                        b"\x01",
                        (batch * 100 + number) * SECOND,
                        event_id=(1 << 66) + number if number % 2 else None,
                        subject="key" if number % 5 else None,
                    )
                    for number in range(100)
                )
            )
        count = log.export_parquet(tmp_path / "events.parquet")
        records = log.read()
    table = spark.read.parquet(str(tmp_path / "events.parquet"))
    assert table.count() == count == len(records) == 500
    rows = table.orderBy("seq").collect()
    for row, record in zip(rows, records, strict=True):
        assert (row.seq, row.id, int(row.event_id)) == (record.seq, record.text_id, record.event_id)
        assert (row.pub_id, row.occurred_ns, row.received_ns) == (record.pub_id, record.occurred_ns, record.received_ns)
        assert (row.namespace, row.subject, bytes(row.hash)) == (record.namespace, record.subject, record_hash(record))
        assert json.loads(row.data) == to_json(record.data)
    last = table.selectExpr("max(unix_micros(occurred_at)) AS occurred", "max(unix_micros(received_at)) AS received")
    assert last.first() == (499 * 1_000_000, 1_700_000_000_123_456)
