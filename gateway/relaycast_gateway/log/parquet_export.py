"""Events as a Parquet table that Spark, DuckDB and pandas read.

| column | type | holds |
|---|---|---|
| ``seq`` | int64 | the place in the log |
| ``ordinal`` | int64 | the place in the namespace, from 1, purged events counted |
| ``id``, ``prev_id`` | string | ids as Crockford Base32, as in every text; ``prev_id`` null at the start of a chain |
| ``event_id`` | string | the same id in decimal digits, an id of more than 4,300 digits in hex after ``0x`` |
| ``pub_id`` | int64 | WAMP's publication id |
| ``occurred_ns``, ``received_ns`` | int64 | times, exact, nanoseconds since 1970 |
| ``occurred_at``, ``received_at`` | timestamp[us, UTC] | the same times, cut to microseconds |
| ``namespace``, ``topic``, ``subject`` | string | ``topic`` is that of WAMP |
| ``source`` | string | the CloudEvents source; unique together with ``id`` |
| ``principal`` | string | text of the producer's principal |
| ``data`` | string | JSON, as in ``icrc16``; data without such a form is ``{"$Unreadable": REASON}`` |
| ``headers`` | string | JSON: an array of [name, value], in order; a name may come again |
| ``visibility`` | string | JSON object of the limits; null where everybody may see the event |
| ``hash`` | binary | BLAKE2b-256 of the record in its stored form (``record_hash``) |
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from relaycast_gateway import crockford
from relaycast_gateway.icrc16 import MOST_NUMBER, Icrc16, to_json
from relaycast_gateway.log.record_codec import record_hash
from relaycast_gateway.principal import principal_text
from relaycast_gateway.record import EVERYBODY, EventRecord
from relaycast_ledger.arrow_columns import column
from relaycast_ledger.staged_file import staged

ROWS_A_GROUP = 10_000

_MOMENT = pa.timestamp("us", "UTC")

SCHEMA = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("prev_id", pa.string()),
        pa.field("event_id", pa.string(), nullable=False),
        pa.field("pub_id", pa.int64(), nullable=False),
        pa.field("occurred_ns", pa.int64(), nullable=False),
        pa.field("received_ns", pa.int64(), nullable=False),
        pa.field("occurred_at", _MOMENT, nullable=False),
        pa.field("received_at", _MOMENT, nullable=False),
        pa.field("namespace", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("subject", pa.string()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("principal", pa.string(), nullable=False),
        pa.field("data", pa.string(), nullable=False),
        pa.field("headers", pa.string(), nullable=False),
        pa.field("visibility", pa.string()),
        pa.field("hash", pa.binary(), nullable=False),
    ],
    metadata={"relaycast.events": "4"},
)


Numbered = tuple[EventRecord, int]
"""A record and its ordinal."""


def write_events(file: Path, pages: Iterable[list[Numbered]]) -> int:
    """Write records to ``file``, all of them or nothing, and return how many they were."""
    with staged(file) as stream:
        return _write(stream, pages)


def _write(stream: IO[bytes], pages: Iterable[list[Numbered]]) -> int:
    count = 0
    waiting: list[Numbered] = []
    with pq.ParquetWriter(stream, SCHEMA, compression="zstd") as writer:
        for page in pages:
            waiting += page
            if len(waiting) >= ROWS_A_GROUP:
                count += _flush(writer, waiting)
        return count + _flush(writer, waiting)


def _flush(writer: pq.ParquetWriter, records: list[Numbered]) -> int:
    rows = [_row(record, ordinal) for record, ordinal in records]
    records.clear()
    if rows:
        columns = [_column(field.type, [row[field.name] for row in rows]) for field in SCHEMA]
        writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA))
    return len(rows)


def _column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    return column(pa.int64(), values).cast(kind) if kind == _MOMENT else column(kind, values)


def _row(record: EventRecord, ordinal: int) -> dict[str, Any]:
    return {
        "seq": record.seq,
        "ordinal": ordinal,
        "id": record.text_id,
        "prev_id": None if record.prev_id is None else crockford.encode(record.prev_id),
        "event_id": str(record.event_id) if record.event_id <= MOST_NUMBER else hex(record.event_id),
        "pub_id": record.pub_id,
        "occurred_ns": record.occurred_ns,
        "received_ns": record.received_ns,
        "occurred_at": record.occurred_ns // 1_000,
        "received_at": record.received_ns // 1_000,
        "namespace": record.namespace,
        "topic": record.topic,
        "subject": record.subject,
        "source": record.source_uri,
        "principal": principal_text(record.source),
        "data": _json(_readable(record.data)),
        "headers": _json([[name, _readable(value)] for name, value in record.headers]),
        "visibility": None if record.visibility == EVERYBODY else _json(asdict(record.visibility)),
        "hash": record_hash(record),
    }


def _readable(value: Icrc16) -> Any:
    """Return a value as JSON, or the reason if it has no such form (from a log of an earlier version)."""
    try:
        return to_json(value)
    except ValueError as error:
        return {"$Unreadable": str(error)}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
