"""The publisher pallet: lets an account publish in its parachain's name, with the XCM ``Publish`` sent upward.

The specification leaves to each parachain who may publish; here anyone who signs may. What is sent waits in the
parachain's outbox, and each block sends what the relay chain's queue has room for.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from relaycast_pallets.frame.dispatch import DispatchError, Origin, ensure_signed
from relaycast_pallets.frame.system import Event, System
from relaycast_xcm.primitives import AccountId, Bytes32, VecU8, u32

Send = Callable[[bytes, bytes, int], None]
"""Sends a key, a value and a time to live; ``ValueError`` for what no message can hold."""


class NothingToPublish(DispatchError):
    """The list of items is empty."""

    def __str__(self) -> str:
        return "expected at least one item to publish"


class MessageTooLong(DispatchError, message="{reason}"):
    """No message can hold the item, for this ``reason``."""

    reason: str


class ItemsSent(Event, frozen=True):
    """``who`` gave ``count`` values to the outbox."""

    pallet: ClassVar[str] = "Publisher"
    who: AccountId
    count: u32


class PublisherPallet:
    """The pallet; ``send`` puts a value into the parachain's outbox."""

    PALLET = "Publisher"

    def __init__(self, system: System, send: Send) -> None:
        self.system = system
        self._send = send

    def publish(self, origin: Origin, items: Sequence[tuple[Bytes32, VecU8, u32]]) -> None:
        """Send values upward: each a key, a value, and the relay blocks that it lives (0 for ever).

        All are sent, or none. Raises ``BadOrigin``, ``NothingToPublish`` or ``MessageTooLong``.
        """
        who = ensure_signed(origin)
        if not items:
            raise NothingToPublish
        for key, value, ttl in items:
            try:
                self._send(key, value, ttl)
            except ValueError as error:
                raise MessageTooLong(str(error)) from error

        self.system.deposit_event(ItemsSent(who, len(items)))

    def __repr__(self) -> str:
        return "<PublisherPallet>"
