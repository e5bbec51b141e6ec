"""Who offers which procedure: exactly, by prefix or by components with gaps, one callee or several.

Law: a call goes to one registration: the exact one, else the longest prefix, else a pattern with gaps. Among patterns,
the one whose first run of components is longest wins, then by its second run, and so on. Source: WAMP specification,
"Pattern-based Registrations" and "Shared Registration".
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.messages import unused_id
from relaycast_gateway.wamp.procedures import Procedure
from relaycast_gateway.wamp.session import Session


class Invoke(StrEnum):
    """Which of several callees takes a call."""

    SINGLE = "single"
    ROUNDROBIN = "roundrobin"
    RANDOM = "random"
    FIRST = "first"
    LAST = "last"


@dataclass(slots=True, eq=False)
class WampRegistration:
    """A pattern of procedures, and who offers them: callees in the order in which they came, or the router."""

    id: int
    pattern: TopicPattern
    invoke: Invoke
    created_ns: int
    procedure: Procedure | None = None
    callees: list[Session] = field(default_factory=list)
    turn: int = 0

    def next_callee(self) -> Session:
        """Return the callee that takes the next call."""
        callees = self.callees
        match self.invoke:
            case Invoke.ROUNDROBIN:
                chosen = callees[self.turn]
                self.turn = (self.turn + 1) % len(callees)
                return chosen
            case Invoke.RANDOM:
                return random.choice(callees)  # noqa: S311 - spreads load, keeps no secret
            case Invoke.LAST:
                return callees[-1]
        return callees[0]

    def remove(self, callee: Session) -> None:
        """Forget a callee; the others keep their turns."""
        at = self.callees.index(callee)
        del self.callees[at]
        if at < self.turn:
            self.turn -= 1
        self.turn %= max(1, len(self.callees))

    def details(self) -> dict[str, object]:
        """Return what the registration meta API says of it."""
        return {
            "id": self.id,
            "created": format_time(self.created_ns, digits=3),
            "uri": self.pattern.uri,
            "match": str(self.pattern.match),
            "invoke": str(self.invoke),
        }


class RegistrationBook:
    """The registrations of a realm."""

    def __init__(self) -> None:
        self._by_id: dict[int, WampRegistration] = {}
        self._by_pattern: dict[TopicPattern, WampRegistration] = {}
        self._prefixes: list[WampRegistration] = []
        self._wildcards: list[WampRegistration] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[WampRegistration]:
        return iter(self._by_id.values())

    def get(self, registration_id: int) -> WampRegistration | None:
        return self._by_id.get(registration_id)

    def lookup(self, pattern: TopicPattern) -> WampRegistration | None:
        """Return the registration of just this pattern."""
        return self._by_pattern.get(pattern)

    def find(self, uri: str) -> WampRegistration | None:
        """Return the registration that a call of ``uri`` goes to."""
        return next(self.matching(uri), None)

    def matching(self, uri: str) -> Iterator[WampRegistration]:
        """Yield every registration that fits ``uri``, the one that takes its calls first."""
        exact = self._by_pattern.get(TopicPattern(uri))
        if exact is not None:
            yield exact
        yield from (it for it in self._prefixes if it.pattern.matches(uri))
        yield from (it for it in self._wildcards if it.pattern.matches(uri))

    def add(
        self, pattern: TopicPattern, invoke: Invoke, created_ns: int, procedure: Procedure | None
    ) -> WampRegistration:
        """Add a registration of a pattern that has none yet."""
        number = unused_id(self._by_id)
        found = self._by_id[number] = WampRegistration(number, pattern, invoke, created_ns, procedure)
        self._by_pattern[pattern] = found
        if pattern.match is Match.PREFIX:
            self._prefixes.append(found)
            self._prefixes.sort(key=lambda it: -len(it.pattern.uri))
        elif pattern.match is Match.WILDCARD:
            self._wildcards.append(found)
            self._wildcards.sort(key=lambda it: _runs(it.pattern), reverse=True)
        return found

    def delete(self, registration: WampRegistration) -> None:
        del self._by_id[registration.id], self._by_pattern[registration.pattern]
        if registration.pattern.match is Match.PREFIX:
            self._prefixes.remove(registration)
        elif registration.pattern.match is Match.WILDCARD:
            self._wildcards.remove(registration)


def _runs(pattern: TopicPattern) -> list[int]:
    """Return how many components stand before the first gap, between it and the next, and so on."""
    runs = [0]
    for component in pattern.uri.split("."):
        if component:
            runs[-1] += 1
        else:
            runs.append(0)
    return runs
