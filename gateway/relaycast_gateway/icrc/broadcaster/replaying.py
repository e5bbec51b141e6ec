"""Replays at the broadcaster: events of the past, for one requester.

Law: a replayed event is taken from the publisher that the replay was assigned to alone, inside the replay's range and
with the content that the event has always had. It goes to the requester only, under a new notification id, and is
never appended to the log. A replay holds a bounded number of events; beyond it the publisher gets no answer until the
requester has taken some. What was taken survives a restart.
Source: ICRC-77, "Replay Life Cycle", "Security Considerations".
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.broadcaster.contents import Notification, addressed, notification_of
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.broadcaster.publishing import (
    BAD_EVENT,
    TOO_LARGE,
    EventRefused,
    Item,
    check_hash,
    draft_of,
    failed,
    id_is_taken,
    improper_id,
    no_such_event,
)
from relaycast_gateway.icrc.candypath.compiled import TreePredicate
from relaycast_gateway.icrc.event_id import blob_of_id, id_of_blob
from relaycast_gateway.icrc.names import BROADCASTER_RECEIVED, EVENT_TIMESTAMP, HASH, REPLAY_ID
from relaycast_gateway.icrc.naturals import shown
from relaycast_gateway.icrc.registry import IcrcSubscription
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.store import number_key
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc16 import blob, nat
from relaycast_gateway.log.record_codec import decode_body, encode_body, encode_headers
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord

ADDED_BYTES = 4_096
"""Room for headers that a replay adds to those of an event of the largest size."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[int, bytes, str | None, str, bytes, bytes | None, int, int, bytes])


@dataclass(frozen=True, slots=True)
class AssignedReplay:
    """A replay that a broadcaster was told of."""

    id: int
    namespace: str
    subscriber: bytes
    publisher: bytes
    start: int = 0
    end: int | None = None
    """The first id that is not of the range, ``None`` for no bound."""

    filter: str | None = None
    selects: TreePredicate | None = None
    """``filter``, compiled."""

    skip: Skip | None = None
    relay: bytes | None = None
    """The broadcaster that hands its events on, where the publisher publishes to another one."""


@dataclass(frozen=True, slots=True)
class RelayedReplay:
    """A replay whose events a broadcaster hands on to the requester's."""

    id: int
    namespace: str
    publisher: bytes
    target: bytes


class ReplayedTo(NamedTuple):
    """What each notification of a replay needs of it."""

    id: int
    subscriber: bytes
    filter: str | None
    namespace: str


@dataclass(frozen=True, slots=True)
class ReplayedEvent:
    """An event that a replay's requester is to get."""

    notification_id: int
    draft: EventDraft
    generated_ns: int


@dataclass(slots=True)
class _HeldBack:
    draft: EventDraft
    taken: Callable[[Sequence[int]], None]
    refused: Callable[[Variant], None]


def replay_id_of(item: Item) -> int | None:
    """Return the replay that an event names in its headers, -1 for one that is no number."""
    for pair in item.get("headers") or ():
        if pair[0] == REPLAY_ID:
            value = pair[1].value
            return value if isinstance(value, int) else -1
    return None


