"""What became of upward messages, as events: the queue serves them, this says so (pallet-message-queue).

A failed instruction keeps the pallet's own reason, which XCM itself has no place for.
"""

from typing import ClassVar

from relaycast_pallets.frame.system import Event
from relaycast_xcm.executor import Incomplete
from relaycast_xcm.primitives import H256, ParaId, Weight
from relaycast_xcm.ump import OverweightEnqueued, Processed, Processing


class MessageEvent(Event, frozen=True):
    """Something became of the message ``id`` that ``origin`` sent."""

    pallet: ClassVar[str] = "MessageQueue"
    id: H256
    origin: ParaId


class MessageProcessed(MessageEvent, frozen=True):
    """The message ran; where it did not run to its end, ``error`` names the instruction, its error and the cause."""

    weight_used: Weight
    success: bool
    error: str | None = None


class MessageProcessingFailed(MessageEvent, frozen=True):
    """The message did not run and is dropped."""

    error: str


class MessageOverweight(MessageEvent, frozen=True):
    """The message needs ``required``, more than a block gives, and was set aside."""

    required: Weight


def event_of(processing: Processing) -> MessageEvent:
    """Return the event that tells what became of a message."""
    if isinstance(processing, Processed):
        outcome = processing.outcome
        error = _told(outcome) if isinstance(outcome, Incomplete) else None
        return MessageProcessed(processing.id, processing.origin, processing.weight_used, processing.success, error)
    if isinstance(processing, OverweightEnqueued):
        return MessageOverweight(processing.id, processing.origin, processing.required)
    cause = "" if processing.cause is None else f": {_named(processing.cause)}"
    return MessageProcessingFailed(processing.id, processing.origin, f"{type(processing.error).__name__}{cause}")


def _told(outcome: Incomplete) -> str:
    failed = outcome.error
    cause = "" if failed.cause is None else f": {_named(failed.cause)}"
    return f"instruction {failed.index}: {type(failed.error).__name__}{cause}"


def _named(error: BaseException) -> str:
    return f"{type(error).__name__} ({error})"
