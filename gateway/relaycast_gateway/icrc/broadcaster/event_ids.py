"""Ids that events have: whether an event was published before, and with which content.

Law: the pair of namespace and id belongs to one source and one content for ever. That holds after retention has dropped
the event, after a restart, and when the process was killed between the log and the store. What the store lacks is read
from the log. Source: ICRC-72, "Event Identifiers"; ICRC-77, "Idempotency".
"""

from typing import NamedTuple

import msgspec

from relaycast_gateway.icrc.canister import Promise
from relaycast_gateway.icrc.event_id import blob_of_id
from relaycast_gateway.icrc.names import OWN_HEADER
from relaycast_gateway.icrc.store import IcrcStore, number_key
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.log import EventLog
from relaycast_gateway.log.unusable import DamagedEvent
from relaycast_gateway.record import EventRecord

TABLE = "broadcast:ids"
_CURSOR_TABLE = "broadcast:ids:cursor"
_ENCODER = msgspec.msgpack.Encoder()


class TakenId(NamedTuple):
    """The event that has an id."""

    seq: int
    ordinal: int
    source: bytes
    hash: bytes
    """Hash of its data."""


class Claim(NamedTuple):
    """An event that is on its way into the log."""

    source: bytes
    hash: bytes
    done: "Promise[str | None]"
    """Settles with ``None`` when the event is durable, or with what the disk says."""


_DECODER = msgspec.msgpack.Decoder(TakenId)


class EventIds:
    """All ids of ``log``; shared by the broadcasters of a process."""

    def __init__(self, log: EventLog, store: IcrcStore) -> None:
        self._log = log
        self._store = store
        self.claims: dict[tuple[str, int], Claim] = {}
        kept = store.get(_CURSOR_TABLE, b"")
        self._cursor = 0 if kept is None else int.from_bytes(kept, "big")

    @property
    def behind(self) -> int:
        """The number of events of the log that were not noted yet."""
        return self._log.last_seq - self._cursor

    def catch_up(self, most: int) -> None:
        """Read up to ``most`` new events from the log."""
        for it in self._log.read_sound(self._cursor, limit=most):
            if isinstance(it, DamagedEvent):
                self._cursor = it.seq
            else:
                self.note(it)

    def note(self, record: EventRecord) -> None:
        """Note a record of the log; records come in order, and may come again.

        One of another face whose id is its place in the log needs no entry: the log finds it.
        """
        if record.seq <= self._cursor:
            return
        self._cursor = record.seq
        self._store.put(_CURSOR_TABLE, b"", number_key(record.seq))
        if record.event_id == record.seq and record.header(OWN_HEADER) is None:
            return
        key, claim = _key(record.namespace, record.event_id), self.claims.get((record.namespace, record.event_id))
        is_mine = claim is not None and claim.source == record.source
        if is_mine or self._store.get(TABLE, key) is None:
            self._store.put(TABLE, key, _ENCODER.encode(self._taken(record, claim if is_mine else None)))

    def find(self, namespace: str, event_id: int) -> TakenId | None:
        """Return the event that has an id, the first one where several faces used it."""
        found = self._store.get(TABLE, _key(namespace, event_id))
        if found is not None:
            return _DECODER.decode(found)
        try:
            record = self._log.get(event_id)
        except DamagedEvent:
            return None
        if record is None or record.event_id != event_id or record.namespace != namespace:
            return None
        return self._taken(record, None)

    def _taken(self, record: EventRecord, claim: Claim | None) -> TakenId:
        content = eventdata_hash(record.data) if claim is None else claim.hash
        return TakenId(record.seq, self._log.ordinal(record) or 0, record.source, content)


def _key(namespace: str, event_id: int) -> bytes:
    name = namespace.encode()
    return len(name).to_bytes(2, "big") + name + blob_of_id(event_id)
