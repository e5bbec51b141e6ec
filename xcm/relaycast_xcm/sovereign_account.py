"""Sovereign accounts: which account of the relay chain a location controls (Polkadot's ``SovereignAccountOf``).

A parachain controls ``b"para" ++ u32le(id)``, padded with zeros. An account controls itself. What lives inside a
parachain controls the Blake2b-256 hash of its description (``HashedDescription``, ``DescribeAllTerminal``).

>>> parachain_account(ParaId(2000)).hex()
'70617261d0070000000000000000000000000000000000000000000000000000'
"""

from relaycast_trie.hasher import blake2_256
from relaycast_trie.scale import encode_bytes, encode_compact
from relaycast_xcm.junctions import (
    JUNCTION,
    AccountId32,
    AccountKey20,
    BodyName,
    BodyVoice,
    Junction,
    NetworkName,
    PalletInstance,
    Parachain,
    Plurality,
)
from relaycast_xcm.location import Location
from relaycast_xcm.primitives import ParaId

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
