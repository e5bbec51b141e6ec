"""The broadcaster: takes events from publishers into the log, and notifies subscribers of what the log has.

Law: a broadcaster reads the log in order, some events a turn, and fans out the events that it accepted. The first one
also fans out events of other faces and of the chains. It answers a publisher once the events are durable and their
notifications have ids that survive a restart. It never appends what it reads.
Source: ICRC-72, "Broadcaster Canister"; ICRC-77 for replays.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, cast

from relaycast_gateway.candid import Variant
from relaycast_gateway.clock import SECOND
from relaycast_gateway.icrc.broadcaster.audiences import Audiences
from relaycast_gateway.icrc.broadcaster.broadcaster_stats import BroadcasterCounts, broadcaster_stats
from relaycast_gateway.icrc.broadcaster.confirmations import ConfirmedNotifications, confirmation_result
from relaycast_gateway.icrc.broadcaster.contents import Contents
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.broadcaster.event_rate import EventRate
from relaycast_gateway.icrc.broadcaster.fan_out import EventFanOut
from relaycast_gateway.icrc.broadcaster.lane import ONE_SHOT, LaneCounts, NotificationLane
from relaycast_gateway.icrc.broadcaster.publish_call import PublishCall
from relaycast_gateway.icrc.broadcaster.publishing import (
    DISK_REFUSES,
    EventRefused,
    Item,
    Publishing,
    TakenEvent,
    failed,
)
from relaycast_gateway.icrc.broadcaster.relaying import RelayIntake, home_of
from relaycast_gateway.icrc.broadcaster.relays import Relays
from relaycast_gateway.icrc.broadcaster.replaying import AssignedReplay, replay_id_of
from relaycast_gateway.icrc.broadcaster.replays import Replays
from relaycast_gateway.icrc.broadcaster.subscription_source import SourceSurroundings, SubscriptionSource
from relaycast_gateway.icrc.canister import CallRefused, Canister, Handler, Promise, Wire
from relaycast_gateway.icrc.durability import Durability
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.store import number_key
from relaycast_gateway.icrc.system_messages import SystemItem, system_notification
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import Icrc16, nat
from relaycast_gateway.log.unusable import DamagedEvent
from relaycast_gateway.record import EventRecord, Headers

EVENTS_A_TURN = 128
"""Number of events fanned out in one turn."""

LANES_A_TURN = 64
MOST_HELD_CALLS = 1_024
"""Calls of publishers that may wait for the log to be read; further ones get ``Busy``."""

_LOGGER = logging.getLogger(__name__)
CURSOR = b"cursor"
REQUIRED = ("id", "timestamp", "namespace", "data")


class Broadcaster(Canister):
    """One broadcaster; ``start`` goes on where the last run ended."""

    role = CanisterRole.BROADCASTER

    def __init__(self, principal: bytes, wire: Wire, context: BroadcasterContext) -> None:
        self.context = context
        self.counts = LaneCounts()
        self.on_system_message: Callable[[Mapping[str, Any]], None] = lambda _message: None
        """Called with each system message of the orchestrator."""

        name = f"broadcaster:{principal.hex()}"
        policy = context.policy
        self._state = f"{name}:state"
        self._durability = Durability(context.store, wire)
        self._audiences = Audiences(context.store, name, most_in_memory=policy.most_audiences)
        self._contents = Contents(context.log, most_bytes=policy.most_contents_bytes)
        self._around = SourceSurroundings(
            context, self._audiences, self._contents, self._durability, wire, f"{name}:subscriptions"
        )
        self._fan_out = EventFanOut(context, principal)
        self._lanes: dict[int, tuple[NotificationLane, SubscriptionSource]] = {}
        self._relay_intake = RelayIntake(context, principal, self._state)
        self._publishing = Publishing(context, principal)
        self._confirmed = ConfirmedNotifications()
        self._cursor = context.log.last_seq
        self._waiting_bytes = 0
        self._calls = 0
        self._ids_of: dict[int, Sequence[int]] = {}
        """Notifications of events whose publisher has no answer yet."""

        self._touched: dict[int, NotificationLane] = {}
        self._is_reading = False
        """Whether events were read from the log whose ids are not durable yet."""

        self._held: deque[tuple[int, Callable[[], None]]] = deque()
        """Work that waits until an event of the log was read, in order."""

        self._is_loaded = False
        self.events = 0
        self.events_relayed_here = 0
        self.errors = 0
        self._rate = EventRate(wire.passed_ns())
        self._is_closed = False
        super().__init__(principal, wire)
        self._started_ns = wire.passed_ns()
        self.relays = Relays(context, self, f"{name}:relays", self._durability)
        self.replays = Replays(context, self, f"{name}:replays", self._audiences, self.counts, self._durability)

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "icrc72_publish": self._publish,
            "icrc72_publish_relay": self._publish_relay,
            "icrc72_confirm_messages": self._confirm_messages,
            "icrc72_get_broadcaster_stats": lambda _caller, _argument: pairs_of(self.stats()),
            "icrc72_handle_notification": self._handle_notification,
        }

    def load(self) -> None:
        """Load the state of the last run; call it before ``start``, as the time grows with its size."""
        kept = self.context.store.get(self._state, CURSOR)
        if kept is None:
            self._note_cursor()
        else:
            self._cursor = int.from_bytes(kept, "big")
        self._load_lanes()
        self.replays.load()
        self.relays.load(self._cursor)
        self._is_loaded = True

    def start(self) -> None:
        """Send the pending notifications of the last run, and fan out newer events of the log."""
        if not self._is_loaded:
            self.load()
        self._durability.flush()
        self.catch_up()
        self._pump_in_turns(deque(lane for lane, _ in self._lanes.values()))
        self.relays.pump()
        self.replays.pump()

    def _pump_in_turns(self, lanes: deque[NotificationLane]) -> None:
        for _ in range(min(LANES_A_TURN, len(lanes))):
            lanes.popleft().pump()
        if lanes and not self._is_closed:
            self.wire.call_later(0.0, lambda: self._pump_in_turns(lanes))

    def close(self) -> None:
        """Send nothing more, and take no answers."""
        self._is_closed = True
        for lane, _ in self._lanes.values():
            lane.close()
        self.relays.close()
        self.replays.close()
        self._around.close()
        self._durability.close()

    def catch_up(self) -> None:
        """Fan out new events of the log, some a turn; call it in the canisters' thread after each commit."""
        log, ids = self.context.log, self.context.ids
        if self._is_closed or self._is_reading or (self._cursor >= log.last_seq and not ids.behind):
            return
        if ids.behind > log.last_seq - self._cursor:
            ids.catch_up(EVENTS_A_TURN)  # of a log that is older than this broadcaster
        else:
            for it in log.read_sound(self._cursor, limit=EVENTS_A_TURN):
                self._cursor = it.seq
                if isinstance(it, DamagedEvent):
                    _LOGGER.warning("skipped an event: %s", it)
                    self.errors += 1
                else:
                    self._look_at(it)
            self._note_cursor()
            self.relays.note(self._cursor)
        self._release_held()
        self._is_reading = True
        self._durability.then(self._go_on)
        self._durability.flush()

    def _go_on(self) -> None:
        """Send the events that were read, and read more."""
        self._is_reading = False
        self._send()
        self.catch_up()

    def _look_at(self, record: EventRecord) -> None:
        try:
            self.context.ids.note(record)
            if home_of(record, self.context.registry.broadcasters) == self.principal:
                self._take_up(record)
        except Exception:  # later events do not wait for one that fails
            _LOGGER.exception("cannot send event %d", record.seq)
            self.errors += 1

    def _once_read(self, seq: int, work: Callable[[], None]) -> None:
        """Call ``work`` once all events up to ``seq`` were read, and all ids are noted."""
        self._held.append((seq, work))
        self._release_held()
        self.catch_up()

    def _release_held(self) -> None:
        is_behind = self.context.ids.behind > max(0, self.context.log.last_seq - self._cursor)
        while self._held and self._held[0][0] <= self._cursor and not is_behind:
            self._held.popleft()[1]()

    def assign_replay(self, replay: AssignedReplay) -> None:
        """Take events of a replay from now on."""
        self.replays.assign(replay)

    def drop_replay(self, replay_id: int, *, discards: bool = False) -> None:
        """Take no further events of a replay; ``discards`` also what waits for its requester."""
        self.replays.drop(replay_id, discards=discards)

    def tell(self, receiver: bytes, role: CanisterRole, item: SystemItem) -> None:
        """Send a system message once its id, one of the sequence of all notifications, is durable."""
        number = self._audiences.take_ids(1)
        message = system_notification(item, role, receiver, self.principal, self.wire.now_ns(), number)
        self._durability.then(lambda: self.call(receiver, ONE_SHOT, [message]))

    def _take_up(self, record: EventRecord) -> None:
        namespace, context = record.namespace, self.context
        if not context.orchestrator.adopt(namespace, record.source):
            return
        ordinal = context.log.ordinal(record)
        if ordinal is None:  # purged meanwhile
            return
        self.events += 1
        self._rate.count(self.wire.passed_ns())
        is_listed = record.source in context.registry.publications[namespace].publishers
        context.statistics.published(record.source if is_listed else None, namespace, self.principal)
        self._notify(record, ordinal, None)
        self.relays.offer(record, ordinal, self._cursor)

    def _notify(self, record: EventRecord, ordinal: int, relayed: tuple[int, int] | None) -> Sequence[int]:
        """Give the notifications of an event their ids, and return them."""
        members = self._fan_out.members(record, ordinal)
        if not members.ids:
            if relayed is None:
                self.context.statistics.completed(record.namespace)
            return ()
        generated_ns = max(self.wire.now_ns(), record.received_ns)
        audience = self._audiences.add(record, members, generated_ns, relayed)
        self._contents.keep(audience, record)
        for subscription_id in members.ids:
            lane, source = self._lane(subscription_id)
            source.wake(audience)
            self._touched[subscription_id] = lane
        ids = range(audience.first, audience.end)
        if self._calls and relayed is None:
            self._ids_of[record.seq] = ids
        return ids

    def _send(self) -> None:
        """Send what is due to all that were touched: by priority, then by age."""
        touched, self._touched = self._touched, {}
        subscriptions = self.context.registry.subscriptions
        for _, _, lane in sorted(
            (-(it.priority if (it := subscriptions.get(number)) is not None else 0), number, lane)
            for number, lane in touched.items()
        ):
            lane.pump()
        self.relays.pump()

    def _publish(self, caller: bytes, argument: object) -> object:
        items = _checked_items(argument, REQUIRED)
        refusal = self._beyond_limit(items)
        if refusal or not items:
            return refusal
        if len(self._held) >= MOST_HELD_CALLS:
            return [Variant("Err", Variant("Busy")) for _ in items]
        answer: Promise[object] = Promise()
        self._once_known(lambda: self._published(caller, items).then(answer.settle))
        return answer

    def _once_known(self, work: Callable[[], None]) -> None:
        """Call ``work`` once the ids of all events of the log are noted."""
        if self.context.ids.behind > EVENTS_A_TURN:
            self._once_read(self.context.log.last_seq, lambda: self._once_known(work))
        else:
            self.context.ids.catch_up(EVENTS_A_TURN)
            work()

    def _published(self, caller: bytes, items: Sequence[Item]) -> Promise[list[Variant]]:
        call = PublishCall(len(items), self._durability.then)
        taken: list[tuple[int, TakenEvent]] = []
        now_ns = self.wire.now_ns()
        for place, item in enumerate(items):
            try:
                if replay_id_of(item) is not None:
                    self.replays.take(caller, item, call, place)
                elif self._waiting_bytes >= self.context.policy.most_waiting_bytes:
                    raise EventRefused(Variant("Busy"))
                else:
                    found = self._publishing.take(caller, item, now_ns)
                    if isinstance(found, TakenEvent):
                        taken.append((place, found))
                        self._waiting_bytes += found.stored_bytes
                    else:
                        found.then(_repeated(call, place))
            except EventRefused as refused:
                self.errors += 1
                call.refuse(place, refused.error)
        if taken:
            self._append(taken, call)
        return call.answer

    def _append(self, taken: Sequence[tuple[int, TakenEvent]], call: PublishCall) -> None:
        self._calls += 1

        def done(future: "Future[list[EventRecord]]") -> None:
            self._waiting_bytes -= sum(it.stored_bytes for _, it in taken)
            error = future.exception()
            if error is None:
                records = future.result()
                self._once_read(records[-1].seq, lambda: finish(records))
                return
            forget()
            self.errors += len(taken)
            for place, it in taken:
                call.refuse(place, failed(DISK_REFUSES, str(error)))
                it.claim.done.settle(str(error))

        def finish(records: Sequence[EventRecord]) -> None:
            for (place, it), record in zip(taken, records, strict=True):
                call.take(place, self._ids_of.pop(record.seq, ()))
                it.claim.done.settle(None)
            forget()

        def forget() -> None:
            self._calls -= 1
            for _, it in taken:
                del self.context.ids.claims[it.draft.namespace, cast("int", it.draft.event_id)]
            if not self._calls:
                self._ids_of.clear()

        self.wire.when_done(self.context.log.append_soon([it.draft for _, it in taken]), done)

    def _publish_relay(self, caller: bytes, argument: object) -> object:
        items = _checked_items(argument, (*REQUIRED, "source"))
        refusal = self._beyond_limit(items)
        if refusal or not items:
            return refusal
        answer: Promise[object] = Promise()
        self._once_known(lambda: self._relayed(caller, items).then(answer.settle))
        return answer

    def _relayed(self, caller: bytes, items: Sequence[Item]) -> Promise[list[Variant]]:
        call = PublishCall(len(items), self._durability.then)
        now_ns = self.wire.now_ns()
        self._durability.then(self._send)
        for place, item in enumerate(items):
            try:
                if replay_id_of(item) is not None:
                    self.replays.take_relayed(caller, item, call, place)
                    continue
                found = self._relay_intake.take(caller, item)
            except EventRefused as refused:
                self.errors += 1
                call.refuse(place, refused.error)
                continue
            ids: Sequence[int] = ()
            if found is not None:
                record, ordinal, sent_ns = found
                self.events_relayed_here += 1
                ids = self._notify(record, ordinal, (sent_ns, max(now_ns, sent_ns)))
            call.take(place, ids)
        return call.answer

    def _beyond_limit(self, items: Sequence[Item]) -> list[Variant]:
        """Return the answer to a call with more events than allowed, nothing for others."""
        most = self.context.policy.most_events
        if len(items) <= most:
            return []
        self.errors += 1
        return [Variant("Err", Variant("GenericBatchError", f"got {len(items)} events, expected at most {most}"))]

    def _confirm_messages(self, caller: bytes, argument: object) -> object:
        ids = cast("Sequence[int]", argument)
        most = self.context.policy.most_confirmations
        if len(ids) > most:
            said = f"got {len(ids)} ids, expected at most {most}"
            return Variant("itemized", [Variant("Err", Variant("GenericBatchError", said))])
        result = confirmation_result(caller, ids, self._confirm)
        answer: Promise[object] = Promise()
        self._durability.then(self._send)
        self._durability.then(lambda: answer.settle(result))
        return answer

    def _confirm(self, caller: bytes, notification_id: int) -> str | None:
        audience = self._audiences.holding(notification_id)
        if audience is None:
            if self.replays.confirm(caller, notification_id):
                self._confirmed.add(notification_id, caller)
                return None
            return self._confirmed.refusal(notification_id, caller)
        subscription_id = audience.members.ids[notification_id - audience.first]
        subscription = self.context.registry.subscriptions.get(subscription_id)
        if subscription is None or subscription.subscriber != caller:
            return "Unauthorized"
        lane, source = self._lane(subscription_id)
        if lane.confirm(notification_id) or source.confirm_early(notification_id):
            self._confirmed.add(notification_id, caller)
            self._touched[subscription_id] = lane
            return None
        return self._confirmed.refusal(notification_id, caller)

    def _handle_notification(self, caller: bytes, argument: object) -> object:
        if caller != self.context.orchestrator.principal:
            raise CallRefused("icrc72_handle_notification: expected the orchestrator as caller")
        for message in cast("Sequence[Mapping[str, Any]]", argument):
            self.on_system_message(message)
        return None

    def stats(self) -> Headers:
        """Return the statistics that ``icrc72_get_broadcaster_stats`` gives."""
        return broadcaster_stats(
            BroadcasterCounts(
                self.counts,
                events=self.events + self.events_relayed_here,
                relays_sent=self.relays.relayed,
                relays_received=self.events_relayed_here,
                errors=self.errors + self.relays.errors,
                events_a_second=self._rate.a_second(self.wire.passed_ns()),
                seconds=(self.wire.passed_ns() - self._started_ns) / SECOND,
                outstanding=sum(len(it.unconfirmed) for it in self._all_lanes()),
                outstanding_ids=self.outstanding(),
                resources=self.resources(),
            )
        )

    def outstanding(self) -> Iterator[int]:
        """Yield the delivered notifications that wait for a confirmation."""
        return (it for lane in self._all_lanes() for it in lane.unconfirmed)

    def _all_lanes(self) -> Iterator[NotificationLane]:
        yield from (lane for lane, _ in self._lanes.values())
        yield from self.replays.lanes

    def resources(self) -> dict[str, Icrc16]:
        """Return what the broadcaster holds."""
        return {
            "events:waiting": nat(len(self._audiences)),
            "relays:waiting": nat(self.relays.waiting),
            "replays:waiting": nat(self.replays.waiting),
            "memory:bytes": nat(self._contents.held_bytes),
            "log:behind": nat(max(0, self.context.log.last_seq - self._cursor)),
        }

    def _lane(self, subscription_id: int) -> tuple[NotificationLane, SubscriptionSource]:
        known = self._lanes.get(subscription_id)
        if known is None:
            source = SubscriptionSource(subscription_id, self._around)
            seed = self.principal + number_key(subscription_id)
            lane = NotificationLane(source, self, self.context.policy, self.counts, seed=seed)
            source.on_more = lane.pump
            known = self._lanes[subscription_id] = lane, source
        return known

    def _load_lanes(self) -> None:
        """Make the lanes of all audiences that the store has, and settle what was finished before."""
        for audience in list(self._audiences.load()):
            for place, subscription_id in enumerate(audience.members.ids):
                is_new = subscription_id not in self._lanes
                _, source = self._lane(subscription_id)
                if is_new:
                    source.load()
                source.recall(audience, audience.first + place)

    def _note_cursor(self) -> None:
        self.context.store.put(self._state, CURSOR, number_key(self._cursor))


def _checked_items(argument: object, fields: Sequence[str]) -> Sequence[Item]:
    """Return the records of a call; ``CallRefused`` where one lacks a field, as Candid does."""
    items = cast("Sequence[Item]", argument)
    for item in items:
        for name in fields:
            if item.get(name) is None:
                raise CallRefused(f"expected records with the field {name}")
    return items


def _repeated(call: PublishCall, place: int) -> Callable[[str | None], None]:
    """Return what answers for an event that came before, when it is durable: with no notifications."""

    def answer(error: str | None) -> None:
        if error is None:
            call.take(place, ())
        else:
            call.refuse(place, failed(DISK_REFUSES, error))

    return answer
