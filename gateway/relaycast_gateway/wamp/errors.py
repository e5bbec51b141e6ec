"""What can go wrong with a peer or a request.

    WampProtocolError   the peer broke the protocol: its session ends with ABORT
    WampError           a request is refused: the peer gets ERROR and goes on

Source: WAMP specification, "Predefined URIs".
"""

from collections.abc import Mapping, Sequence
from typing import Any

PROTOCOL_VIOLATION = "wamp.error.protocol_violation"
INVALID_URI = "wamp.error.invalid_uri"
INVALID_ARGUMENT = "wamp.error.invalid_argument"
NOT_AUTHORIZED = "wamp.error.not_authorized"
AUTHORIZATION_FAILED = "wamp.error.authorization_failed"
AUTHENTICATION_FAILED = "wamp.error.authentication_failed"
NO_MATCHING_AUTH_METHOD = "wamp.error.no_matching_auth_method"
NO_SUCH_REALM = "wamp.error.no_such_realm"
NO_SUCH_SESSION = "wamp.error.no_such_session"
NO_SUCH_SUBSCRIPTION = "wamp.error.no_such_subscription"
NO_SUCH_REGISTRATION = "wamp.error.no_such_registration"
NO_SUCH_PROCEDURE = "wamp.error.no_such_procedure"
PROCEDURE_ALREADY_EXISTS = "wamp.error.procedure_already_exists"
OPTION_NOT_ALLOWED = "wamp.error.option_not_allowed"
OPTION_DISALLOWED_DISCLOSE_ME = "wamp.error.option_disallowed.disclose_me"
CANCELED = "wamp.error.canceled"
TIMEOUT = "wamp.error.timeout"
HISTORY_UNAVAILABLE = "wamp.error.history_unavailable"
PAYLOAD_SIZE_EXCEEDED = "wamp.error.payload_size_exceeded"
UNAVAILABLE = "wamp.error.unavailable"

CLOSE_NORMAL = "wamp.close.normal"
CLOSE_GOODBYE_AND_OUT = "wamp.close.goodbye_and_out"
CLOSE_SYSTEM_SHUTDOWN = "wamp.close.system_shutdown"


class WampProtocolError(ValueError):
    """Bytes or a message that the protocol does not allow."""


class WampError(Exception):
    """A refused request: the error's URI, and what is said about it."""

    def __init__(self, uri: str, *args: Any, kwargs: Mapping[str, Any] | None = None) -> None:
        super().__init__(uri, *args)
        self.uri = uri
        self.arguments: Sequence[Any] = args
        self.kwargs = dict(kwargs or {})

    def __str__(self) -> str:
        return f"{self.uri}: {' '.join(map(str, self.arguments))}" if self.arguments else self.uri
