"""What a subscription is to be sent, out of the audiences of its broadcaster.

Law: a subscription holds a bounded queue. One that is behind holds its place among the audiences instead, and reads on
from there: memory does not grow with what waits. The place and what is finished are durable with the next flush, so
that after a restart what was not confirmed is sent again, and nothing else. A stopped subscription gets nothing, also
not later what it missed.
Source: ICRC-72, "icrc72:subscription:stopped"; the list of allowed subscribers holds when a notification is sent.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from relaycast_gateway.icrc.broadcaster.audiences import Audience, Audiences
from relaycast_gateway.icrc.broadcaster.contents import Contents, Notification, addressed
from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.canister import Wire
from relaycast_gateway.icrc.durability import Durability
from relaycast_gateway.icrc.registry import IcrcSubscription
from relaycast_gateway.icrc.store import number_key

MOST_OFFERED = 256
MOST_OUT_OF_ORDER = 8_192
"""Finished notifications behind one that is not: a subscription that has them gets no more until that one is."""

LOOKS_A_TURN = 1_000
"""Audiences that a subscription looks through before others have their turn."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[int, int, list[int]])


@dataclass(slots=True)
class SourceSurroundings:
    """What all subscriptions of a broadcaster share."""

    context: BroadcasterContext
    audiences: Audiences
    contents: Contents
    durability: Durability
    wire: Wire
    table: str
    """Where subscriptions note their places."""

    _is_closed: bool = False
    changed: "dict[int, SubscriptionSource]" = field(default_factory=dict)
    """Subscriptions that have something to note before the next flush."""

    def __post_init__(self) -> None:
        self.context.store.before_flush(self._note)

    def close(self) -> None:
        """Note nothing more."""
        self._is_closed = True

    def _note(self) -> None:
        if self._is_closed:
            return
        for source in self.changed.values():
            source.note()
        self.changed.clear()


