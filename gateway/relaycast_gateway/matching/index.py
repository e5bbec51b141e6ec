"""Which subscriptions may select an event, found without asking each of them.

A subscription that names its namespaces is found by the record's; the others are asked about every record.
"""

from collections.abc import Collection, Hashable, Iterator
from itertools import count
from typing import Generic, TypeVar

from relaycast_gateway.matching.predicate import RecordPredicate
from relaycast_gateway.record import EventRecord

Key = TypeVar("Key", bound=Hashable)


class SubscriptionIndex(Generic[Key]):
    """Subscriptions by key, in the order in which they were added."""

    def __init__(self) -> None:
        self._predicates: dict[Key, RecordPredicate] = {}
        self._namespaces: dict[Key, frozenset[str] | None] = {}
        self._orders: dict[Key, int] = {}
        self._anywhere: set[Key] = set()
        self._by_namespace: dict[str, set[Key]] = {}
        self._order = count()

    def __len__(self) -> int:
        return len(self._predicates)

    def add(self, key: Key, predicate: RecordPredicate, *, namespaces: Collection[str] | None = None) -> None:
        """Add a subscription that selects records of ``namespaces`` (``None``: of any); it replaces one of that key.

        ``predicate`` is asked about no other record.
        """
        self.remove(key)
        self._predicates[key] = predicate
        self._namespaces[key] = None if namespaces is None else frozenset(namespaces)
        self._orders[key] = next(self._order)
        if namespaces is None:
            self._anywhere.add(key)
        else:
            for namespace in namespaces:
                self._by_namespace.setdefault(namespace, set()).add(key)

    def remove(self, key: Key) -> None:
        """Remove a subscription, if there is one of that key."""
        if self._predicates.pop(key, None) is None:
            return
        del self._orders[key]
        self._anywhere.discard(key)
        for namespace in self._namespaces.pop(key) or ():
            keys = self._by_namespace[namespace]
            keys.discard(key)
            if not keys:
                del self._by_namespace[namespace]

    def selecting(self, record: EventRecord) -> Iterator[Key]:
        """Yield the keys of the subscriptions that select a record, in the order in which they were added."""
        keys = self._anywhere | self._by_namespace.get(record.namespace, set())
        for key in sorted(keys, key=self._orders.__getitem__):
            if self._predicates[key](record):
                yield key
