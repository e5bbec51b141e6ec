"""What a realm's broker and dealer need of a session, and of the roles that say what a client may do."""

from typing import Literal, Protocol

from relaycast_gateway.matching.topics import Match
from relaycast_gateway.wamp.errors import WampError
from relaycast_gateway.wamp.identity import Identity
from relaycast_gateway.wamp.link import Link
from relaycast_gateway.wamp.messages import WampMessage

Action = Literal["publish", "subscribe", "call", "register"]


class PayloadEncoder(Protocol):
    """A serializer, as far as a sender needs it."""

    def encode(self, message: WampMessage, /) -> bytes:
        """Return the bytes of a message; ``ValueError``, ``TypeError`` or ``OverflowError`` where it has none."""
        ...


class SessionFace(Protocol):
    """A session that was opened."""

    @property
    def id(self) -> int: ...

    @property
    def identity(self) -> Identity: ...

    @property
    def link(self) -> Link: ...

    @property
    def serializer(self) -> PayloadEncoder: ...

    def announces(self, role: str, feature: str) -> bool:
        """Return whether the client said in HELLO that it can do this in that role."""
        ...

    def send(self, message: WampMessage, /) -> None: ...

    def send_bytes(self, data: bytes, /) -> None: ...

    def refuse(self, request_type: int, request: int, error: WampError, /) -> None:
        """Answer a request with ERROR."""
        ...

    async def drain(self) -> None:
        """Return when the client has taken most of what was sent; ``ConnectionResetError`` when it is gone."""
        ...


class PermissionFace(Protocol):
    """What a role's permission says of one request."""

    @property
    def is_allowed(self) -> bool: ...

    @property
    def discloses(self) -> bool:
        """Whether others learn who made the request, also where the client did not ask for it."""
        ...


class RolesFace(Protocol):
    """The permissions of a realm."""

    def permission(
        self, identity: Identity, action: Action, uri: str, match: Match = Match.EXACT
    ) -> PermissionFace: ...
