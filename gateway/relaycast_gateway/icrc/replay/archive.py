"""Where events are found that the log has dropped.

Law: an archive returns the records of the log unchanged. A record that cannot be read, or does not match its hash, is
replaced by an ``UnreadableEvent``.
"""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from relaycast_gateway import crockford
from relaycast_gateway.icrc16 import from_json
from relaycast_gateway.log import EventLog
from relaycast_gateway.log.record_codec import record_hash
from relaycast_gateway.log.unusable import DamagedEvent
from relaycast_gateway.principal import principal_of
from relaycast_gateway.record import EVERYBODY, EventRecord, Visibility


class UnreadableEvent(NamedTuple):
    """An event that is left out of a replay."""

    seq: int
    namespace: str
    event_id: int | None
    """``None`` if it cannot be read either."""

    reason: str

    def __str__(self) -> str:
        name = f"at {self.seq}" if self.event_id is None else crockford.encode(self.event_id)
        return f"the event {name} of {self.namespace} {self.reason}"


class ArchivedEvent(NamedTuple):
    """A record of the log and its ordinal: its position in the namespace, from 1."""

    record: EventRecord
    ordinal: int

    @property
    def seq(self) -> int:
        return self.record.seq


ReadEvent = ArchivedEvent | UnreadableEvent

UNFIT = "does not match its hash"


class EventArchive(Protocol):
    """Keeps events beyond the log's retention, such as blocks of an ICRC-3 archive."""

    def read(self, namespace: str, after: int, before: int, limit: int) -> Sequence[ReadEvent]:
        """Return at most ``limit`` records of a namespace with ``after < seq < before``, in order.

        ``OSError`` if the archive cannot be read.
        """
        ...


class ParquetArchive:
    """Events in a Parquet file that ``EventLog.export_parquet`` wrote, or in a folder of such files."""

    def __init__(self, place: str | PathLike[str]) -> None:
        self.place = Path(place)

    def read(self, namespace: str, after: int, before: int, limit: int) -> Sequence[ReadEvent]:
        import pyarrow.dataset as pds  # noqa: PLC0415 - a server starts without it
        from pyarrow import ArrowException  # noqa: PLC0415

        from relaycast_gateway.log.parquet_export import SCHEMA  # noqa: PLC0415

        seq = pds.field("seq")
        wanted = (pds.field("namespace") == namespace) & (seq > after) & (seq < before)
        try:
            events = pds.dataset(self.place, format="parquet")
            if "principal" not in events.schema.names:  # older tables have it as their source
                events = events.replace_schema(events.schema.append(SCHEMA.field("principal").with_nullable(True)))
            table = events.scanner(filter=wanted).head(limit)
        except (ArrowException, OSError) as error:
            raise OSError(f"{self.place.name} is no archive of events: {type(error).__name__}") from None
        return sorted(map(_event, table.to_pylist()), key=lambda event: event.seq)


def _event(row: Mapping[str, Any]) -> ReadEvent:
    event_id: int | None = None
    try:
        event_id = int(row["event_id"], 0)
        record = EventRecord(
            row["seq"],
            event_id,
            None if row["prev_id"] is None else crockford.decode(row["prev_id"]),
            row["pub_id"],
            row["occurred_ns"],
            row["received_ns"],
            row["namespace"],
            principal_of(row["principal"] or row["source"]),
            row["subject"],
            from_json(json.loads(row["data"])),
            tuple((name, from_json(value)) for name, value in json.loads(row["headers"])),
            EVERYBODY if row["visibility"] is None else _visibility(json.loads(row["visibility"])),
            None if row["topic"] == row["namespace"] else row["topic"],
        )
        is_sound = record_hash(record) == row["hash"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return UnreadableEvent(row["seq"], row["namespace"], event_id, "cannot be read")
    if not is_sound:
        return UnreadableEvent(row["seq"], row["namespace"], event_id, UNFIT)
    return ArchivedEvent(record, row["ordinal"])


def readable(log: EventLog, namespace: str, after: int, before: int, limit: int) -> list[ReadEvent]:
    """Read the events that the log keeps, as an archive does."""
    found: list[ReadEvent] = []
    for it in log.read_sound(after, before=before, namespaces=[namespace], limit=limit):
        if isinstance(it, DamagedEvent):
            found.append(UnreadableEvent(it.seq, namespace, None, "cannot be read"))
        elif (ordinal := log.ordinal(it)) is not None:
            found.append(ArchivedEvent(it, ordinal))
    return found


def _visibility(limits: Mapping[str, Any]) -> Visibility:
    given: dict[str, Any] = {name: None if names is None else tuple(names) for name, names in limits.items()}
    return Visibility(**given)
