"""Where events are found that the log has dropped.

Law: an archive gives the records of the log as they were; one that does not fit its hash is ``CorruptEvent``.
"""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from relaycast_gateway import crockford
from relaycast_gateway.icrc16 import from_json
from relaycast_gateway.log.record_codec import record_hash
from relaycast_gateway.principal import principal_of
from relaycast_gateway.record import EVERYBODY, EventRecord, Visibility


class CorruptEvent(ValueError):
    """An event whose bytes are not those that were published."""

    def __init__(self, namespace: str, event_id: int) -> None:
        super().__init__(namespace, event_id)
        self.namespace, self.event_id = namespace, event_id

    def __str__(self) -> str:
        return f"the event {crockford.encode(self.event_id)} of {self.namespace} does not fit its hash"


class ArchivedEvent(NamedTuple):
    """A record of the log and its ordinal: its position in the namespace, from 1."""

    record: EventRecord
    ordinal: int


class EventArchive(Protocol):
    """Keeps events beyond the log's retention, such as blocks of an ICRC-3 archive."""

    def read(self, namespace: str, after: int, before: int, limit: int) -> Sequence[ArchivedEvent]:
        """Return at most ``limit`` records of a namespace with ``after < seq < before``, in order.

        ``CorruptEvent`` for a record that was changed, ``OSError`` where the archive cannot be read.
        """
        ...


class ParquetArchive:
    """Events in a Parquet file that ``EventLog.export_parquet`` wrote, or in a folder of such files."""

    def __init__(self, place: str | PathLike[str]) -> None:
        self.place = Path(place)

    def read(self, namespace: str, after: int, before: int, limit: int) -> Sequence[ArchivedEvent]:
        import pyarrow.dataset as pds  # noqa: PLC0415 - a server starts without it
        from pyarrow import ArrowException  # noqa: PLC0415

        seq = pds.field("seq")
        wanted = (pds.field("namespace") == namespace) & (seq > after) & (seq < before)
        try:
            table = pds.dataset(self.place, format="parquet").scanner(filter=wanted).head(limit)
        except (ArrowException, OSError) as error:
            raise OSError(f"{self.place.name} is no archive of events: {type(error).__name__}") from None
        found = (ArchivedEvent(_record(row), row["ordinal"]) for row in table.to_pylist())
        return sorted(found, key=lambda event: event.record.seq)


def _record(row: Mapping[str, Any]) -> EventRecord:
    event_id = int(row["event_id"])
    try:
        record = EventRecord(
            row["seq"],
            event_id,
            None if row["prev_id"] is None else crockford.decode(row["prev_id"]),
            row["pub_id"],
            row["occurred_ns"],
            row["received_ns"],
            row["namespace"],
            principal_of(row["source"]),
            row["subject"],
            from_json(json.loads(row["data"])),
            tuple((name, from_json(value)) for name, value in json.loads(row["headers"])),
            EVERYBODY if row["visibility"] is None else _visibility(json.loads(row["visibility"])),
            None if row["topic"] == row["namespace"] else row["topic"],
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        raise CorruptEvent(row["namespace"], event_id) from None
    if record_hash(record) != row["hash"]:
        raise CorruptEvent(row["namespace"], event_id)
    return record


def _visibility(limits: Mapping[str, Any]) -> Visibility:
    given: dict[str, Any] = {name: None if names is None else tuple(names) for name, names in limits.items()}
    return Visibility(**given)
