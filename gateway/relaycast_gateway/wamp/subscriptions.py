"""The subscriptions of a realm: one for each pattern; sessions share it.

Law: ids are random, and no two subscriptions have the same. The subscriptions of configured histories exist from the
start and stay, with or without a session. Any other one ends with its last session, and its id is then unknown.
"""

from collections.abc import Iterable, Iterator, Sequence

from relaycast_gateway.clock import Clock
from relaycast_gateway.matching.pattern_book import PatternBook
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.client.session import ClientSession
from relaycast_gateway.wamp.messages import unused_id


class TopicSubscription:
    """A pattern that sessions are subscribed to, with its id."""

    __slots__ = ("_receivers", "_sessions", "created_ns", "id", "is_kept", "pattern")

    def __init__(self, subscription_id: int, pattern: TopicPattern, created_ns: int, *, is_kept: bool = False) -> None:
        self.id = subscription_id
        self.pattern = pattern
        self.created_ns = created_ns
        """Nanoseconds since 1970."""

        self.is_kept = is_kept
        """Whether it stays without sessions, because a history is configured for it."""

        self._sessions: dict[ClientSession, None] = {}
        self._receivers: tuple[ClientSession, ...] | None = ()

    @property
    def sessions(self) -> Sequence[ClientSession]:
        """The subscribed sessions, in the order in which they came; a copy that later changes leave alone."""
        if self._receivers is None:
            self._receivers = tuple(self._sessions)
        return self._receivers

    @property
    def session_count(self) -> int:
        return len(self._sessions)

    def __contains__(self, session: ClientSession) -> bool:
        return session in self._sessions

    def details(self) -> dict[str, object]:
        """Return what the subscription meta API says."""
        return {
            "id": self.id,
            "created": format_time(self.created_ns),
            "uri": self.pattern.uri,
            "match": str(self.pattern.match),
        }

    def add(self, session: ClientSession) -> None:
        self._sessions[session] = None
        self._receivers = None

    def discard(self, session: ClientSession) -> None:
        self._sessions.pop(session, None)
        self._receivers = None

    def __repr__(self) -> str:
        return f"<TopicSubscription {self.id} to {self.pattern}: {len(self._sessions)} sessions>"


class SubscriptionRegistry:
    """All subscriptions of one realm; ``kept`` are the patterns of its configured histories."""

    def __init__(self, kept: Iterable[TopicPattern] = (), *, clock: Clock) -> None:
        self._clock = clock
        self._book: PatternBook[TopicSubscription] = PatternBook()
        self._by_id: dict[int, TopicSubscription] = {}
        self._of_session: dict[ClientSession, dict[TopicSubscription, None]] = {}
        for pattern in kept:
            if self._book.get(pattern) is None:
                self._create(pattern, is_kept=True)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[TopicSubscription]:
        return iter(list(self._by_id.values()))

    @property
    def has_sessions(self) -> bool:
        """Whether anybody is subscribed to anything."""
        return bool(self._of_session)

    def by_id(self, subscription_id: int) -> TopicSubscription | None:
        return self._by_id.get(subscription_id)

    def lookup(self, pattern: TopicPattern) -> TopicSubscription | None:
        """Return the subscription of this very pattern."""
        return self._book.get(pattern)

    def matching(self, topic: str) -> tuple[TopicSubscription, ...]:
        """Return the subscriptions whose pattern matches ``topic``, those without sessions among them."""
        return self._book.matching(topic)

    def of(self, session: ClientSession) -> list[TopicSubscription]:
        """Return what a session is subscribed to."""
        return list(self._of_session.get(session, ()))

    def count(self, session: ClientSession) -> int:
        """Return how many subscriptions a session has."""
        return len(self._of_session.get(session, ()))

    def join(self, session: ClientSession, pattern: TopicPattern) -> tuple[TopicSubscription, bool, bool]:
        """Subscribe a session; return the subscription, whether it is new, and whether the session had it already."""
        found = self._book.get(pattern)
        is_new = found is None
        if found is None:
            found = self._create(pattern)
        elif session in found:
            return found, False, True
        found.add(session)
        self._of_session.setdefault(session, {})[found] = None
        return found, is_new, False

    def part(self, session: ClientSession, subscription: TopicSubscription) -> bool:
        """Unsubscribe a session that is subscribed; return whether the subscription ended with it."""
        subscription.discard(session)
        mine = self._of_session[session]
        del mine[subscription]
        if not mine:
            del self._of_session[session]
        if subscription.session_count or subscription.is_kept:
            return False
        self._book.remove(subscription.pattern)
        del self._by_id[subscription.id]
        return True

    def _create(self, pattern: TopicPattern, *, is_kept: bool = False) -> TopicSubscription:
        new_id = unused_id(self._by_id)
        made = TopicSubscription(new_id, pattern, self._clock.now_ns(), is_kept=is_kept)
        self._book.add(pattern, made)
        self._by_id[new_id] = made
        return made
