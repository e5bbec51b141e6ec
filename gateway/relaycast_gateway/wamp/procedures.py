"""Procedures that the router itself offers, and what they are given.

Law: a procedure answers a call with a ``CallOutcome`` or raises ``WampError``. One that takes longer is a coroutine:
it may send parts of its result before, and waits for a slow caller at each.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaycast_gateway.matching.topics import Match, TopicPattern, is_topic
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, INVALID_URI, WampError
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.messages import MOST_ID, CallMessage, ResultMessage
from relaycast_gateway.wamp.session import Session


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What a call gave: positional arguments and arguments by name."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def message(self, request: int, *, is_progress: bool = False) -> ResultMessage:
        """Return the message for the caller."""
        details = {"progress": True} if is_progress else {}
        return ResultMessage(request, details, list(self.args), dict(self.kwargs) or None)


class CallContext:
    """One call of a procedure that the router offers: who calls, with what, and how much the caller takes."""

    __slots__ = ("_caller", "_message", "_send_part", "args", "kwargs")

    def __init__(self, caller: Session, message: CallMessage, send_part: Callable[[ResultMessage], None]) -> None:
        if isinstance(message.args, bytes):
            raise WampError(INVALID_ARGUMENT, f"{message.procedure} expects arguments, got an opaque payload")
        self._caller = caller
        self._message = message
        self._send_part = send_part
        self.args: list[Any] = message.args or []
        self.kwargs: dict[str, Any] = message.kwargs or {}

    @property
    def identity(self) -> Identity:
        return self._caller.identity

    @property
    def procedure(self) -> str:
        """The URI that was called."""
        return self._message.procedure

    @property
    def options(self) -> Mapping[str, Any]:
        return self._message.options

    @property
    def receives_progress(self) -> bool:
        """Whether the caller takes a result in parts."""
        return self._message.options.get("receive_progress") is True

    @property
    def most_result_bytes(self) -> int:
        """The largest message that the caller takes."""
        return self._caller.link.most_message_bytes

    def result_bytes(self, outcome: CallOutcome) -> int:
        """Return how large the message with ``outcome`` is for this caller, as a part where it takes parts."""
        message = outcome.message(self._message.request, is_progress=self.receives_progress)
        return len(self._caller.serializer.encode(message))

    async def send_part(self, part: CallOutcome) -> None:
        """Send a part of the result, and return when the caller has taken most of what it was sent."""
        self._send_part(part.message(self._message.request, is_progress=True))
        await self._caller.drain()

    def argument(self, at: int, name: str) -> Any:
        """Return the positional argument at ``at``, counted from 0; ``WampError`` where it is missing."""
        if at >= len(self.args):
            raise WampError(INVALID_ARGUMENT, f"{self._message.procedure} expects the argument {name}")
        return self.args[at]

    def id_argument(self, at: int, name: str) -> int:
        """Return an id; ``WampError`` where it is missing or none."""
        value = self.argument(at, name)
        if isinstance(value, float) and value.is_integer():  # as JavaScript's CBOR has numbers beyond 32 bits
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MOST_ID:
            raise WampError(INVALID_ARGUMENT, f"{name} must be a whole number from 1 to 2^53, got {value!r}")
        return value

    def text_argument(self, at: int, name: str) -> str:
        """Return a text; ``WampError`` where it is missing or none."""
        value = self.argument(at, name)
        if not isinstance(value, str):
            raise WampError(INVALID_ARGUMENT, f"{name} must be text, got {value!r}")
        return value

    def pattern_argument(self, at: int, name: str) -> TopicPattern:
        """Return a URI, with the member ``match`` of the options behind it; ``WampError`` where it is none."""
        uri = self.text_argument(at, name)
        options = self.args[at + 1] if at + 1 < len(self.args) else None
        given = (options or {}).get("match", Match.EXACT) if isinstance(options, dict | None) else options
        try:
            pattern = TopicPattern(uri, Match(given))
        except ValueError:
            raise WampError(INVALID_ARGUMENT, f"match must be exact, prefix or wildcard, got {given!r}") from None
        if not pattern.is_valid:
            raise WampError(INVALID_URI, f"{name}: {uri!r} is no {pattern.match} URI")
        return pattern

    def uri_argument(self, at: int, name: str) -> str:
        """Return a URI without gaps; ``WampError`` where it is missing or none."""
        uri = self.text_argument(at, name)
        if not is_topic(uri):
            raise WampError(INVALID_URI, f"{name}: {uri!r} is no URI")
        return uri


Procedure = Callable[[CallContext], CallOutcome | Awaitable[CallOutcome]]
