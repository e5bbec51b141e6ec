"""Locations: where something is in the consensus universe, seen from one chain.

A location goes ``parents`` steps up and then down its ``interior``, at most eight junctions. The relay chain calls a
parachain ``Location.parachain(2000)``; that parachain calls the relay chain ``Location.parent()``.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from relaycast_xcm.codec import U8, Codec, Json, XcmReader, decode_all, wrong
from relaycast_xcm.compound import Struct, read_items
from relaycast_xcm.exceptions import UnknownVariant
from relaycast_xcm.junctions import JUNCTION, AccountId32, Junction, Parachain

MAX_JUNCTIONS = 8
"""Junctions that an interior holds (staging-xcm)."""

XCM_VERSION = 5
"""The index byte of V5 in every versioned enum."""

Interior = tuple[Junction, ...]


class Location(msgspec.Struct, frozen=True):
    """``parents`` steps up, then down the junctions of ``interior``."""

    parents: int = 0
    interior: Interior = ()

    def __post_init__(self) -> None:
        if not 0 <= self.parents <= 255:
            raise ValueError(f"the parents of a location are a u8, got {self.parents}")
        if len(self.interior) > MAX_JUNCTIONS:
            raise ValueError(f"a location has at most {MAX_JUNCTIONS} junctions, got {len(self.interior)}")

    @classmethod
    def here(cls) -> "Location":
        return cls(0, ())

    @classmethod
    def parent(cls) -> "Location":
        return cls(1, ())

    @classmethod
    def parachain(cls, para: int) -> "Location":
        """Return where the relay chain sees a parachain."""
        return cls(0, (Parachain(para),))

    @classmethod
    def sibling(cls, para: int) -> "Location":
        """Return where a parachain sees another one of the same relay chain."""
        return cls(1, (Parachain(para),))

    @classmethod
    def account(cls, account: bytes) -> "Location":
        return cls(0, (AccountId32(None, account),))

    @classmethod
    def new(cls, parents: int, junctions: Iterable[Junction] | Junction) -> "Location":
        """Return a location of one junction or several."""
        return cls(parents, (junctions,) if isinstance(junctions, Junction) else tuple(junctions))

    def appended_with(self, interior: Interior) -> "Location | None":
        """Return the location further down, or ``None`` where it would have more than eight junctions."""
        if len(self.interior) + len(interior) > MAX_JUNCTIONS:
            return None
        return Location(self.parents, self.interior + interior)

    def encode(self) -> bytes:
        return LOCATION.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "Location":
        return decode_all(LOCATION, data)

    def to_json(self) -> Json:
        return LOCATION.to_json(self)

    @classmethod
    def from_json(cls, data: Json) -> "Location":
        return LOCATION.from_json(data, "location")

    def __str__(self) -> str:
        steps = [".."] * self.parents + [str(junction) for junction in self.interior]
        return "/".join(steps) or "Here"


class _InteriorCodec(Codec[Interior]):
    """``Junctions``: the number of junctions as the variant's index, then each of them (``Here``, ``X1`` to ``X8``)."""

    type_name = "Junctions"

    def encode(self, value: Interior) -> bytes:
        if len(value) > MAX_JUNCTIONS:
            raise ValueError(f"a location has at most {MAX_JUNCTIONS} junctions, got {len(value)}")
        return len(value).to_bytes(1, "little") + b"".join(map(JUNCTION.encode, value))

    def decode(self, reader: XcmReader) -> Interior:
        start = reader.offset
        count = reader.u8()
        if count > MAX_JUNCTIONS:
            raise UnknownVariant(self.type_name, count, start)
        reader.mark(start, self.type_name, _interior_name(count))
        return read_items(JUNCTION, count, reader) if count else ()

    def to_json(self, value: Interior) -> Json:
        return {_interior_name(len(value)): [JUNCTION.to_json(junction) for junction in value]} if value else "Here"

    def from_json(self, data: Json, path: str) -> Interior:
        if data in ("Here", {"Here": None}):
            return ()
        if not isinstance(data, dict) or len(data) != 1:
            raise wrong(path, "'Here' or an object with X1 to X8", data)
        name, junctions = next(iter(data.items()))
        if not isinstance(junctions, list):
            junctions = [junctions]
        if not 1 <= len(junctions) <= MAX_JUNCTIONS or name != _interior_name(len(junctions)):
            raise wrong(path, f"{name} with as many junctions as it says, X1 to X8", data)
        return tuple(JUNCTION.from_json(junction, f"{path}.{name}[{at}]") for at, junction in enumerate(junctions))

    def order(self, value: Interior) -> Any:
        return (len(value), tuple(map(JUNCTION.order, value)))


def _interior_name(count: int) -> str:
    return f"X{count}" if count else "Here"


INTERIOR: Codec[Interior] = _InteriorCodec()
LOCATION: Codec[Location] = Struct(Location, {"parents": U8, "interior": INTERIOR})
