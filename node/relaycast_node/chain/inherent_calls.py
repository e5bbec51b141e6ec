"""Calls that no account makes: each block carries them as inherents, so that clients can take its body apart.

The chains here have done what these calls say by the time that they stand in a block: none of them is ever dispatched.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from relaycast_collator.relay_chain import RelayChain
from relaycast_node.chain.executive import Given
from relaycast_node.metadata.runtime import Runtime
from relaycast_pallets.frame.dispatch import Origin
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import (
    BYTES32,
    PARA_ID,
    TWOX_64_CONCAT,
    U64,
    StorageCodec,
    StorageMap,
    StorageValue,
)
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_xcm.primitives import ParaId, Rust

Heads = Annotated[Sequence[Mapping[str, Any]], Rust("Vec<IncludedHead>")]
RelayData = Annotated[Mapping[str, Any], Rust("BasicParachainInherentData")]
Messages = Annotated[Mapping[str, Any], Rust("InboundMessagesData")]

RAW = StorageCodec("Vec<u8>", bytes, bytes)
HEAD_DATA = StorageCodec("HeadData", bytes, bytes)
SLOT = StorageCodec("Slot", U64.encode, U64.decode, 8)
OPTIONAL_HASH = StorageCodec("Option<[u8; 32]>", bytes, bytes)


class Paras:
    """Storage of the relay chain about its parachains (polkadot-runtime-parachains ``paras``)."""

    def __init__(self, state: State) -> None:
        self.heads = StorageMap(state, "Paras", "Heads", (TWOX_64_CONCAT, PARA_ID), HEAD_DATA)
        """The head of each parachain, as the last block included it."""


class Babe:
    """What parachains read of the relay chain's consensus; the values are modelled."""

    def __init__(self, state: State) -> None:
        self.current_slot = StorageValue(state, "Babe", "CurrentSlot", SLOT, default=0)
        self.randomness = StorageValue(state, "Babe", "Randomness", BYTES32, default=bytes(32))
        self.next_randomness = StorageValue(state, "Babe", "NextRandomness", BYTES32, default=bytes(32))
        self.author_vrf_randomness = StorageValue(state, "Babe", "AuthorVrfRandomness", OPTIONAL_HASH, default=b"\x00")


class ParachainInfo:
    """What a parachain knows of itself: by its id, no two of them have the same genesis (``parachain_info``)."""

    def __init__(self, state: State) -> None:
        self.parachain_id = StorageValue(state, "ParachainInfo", "ParachainId", PARA_ID, default=ParaId(100))


class ParaInherent:
    """The call that includes parachain blocks, in a modelled shape: the heads alone (``paras_inherent``)."""

    def enter(self, origin: Origin, heads: Heads) -> None:  # noqa: ARG002
        """Include a block of each of these parachains, whose heads these are. An inherent."""
        raise AssertionError("an inherent has run before it is noted")


class ParachainSystemCalls:
    """The call that hands a parachain's block what it is to know of the relay chain (cumulus)."""

    def set_validation_data(self, origin: Origin, data: RelayData, inbound_messages_data: Messages) -> None:  # noqa: ARG002
        """Take over the validation data, the relay state proof and the messages. An inherent."""
        raise AssertionError("an inherent has run before it is noted")


def heads_given(runtime: Runtime, relay: RelayChain) -> Given:
    """Return the inherent of a relay block that says which heads it includes."""
    heads = [{"para_id": int(para_id), "head": head} for para_id, head in relay.included.items()]
    return Given(runtime.encode_call("ParaInherent", "enter", heads=heads), has_run=True)


def relay_data_given(runtime: Runtime, inherent: ParachainInherentData) -> Given:
    """Return the inherent of a parachain's block, with the whole relay proof in it."""
    data = inherent.validation_data
    validation_data = {
        "parent_head": data.parent_head,
        "relay_parent_number": data.relay_parent_number,
        "relay_parent_storage_root": data.relay_parent_storage_root,
        "max_pov_size": data.max_pov_size,
    }
    basic = {
        "validation_data": validation_data,
        "relay_chain_state": {"trie_nodes": sorted(inherent.relay_chain_state)},
        "relay_parent_descendants": [],
        "collator_peer_id": None,
    }
    messages = runtime.decode("InboundMessagesData", inherent.messages.encode())
    call = runtime.encode_call("ParachainSystem", "set_validation_data", data=basic, inbound_messages_data=messages)
    return Given(call, has_run=True)
