"""Statistics: what broadcasters count, by the names of the text.

Law: counters only grow. They are noted at the beginning of each ``flush`` of the store, together with what a
broadcaster notes of its own, such as its cursor. A restart therefore counts nothing twice. Keys of ICRC-76 have a twin
of ICRC-77, which took over replays. Source: ICRC-72, "Formally recognized stats values".
"""

from collections.abc import Iterable, Sequence

import msgspec

from relaycast_gateway.icrc.registry import IcrcSubscription
from relaycast_gateway.icrc.store import IcrcStore, number_key, stored_rows
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.record import Headers

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[int])

WARNING = "relaycast:publication:stats:warning"
"""Ours: what is unwise about a publication."""


class CounterBook:
    """Counters of one kind of thing, some for each key, in a table of the store."""

    def __init__(self, store: IcrcStore, table: str, width: int) -> None:
        self._store = store
        self._table = table
        self._width = width
        with stored_rows(store, "statistics"):
            self._counts = {key: _DECODER.decode(value) for key, value in store.items(table)}
            if any(len(counts) != width for counts in self._counts.values()):
                raise ValueError(f"expected {width} counters")
        self._changed: set[bytes] = set()
        store.before_flush(self._note)

    def add(self, key: bytes, place: int, number: int) -> None:
        """Count ``number`` more in the counter at ``place`` of a key."""
        if number:
            counts = self._counts.get(key)
            if counts is None:
                counts = self._counts[key] = [0] * self._width
            counts[place] += number
            self._changed.add(key)

    def counts(self, key: bytes) -> Sequence[int]:
        """Return the counters of a key: zeros where nothing was counted."""
        return self._counts.get(key, (0,) * self._width)

    def forget(self, key: bytes) -> None:
        """Stop counting for a key."""
        if self._counts.pop(key, None) is not None:
            self._changed.discard(key)
            self._store.delete(self._table, key)

    def _note(self) -> None:
        for key in self._changed:
            self._store.put(self._table, key, _ENCODER.encode(self._counts[key]))
        self._changed.clear()


