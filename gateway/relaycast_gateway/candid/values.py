"""What Candid values are in Python, where Python has no word of its own.

The text form of a principal is CRC-32 and bytes in lower-case Base32, in groups of five. Source: Candid
specification, "Values", and Internet Computer interface specification, "Textual representation of principals".
"""

import base64
from binascii import crc32
from dataclasses import dataclass
from typing import NamedTuple

from relaycast_gateway.candid.errors import CandidError

LONGEST_PRINCIPAL = 29


class Variant(NamedTuple):
    """One case of a variant: the tag, a name or a number, and its value."""

    tag: str | int
    value: object = None


@dataclass(frozen=True, slots=True)
class Present:
    """A present value of ``opt t``, where ``t`` itself has null: ``opt null`` is ``Present(None)``."""

    value: object


@dataclass(frozen=True, slots=True)
class Principal:
    """A principal or a reference to a service: at most 29 bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) > LONGEST_PRINCIPAL:
            raise CandidError(f"a principal is at most {LONGEST_PRINCIPAL} bytes long, got {len(self.raw)}")

    @classmethod
    def of(cls, text: str) -> "Principal":
        """Return the principal of its canonical text form."""
        digits = text.replace("-", "").upper()
        try:
            raw = base64.b32decode(digits + "=" * (-len(digits) % 8))
        except ValueError:
            raw = b""
        if not 4 <= len(raw) <= LONGEST_PRINCIPAL + 4 or str(cls(raw[4:])) != text:
            raise CandidError(f"expected the text of a principal, got {text[:80]!r}")
        return cls(raw[4:])

    def __str__(self) -> str:
        encoded = base64.b32encode(crc32(self.raw).to_bytes(4, "big") + self.raw).decode().rstrip("=").lower()
        return "-".join(encoded[at : at + 5] for at in range(0, len(encoded), 5))


@dataclass(frozen=True, slots=True)
class FuncReference:
    """A reference to a method of a service."""

    service: Principal
    method: str