class ReplayIntake:
    """Checks replayed events."""

    def __init__(self, context: BroadcasterContext) -> None:
        self._context = context

    def take(self, replay: AssignedReplay | None, caller: bytes, item: Item) -> EventDraft | None:
        """Return a replayed event, ``None`` where skip or filter leave it out; raises ``EventRefused``."""
        place = item["namespace"], item["id"]
        if replay is None or caller != replay.publisher or replay.namespace != item["namespace"]:
            said = f"a replay of {item['namespace']} that the caller serves"
            raise improper_id(f"{REPLAY_ID}: expected {said}, got {shown(replay_id_of(item) or 0)}")
        if item["id"] < replay.start or (replay.end is not None and item["id"] >= replay.end):
            end = "" if replay.end is None else f", before {shown(replay.end)}"
            said = f"event {shown(item['id'])} is outside of replay {replay.id}: from {shown(replay.start)}{end}"
            raise improper_id(said)
        known = self._context.ids.find(*place)
        given = item.get("source")
        source = known.source if known is not None else caller if given is None else given.raw
        draft = draft_of(source, item)
        content = eventdata_hash(draft.data)
        self._check_form(draft)
        check_hash(draft)
        if known is None:
            self._check_purged(draft, content)
        elif known.hash != content:
            raise id_is_taken(*place)
        if replay.skip is not None and known is not None and not replay.skip.selects(known.ordinal):
            return None
        if replay.selects is not None and not replay.selects(draft.data):
            return None
        return draft

    def _check_form(self, draft: EventDraft) -> None:
        """Check what the hash of the data says nothing of: the time, and how long the headers are."""
        try:
            encode_body(draft)
        except ValueError as error:
            raise EventRefused(failed(BAD_EVENT, str(error))) from None
        header_bytes, most = len(encode_headers(draft.headers)), self._context.policy.most_event_bytes + ADDED_BYTES
        if header_bytes > most:
            raise EventRefused(failed(TOO_LARGE, f"headers: got {header_bytes} bytes, expected at most {most}"))

    def place_of(self, item: Item) -> int:
        """Return what tells an event from others of its replay: its ordinal, its id where the log has dropped it."""
        known = self._context.ids.find(item["namespace"], item["id"])
        return int(item["id"]) if known is None else known.ordinal

    def _check_purged(self, draft: EventDraft, content: bytes) -> None:
        """Check an event that the log dropped before broadcasters noted ids: it brings its own hash."""
        event_id = draft.event_id or 0
        if event_id >= self._context.log.history_start or dict(draft.headers).get(HASH) != blob(content):
            raise no_such_event(draft.namespace, event_id)


