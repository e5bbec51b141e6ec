"""Filters and barriers: which locations are meant (``Contains<Location>``), and which messages run (``ShouldExecute``).

A barrier returns the message as it shall run, or raises the ``ProcessMessageError`` that says why it shall not. In a
chain the first barrier that allows wins and later ones are not asked.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from relaycast_xcm.exceptions import (
    BadFormat,
    NoBarrierAllows,
    Overweight,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
)
from relaycast_xcm.instructions import (
    BuyExecution,
    ClearOrigin,
    DescendOrigin,
    Instruction,
    PayFees,
    Publish,
    PublishItems,
    SetTopic,
    UnpaidExecution,
    WithdrawAsset,
    Xcm,
)
from relaycast_xcm.location import Location, Parachain
from relaycast_xcm.primitives import LOWEST_PUBLIC_ID, Weight


class LocationFilter(Protocol):
    """Says of a location whether it is meant."""

    def contains(self, location: Location) -> bool: ...


class Everything(Struct, frozen=True):
    """Every location."""

    def contains(self, location: Location) -> bool:
        return True


class Nothing(Struct, frozen=True):
    """No location."""

    def contains(self, location: Location) -> bool:
        return False


class Equals:
    """One location; a parachain may be given by its number alone."""

    def __init__(self, location: Location | int) -> None:
        self.location = Location.parachain(location) if isinstance(location, int) else location

    def contains(self, location: Location) -> bool:
        return location == self.location

    def __repr__(self) -> str:
        return f"Equals({self.location})"


class OnlyParachains(Struct, frozen=True):
    """The relay chain's own parachains: exactly ``Parachain(id)``, nothing inside one and no sibling (Westend)."""

    def contains(self, location: Location) -> bool:
        return location.parents == 0 and len(location.interior) == 1 and isinstance(location.interior[0], Parachain)


class IsChildSystemParachain(Struct, frozen=True):
    """The relay chain's own parachains with an id below 2,000 (polkadot-sdk xcm-builder)."""

    def contains(self, location: Location) -> bool:
        return OnlyParachains().contains(location) and _para(location) < LOWEST_PUBLIC_ID


class IsInVec:
    """The locations of a list."""

    def __init__(self, locations: Iterable[Location | int]) -> None:
        self.locations = frozenset(Location.parachain(item) if isinstance(item, int) else item for item in locations)

    def contains(self, location: Location) -> bool:
        return location in self.locations

    def __repr__(self) -> str:
        return f"IsInVec({', '.join(sorted(map(str, self.locations)))})"


class AnyOf:
    """What any of some filters contains."""

    def __init__(self, *filters: LocationFilter) -> None:
        self.filters = filters

    def contains(self, location: Location) -> bool:
        return any(inner.contains(location) for inner in self.filters)

    def __repr__(self) -> str:
        return f"AnyOf({', '.join(map(repr, self.filters))})"


def _para(location: Location) -> int:
    junction = location.interior[0]
    assert isinstance(junction, Parachain), "INVARIANT: asked only of what OnlyParachains contains"
    return junction.id


# ruff: noqa: ARG002 - every barrier takes the protocol's arguments


MAX_PUBLISH_INSTRUCTIONS = 16
"""``Publish`` instructions that a message executed without payment may have (Westend)."""

MAX_ASSETS_FOR_BUY_EXECUTION = 2
"""Assets that a paid message may withdraw before it pays."""

PUBLICATIONS = (Publish, PublishItems)
"""What ``Publish`` is, in any flavour."""

PAID_PREFIX = 5
"""How far into a message its payment is looked for."""


class Properties(Struct):
    """What a barrier may take (the origin's ``weight_credit``) and tell (the ``message_id`` found in the message)."""

    weight_credit: Weight = Weight.ZERO
    message_id: bytes | None = None


class ShouldExecute(Protocol):
    """Decides about one message."""

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        """Return the message as it shall run; raise a ``ProcessMessageError`` where it shall not."""
        ...


class AllowPublishFrom(Struct, frozen=True):
    """Free execution for messages of ``Publish`` alone, at most ``max_instructions`` of them, from ``origins``.

    Checked in this order: the origin (``Unsupported``), an empty message (``BadFormat``), its length
    (``StackLimitReached``), any other instruction (``BadFormat``).
    """

    origins: LocationFilter
    max_instructions: int = MAX_PUBLISH_INSTRUCTIONS

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        if not self.origins.contains(origin):
            raise Unsupported
        if not message:
            raise BadFormat
        if len(message) > self.max_instructions:
            raise StackLimitReached
        for instruction in message:
            if not isinstance(instruction, PUBLICATIONS):
                raise BadFormat
        return message


