"""Fields of every vector, and the spelling of bytes and numbers.

Bytes are ``0x`` and lower-case hexadecimal digits. A number above 2**53 is decimal text, because many readers of JSON
round it. The suite's schema is made from these structures."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field

from relaycast_xcm.primitives import Weight

LARGEST_PLAIN_NUMBER = 1 << 53

Hex = Annotated[str, Meta(pattern="^0x([0-9a-f]{2})*$", description="bytes")]
Hash = Annotated[str, Meta(pattern="^0x[0-9a-f]{64}$", description="32 bytes")]
Line = Annotated[str, Meta(pattern="^[^\\n]+$")]
Number = (
    Annotated[int, Meta(ge=0, le=LARGEST_PLAIN_NUMBER)]
    | Annotated[str, Meta(pattern="^[0-9]{16,39}$", description="a number above 2^53, in decimal digits")]
)
ParaNumber = Annotated[int, Meta(ge=0, lt=1 << 32, description="a parachain's id")]
U32Number = Annotated[int, Meta(ge=0, lt=1 << 32)]
Entry = tuple[Hex, Hex]
"""A raw key and its raw value."""


class VectorSource(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a vector comes from: a scenario of the specification, or one of the other names."""

    requirement: str | None = None
    scenario: str | None = None
    invariant: int | None = None
    attack: str | None = None
    trap: str | None = None
    upstream: str | None = None


class Drafted(Struct, frozen=True):
    """Something that is written without what is to be computed, and completed then."""

    computed: ClassVar[tuple[str, ...]] = ()
    """Fields that a draft lacks and every vector in a file has."""


class Vector(Drafted, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the vectors of every kind have."""

    id: Annotated[str, Meta(pattern="^[a-z0-9/-]+$")]
    why: Line
    source: VectorSource
    policies: dict[str, str] = field(default_factory=dict)
    """The choices that the vector assumes; those that are not named are the defaults of README.md."""


class VectorWeight(Struct, frozen=True, forbid_unknown_fields=True):
    """Work: picoseconds and bytes of proof."""

    ref_time: Number
    proof_size: Number

    @classmethod
    def of(cls, weight: Weight) -> "VectorWeight":
        return cls(number(weight.ref_time), number(weight.proof_size))

    def weight(self) -> Weight:
        return Weight(int(self.ref_time), int(self.proof_size))


def hexed(data: bytes) -> str:
    """Return bytes as vectors spell them."""
    return f"0x{data.hex()}"


def unhexed(text: str) -> bytes:
    """Return the bytes that a vector spells."""
    return bytes.fromhex(text.removeprefix("0x"))


def number(value: int) -> int | str:
    """Return a number as vectors spell it."""
    return value if value <= LARGEST_PLAIN_NUMBER else str(value)


def entries(pairs: Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]]) -> list[Entry]:
    """Return keys and values as vectors spell them, in the order of the keys."""
    return [(hexed(key), hexed(value)) for key, value in sorted(dict(pairs).items())]


def pairs_of(given: Iterable[Entry]) -> dict[bytes, bytes]:
    """Return the keys and values that a vector spells."""
    return {unhexed(key): unhexed(value) for key, value in given}


def plain_json(data: Any) -> Any:
    """Return JSON whose numbers every reader takes: those above 2**53 become decimal text."""
    if isinstance(data, dict):
        return {name: plain_json(value) for name, value in data.items()}
    if isinstance(data, list):
        return [plain_json(value) for value in data]
    return number(data) if isinstance(data, int) and not isinstance(data, bool) else data


def scenario(title: str) -> VectorSource:
    """Return the source of a vector that executes ``Requirement / Scenario`` of the specification."""
    requirement, _, name = title.partition(" / ")
    return VectorSource(requirement=requirement, scenario=name)
