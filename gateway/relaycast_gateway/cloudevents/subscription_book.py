"""The subscription manager: Create, Retrieve, Query, Update and Delete, whatever protocol they come by.

Law: an operation does all of what it was asked for or nothing. What it returned is durable, and holds for the first
attempt at a delivery that begins after it. Source: CloudEvents Subscriptions API 0.1-wip, section 3.2.4.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from relaycast_gateway.access import EVERYTHING, EventAccess
from relaycast_gateway.clock import Clock
from relaycast_gateway.cloudevents.caller import Caller
from relaycast_gateway.cloudevents.config import shown, start_of
from relaycast_gateway.cloudevents.event import attributes_of
from relaycast_gateway.cloudevents.generation import Counting, selection_of
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.masks import masked_sink
from relaycast_gateway.cloudevents.operation_refused import (
    NoSuchSubscription,
    NotYourSubscription,
    SubscriptionChanged,
    TooManySubscriptions,
)
from relaycast_gateway.cloudevents.subscription import EventSubscription, realized
from relaycast_gateway.cloudevents.subscription_order import order_of
from relaycast_gateway.cloudevents.subscription_store import SubscriptionStore
from relaycast_gateway.cloudevents.ulid import UlidSource
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.order import DeliveryOrder
from relaycast_gateway.delivery.senders import sender_class
from relaycast_gateway.delivery.sink_address import parse_sink
from relaycast_gateway.delivery.sink_guard import SinkGuard, SinkRefused, literal_address
from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.predicate import SharedView
from relaycast_gateway.principal import principal_of_name
from relaycast_gateway.record import EventRecord

MOST_SUBSCRIPTIONS = 10_000

T = TypeVar("T")

GENERATION_MEMBERS = ("source", "types")


class SubscriptionBook:
    """All subscriptions, and the deliveries that they cause."""

    def __init__(
        self,
        store: SubscriptionStore,
        deliveries: EventDeliveries,
        log: EventLog,
        *,
        clock: Clock,
        guard: SinkGuard,
        access: EventAccess = EVERYTHING,
        principal_of: Callable[[str], bytes] = principal_of_name,
        most: int = MOST_SUBSCRIPTIONS,
        find_sender: Callable[[str], object] = sender_class,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._deliveries = deliveries
        self._log = log
        self._clock = clock
        self._guard = guard
        self._access = access
        self._principal_of = principal_of
        self.most = most
        self._attributes = SharedView(attributes_of)
        self._counts: dict[str, Counting] = {}
        self._by_id: dict[str, EventSubscription] = {it.id: it for it in store.all()}
        self._ids = UlidSource(clock, last=max(self._by_id, default=""))
        self._turn = asyncio.Lock()
        self._find_sender = find_sender
        self._on_change = on_change

    def begin(self) -> None:
        """Hand every stored subscription to delivery, which goes on where it was.

        ``ValueError`` names one that cannot be delivered by this installation.
        """
        for subscription in self._by_id.values():
            try:
                order = self._order(subscription)
            except ValueError as error:
                raise ValueError(f"subscription {subscription.id}: {error}") from None
            self._deliveries.add(order, subscription.start_seq)
        self._deliveries.forget_others()

    async def create(self, caller: Caller, given: object) -> EventSubscription:
        """Realize a proposed object; raises ``InvalidMember`` and ``TooManySubscriptions``."""
        members = realized(given)
        await self._ensure_deliverable(members)
        start = await self._start(members["config"].get("since"))
        async with self._turn:
            if len(self._by_id) >= self.most:
                raise TooManySubscriptions(self.most)
            made = EventSubscription(self._ids.next(), caller.name, 1, self._clock.now_ns(), start, start, members)
            await self._durably(lambda: self._store.put(made))
            self._by_id[made.id] = made
            self._deliveries.add(self._order(made), start)
        self._on_change()
        return made

    def retrieve(self, caller: Caller, subscription_id: str) -> EventSubscription:
        """Return a subscription; raises ``NoSuchSubscription`` and ``NotYourSubscription``."""
        found = self._by_id.get(subscription_id)
        if found is None:
            raise NoSuchSubscription(subscription_id)
        if not caller.may_use(found.owner):
            raise NotYourSubscription(subscription_id)
        return found

    def query(
        self,
        caller: Caller,
        *,
        limit: int | None = None,
        after: str = "",
        protocol: str | None = None,
        event_type: str | None = None,
    ) -> tuple[list[EventSubscription], bool]:
        """Return the caller's subscriptions in the order of their creation, and whether there are more.

        ``event_type`` leaves those that would be told of an event of this type, as far as ``types`` say.
        """
        found: list[EventSubscription] = []
        for it in self._by_id.values():
            if it.id <= after or not caller.may_use(it.owner):
                continue
            if protocol is not None and it.protocol != protocol:
                continue
            if event_type is not None and event_type not in it.members.get("types", (event_type,)):
                continue
            if len(found) == limit:
                return found, True
            found.append(it)
        return found, False

    async def update(
        self, caller: Caller, subscription_id: str, given: object, *, if_match: str | None = None
    ) -> EventSubscription:
        """Replace everything but the id; raises as ``create`` and ``retrieve``, and ``SubscriptionChanged``."""
        async with self._turn:
            old = self.retrieve(caller, subscription_id)
            _ensure_match(old, if_match)
            if isinstance(given, dict) and given.get("id", subscription_id) != subscription_id:
                raise InvalidMember("id", "another id than the path's", f"{subscription_id}, or none")
            members = realized(given, old=old.members)
            await self._ensure_deliverable(members)
            recount = _generation_of(members) != _generation_of(old.members)
            counted_from = self._deliveries.state(old.id).cursor if recount else old.counted_from
            new = EventSubscription(
                old.id, old.owner, old.revision + 1, old.created_ns, old.start_seq, counted_from, members
            )
            await self._durably(lambda: self._store.put(new, forgets_marks=recount))
            self._by_id[new.id] = new
            if recount:
                self._counts.pop(new.id, None)
            self._deliveries.replace(self._order(new))
        self._on_change()
        return new

    async def delete(self, caller: Caller, subscription_id: str, *, if_match: str | None = None) -> EventSubscription:
        """Remove a subscription and return it; no attempt at a delivery begins afterwards."""
        async with self._turn:
            old = self.retrieve(caller, subscription_id)
            _ensure_match(old, if_match)
            await self._durably(lambda: self._store.delete(old.id))
            del self._by_id[old.id]
            self._counts.pop(old.id, None)
            self._deliveries.remove(old.id)
        self._on_change()
        return old

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def needs_proofs(self) -> bool:
        """Whether any subscription asks for proofs."""
        return any(it.members["config"]["proof"] for it in self._by_id.values())

    def end(self) -> None:
        """Note what the next start needs, once deliveries have ended."""
        for counting in self._counts.values():
            counting.keep()

    def _order(self, subscription: EventSubscription) -> DeliveryOrder:
        members = subscription.members
        counting = self._counts.get(subscription.id)
        if members["config"]["interval"] > 1 and counting is None:
            counting = self._counts[subscription.id] = Counting(
                subscription.counted_from,
                lambda after, limit: self._log.read(after, limit=limit),
                marks=self._store.marks(subscription.id),
                note=lambda marks: self._store.note_marks(subscription.id, marks),
            )
        principal = self._principal_of(subscription.owner)

        def may_see(record: EventRecord) -> bool:
            return self._access.may_see(record, principal)

        return order_of(subscription, selection_of(members, self._attributes, counting, may_see))

    async def _ensure_deliverable(self, members: Mapping[str, Any]) -> None:
        """Refuse a protocol whose library is missing, and a sink that is wrong.

        Names of hosts are judged when they are connected to.
        """
        sink, protocol = members["sink"], members["protocol"]
        try:
            await asyncio.to_thread(self._find_sender, protocol)
        except ValueError as error:
            raise InvalidMember("protocol", f"{protocol!r}, which is not installed here", str(error)) from None
        for host, port in parse_sink(sink).hosts:
            if is_local_name(host) or literal_address(host) is not None:
                try:
                    await self._guard.check_host(host, port)
                except SinkRefused as refused:
                    raise InvalidMember(
                        "sink", masked_sink(sink), f"a public host, or one that --allow-sink allows ({refused.reason})"
                    ) from None

    async def _start(self, since: object) -> int:
        """Return the place in the log behind which a new subscription begins."""
        if since is None:
            return self._log.last_seq
        kind, value = start_of(since)
        if kind == "seq":
            most = self._log.last_seq + 1
            if value > most:
                raise InvalidMember("config.since", shown(since), f"an event up to the next one, {most}, or a time")
            return max(0, value - 1)
        found = await asyncio.to_thread(lambda: self._log.read(0, limit=1, occurred_from=value))
        return found[0].seq - 1 if found else self._log.last_seq

    async def _durably(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work) if self._store.is_durable else work()


def _ensure_match(subscription: EventSubscription, if_match: str | None) -> None:
    if if_match is None or if_match.strip() == "*":
        return
    if subscription.etag not in {tag.strip() for tag in if_match.split(",")}:
        raise SubscriptionChanged(subscription.id, subscription.etag)


def _generation_of(members: Any) -> tuple[Any, ...]:
    return (*(members.get(name) for name in GENERATION_MEMBERS), members["config"]["interval"])


def is_local_name(host: str) -> bool:
    """Return whether this machine alone decides where a name leads."""
    name = host.removesuffix(".").lower()
    return name == "localhost" or name.endswith(".localhost")
