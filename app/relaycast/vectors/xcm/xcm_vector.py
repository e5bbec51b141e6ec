"""Vectors of XCM: bytes and JSON, bytes that do not decode, barriers, and how messages end."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from relaycast.vectors.vector import Hash, Hex, ParaNumber, U32Number, Vector, VectorWeight

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
