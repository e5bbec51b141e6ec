"""The messages of WAMP: one class each, with its fields in the order in which they stand on the wire.

Law: a message that was read has as many elements as its type allows, each of the right kind. Ids are numbers from 1 to
2^53, objects have text as keys, and URIs are text. What URIs and options mean is not looked at here. Source: WAMP
specification, "Messages" and "Advanced Profile".
"""

import secrets
from collections.abc import Container, Sequence
from typing import Annotated, Any, ClassVar, get_args

import msgspec

from relaycast_gateway.wamp.errors import WampProtocolError

MOST_ID = 1 << 53


def unused_id(taken: Container[int]) -> int:
    """Return a random id, from 1 to 2^53, that is not ``taken``."""
    while (drawn := secrets.randbelow(MOST_ID) + 1) in taken:
        pass
    return drawn


Id = Annotated[int, msgspec.Meta(ge=1, le=MOST_ID)]
IdOrZero = Annotated[int, msgspec.Meta(ge=0, le=MOST_ID)]
Details = dict[str, Any]
PAYLOAD_OPTIONS = ("ppt_scheme", "ppt_serializer", "ppt_cipher", "ppt_keyid", "enc_algo", "enc_serializer", "enc_key")
"""Options by which a receiver reads a payload that is passed through; they reach it unchanged."""

Arguments = list[Any] | bytes | None
"""Positional arguments, or the bytes of an application's own serializer (payload passthru); ``None`` where absent."""


class WampMessage(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A message; ``code`` is its number on the wire."""

    code: ClassVar[int]

    def to_wire(self) -> list[Any]:
        """Return the elements on the wire, without payload that is absent: only fields at the end may be ``None``."""
        elements = [self.code, *msgspec.structs.astuple(self)]
        if elements[-1] is None:
            del elements[-1]
            if elements[-1] is None:
                del elements[-1]
        elif elements[-2] is None:
            elements[-2] = []
        return elements


class HelloMessage(WampMessage, tag=1):
    """A client asks for a session in a realm, and says what it can do."""

    code = 1
    realm: str
    details: Details


class WelcomeMessage(WampMessage, tag=2):
    """The router opens the session."""

    code = 2
    session: Id
    details: Details


class AbortMessage(WampMessage, tag=3):
    """The session is refused or ends at once, with the reason."""

    code = 3
    details: Details
    reason: str
    args: Arguments = None
    kwargs: Details | None = None


class ChallengeMessage(WampMessage, tag=4):
    """The router asks the client to prove who it is."""

    code = 4
    method: str
    extra: Details


class AuthenticateMessage(WampMessage, tag=5):
    """The client's proof."""

    code = 5
    signature: str
    extra: Details


class GoodbyeMessage(WampMessage, tag=6):
    """A peer ends the session; the other one answers in kind."""

    code = 6
    details: Details
    reason: str
    args: Arguments = None
    kwargs: Details | None = None


class ErrorMessage(WampMessage, tag=8):
    """A request of type ``request_type`` is refused."""

    code = 8
    request_type: int
    request: Id
    details: Details
    error: str
    args: Arguments = None
    kwargs: Details | None = None


class PublishMessage(WampMessage, tag=16):
    """A client publishes an event."""

    code = 16
    request: Id
    options: Details
    topic: str
    args: Arguments = None
    kwargs: Details | None = None


class PublishedMessage(WampMessage, tag=17):
    """The router took the event."""

    code = 17
    request: Id
    publication: Id


class SubscribeMessage(WampMessage, tag=32):
    """A client asks for the events of a topic or a pattern."""

    code = 32
    request: Id
    options: Details
    topic: str


class SubscribedMessage(WampMessage, tag=33):
    """The router's answer: the id of the subscription."""

    code = 33
    request: Id
    subscription: Id


class UnsubscribeMessage(WampMessage, tag=34):
    """A client wants no more events of a subscription."""

    code = 34
    request: Id
    subscription: Id


class UnsubscribedMessage(WampMessage, tag=35):
    """An answer to ``UnsubscribeMessage``; with request 0 and details the router's own revocation."""

    code = 35
    request: IdOrZero
    details: Details | None = None


class EventMessage(WampMessage, tag=36):
    """An event for a subscriber."""

    code = 36
    subscription: Id
    publication: Id
    details: Details
    args: Arguments = None
    kwargs: Details | None = None


class CallMessage(WampMessage, tag=48):
    """A client calls a procedure."""

    code = 48
    request: Id
    options: Details
    procedure: str
    args: Arguments = None
    kwargs: Details | None = None


class CancelMessage(WampMessage, tag=49):
    """A caller no longer wants the result."""

    code = 49
    request: Id
    options: Details


class ResultMessage(WampMessage, tag=50):
    """What a call gave, or a part of it."""

    code = 50
    request: Id
    details: Details
    args: Arguments = None
    kwargs: Details | None = None


class RegisterMessage(WampMessage, tag=64):
    """A client offers a procedure."""

    code = 64
    request: Id
    options: Details
    procedure: str


class RegisteredMessage(WampMessage, tag=65):
    """The router's answer: the id of the registration."""

    code = 65
    request: Id
    registration: Id


class UnregisterMessage(WampMessage, tag=66):
    """A client offers a procedure no more."""

    code = 66
    request: Id
    registration: Id


class UnregisteredMessage(WampMessage, tag=67):
    """An answer to ``UnregisterMessage``; with request 0 and details the router's own revocation."""

    code = 67
    request: IdOrZero
    details: Details | None = None


class InvocationMessage(WampMessage, tag=68):
    """The router passes a call on to the callee."""

    code = 68
    request: Id
    registration: Id
    details: Details
    args: Arguments = None
    kwargs: Details | None = None


class InterruptMessage(WampMessage, tag=69):
    """The router asks a callee to stop."""

    code = 69
    request: Id
    options: Details


class YieldMessage(WampMessage, tag=70):
    """What an invocation gave, or a part of it."""

    code = 70
    request: Id
    options: Details
    args: Arguments = None
    kwargs: Details | None = None


class EventReceivedMessage(WampMessage, tag=337):
    """A subscriber's word that it has taken an event, where it was asked for one."""

    code = 337
    publication: Id


AnyMessage = (
    HelloMessage
    | WelcomeMessage
    | AbortMessage
    | ChallengeMessage
    | AuthenticateMessage
    | GoodbyeMessage
    | ErrorMessage
    | PublishMessage
    | PublishedMessage
    | SubscribeMessage
    | SubscribedMessage
    | UnsubscribeMessage
    | UnsubscribedMessage
    | EventMessage
    | CallMessage
    | CancelMessage
    | ResultMessage
    | RegisterMessage
    | RegisteredMessage
    | UnregisterMessage
    | UnregisteredMessage
    | InvocationMessage
    | InterruptMessage
    | YieldMessage
    | EventReceivedMessage
)

_CLASSES: dict[int, type[AnyMessage]] = {it.code: it for it in get_args(AnyMessage)}


def message_of(elements: Sequence[Any]) -> AnyMessage:
    """Return the message that stands on the wire as ``elements``; raises ``WampProtocolError``."""
    code = elements[0] if elements else None
    found = _CLASSES.get(code) if type(code) is int else None
    if found is None:
        raise WampProtocolError("expected a WAMP message: it begins with the number of no message")
    try:
        return msgspec.convert(elements, found, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise WampProtocolError(f"expected a WAMP message: {error}") from None