class TakeWeightCredit(Struct, frozen=True):
    """Execution against weight that the origin was given before; the message's weight is taken from that credit."""

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        left = properties.weight_credit.checked_sub(max_weight)
        if left is None:
            raise Overweight(max_weight)

        properties.weight_credit = left
        return message


class AllowTopLevelPaidExecutionFrom(Struct, frozen=True):
    """Execution for messages that withdraw assets and pay for their weight within their first five instructions.

    Between the two only ``ClearOrigin`` and ``DescendOrigin`` may stand. The weight that is bought becomes the
    message's own: a sender who allows more pays for no more.
    """

    origins: LocationFilter

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        if not self.origins.contains(origin):
            raise Unsupported
        first = message[0] if message else None
        if not isinstance(first, WithdrawAsset) or len(first.assets) > MAX_ASSETS_FOR_BUY_EXECUTION:
            raise BadFormat
        at = 1
        while at < min(len(message), PAID_PREFIX) and _keeps_waiting(message[at]):
            at += 1
        if at >= min(len(message), PAID_PREFIX):
            raise BadFormat
        return (*message[:at], _payment(message[at], max_weight), *message[at + 1 :])


def _keeps_waiting(instruction: Instruction) -> bool:
    return isinstance(instruction, ClearOrigin) or (
        isinstance(instruction, DescendOrigin) and instruction.interior != ()
    )


def _payment(instruction: Instruction, max_weight: Weight) -> Instruction:
    if isinstance(instruction, PayFees):
        return instruction
    if isinstance(instruction, BuyExecution):
        limit = instruction.weight_limit
        if limit is None or limit.all_gte(max_weight):
            return replace(instruction, weight_limit=max_weight)
    raise Overweight(max_weight)


class AllowExplicitUnpaidExecutionFrom(Struct, frozen=True):
    """Free execution for messages from ``origins`` that begin with an ``UnpaidExecution`` of at least their weight."""

    origins: LocationFilter

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        if not self.origins.contains(origin):
            raise Unsupported
        if not message:
            raise BadFormat
        first = message[0]
        if isinstance(first, UnpaidExecution) and (
            first.weight_limit is None or first.weight_limit.all_gte(max_weight)
        ):
            return message
        raise Overweight(max_weight)


class AllowUnpaidExecutionFrom(Struct, frozen=True):
    """Free execution for any message from ``origins``."""

    origins: LocationFilter

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        if not self.origins.contains(origin):
            raise Unsupported
        return message


class WithComputedOrigin(Struct, frozen=True):
    """Asks ``inner`` about a message without its leading ``DescendOrigin``, as if the descended origin had sent it.

    At most ``max_prefixes`` instructions are taken off. ``UniversalOrigin`` is not among them: it is not read here.
    """

    inner: ShouldExecute
    max_prefixes: int = 8

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        skipped = 0
        while skipped < min(len(message), self.max_prefixes):
            instruction = message[skipped]
            if not isinstance(instruction, DescendOrigin):
                break
            descended = origin.appended_with(instruction.interior)
            if descended is None:
                raise Unsupported
            origin = descended
            skipped += 1
        return message[:skipped] + self.inner.should_execute(origin, message[skipped:], max_weight, properties)


class TrailingSetTopicAsId(Struct, frozen=True):
    """Takes a last ``SetTopic`` as the message's id and asks ``inner`` about the message without it."""

    inner: ShouldExecute

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        last = message[-1] if message else None
        if not isinstance(last, SetTopic):
            return self.inner.should_execute(origin, message, max_weight, properties)
        properties.message_id = last.topic
        return (*self.inner.should_execute(origin, message[:-1], max_weight, properties), last)


class BarrierChain:
    """Barriers asked one after another; the first that allows wins.

    When none does, ``NoBarrierAllows`` is raised: an ``Unsupported``, as upstream answers, that keeps what each
    barrier said.
    """

    def __init__(self, *barriers: ShouldExecute) -> None:
        self.barriers: Sequence[ShouldExecute] = barriers

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        refusals: list[tuple[str, ProcessMessageError]] = []
        for barrier in self.barriers:
            try:
                return barrier.should_execute(origin, message, max_weight, properties)
            except ProcessMessageError as error:
                refusals.append((type(barrier).__name__, error.as_value()))
        raise NoBarrierAllows(tuple(refusals))

    def __repr__(self) -> str:
        return f"BarrierChain({', '.join(map(repr, self.barriers))})"