class ReplaySource:
    """Notifications of one replay."""

    def __init__(
        self,
        about: "ReplayedTo",
        context: BroadcasterContext,
        *,
        table: str,
        now_ns: Callable[[], int],
        take_id: Callable[[], int],
    ) -> None:
        self._about = about
        self._context = context
        self._table = table
        self._now_ns = now_ns
        self._take_id = take_id
        self.on_finished: Callable[[int], None] = lambda _notification_id: None
        """Called when a notification was confirmed, given up or discarded."""

        self._counting: tuple[int, IcrcSubscription | None] = -1, None
        """The subscription that counts, and the version of the registry in which it was looked up."""

        self._waiting: deque[ReplayedEvent] = deque()
        self._held_back: deque[_HeldBack] = deque()
        self._taken: dict[int, ReplayedEvent] = {}
        self._counted: set[int] = set()
        """Notifications already counted as sent: by their last call, or by the last run."""

        self._over: Variant | None = None
        """The error of events that are discarded, once the replay was canceled or failed."""

        self.most_waited = 0
        """The highest number of events that waited at once."""

    @property
    def subscriber(self) -> bytes:
        return self._about.subscriber

    @property
    def is_trusted(self) -> bool:
        it = self._subscription()
        return it is not None and it.is_trusted

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_empty(self) -> bool:
        return not (self._waiting or self._held_back or self._taken)

    def is_open(self) -> bool:
        return True

    def offer(
        self, draft: EventDraft, taken: Callable[[Sequence[int]], None], refused: Callable[[Variant], None]
    ) -> None:
        """Take an event when there is room; raises ``EventRefused`` while too many are held back."""
        if len(self._held_back) >= self._context.policy.most_events:
            raise EventRefused(Variant("Busy"))
        self._held_back.append(_HeldBack(draft, taken, refused))
        self._let_in()

    def load(self, notification_id: int, stored: bytes) -> None:
        """Take up what the store holds from the last run."""
        _, _, _, namespace, event_id, prev_id, occurred_ns, generated_ns, body = _DECODER.decode(stored)
        source, _, data, headers = decode_body(body)
        draft = EventDraft(
            namespace,
            data,
            source,
            occurred_ns,
            event_id=id_of_blob(event_id),
            prev_id=None if prev_id is None else id_of_blob(prev_id),
            is_ordered=False,
            headers=headers,
        )
        self._waiting.append(ReplayedEvent(notification_id, draft, generated_ns))
        if notification_id <= self._context.statistics.newest_of_replay(self._about.id):
            self._counted.add(notification_id)

    def discard(self, error: Variant) -> None:
        """Drop the notifications that wait or that fail on their way; refuse those held back."""
        self._over = error
        while self._waiting:
            notification_id = self._waiting.popleft().notification_id
            self._context.store.delete(self._table, number_key(notification_id))
            self.on_finished(notification_id)
        while self._held_back:
            self._held_back.popleft().refused(error)

    def take(self, most: int) -> list[int]:
        found: list[int] = []
        while self._waiting and len(found) < most:
            it = self._waiting.popleft()
            self._taken[it.notification_id] = it
            found.append(it.notification_id)
        self._let_in()
        return found

    def put_back(self, ids: Sequence[int]) -> None:
        self._waiting.extendleft([self._taken.pop(it) for it in reversed(ids)])
        if self._over is not None:
            self.discard(self._over)

    def made(self, notification_id: int) -> Notification | None:
        it = self._taken[notification_id]
        if not self._context.orchestrator.may_receive(it.draft.namespace, self._about.subscriber):
            return None
        now_ns = max(self._now_ns(), it.generated_ns)
        record = _record_of(it.draft)
        times = (EVENT_TIMESTAMP, nat(max(0, record.occurred_ns))), (BROADCASTER_RECEIVED, nat(it.generated_ns))
        shared = notification_of(record, (*record.headers, *times), generated_ns=it.generated_ns)
        return addressed(shared, notification_id, self._about.filter, place=(1, 1), sent_ns=now_ns)

    def sent(self, ids: Sequence[int]) -> None:
        self._count([it for it in ids if it in self._taken and it not in self._counted])  # others were counted before
        self._counted.update(it for it in ids if it in self._taken)

    def finished(self, notification_id: int, *, is_confirmed: bool) -> None:
        if is_confirmed and notification_id not in self._counted:  # before its call was answered
            self._count([notification_id])
        self._counted.discard(notification_id)
        del self._taken[notification_id]
        self._context.store.delete(self._table, number_key(notification_id))
        it = self._subscription()
        if is_confirmed and it is not None:
            self._context.statistics.confirmed(it, self._about.namespace)
        self.on_finished(notification_id)

    def _count(self, ids: Sequence[int]) -> None:
        self._context.statistics.replayed(self._about.id, ids)
        it = self._subscription()
        if it is not None:
            self._context.statistics.sent(it, self._about.namespace, len(ids))

    def _let_in(self) -> None:
        room = self._context.policy.most_waiting_replayed
        while self._held_back and len(self._waiting) < room:
            held = self._held_back.popleft()
            it = ReplayedEvent(self._take_id(), held.draft, self._now_ns())
            self._waiting.append(it)
            self.most_waited = max(self.most_waited, len(self._waiting))
            self._context.store.put(self._table, number_key(it.notification_id), self._stored(it))
            held.taken([it.notification_id])

    def _stored(self, it: ReplayedEvent) -> bytes:
        draft = it.draft
        previous = None if draft.prev_id is None else blob_of_id(draft.prev_id)
        ids = blob_of_id(draft.event_id or 0), previous
        return _ENCODER.encode((*self._about, *ids, draft.occurred_ns, it.generated_ns, encode_body(draft)))

    def _subscription(self) -> IcrcSubscription | None:
        """Return the requester's subscription that counts the replay's notifications, where it has one."""
        registry = self._context.registry
        if self._counting[0] != registry.version:
            found = registry.subscription_of(self._about.subscriber, self._about.namespace)
            self._counting = registry.version, found
        return self._counting[1]


def stored_replay(stored: bytes) -> ReplayedTo:
    """Return the replay of a stored event."""
    replay_id, subscriber, text, namespace, *_ = _DECODER.decode(stored)
    return ReplayedTo(replay_id, subscriber, text, namespace)


def _record_of(draft: EventDraft) -> EventRecord:
    """Return a replayed event as a record, which has no place in the log."""
    return EventRecord(
        seq=0,
        event_id=draft.event_id or 0,
        prev_id=draft.prev_id,
        pub_id=0,
        occurred_ns=draft.occurred_ns,
        received_ns=0,
        namespace=draft.namespace,
        source=draft.source,
        subject=None,
        data=draft.data,
        headers=draft.headers,
        visibility=EVERYBODY,
    )
