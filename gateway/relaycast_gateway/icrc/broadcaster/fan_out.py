"""Which subscriptions get an event.

Law: a subscription gets an event if it runs, began before the event, asks for its namespace, and its subscriber may
receive the namespace now. Its skip must select the event's ordinal, then its filter the data. Subscriptions come by
priority, then by age. All subscriptions with one filter share its evaluation.
Source: ICRC-72, "Filtering records", "Skipping records".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from relaycast_gateway.icrc.broadcaster.context import BroadcasterContext
from relaycast_gateway.icrc.candypath.compiled import TreePredicate
from relaycast_gateway.icrc.names import PUBLICATION
from relaycast_gateway.icrc.registry import IcrcSubscription
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc16 import Icrc16
from relaycast_gateway.record import EventRecord

SUBSCRIBER_LISTS = f"{PUBLICATION}subscribers:"
MOST_PLANS = 4_096
MOST_MEMBERS = 256
"""Sets of subscriptions that a namespace's plan keeps: mostly few come again and again."""


class EventMembers:
    """Subscriptions that get an event, in the order in which they are notified."""

    __slots__ = ("__dict__", "ids")

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = ids

    @cached_property
    def places(self) -> Mapping[int, int]:
        """The place of each subscription, from 0 on."""
        return {subscription_id: place for place, subscription_id in enumerate(self.ids)}


NOBODY = EventMembers(())


@dataclass(slots=True)
class _Group:
    """Subscriptions with one skip and one filter."""

    skip: Skip | None
    filter_number: int | None
    bit: int


@dataclass(slots=True)
class _Plan:
    """The subscriptions to a namespace, in groups that an event's data and ordinal select as a whole."""

    subscriptions: Sequence[IcrcSubscription]
    is_restricted: bool
    newest_since: int = 0
    filters: list[TreePredicate] = field(default_factory=list)
    groups: list[_Group] = field(default_factory=list)
    bits: list[int] = field(default_factory=list)
    """Bit of its group, for each subscription."""

    members: dict[int, EventMembers] = field(default_factory=lambda: {0: NOBODY})
    """By the groups that are selected, a bit for each."""

    def __post_init__(self) -> None:
        numbers: dict[tuple[str, bool], int] = {}
        places: dict[tuple[Skip | None, int | None], _Group] = {}
        for it in self.subscriptions:
            self.newest_since = max(self.newest_since, it.since)
            number = None
            if it.selects is not None and it.filter is not None:
                number = numbers.setdefault((it.filter, it.pattern.has_wildcard), len(self.filters))
                if number == len(self.filters):
                    self.filters.append(it.selects)
            group = places.get((it.skip, number))
            if group is None:
                group = places[it.skip, number] = _Group(it.skip, number, 1 << len(self.groups))
                self.groups.append(group)
            self.bits.append(group.bit)

    def selected(self, data: Icrc16, ordinal: int) -> int:
        """Return the bits of the groups that an event selects: skips are asked first."""
        said: list[bool | None] = [None] * len(self.filters)
        found = 0
        for group in self.groups:
            if group.skip is not None and not group.skip.selects(ordinal):
                continue
            number = group.filter_number
            if number is not None:
                selects = said[number]
                if selects is None:
                    selects = said[number] = self.filters[number](data)
                if not selects:
                    continue
            found |= group.bit
        return found

    def members_of(self, groups: int) -> EventMembers:
        found = self.members.get(groups)
        if found is None:
            if len(self.members) >= MOST_MEMBERS:
                self.members.clear()
            pairs = zip(self.subscriptions, self.bits, strict=True)
            found = self.members[groups] = EventMembers(tuple(it.id for it, bit in pairs if bit & groups))
        return found


class EventFanOut:
    """Chooses the subscriptions of one broadcaster."""

    def __init__(self, context: BroadcasterContext, broadcaster: bytes) -> None:
        self._registry = context.registry
        self._may_receive = context.orchestrator.may_receive
        self._broadcaster = broadcaster
        self._version = -1
        self._plans: dict[str, _Plan] = {}

    def members(self, record: EventRecord, ordinal: int) -> EventMembers:
        """Return who gets an event; ``ordinal`` is its place in its namespace."""
        plan = self._plan(record.namespace)
        if not plan.groups:
            return NOBODY
        found = plan.members_of(plan.selected(record.data, ordinal))
        if found.ids and (plan.is_restricted or record.seq <= plan.newest_since):
            kept = tuple(it for it in found.ids if self._gets(it, record, is_restricted=plan.is_restricted))
            return EventMembers(kept) if len(kept) < len(found.ids) else found
        return found

    def _gets(self, subscription_id: int, record: EventRecord, *, is_restricted: bool) -> bool:
        it = self._registry.subscriptions[subscription_id]
        return record.seq > it.since and (not is_restricted or self._may_receive(record.namespace, it.subscriber))

    def _plan(self, namespace: str) -> _Plan:
        if self._registry.version != self._version or len(self._plans) >= MOST_PLANS:
            self._plans.clear()
            self._version = self._registry.version
        plan = self._plans.get(namespace)
        if plan is None:
            publication = self._registry.publications.get(namespace)
            config = () if publication is None else publication.config
            plan = self._plans[namespace] = _Plan(
                self._registry.subscriptions_to(namespace, self._broadcaster),
                any(key.startswith(SUBSCRIBER_LISTS) for key, _ in config),
            )
        return plan
