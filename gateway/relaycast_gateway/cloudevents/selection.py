"""Which events a subscription gets: its ``types``, then its ``source``, then its filter.

Law: an event goes to a sink where the owner of the subscription may see it (``EventAccess.may_see``), first of all.
"""

from collections.abc import Callable, Collection

from relaycast_gateway.cloudevents.dialects import AttributesPredicate
from relaycast_gateway.cloudevents.event import Attributes, attributes_of
from relaycast_gateway.matching.predicate import RecordPredicate
from relaycast_gateway.record import EventRecord


def is_public(record: EventRecord) -> bool:
    return record.is_public


def selects(
    *,
    may_see: RecordPredicate = is_public,
    types: Collection[str] | None = None,
    source: str | None = None,
    condition: AttributesPredicate | None = None,
    attributes: Callable[[EventRecord], Attributes] = attributes_of,
) -> RecordPredicate:
    """Return the predicate of a subscription; ``None`` puts no limit.

    ``types`` and ``source`` are compared whole. ``attributes`` is what all subscriptions share to look at a record: a
    ``SharedView`` of ``attributes_of``.
    """
    named = None if types is None else frozenset(types)

    def selected(record: EventRecord) -> bool:
        if named is not None and record.namespace not in named:
            return False
        if not may_see(record):
            return False
        if source is None and condition is None:
            return True
        seen = attributes(record)
        return (source is None or seen["source"] == source) and (condition is None or condition(seen))

    return selected
