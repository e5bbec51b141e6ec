"""Junctions: the steps of a location, as XCM V5 has them, with the networks and bodies that they name.

Ten kinds, each a frozen value with the name and the fields of staging-xcm. ``JUNCTION`` and ``NETWORK_ID`` are their
codecs.
"""

from enum import IntEnum

import msgspec

from relaycast_xcm.codec import (
    BYTES_4,
    BYTES_20,
    BYTES_32,
    COMPACT_U32,
    COMPACT_U64,
    COMPACT_U128,
    U8,
    Codec,
    UInt,
)
from relaycast_xcm.compound import Optional, Struct, Tagged
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
