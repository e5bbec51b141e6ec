"""What is registered: publications with their publishers, subscriptions, and who broadcasts to whom.

Law: the orchestrator writes, broadcasters read; each change makes ``version`` grow, so that whoever derives something
from the registry knows when to derive it again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from relaycast_gateway.icrc.candypath.compiled import TreePredicate
from relaycast_gateway.icrc.replay.replays import EventReplay
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.matching.namespaces import NamespacePattern
from relaycast_gateway.record import Headers


@dataclass(frozen=True, slots=True)
class PublisherEntry:
    """A publisher of a publication, with the configuration that it registered."""

    publisher: bytes
    config: Headers = ()
    memo: bytes = b""


@dataclass(frozen=True, slots=True)
class RegisteredPublication:
    """A namespace with its publishers, the first of which owns it."""

    id: int
    namespace: str
    publishers: Mapping[bytes, PublisherEntry]

    @property
    def owner(self) -> bytes:
        return next(iter(self.publishers))

    @property
    def config(self) -> Headers:
        """The configuration that holds for all: the owner's."""
        return self.publishers[self.owner].config


@dataclass(frozen=True, slots=True)
class IcrcSubscription:
    """What a subscriber asked for."""

    id: int
    subscriber: bytes
    namespace: str
    """As registered: a namespace or a pattern."""

    pattern: NamespacePattern
    broadcaster: bytes
    """The principal of the broadcaster that serves this subscriber."""

    since: int
    """The last event of the log when the subscription began or was started again: later ones are its events."""

    config: Headers = ()
    filter: str | None = None
    selects: TreePredicate | None = field(default=None, compare=False)
    """``filter``, compiled."""

    skip: Skip | None = None
    asked_skip: tuple[int, int | None] | None = None
    """``skip`` as it was asked for: with an offset only where one was given."""

    is_stopped: bool = False
    is_trusted: bool = False
    priority: int = 0
    url: str | None = None
    memo: bytes = b""


@dataclass(slots=True)
class Registry:
    """All that is registered now."""

    publications: dict[str, RegisteredPublication] = field(default_factory=dict)
    """By namespace."""

    subscriptions: dict[int, IcrcSubscription] = field(default_factory=dict)
    """By id, in the order of registration."""

    broadcasters: list[bytes] = field(default_factory=list)
    """Principals. The first one sends what comes into the log from other faces."""

    homes: dict[bytes, bytes] = field(default_factory=dict)
    """The broadcaster of a principal's subnet, where that is not the first one."""

    replays: dict[int, EventReplay] = field(default_factory=dict)
    """By id, ended ones too."""

    version: int = 0

    def home_of(self, principal: bytes) -> bytes:
        """Return the broadcaster that serves a principal and takes what it publishes."""
        return self.homes.get(principal, self.broadcasters[0])

    def subscription_of(self, subscriber: bytes, namespace: str) -> IcrcSubscription | None:
        """Return the oldest subscription of a subscriber that asks for a namespace: replays count as its."""
        found = (it for it in self.subscriptions.values() if it.subscriber == subscriber)
        return next((it for it in found if it.pattern.matches(namespace)), None)

    def running_in(self, namespaces: Iterable[str]) -> dict[str, int]:
        """Return how many running subscriptions ask for each namespace."""
        running = [it for it in self.subscriptions.values() if not it.is_stopped]
        by_name = Counter(it.namespace for it in running)
        patterns = [it.pattern for it in running if it.pattern.has_wildcard]
        return {each: by_name[each] + sum(it.matches(each) for it in patterns) for each in namespaces}

    def subscriptions_to(self, namespace: str, broadcaster: bytes) -> Sequence[IcrcSubscription]:
        """Return the running subscriptions of a broadcaster that ask for a namespace: by priority, then by age."""
        found = [
            it
            for it in self.subscriptions.values()
            if it.broadcaster == broadcaster and not it.is_stopped and it.pattern.matches(namespace)
        ]
        return sorted(found, key=lambda it: -it.priority)