class SubscriptionSource:
    """Notifications for one subscription, by its id."""

    def __init__(self, subscription_id: int, around: SourceSurroundings) -> None:
        self.subscription_id = subscription_id
        self._around = around
        self.on_more: Callable[[], None] = lambda: None
        """Called when a turn ended with nothing found and audiences left."""

        self._offered: deque[Audience] = deque()
        self._is_behind = False
        """Whether there may be audiences after those offered, from ``_next`` on."""

        self._next = 0

        self._since = 0
        self._is_discarding = False
        """Whether audiences older than ``_since`` may exist."""

        self._finished_before = 0
        """All its notifications with lower ids are finished."""

        self._finished: set[int] = set()
        self._sent_up_to = 0
        self._counted: set[int] = set()
        """Ids beyond ``_sent_up_to`` that need not be counted as sent."""

        self._pending: dict[int, Audience] = {}
        """Those taken and not finished, in order."""

    def load(self) -> None:
        """Go on where the last run ended."""
        kept = self._around.context.store.get(self._around.table, number_key(self.subscription_id))
        if kept is not None:
            self._finished_before, self._sent_up_to, finished = _DECODER.decode(kept)
            self._finished, self._next = set(finished), self._finished_before
        self._is_behind = True

    def recall(self, audience: Audience, notification_id: int) -> None:
        """Say what the last run did with a notification of this subscription."""
        if notification_id <= self._sent_up_to or self.is_finished(notification_id):
            self._around.audiences.sent(audience)
        if self.is_finished(notification_id):
            self._around.audiences.finished(audience)

    def is_finished(self, notification_id: int) -> bool:
        return notification_id < self._finished_before or notification_id in self._finished

    def wake(self, audience: Audience) -> None:
        """Hear that a new audience has this subscription."""
        if self._is_behind:
            return
        if len(self._offered) < MOST_OFFERED:
            self._offered.append(audience)
        else:
            self._next, self._is_behind = audience.first, True

    @property
    def subscription(self) -> IcrcSubscription | None:
        return self._around.context.registry.subscriptions.get(self.subscription_id)

    @property
    def subscriber(self) -> bytes:
        it = self.subscription
        assert it is not None, "a subscription that is gone is not open"
        return it.subscriber

    @property
    def is_trusted(self) -> bool:
        it = self.subscription
        return it is not None and it.is_trusted

    def is_open(self) -> bool:
        it = self.subscription
        if it is None or it.is_stopped:
            self._discard(None)
            return False
        if it.since != self._since:
            self._since, self._is_discarding = it.since, True
        if self._is_discarding:
            self._is_discarding = not self._discard(it.since)
        return True

    def take(self, most: int) -> list[int]:
        found: list[int] = []
        if self._is_discarding:
            return found
        if self._pending:
            most = min(most, MOST_OUT_OF_ORDER - len(self._finished))
        while self._offered and len(found) < most:
            self._take_up(self._offered.popleft(), found)
        if self._is_behind and len(found) < most:
            self._read_on(found, most)
        return found

    def _read_on(self, found: list[int], most: int) -> None:
        looked = 0
        for audience in self._around.audiences.since(self._next, LOOKS_A_TURN):
            looked += 1
            self._next = audience.end
            self._take_up(audience, found)
            if len(found) == most:
                return
        self._is_behind = looked == LOOKS_A_TURN
        if not found and self._is_behind:
            self._around.wire.call_later(0.0, self.on_more)

    def _take_up(self, audience: Audience, found: list[int]) -> None:
        place = audience.members.places.get(self.subscription_id)
        if place is not None and not self.is_finished(audience.first + place):
            self._pending[audience.first + place] = audience
            found.append(audience.first + place)

    def put_back(self, ids: Sequence[int]) -> None:
        self._offered.extendleft([self._pending.pop(it) for it in reversed(ids)])

    def made(self, notification_id: int) -> Notification | None:
        it, audience = self.subscription, self._pending[notification_id]
        content = self._around.contents.of(audience)
        if it is None or content is None:
            return None
        if not self._around.context.orchestrator.may_receive(audience.namespace, it.subscriber):
            return None
        now_ns = max(self._around.wire.now_ns(), audience.generated_ns)
        place = notification_id - audience.first + 1, len(audience.members.ids)
        return addressed(content, notification_id, it.filter, place=place, sent_ns=now_ns)

    def sent(self, ids: Sequence[int]) -> None:
        if ids:
            self._count([it for it in ids if it > self._sent_up_to and it not in self._counted])
            self._sent_up_to = max(self._sent_up_to, ids[-1])
            self._counted = {it for it in self._counted if it > self._sent_up_to}
            self._change()

    def finished(self, notification_id: int, *, is_confirmed: bool) -> None:
        audience = self._pending[notification_id]
        if notification_id > self._sent_up_to and notification_id not in self._counted:  # before its call was answered
            if is_confirmed:
                self._count([notification_id])
            else:
                self._leave_unsent(audience)
            self._counted.add(notification_id)
        del self._pending[notification_id]
        self._finish(notification_id, audience)
        it = self.subscription
        if is_confirmed and it is not None:
            self._around.context.statistics.confirmed(it, audience.namespace)

    def confirm_early(self, notification_id: int) -> bool:
        """Take the confirmation of what the last run sent; ``False`` where that is not unfinished."""
        if notification_id > self._sent_up_to or self.is_finished(notification_id):
            return False
        audience = self._around.audiences.holding(notification_id)
        if audience is None or audience.members.places.get(self.subscription_id) != notification_id - audience.first:
            return False
        self._pending[notification_id] = audience
        self.finished(notification_id, is_confirmed=True)
        return True

    def note(self) -> None:
        """Note the place in the store."""
        row = (self._finished_before, self._sent_up_to, sorted(self._finished))
        self._around.context.store.put(self._around.table, number_key(self.subscription_id), _ENCODER.encode(row))

    def _count(self, ids: Sequence[int]) -> None:
        """Count what was handed over for the first time."""
        it, namespaces = self.subscription, Counter[str]()
        for each in ids:
            audience = self._pending[each]
            namespaces[audience.namespace] += 1
            self._leave_unsent(audience)
        if it is not None:
            for namespace, count in namespaces.items():
                self._around.context.statistics.sent(it, namespace, count)

    def _leave_unsent(self, audience: Audience) -> None:
        if self._around.audiences.sent(audience):
            self._around.context.statistics.completed(audience.namespace)

    def _discard(self, up_to_seq: int | None) -> bool:
        """Finish unsent notifications, those of events up to ``up_to_seq`` if given; return whether none is left.

        Some audiences a turn; ``on_more`` is called if more are left.
        """
        while self._offered:
            if not self._leave_out(self._offered[0], up_to_seq):
                return True
            self._offered.popleft()
        if not self._is_behind:
            return True
        waiting = list(self._around.audiences.since(self._next, LOOKS_A_TURN))
        for audience in waiting:
            if not self._leave_out(audience, up_to_seq):
                return True
            self._next = audience.end
        self._is_behind = len(waiting) == LOOKS_A_TURN
        if self._is_behind:
            self._around.wire.call_later(0.0, self.on_more)
        return not self._is_behind

    def _leave_out(self, audience: Audience, up_to_seq: int | None) -> bool:
        """Finish an audience's notification unsent; return ``False`` for one after ``up_to_seq``, which is kept."""
        if up_to_seq is not None and audience.seq > up_to_seq:
            return False
        place = audience.members.places.get(self.subscription_id)
        if place is not None and not self.is_finished(audience.first + place):
            if audience.first + place > self._sent_up_to:
                self._leave_unsent(audience)
            self._finish(audience.first + place, audience)
        return True

    def _finish(self, notification_id: int, audience: Audience) -> None:
        self._finished.add(notification_id)
        self._finished_before = self._first_unfinished()
        if notification_id < self._finished_before:
            self._finished = {it for it in self._finished if it >= self._finished_before}
        if self._around.audiences.finished(audience):
            self._around.contents.forget(audience)
        self._change()

    def _first_unfinished(self) -> int:
        if self._pending:
            return next(iter(self._pending.values())).first
        if self._offered:
            return self._offered[0].first
        return self._next if self._is_behind else self._around.audiences.next_id

    def _change(self) -> None:
        self._around.changed[self.subscription_id] = self
        self._around.durability.soon()
