"""Vectors of XCM: what each says, and the run of one: bytes decoded, barriers asked, messages executed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from relaycast_pallets.broadcaster.errors import NotRegistered
from relaycast_trie.exceptions import CodecError
from relaycast_xcm import (
    AllowExplicitUnpaidExecutionFrom,
    AllowPublishFrom,
    AllowTopLevelPaidExecutionFrom,
    AllowUnpaidExecutionFrom,
    BarrierChain,
    Equals,
    Everything,
    IsChildSystemParachain,
    IsInVec,
    Location,
    LocationFilter,
    Nothing,
    OnlyParachains,
    ProcessMessageError,
    Properties,
    ShouldExecute,
    TakeWeightCredit,
    TrailingSetTopicAsId,
    WithComputedOrigin,
    XcmExecutor,
)
from relaycast_xcm.broadcast import ParachainBroadcastAdapter
from relaycast_xcm.executor import Complete, Incomplete
from relaycast_xcm.location import AccountId32, Parachain
from relaycast_xcm.message import V5
from relaycast_xcm.primitives import ParaId
from relaycast_xcm.weigher import Weigher
from vector_fields import Hash, Hex, ParaNumber, U32Number, Vector, VectorWeight, hexed, plain_json, unhexed

LocationJson = Annotated[dict[str, Any], Meta(description="parents and interior, as README.md spells them")]
MessageJson = Annotated[list[Any], Meta(description="instructions, as README.md spells them")]


class XcmBytes(Vector, frozen=True, kw_only=True, tag_field="test", tag="bytes"):
    """A message as JSON and as ``VersionedXcm`` in SCALE, both ways."""

    message: MessageJson
    encoded: Hex


class XcmMalformed(Vector, frozen=True, kw_only=True, tag_field="test", tag="malformed"):
    """Bytes that are no ``VersionedXcm`` of version 5."""

    computed = ("error",)
    encoded: Hex
    error: str | None = None


class XcmFilter(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which locations are meant."""

    filter: Literal["Everything", "Nothing", "Equals", "IsIn", "OnlyParachains", "IsChildSystemParachain"]
    locations: list[LocationJson] | None = None
    """One for ``Equals``, any number for ``IsIn``."""


