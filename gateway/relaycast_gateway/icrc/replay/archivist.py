"""The archivist: the publisher that replays any namespace from the log.

Law: events are republished as they are, with headers added at the end. A batch goes out when the one before it was
taken: a slow subscriber slows its replay, and nothing piles up. What was sent is kept after each batch: a replay goes
on after a restart. An event that is unreadable, does not match its hash or is refused is left out, logged and counted.
Source: ICRC-77, "Replay Life Cycle" and "Replay Headers".
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeGuard, cast

import msgspec

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.canister import Answer, CallRefused, Canister, Handler, Wire
from relaycast_gateway.icrc.durability import Durability
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import (
    HASH,
    REPLAY,
    REPLAY_END,
    REPLAY_END_ID,
    REPLAY_ID,
    REPLAY_SKIPPED,
    REPLAY_START_ID,
)
from relaycast_gateway.icrc.registry import Registry
from relaycast_gateway.icrc.replay.archive import (
    UNFIT,
    ArchivedEvent,
    EventArchive,
    ReadEvent,
    UnreadableEvent,
    readable,
)
from relaycast_gateway.icrc.replay.assignment import rate_of
from relaycast_gateway.icrc.replay.replays import EventReplay
from relaycast_gateway.icrc.store import IcrcStore, stored_rows
from relaycast_gateway.icrc.system_messages import PUBLISHER_ADD, PUBLISHER_REMOVE, SystemItem, items_of
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc.variants import icrc16_of, pairs_of, variant_of
from relaycast_gateway.icrc16 import blob, boolean, nat
from relaycast_gateway.log import EventLog, UnusableLog
from relaycast_gateway.record import EventRecord, Headers

TABLE = "archivist"
BATCH = 32
"""Events of one call."""

LOOK = 1_024
"""Events of the log looked at before others have their turn."""

_OF_AN_EVENT = frozenset({"ImproperId", "GenericError"})
"""Errors of a single event: the replay continues with the others."""

_LOGGER = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 60.0


class _Place(msgspec.Struct, array_like=True):
    """How far a replay is, as the store keeps it."""

    cursor: int = 0
    sent: int = 0
    skipped: int = 0


class _Batch(NamedTuple):
    """Events to send."""

    looked_to: int | None
    """How far the log was read, ``None`` at its end."""

    events: list[dict[str, object]]
    skipped: list[UnreadableEvent]
    """Events before ``looked_to`` that are left out."""


@dataclass(slots=True)
class ReplayJob:
    """A replay that is being sent."""

    replay: EventReplay
    place: _Place
    headers: Headers
    first_headers: Headers
    """Those of the first event alone."""

    has_unread: bool = False
    """Whether the search for its end found events that are left out."""

    is_canceled: bool = False
    tries: int = 0


class Archivist(Canister):
    """Serves replays from ``log``, and from ``archive`` where the log has dropped events."""

    role = CanisterRole.PUBLISHER

    def __init__(
        self,
        principal: bytes,
        wire: Wire,
        registry: Registry,
        store: IcrcStore,
        log: EventLog,
        *,
        orchestrator: bytes,
        archive: EventArchive | None = None,
    ) -> None:
        super().__init__(principal, wire)
        self.jobs: dict[int, ReplayJob] = {}
        """Replays that are being sent, by id."""

        self._registry, self._store, self._log = registry, store, log
        self._orchestrator, self._archive = orchestrator, archive
        self._durability = Durability(store, wire)
        self._is_closed = False
        with stored_rows(store, "places of replays"):
            self._places = {
                int.from_bytes(key, "big"): msgspec.msgpack.decode(value, type=_Place)
                for key, value in store.items(TABLE)
            }

    def handlers(self) -> Mapping[str, Handler]:
        return {"icrc72_handle_notification": self._hear}

    def close(self) -> None:
        """Send nothing more; what was sent is kept."""
        self._is_closed = True
        self._durability.close()

    def _hear(self, caller: bytes, argument: object) -> None:
        if caller != self._orchestrator:
            raise CallRefused("system messages come from the orchestrator")
        for notification in cast("list[dict[str, Any]]", argument):
            for item in items_of(icrc16_of(notification["data"])):
                self._obey(item)

    def _obey(self, item: SystemItem) -> None:
        if item.key == PUBLISHER_ADD and item.replay_id not in self.jobs:
            replay = self._registry.replays.get(item.replay_id)
            if replay is not None and replay.is_active and replay.publisher == self.principal:
                self._begin(replay)
        elif item.key == PUBLISHER_REMOVE and item.replay_id in self.jobs:
            self.jobs[item.replay_id].is_canceled = True

    def _begin(self, replay: EventReplay) -> None:
        job = ReplayJob(replay, self._places.get(replay.id) or _Place(), (), ())
        self.jobs[replay.id] = job
        self._report(replay.id, Variant("running"))
        self._step(job, self._announce)

    def _step(self, job: ReplayJob, step: Callable[[ReplayJob], None]) -> None:
        """Take a step of a replay, which ends with the reason where its events cannot be read."""
        if self._is_closed:
            return
        try:
            step(job)
        except (OSError, UnusableLog) as error:
            self._end(job, Variant("errored", str(error)))

    def _announce(self, job: ReplayJob) -> None:
        """Work out the headers of all events: which replay it is, where it begins and ends."""
        replay = job.replay
        headers = [(REPLAY, boolean(True)), (REPLAY_ID, nat(replay.id))]
        first = next((it for it in self._read(replay, 0, BATCH) if isinstance(it, ArchivedEvent)), None)
        if first is not None and first.ordinal > 1:  # the namespace has lost its beginning
            first_id = first.record.event_id
            if first_id > replay.start and replay.takes(first_id):
                headers.append((REPLAY_START_ID, nat(first_id)))
        job.headers = tuple(headers)
        if replay.end is None:
            self._seek_last(job, replay.last_seq + 1)
        else:
            self._send(job)

    def _seek_last(self, job: ReplayJob, end: int) -> None:
        """Find the last event that an open range will send among those before ``end``, some of them at a time."""
        begin = max(1, end - LOOK)
        window = replace(job.replay, last_seq=end - 1)
        events = self._read(window, begin - 1, LOOK)
        job.has_unread |= any(isinstance(it, UnreadableEvent) or unsound(it.record) is not None for it in events)
        last = next((it.record for it in reversed(events) if _is_wanted(job.replay, it)), None)
        if last is not None:
            last_id = nat(last.event_id)
            job.headers += ((REPLAY_END_ID, last_id),)
            job.first_headers = ((REPLAY_END, last_id),)
        elif begin > 1:
            self.wire.call_later(0, lambda: self._step(job, lambda it: self._seek_last(it, begin)))
            return
        elif not job.has_unread:
            job.place.cursor = job.replay.last_seq  # no event that it asks for exists
        self._send(job)

    def _send(self, job: ReplayJob) -> None:
        """Send the next batch, and the one behind it when this one is taken."""
        if job.is_canceled:
            self._end(job, Variant("canceled", job.place.sent))
            return
        looked_to, events, unread = self._next_events(job)
        if looked_to is None:
            self._end(job, Variant("completed", job.place.sent))
            return
        if not events:
            self._advance(job, looked_to, 0, unread)
            self.wire.call_later(0, lambda: self._step(job, self._send))  # others have their turn
            return

        def answered(answer: Answer) -> None:
            if self._is_closed:
                return
            if answer.refusal is not None:
                self._again(job)
                return
            results = cast("list[Any]", answer.value)
            errors = {at: result.value for at, result in enumerate(results) if result.tag == "Err"}
            sent = sum(1 for result in results if result.tag == "Ok" and result.value)
            if any(error.tag == "Busy" for error in errors.values()):
                self._advance(job, job.place.cursor, sent)  # those that were taken are not taken twice
                self._again(job)
                return
            final = next((error for error in errors.values() if not self._is_of_the_event(job, error)), None)
            if final is not None:
                self._end(job, Variant("errored", _said(final)))
                return
            job.tries = 0
            namespace = job.replay.namespace
            refused = [
                UnreadableEvent(0, namespace, cast("int", events[at]["id"]), f"is refused: {_said(error)}")
                for at, error in errors.items()
            ]
            self._advance(job, looked_to, sent, [*unread, *refused])
            self._pause(job, len(events))

        self.call(job.replay.publishes_to, "icrc72_publish", events, answered)

    def _is_of_the_event(self, job: ReplayJob, error: Any) -> bool:
        """Return whether a ``PublishError`` is about a bad event, not about a replay that is over."""
        known = self._registry.replays.get(job.replay.id)
        return error.tag in _OF_AN_EVENT and known is not None and known.is_active

    def _advance(self, job: ReplayJob, cursor: int, sent: int, skipped: Sequence[UnreadableEvent] = ()) -> None:
        for it in skipped:
            _LOGGER.warning("replay %d leaves out an event: %s", job.replay.id, it)
        job.place = _Place(cursor, job.place.sent + sent, job.place.skipped + len(skipped))
        self._store.put(TABLE, job.replay.id.to_bytes(8, "big"), msgspec.msgpack.encode(job.place))
        self._durability.soon()

    def _pause(self, job: ReplayJob, sent: int) -> None:
        """Go on as fast as the publisher's declared rate allows."""
        rate = rate_of(self._registry, job.replay.namespace, self.principal)
        if rate is None:
            self._step(job, self._send)
        else:
            self.wire.call_later(sent / rate, lambda: self._step(job, self._send))

    def _again(self, job: ReplayJob) -> None:
        """Send the batch once more later; events that were taken are known by their ids."""
        job.tries += 1
        wait = min(LONGEST_RETRY_SECONDS, RETRY_SECONDS * 2 ** min(job.tries - 1, 10))
        self.wire.call_later(wait, lambda: self._step(job, self._send))

    def _end(self, job: ReplayJob, state: Variant) -> None:
        replay_id, skipped = job.replay.id, job.place.skipped
        self.jobs.pop(replay_id, None)
        self._places.pop(replay_id, None)
        self._store.delete(TABLE, replay_id.to_bytes(8, "big"))
        self._durability.then(lambda: self._report(replay_id, state, skipped))

    def _report(self, replay_id: int, state: Variant, skipped: int = 0, tries: int = 0) -> None:
        def answered(answer: Answer) -> None:
            if answer.refusal is not None and not self._is_closed:
                wait = min(LONGEST_RETRY_SECONDS, RETRY_SECONDS * 2 ** min(tries, 10))
                self.wire.call_later(wait, lambda: self._report(replay_id, state, skipped, tries + 1))

        stats = pairs_of([(REPLAY_SKIPPED, nat(skipped))])
        update = {"replayId": replay_id, "status": state, "stats": stats}
        self.call(self._orchestrator, "icrc77_replay_status", [update], answered)

    # Events

    def _next_events(self, job: ReplayJob) -> _Batch:
        replay, cursor = job.replay, job.place.cursor
        skipped: list[UnreadableEvent] = []
        for _ in range(LOOK // BATCH):
            found = self._read(replay, cursor, BATCH)
            if not found and not skipped:
                return _Batch(None, [], [])
            if not found:
                break
            cursor = found[-1].seq
            wanted: list[EventRecord] = []
            for it in found:
                unread = it if isinstance(it, UnreadableEvent) else unsound(it.record)
                if unread is None and isinstance(it, ArchivedEvent) and self._is_sent(replay, it):
                    wanted.append(it.record)
                elif unread is not None and (unread.event_id is None or replay.takes(unread.event_id)):
                    skipped.append(unread)
            if wanted:
                is_first = job.place.sent == 0
                events = [self._event(job, record, is_first and not at) for at, record in enumerate(wanted)]
                return _Batch(cursor, events, skipped)
        return _Batch(cursor, [], skipped)

    def _event(self, job: ReplayJob, record: EventRecord, is_first: bool) -> dict[str, object]:
        headers = record.headers + job.headers + (job.first_headers if is_first else ())
        if record.seq < self._log.history_start and record.header(HASH) is None:
            headers += ((HASH, blob(eventdata_hash(record.data))),)  # broadcasters have nothing else to compare it with
        return {
            "id": record.event_id,
            "prev_id": record.prev_id,
            "prevId": None,
            "timestamp": record.occurred_ns,
            "namespace": record.namespace,
            "source": Principal(record.source),
            "data": variant_of(record.data),
            "headers": pairs_of(headers),
        }

    def _is_sent(self, replay: EventReplay, event: ArchivedEvent) -> bool:
        """Return whether the broadcaster gets an event. It filters, but cannot count what the log has dropped."""
        record, ordinal = event
        is_kept = record.seq >= self._log.history_start
        return (
            record.is_public
            and replay.takes(record.event_id)
            and (is_kept or replay.skip is None or replay.skip.selects(ordinal))
        )

    def _read(self, replay: EventReplay, after: int, limit: int) -> Sequence[ReadEvent]:
        """Return the next records of a namespace, from the archive as far as the log has dropped them."""
        before, start = replay.last_seq + 1, self._log.history_start
        if self._archive is not None and after < start - 1:
            archived = self._archive.read(replay.namespace, after, min(before, start), limit)
            if archived:
                return archived
        return readable(self._log, replay.namespace, after, before, limit)


def _is_wanted(replay: EventReplay, event: ReadEvent) -> TypeGuard[ArchivedEvent]:
    """Return whether an event reaches the requester."""
    return (
        isinstance(event, ArchivedEvent)
        and event.record.is_public
        and replay.takes(event.record.event_id)
        and (replay.skip is None or replay.skip.selects(event.ordinal))
        and (replay.selects is None or replay.selects(event.record.data))
        and unsound(event.record) is None
    )


def unsound(record: EventRecord) -> UnreadableEvent | None:
    """Return the error for an event whose data does not match the hash in its headers, else ``None``."""
    given = [value for name, value in record.headers if name == HASH]
    try:
        if not given or given == [blob(eventdata_hash(record.data))] * len(given):
            return None
        reason = UNFIT
    except ValueError as error:  # too deep
        reason = str(error)
    return UnreadableEvent(record.seq, record.namespace, record.event_id, reason)


def _said(error: Any) -> str:
    return str(error.tag) if error.value is None else f"{error.tag}: {error.value}"
