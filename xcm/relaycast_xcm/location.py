"""Locations: where something is in the consensus universe, seen from one chain (staging-xcm, V5).

A location goes ``parents`` steps up and then down its ``interior``, at most eight junctions of ten kinds. The relay
chain calls a parachain ``Location.parachain(2000)``; that parachain calls the relay chain ``Location.parent()``.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import msgspec

from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import encode_bytes, encode_compact
from relaycast_xcm.codec import (
    BYTES_4,
    BYTES_20,
    BYTES_32,
    COMPACT_U32,
    COMPACT_U64,
    COMPACT_U128,
    U8,
    Codec,
    Json,
    Optional,
    Struct,
    Tagged,
    UInt,
    XcmReader,
    decode_all,
    read_items,
    wrong,
)
from relaycast_xcm.exceptions import UnknownVariant
from relaycast_xcm.primitives import U32_MAX, ParaId


class NetworkName(IntEnum):
    """Networks that V5 knows by name; the indices 4 to 6 belonged to test networks of V4."""

    POLKADOT = 2
    KUSAMA = 3
    BITCOIN_CORE = 8
    BITCOIN_CASH = 9
    POLKADOT_BULLETIN = 10


class ByGenesis(msgspec.Struct, frozen=True):
    """A network by the hash of its genesis block."""

    genesis_hash: bytes


class ByFork(msgspec.Struct, frozen=True):
    """A fork of a network, by a block that only the fork has."""

    block_number: int
    block_hash: bytes


class Ethereum(msgspec.Struct, frozen=True):
    """An EVM network by its EIP-155 chain id."""

    chain_id: int


NetworkId = ByGenesis | ByFork | Ethereum | NetworkName

NETWORK_ID: Tagged[NetworkId] = Tagged(
    "NetworkId",
    {
        0: Struct(ByGenesis, {"genesis_hash": BYTES_32}, transparent=True),
        1: Struct(ByFork, {"block_number": UInt(8), "block_hash": BYTES_32}),
        7: Struct(Ethereum, {"chain_id": COMPACT_U64}),
    },
    units=NetworkName,
)
_NETWORK: Codec[NetworkId | None] = Optional(NETWORK_ID)


class BodyName(IntEnum):
    """Bodies of a chain that have a name."""

    UNIT = 0
    EXECUTIVE = 3
    TECHNICAL = 4
    LEGISLATIVE = 5
    JUDICIAL = 6
    DEFENSE = 7
    ADMINISTRATION = 8
    TREASURY = 9


class Moniker(msgspec.Struct, frozen=True):
    """A body by a name of four bytes."""

    name: bytes


class BodyIndex(msgspec.Struct, frozen=True):
    """A body by its number."""

    index: int


class BodyVoice(IntEnum):
    """The body speaks as one."""

    VOICE = 0


class Members(msgspec.Struct, frozen=True):
    """At least ``count`` members speak."""

    count: int


class Fraction(msgspec.Struct, frozen=True):
    """Exactly ``nom`` in ``denom`` members speak."""

    nom: int
    denom: int


class AtLeastProportion(msgspec.Struct, frozen=True):
    """At least ``nom`` in ``denom`` members speak."""

    nom: int
    denom: int


class MoreThanProportion(msgspec.Struct, frozen=True):
    """More than ``nom`` in ``denom`` members speak."""

    nom: int
    denom: int


BodyId = BodyName | Moniker | BodyIndex
BodyPart = BodyVoice | Members | Fraction | AtLeastProportion | MoreThanProportion

_PROPORTION = {"nom": COMPACT_U32, "denom": COMPACT_U32}
_BODY_ID: Tagged[BodyId] = Tagged(
    "BodyId",
    {
        1: Struct(Moniker, {"name": BYTES_4}, transparent=True),
        2: Struct(BodyIndex, {"index": COMPACT_U32}, name="Index", transparent=True),
    },
    units=BodyName,
)
_BODY_PART: Tagged[BodyPart] = Tagged(
    "BodyPart",
    {
        1: Struct(Members, {"count": COMPACT_U32}),
        2: Struct(Fraction, _PROPORTION),
        3: Struct(AtLeastProportion, _PROPORTION),
        4: Struct(MoreThanProportion, _PROPORTION),
    },
    units=BodyVoice,
)


class Junction(msgspec.Struct, frozen=True):
    """One step of a location; the subclasses are the kinds."""

    def __str__(self) -> str:
        held = ", ".join(_shown(getattr(self, field)) for field in self.__struct_fields__)
        return f"{type(self).__name__}({held})" if held else type(self).__name__


def _shown(field: object) -> str:
    return "0x" + field.hex() if isinstance(field, bytes) else str(field)


class Parachain(Junction, frozen=True):
    """A parachain of the relay chain where the location stands."""

    id: int

    def __post_init__(self) -> None:
        if not 0 <= self.id <= U32_MAX:
            raise ValueError(f"a parachain id is a u32, got {self.id}")

    @property
    def para_id(self) -> ParaId:
        return ParaId(self.id)


class AccountId32(Junction, frozen=True):
    """An account with an id of 32 bytes."""

    network: NetworkId | None
    id: bytes


class AccountIndex64(Junction, frozen=True):
    """An account by its number."""

    network: NetworkId | None
    index: int


class AccountKey20(Junction, frozen=True):
    """An account with a key of 20 bytes, as EVM chains have."""

    network: NetworkId | None
    key: bytes


class PalletInstance(Junction, frozen=True):
    """A pallet by its index in the runtime."""

    index: int


class GeneralIndex(Junction, frozen=True):
    """A number whose meaning depends on where it stands."""

    index: int


class GeneralKey(Junction, frozen=True):
    """Up to 32 bytes whose meaning depends on where they stand; ``data`` is padded with zeros."""

    length: int
    data: bytes


class OnlyChild(Junction, frozen=True):
    """The unambiguous child."""


class Plurality(Junction, frozen=True):
    """A body, or a part of it, that decides together."""

    id: BodyId
    part: BodyPart


class GlobalConsensus(Junction, frozen=True):
    """A network of its own consensus."""

    network: NetworkId


JUNCTION: Tagged[Junction] = Tagged(
    "Junction",
    {
        0: Struct(Parachain, {"id": COMPACT_U32}, transparent=True),
        1: Struct(AccountId32, {"network": _NETWORK, "id": BYTES_32}),
        2: Struct(AccountIndex64, {"network": _NETWORK, "index": COMPACT_U64}),
        3: Struct(AccountKey20, {"network": _NETWORK, "key": BYTES_20}),
        4: Struct(PalletInstance, {"index": U8}, transparent=True),
        5: Struct(GeneralIndex, {"index": COMPACT_U128}, transparent=True),
        6: Struct(GeneralKey, {"length": U8, "data": BYTES_32}),
        7: Struct(OnlyChild, {}),
        8: Struct(Plurality, {"id": _BODY_ID, "part": _BODY_PART}),
        9: Struct(GlobalConsensus, {"network": NETWORK_ID}, transparent=True),
    },
)


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


PARACHAIN_ACCOUNT = b"para"
"""What the account of a parachain begins with (polkadot-parachain-primitives ``Id``)."""

THIS_NETWORK = NetworkName.POLKADOT
"""The network that an ``AccountId32`` of the relay chain may name."""


def parachain_account(para_id: ParaId) -> bytes:
    """Return the account that a parachain controls (``AccountIdConversion`` of its id)."""
    return (PARACHAIN_ACCOUNT + para_id.encode()).ljust(32, b"\x00")


def sovereign_account(location: Location) -> bytes | None:
    """Return the account that ``location`` controls on the relay chain, ``None`` where it controls none."""
    match location.parents, location.interior:
        case 0, (Parachain() as parachain,):
            return parachain_account(parachain.para_id)
        case 0, (AccountId32(network, account),) if network in (None, THIS_NETWORK):
            return account
        case 0, (Parachain(para_id), inside):
            description = _described(inside)
            if description is not None:
                return blake2_256(b"ChildChain" + encode_compact(para_id) + encode_bytes(description))
    return None


def _described(inside: Junction) -> bytes | None:
    """Return what is hashed of something inside a chain, ``None`` for what has no description."""
    match inside:
        case PalletInstance(index):
            return b"Pallet" + encode_compact(index)
        case AccountId32(_, account):
            return b"AccountId32" + account
        case AccountKey20(_, key):
            return b"AccountKey20" + key
        case Plurality(BodyName.TREASURY, BodyVoice.VOICE):
            return b"TreasuryVoice"
        case Plurality():
            return b"Body" + JUNCTION.encode(inside)[1:]
        case _:
            return None