class Statistics:
    """All counters of an orchestrator. Broadcasters and replays call the methods that count."""

    def __init__(self, store: IcrcStore) -> None:
        self._publications = CounterBook(store, "statistics:publication", 4)
        """Events, completed events, notifications, confirmations."""

        self._publishers = CounterBook(store, "statistics:publisher", 2)
        """Events, cycles received."""

        self._pairs = CounterBook(store, "statistics:pair", 2)
        """The same, of a publisher in a namespace."""

        self._subscriptions = CounterBook(store, "statistics:subscription", 4)
        """Notifications, confirmations, cycles paid, requests."""

        self._subscribers = CounterBook(store, "statistics:subscriber", 4)
        """The same, of all subscriptions of a subscriber."""

        self._broadcasters = CounterBook(store, "statistics:broadcaster", 3)
        """Events, notifications, confirmations."""

        self._replays = CounterBook(store, "statistics:replay", 2)
        """The number of notifications, and the id of the newest one."""

    def published(self, publisher: bytes | None, namespace: str, broadcaster: bytes, events: int = 1) -> None:
        """Count events that a broadcaster took: once each, whatever becomes of them.

        ``None`` stands for all publishers that a namespace has no room for: they have no counters of their own.
        """
        self._publications.add(namespace.encode(), 0, events)
        if publisher is not None:
            self._publishers.add(publisher, 0, events)
            self._pairs.add(_pair(publisher, namespace), 0, events)
        self._broadcasters.add(broadcaster, 0, events)

    def completed(self, namespace: str, events: int = 1) -> None:
        """Count events of which every notification was sent for the first time; those nobody asked for, too."""
        self._publications.add(namespace.encode(), 1, events)

    def sent(self, subscription: IcrcSubscription, namespace: str, notifications: int = 1) -> None:
        """Count notifications of events in a namespace that were sent; one that is repeated counts once."""
        self._count(subscription, namespace, 0, notifications)

    def confirmed(self, subscription: IcrcSubscription, namespace: str, notifications: int = 1) -> None:
        """Count notifications that the subscriber confirmed, each once."""
        self._count(subscription, namespace, 1, notifications)

    def requested(self, subscriber: bytes, subscription: IcrcSubscription | None = None) -> None:
        """Count a request for a replay, of a subscription where there is one."""
        self._subscribers.add(subscriber, 3, 1)
        if subscription is not None:
            self._subscriptions.add(number_key(subscription.id), 3, 1)

    def paid(self, subscriber: bytes, cycles: int, subscription: IcrcSubscription | None = None) -> None:
        """Count cycles that a subscriber paid."""
        self._subscribers.add(subscriber, 2, cycles)
        if subscription is not None:
            self._subscriptions.add(number_key(subscription.id), 2, cycles)

    def replayed(self, replay_id: int, notification_ids: Sequence[int]) -> None:
        """Add notifications of a replay that were sent for the first time."""
        key = number_key(replay_id)
        self._replays.add(key, 0, len(notification_ids))
        self._replays.add(key, 1, max(0, max(notification_ids, default=0) - self.newest_of_replay(replay_id)))

    def sent_of_replay(self, replay_id: int) -> int:
        """Return how many notifications of a replay were sent, each counted once."""
        return self._replays.counts(number_key(replay_id))[0]

    def newest_of_replay(self, replay_id: int) -> int:
        """Return the highest id of a notification of a replay that was sent, 0 before the first one."""
        return self._replays.counts(number_key(replay_id))[1]

    def forget_replay(self, replay_id: int) -> None:
        self._replays.forget(number_key(replay_id))

    def rewarded(self, publisher: bytes, namespace: str, cycles: int) -> None:
        """Count cycles that a publisher received for a namespace."""
        self._publishers.add(publisher, 1, cycles)
        self._pairs.add(_pair(publisher, namespace), 1, cycles)

    def of_publication(self, namespace: str, *, publishers: int) -> Headers:
        events, completed, notifications, confirmations = self._publications.counts(namespace.encode())
        return _named(
            "icrc72:publication:stats:",
            ("publishers", publishers),
            ("events", events),
            ("events:sent", completed),
            ("notifications", notifications),
            ("confirmations", confirmations),
        )

    def of_publisher(self, publisher: bytes, *, publications: int) -> Headers:
        return _named("icrc72:publisher:stats:", *_of_publisher(publications, self._publishers.counts(publisher)))

    def of_pair(self, publisher: bytes, namespace: str) -> Headers:
        """Return the statistics of a publisher in a namespace, by the keys of publishers and by keys of their own."""
        values = _of_publisher(1, self._pairs.counts(_pair(publisher, namespace)))
        return _named("icrc72:publisher:stats:", *values) + _named("icrc72:publisher_publication:stats:", *values)

    def of_subscription(self, subscription: IcrcSubscription, *, of_the_subscriber: int) -> Headers:
        """Return the statistics of a subscription whose subscriber has ``of_the_subscriber`` subscriptions."""
        counts = self._subscriptions.counts(number_key(subscription.id))
        return _of_subscriber("subscription", "subscribers", of_the_subscriber, counts)

    def of_subscriber_subscription(self, subscription: IcrcSubscription, *, active: int) -> Headers:
        """Return the same by the keys of the pair; ``active`` of the subscriber's subscriptions are running."""
        counts = self._subscriptions.counts(number_key(subscription.id))
        return _of_subscriber("subscriber_subscription", "subscriptions:active", active, counts)

    def of_subscriber(self, subscriber: bytes, *, subscriptions: int) -> Headers:
        return _of_subscriber("subscriber", "subscriptions", subscriptions, self._subscribers.counts(subscriber))

    def of_broadcaster(self, broadcaster: bytes, *, subscriptions: int, subscribers: int) -> Headers:
        """Return the statistics of a broadcaster; the text names none, these keys are ours."""
        events, notifications, confirmations = self._broadcasters.counts(broadcaster)
        return _named(
            "icrc72:broadcaster:stats:",
            ("subscriptions", subscriptions),
            ("subscribers", subscribers),
            ("events", events),
            ("notifications", notifications),
            ("confirmations", confirmations),
        )

    def _count(self, subscription: IcrcSubscription, namespace: str, place: int, number: int) -> None:
        self._subscriptions.add(number_key(subscription.id), place, number)
        self._subscribers.add(subscription.subscriber, place, number)
        self._publications.add(namespace.encode(), 2 + place, number)
        self._broadcasters.add(subscription.broadcaster, 1 + place, number)


def selected(statistics: Headers, names: Iterable[str] | None) -> Headers:
    """Return those statistics that have one of the names, all for ``None``."""
    if names is None:
        return statistics
    wanted = frozenset(names)
    return tuple(each for each in statistics if each[0] in wanted)


def _pair(publisher: bytes, namespace: str) -> bytes:
    return bytes([len(publisher)]) + publisher + namespace.encode()


def _named(beginning: str, *values: tuple[str, int]) -> Headers:
    return tuple((beginning + name, nat(number)) for name, number in values)


def _of_publisher(publications: int, counts: Sequence[int]) -> tuple[tuple[str, int], ...]:
    events, cycles = counts
    return ("publications", publications), ("cyclesReceived", cycles), ("events", events)


def _of_subscriber(kind: str, first: str, subscriptions: int, counts: Sequence[int]) -> Headers:
    notifications, confirmations, cycles_paid, requests = counts
    return (
        *_named(
            f"icrc72:{kind}:stats:",
            (first, subscriptions),
            ("notifications", notifications),
            ("confirmations", confirmations),
            ("cyclesPaid", cycles_paid),
        ),
        *(each for number in (76, 77) for each in _named(f"icrc{number}:{kind}:stats:", ("requests", requests))),
    )
