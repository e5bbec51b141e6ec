"""From an XCM origin to a publisher: what the executor asks for, and the adapter that answers with a parachain's id.

The executor knows a ``BroadcastHandler``. A pallet knows publishers; ``ParachainBroadcastAdapter`` stands between
them and decides which origins are parachains.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from msgspec import Struct

from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.barriers import LocationFilter
from relaycast_xcm.exceptions import BadOrigin, NoPermission, PublishFailed, XcmError
from relaycast_xcm.location import Location, Parachain
from relaycast_xcm.primitives import ParaId


class BroadcastHandler(Protocol):
    """Takes a publication from an XCM origin; raises an ``XcmError``.

    ``transaction()`` undoes everything inside it when an exception leaves it.
    """

    def handle_publish(self, origin: Location, key: bytes, value: bytes, ttl: int) -> None: ...

    def transaction(self) -> AbstractContextManager[None]: ...


class PublisherHandler(Protocol):
    """Takes a publication from a parachain; raises a ``RelaycastError`` and then leaves storage untouched.

    ``transaction()`` undoes everything inside it when an exception leaves it.
    """

    def handle_publish(self, publisher: ParaId, key: bytes, value: bytes, *, ttl: int) -> None: ...

    def transaction(self) -> AbstractContextManager[None]: ...


class NoBroadcast:
    """Takes every publication and keeps none: upstream's ``()``."""

    def handle_publish(self, origin: Location, key: bytes, value: bytes, ttl: int) -> None: ...

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()


class ParachainBroadcastAdapter(Struct, frozen=True):
    """Hands publications of parachains in ``origins`` on to ``handler``.

    Raises ``NoPermission`` for an origin that the filter misses, ``BadOrigin`` for one that is no parachain, and
    ``PublishFailed`` with the handler's own error as its cause.
    """

    origins: LocationFilter
    handler: PublisherHandler

    def handle_publish(self, origin: Location, key: bytes, value: bytes, ttl: int) -> None:
        if not self.origins.contains(origin):
            raise NoPermission
        publisher = publisher_of(origin)
        if publisher is None:
            raise BadOrigin

        try:
            self.handler.handle_publish(publisher, key, value, ttl=ttl)
        except XcmError:
            raise
        except RelaycastError as error:
            raise PublishFailed from error

    def transaction(self) -> AbstractContextManager[None]:
        return self.handler.transaction()


def publisher_of(origin: Location) -> ParaId | None:
    """Return the parachain that publishes: ``Parachain(id)`` and nothing inside, or a sibling with anything inside."""
    first = origin.interior[0] if origin.interior else None
    if not isinstance(first, Parachain):
        return None
    if origin.parents == 1 or (origin.parents == 0 and len(origin.interior) == 1):
        return first.para_id
    return None