class XcmBarrier(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A barrier, with those inside it."""

    barrier: Literal[
        "Chain",
        "AllowPublishFrom",
        "TakeWeightCredit",
        "AllowTopLevelPaidExecutionFrom",
        "AllowExplicitUnpaidExecutionFrom",
        "AllowUnpaidExecutionFrom",
        "WithComputedOrigin",
        "TrailingSetTopicAsId",
    ]
    origins: XcmFilter | None = None
    max_instructions: U32Number | None = None
    max_prefixes: U32Number | None = None
    inner: "list[XcmBarrier] | None" = None


class BarrierAnswer(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The ``error`` of a barrier that refuses; otherwise the message as it runs, its id and the credit that is left."""

    error: str | UnsetType = UNSET
    runs: Hex | UnsetType = UNSET
    message_id: Hash | UnsetType | None = UNSET
    """The id that a barrier found in the message, ``null`` if none did."""

    credit_left: VectorWeight | UnsetType = UNSET


class XcmBarrierAsked(Vector, frozen=True, kw_only=True, tag_field="test", tag="barrier"):
    """Whether a barrier allows a message."""

    computed = ("expect",)
    barrier: XcmBarrier
    origin: LocationJson
    message: Hex
    weight: VectorWeight
    credit: VectorWeight
    """Weight that the origin was given before."""

    expect: BarrierAnswer | None = None


class XcmPublished(Struct, frozen=True, forbid_unknown_fields=True):
    """A publication that reached the broadcaster, accepted or not."""

    publisher: ParaNumber
    key: Hash
    value: Hex
    ttl: U32Number
    accepted: bool


class XcmEnding(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a message ended: ``complete``, ``incomplete`` at an instruction, or ``not begun``."""

    outcome: Literal["complete", "incomplete", "not begun"]
    published: list[XcmPublished]
    used: VectorWeight | None = None
    error: str | None = None
    index: U32Number | None = None
    cause: str | None = None


class XcmExecution(Vector, frozen=True, kw_only=True, tag_field="test", tag="execution"):
    """A message that is executed: every instruction weighs ``unit``, no barrier is asked."""

    computed = ("expect",)
    origin: LocationJson
    message: Hex
    unit: VectorWeight
    weight_limit: VectorWeight
    refuses: list[ParaNumber]
    """Parachains whose publications the broadcaster refuses with ``NotRegistered``."""

    publishers: XcmFilter | None = None
    """Which origins may publish; ``OnlyParachains`` where absent."""

    expect: XcmEnding | None = None


XcmVector = XcmBytes | XcmMalformed | XcmBarrierAsked | XcmExecution

EVERYTHING = XcmFilter("Everything")
PARA_1000, PARA_2000 = Location.parachain(1_000), Location.parachain(2_000)
ACCOUNT = AccountId32(None, bytes([1]) * 32)
PLACES = {
    "relay": Location.here(),
    "parent": Location.parent(),
    "system": PARA_1000,
    "last-system": Location.parachain(1_999),
    "public": PARA_2000,
    "sibling": Location.sibling(2_000),
    "inside": Location.new(0, (Parachain(2_000), ACCOUNT)),
    "account": Location.new(0, ACCOUNT),
}
"""Origins, by the names that vectors give them."""


def location_json(place: Location) -> Any:
    """Return a location as vectors spell it."""
    return plain_json(place.to_json())


_FILTERS: Mapping[str, Callable[[list[Location]], LocationFilter]] = {
    "Everything": lambda _: Everything(),
    "Nothing": lambda _: Nothing(),
    "Equals": lambda locations: Equals(locations[0]),
    "IsIn": IsInVec,
    "OnlyParachains": lambda _: OnlyParachains(),
    "IsChildSystemParachain": lambda _: IsChildSystemParachain(),
}


@dataclass
class PublicationTracker:
    """A broadcaster that keeps a list of what reaches it, and refuses some parachains."""

    refuses: frozenset[int]
    published: list[XcmPublished] = field(default_factory=list)

    def handle_publish(self, publisher: ParaId, key: bytes, value: bytes, *, ttl: int) -> None:
        accepted = publisher not in self.refuses
        self.published.append(XcmPublished(int(publisher), hexed(key), hexed(value), ttl, accepted))
        if not accepted:
            raise NotRegistered(publisher)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield


def recomputed(vector: XcmVector) -> XcmVector:
    """Return the vector with what it expects computed anew."""
    match vector:
        case XcmBytes():
            return bytes_of(vector)
        case XcmMalformed():
            return msgspec.structs.replace(vector, error=decoding_error(unhexed(vector.encoded)))
        case XcmBarrierAsked():
            return msgspec.structs.replace(vector, expect=answer(vector))
        case XcmExecution():
            return msgspec.structs.replace(vector, expect=ending(vector))


def bytes_of(vector: XcmBytes) -> XcmBytes:
    """Return the vector with the JSON of the bytes that its JSON encodes to."""
    encoded = V5.encode(V5.from_json(vector.message))
    return msgspec.structs.replace(vector, message=message_json(encoded), encoded=hexed(encoded))


def message_json(encoded: bytes) -> list[Any]:
    """Return the instructions of a ``VersionedXcm`` as vectors spell them."""
    told: list[Any] = plain_json(V5.to_json(V5.decode(encoded)))["V5"]
    return told


def decoding_error(encoded: bytes) -> str:
    """Return the name of what is wrong with bytes that do not decode."""
    try:
        V5.decode(encoded)
    except CodecError as error:
        return type(error).__name__
    return "none"


def barrier_of(told: XcmBarrier) -> ShouldExecute:
    """Return the barrier that a vector spells."""
    return _BARRIERS[told.barrier](told, filter_of(told.origins), [barrier_of(it) for it in told.inner or []])


_BARRIERS: Mapping[str, Callable[[XcmBarrier, LocationFilter, list[ShouldExecute]], ShouldExecute]] = {
    "Chain": lambda _told, _origins, inner: BarrierChain(*inner),
    "AllowPublishFrom": lambda told, origins, _: AllowPublishFrom(origins, told.max_instructions or 0),
    "TakeWeightCredit": lambda _told, _origins, _: TakeWeightCredit(),
    "AllowTopLevelPaidExecutionFrom": lambda _told, origins, _: AllowTopLevelPaidExecutionFrom(origins),
    "AllowExplicitUnpaidExecutionFrom": lambda _told, origins, _: AllowExplicitUnpaidExecutionFrom(origins),
    "AllowUnpaidExecutionFrom": lambda _told, origins, _: AllowUnpaidExecutionFrom(origins),
    "WithComputedOrigin": lambda told, _, inner: WithComputedOrigin(inner[0], told.max_prefixes or 0),
    "TrailingSetTopicAsId": lambda _told, _origins, inner: TrailingSetTopicAsId(inner[0]),
}


def filter_of(told: XcmFilter | None) -> LocationFilter:
    """Return the filter that a vector spells; of a barrier without one, the filter of no location."""
    if told is None:
        return Nothing()
    return _FILTERS[told.filter]([Location.from_json(it) for it in told.locations or []])


def answer(vector: XcmBarrierAsked) -> BarrierAnswer:
    """Ask the vector's barrier."""
    message = V5.decode(unhexed(vector.message))
    properties = Properties(vector.credit.weight())
    origin, weight = Location.from_json(vector.origin), vector.weight.weight()
    try:
        runs = barrier_of(vector.barrier).should_execute(origin, message, weight, properties)
    except ProcessMessageError as refusal:
        return BarrierAnswer(error=refusal.name)
    found = properties.message_id
    return BarrierAnswer(
        runs=hexed(V5.encode(runs)),
        message_id=None if found is None else hexed(found),
        credit_left=VectorWeight.of(properties.weight_credit),
    )


def ending(vector: XcmExecution) -> XcmEnding:
    """Execute the vector's message."""
    tracker = PublicationTracker(frozenset(vector.refuses))
    publishers = OnlyParachains() if vector.publishers is None else filter_of(vector.publishers)
    executor = XcmExecutor(
        AllowUnpaidExecutionFrom(Everything()),
        broadcast=ParachainBroadcastAdapter(publishers, tracker),
        weigher=Weigher(vector.unit.weight()),
    )
    outcome = executor.prepare_and_execute(
        Location.from_json(vector.origin),
        V5.decode(unhexed(vector.message)),
        weight_limit=vector.weight_limit.weight(),
    )
    match outcome:
        case Complete(used):
            return XcmEnding("complete", tracker.published, VectorWeight.of(used))
        case Incomplete(used, failed):
            cause = None if failed.cause is None else type(failed.cause).__name__
            return XcmEnding(
                "incomplete", tracker.published, VectorWeight.of(used), failed.error.name, failed.index, cause
            )
        case refused:
            return XcmEnding("not begun", tracker.published, error=refused.error.name)
