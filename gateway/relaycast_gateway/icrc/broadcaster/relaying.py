"""Relays: events on their way from the broadcaster that took them to those that serve other subscribers.

Law: an event is relayed once to each broadcaster that has a subscription which gets it, in the order of the log; its
filters are asked too. It is never relayed a second time, and never enters the log again. After a restart relays go on
behind what was answered; a broadcaster takes none twice.
Source: ICRC-72, "EventRelay", "icrc72_publish_relay".
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.clock import Alarm
from relaycast_gateway.icrc.broadcaster.contents import timed_headers
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.broadcaster.policy import BroadcastPolicy
from relaycast_gateway.icrc.broadcaster.publishing import (
    BAD_EVENT,
    RELAYED_BEFORE,
    EventRefused,
    Item,
    draft_of,
    failed,
    id_is_taken,
    no_such_event,
)
from relaycast_gateway.icrc.canister import Answer, Canister
from relaycast_gateway.icrc.names import OWN_HEADER, RELAY_RECEIVED, RELAY_SENT
from relaycast_gateway.icrc.store import number_key
from relaycast_gateway.icrc.variants import pairs_of, variant_of
from relaycast_gateway.icrc16 import Tag, nat
from relaycast_gateway.record import EventRecord


def home_of(record: EventRecord, broadcasters: Sequence[bytes]) -> bytes | None:
    """Return the broadcaster that fans a record out: the one that took it, else the first one."""
    taken_by = next((value.content for name, value in reversed(record.headers) if name == OWN_HEADER), None)
    if taken_by in broadcasters:
        return taken_by
    if not broadcasters or not record.is_public:
        return None
    return broadcasters[0]


def relay_of(record: EventRecord, now_ns: int) -> dict[str, Any]:
    """Return an event as another broadcaster takes it."""
    return {
        "id": record.event_id,
        "prev_id": record.prev_id,
        "prevId": None,
        "timestamp": now_ns,
        "namespace": record.namespace,
        "source": Principal(record.source),
        "data": variant_of(record.data),
        "headers": pairs_of((*timed_headers(record), (RELAY_SENT, nat(now_ns)))),
    }


class RelayLane:
    """Events for one other broadcaster, one call at a time."""

    def __init__(
        self, target: bytes, canister: Canister, context: BroadcasterContext, answered: Callable[[int], None]
    ) -> None:
        self.target = target
        self.waiting: deque[int] = deque()
        """Places in the log."""

        self.relayed = 0
        self.errors = 0
        self._canister = canister
        self._log = context.log
        self._policy: BroadcastPolicy = context.policy
        self._on_answer = answered
        self._random = Random(canister.principal + target)  # noqa: S311 - spreads retries
        self._failures = 0
        self._is_calling = False
        self._is_closed = False
        self._pause: Alarm | None = None

    def offer(self, seq: int) -> None:
        self.waiting.append(seq)

    def pump(self) -> None:
        """Send what waits, unless a call is under way or the broadcaster could not be reached just now."""
        while self.waiting and not (self._is_calling or self._is_closed or self._pause is not None):
            seqs = [self.waiting[at] for at in range(min(len(self.waiting), self._policy.notifications_a_call))]
            now_ns = self._canister.wire.now_ns()
            relays = [relay_of(record, now_ns) for record in self._log.records(seqs)]
            if relays:
                self._is_calling = True
                answered = partial(self._answered, len(seqs))
                self._canister.call(self.target, "icrc72_publish_relay", relays, answered)
            else:
                self._done(len(seqs))

    def close(self) -> None:
        self._is_closed = True
        if self._pause is not None:
            self._pause.cancel()

    def _answered(self, count: int, answer: Answer) -> None:
        if self._is_closed:
            return
        self._is_calling = False
        results = answer.value if isinstance(answer.value, list) else []
        errors = [it.value.tag for it in results if it is not None and it.tag == "Err"]
        if answer.refusal is not None or "Busy" in errors:
            self.errors += 1
            seconds = self._policy.back_off_seconds(self._failures, self._random.random())
            self._failures += 1
            self._pause = self._canister.wire.call_later(seconds, self._try_again)
            return
        self._failures = 0
        self.errors += len(errors)
        self.relayed += len(results) - len(errors)
        self._done(count)
        self.pump()

    def _done(self, count: int) -> None:
        seq = 0
        for _ in range(count):
            seq = self.waiting.popleft()
        self._on_answer(seq)

    def _try_again(self) -> None:
        self._pause = None
        self.pump()


class RelayIntake:
    """Checks relayed events for the broadcaster that receives them."""

    def __init__(self, context: BroadcasterContext, broadcaster: bytes, state: str) -> None:
        self._context = context
        self._broadcaster = broadcaster
        self._state = state
        self._newest: dict[bytes, int] = {}
        """The newest event that each broadcaster relayed."""

    def take(self, caller: bytes, item: Item) -> tuple[EventRecord, int, int] | None:
        """Return a relayed event, its ordinal, and when it was sent; ``None`` for one that came before.

        Raises ``EventRefused``.
        """
        context = self._context
        if caller not in context.registry.broadcasters or caller == self._broadcaster:
            raise EventRefused(Variant("Unauthorized"))
        draft = draft_of(item["source"].raw, item)
        headers, data = dict(draft.headers), draft.data
        if RELAY_RECEIVED in headers:
            raise EventRefused(failed(RELAYED_BEFORE, "an event is relayed once"))
        sent = headers.get(RELAY_SENT)
        if sent is None or sent.tag is not Tag.NAT:
            raise EventRefused(failed(BAD_EVENT, f"headers: expected {RELAY_SENT} with a Nat"))
        place = item["namespace"], item["id"]
        known = context.ids.find(*place)
        record = None if known is None else context.log.get(known.seq)
        if known is None:
            raise no_such_event(*place)
        if record is None or (record.source, record.data) != (item["source"].raw, data):
            raise id_is_taken(*place)
        if home_of(record, context.registry.broadcasters) != caller:
            raise EventRefused(Variant("Unauthorized"))
        if record.seq <= self._newest_of(caller):
            return None
        self._newest[caller] = record.seq
        context.store.put(self._state, b"relayed" + caller, number_key(record.seq))
        return record, known.ordinal, sent.content

    def _newest_of(self, caller: bytes) -> int:
        if caller not in self._newest:
            kept = self._context.store.get(self._state, b"relayed" + caller)
            self._newest[caller] = 0 if kept is None else int.from_bytes(kept, "big")
        return self._newest[caller]
