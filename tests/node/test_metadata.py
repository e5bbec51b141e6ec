"""Metadata: what pallets declare is what clients decode by."""

from hashlib import sha256
from typing import Any

import pytest
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset

from node.chains import ALICE, PUBLISHER, READER, live_chains, modelled, submit, sudo
from relaycast_collator import ChainSimulator
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.chain_clock import ChainClock
from relaycast_node.metadata.declarations import DeclaredPallet, declare
from relaycast_node.metadata.runtime import Runtime, RuntimeNames
from relaycast_node.metadata.runtime_metadata import encode_metadata
from relaycast_pallets.broadcaster.pallet import Broadcaster
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.system import U32, Origin, StorageMap, StorageValue, System
from relaycast_pallets.frame.typed_storage import PARA_ID, TWOX_64_CONCAT, StorageDoubleMap
from relaycast_xcm import ParaId
from relaycast_xcm.primitives import u32


@pytest.fixture(scope="module")
def live() -> ChainClock:
    """Chains on which everything that pubsub knows has happened once."""
    live = live_chains()
    publisher, reader = live.parachains[PUBLISHER], live.parachains[READER]
    live.new_block()
    submit(live.relay, ALICE, "Broadcaster", "register_publisher", para_id=PUBLISHER)
    sudo(reader, "Subscriber", "subscribe", publisher=PUBLISHER, keys=[bytes(32), b"\x01" * 32])
    live.new_block()
    items = [(bytes(32), b"a value", 0), (b"\x01" * 32, bytes(60), 50)]
    submit(publisher, ALICE, "Publisher", "publish", items=items)
    live.new_block(5)
    return live


def chains_of(live: ChainClock) -> list[ServedChain]:
    return live.served()


def decoded(chain: ServedChain) -> list[dict[str, Any]]:
    """Return the pallets of version 14 as py-scale-codec reads them."""
    configuration = RuntimeConfigurationObject()
    configuration.update_type_registry(load_type_registry_preset("core"))
    metadata = configuration.create_scale_object("MetadataVersioned", data=ScaleBytes(modelled(chain).metadata_in(14)))
    metadata.decode()
    return [pallet.value for pallet in metadata.pallets]


def test_another_library_reads_what_pallets_declare(live: ChainClock) -> None:
    relay, reader = ({it["name"]: it for it in decoded(live.served()[at])} for at in (0, 2))
    stored = [it["name"] for it in relay["Broadcaster"]["storage"]["entries"]]
    items = ["RegisteredPublishers", "PublisherExists", "PublishedKeys", "TotalStorageSize", "TtlData", "TtlScanCursor"]
    items.append("PublishCounts")
    assert stored == items
    assert relay["Broadcaster"]["index"] == 200
    assert {it["name"] for it in relay["Broadcaster"]["constants"]} >= {"MaxPublishers", "PublisherDeposit"}
    assert {"System", "Timestamp", "Balances", "Sudo", "Paras", "ParaInherent"} <= relay.keys()
    assert {"Subscriber", "Publisher", "ParachainSystem"} <= reader.keys()


@pytest.mark.parametrize("at", [0, 1, 2])
def test_every_value_in_the_state_has_its_declared_type(live: ChainClock, at: int) -> None:
    chain = live.served()[at]
    state, types, seen = chain.state_at(chain.best.hash), modelled(chain).runtime.types, set()
    for pallet in modelled(chain).runtime.pallets:
        for item in (storage.item for storage in pallet.storage):
            number = types.spelled(item.codec.name)
            for key, value in state.pairs(item.prefix):
                assert len(key) > 32 or isinstance(item, StorageValue)
                assert (
                    modelled(chain).runtime.codec.encode(number, modelled(chain).runtime.codec.decode(number, value))
                    == value
                )
                seen.add(item.name)
    wanted = {("System", "Account"), ("System", "Events"), ("Timestamp", "Now"), ("Sudo", "Key")}
    own: list[set[tuple[str, str]]] = [
        {("Broadcaster", "TtlData"), ("Paras", "Heads"), ("Balances", "Holds")},
        set(),
        {("Subscriber", "CachedTrieNodes")},
    ]
    assert wanted | own[at] <= seen


@pytest.mark.parametrize("at", [0, 1, 2])
def test_keys_of_maps_can_be_read_back_with_their_declared_types(live: ChainClock, at: int) -> None:
    chain = live.served()[at]
    state, types = chain.state_at(chain.best.hash), modelled(chain).runtime.types
    for item in (storage.item for pallet in modelled(chain).runtime.pallets for storage in pallet.storage):
        if isinstance(item, StorageMap) and item.hasher.keeps_key:
            for key in state.keys(item.prefix):
                encoded = item.hasher.key_in(key[32:])
                number = types.spelled(item.key_codec.name)
                assert (
                    modelled(chain).runtime.codec.encode(number, modelled(chain).runtime.codec.decode(number, encoded))
                    == encoded
                )
        elif isinstance(item, StorageDoubleMap):
            for key in state.keys(item.prefix):
                item.keys_in(key)


def test_a_storage_item_that_is_added_to_a_pallet_is_in_the_metadata() -> None:
    class Wider(Broadcaster):
        def __init__(self, system: System) -> None:
            super().__init__(system)
            self.votes = StorageMap(system.state, "Broadcaster", "Votes", (TWOX_64_CONCAT, PARA_ID), U32, default=0)
            """Votes for each publisher."""

    pallet = Wider(System(State()))
    runtime = Runtime(RuntimeNames("wider"), [declare("System", 0), declare("Broadcaster", 9, pallet)], [pallet])
    (broadcaster,) = (it for it in runtime.pallets if it.name == "Broadcaster")
    found = {it.item.name[1]: it.docs for it in broadcaster.storage}
    assert found["Votes"] == ("Votes for each publisher.",)
    assert b"Votes" in encode_metadata(runtime, 14)


def test_a_call_an_event_and_an_error_are_found_by_what_they_are(live: ChainClock) -> None:
    (broadcaster,) = (it for it in modelled(live.relay).runtime.pallets if it.name == "Broadcaster")
    assert [it.name for it in broadcaster.calls][:2] == ["register_publisher", "force_register_publisher"]
    assert {"DataPublished", "KeysForcedDeleted"} <= {it.__name__ for it in broadcaster.events}
    assert {"NotRegistered", "TooManyKeys"} <= {it.__name__ for it in broadcaster.errors}
    assert "BroadcasterError" not in {it.__name__ for it in broadcaster.errors}


def test_a_storage_item_of_no_pallet_is_refused() -> None:
    system = System(State())
    with pytest.raises(ValueError, match=r"System\.Number belongs to no pallet"):
        Runtime(RuntimeNames("none"), [DeclaredPallet("Other", 1)], [system])


def test_an_argument_whose_width_nobody_says_is_refused() -> None:
    class Vague:
        def vote(self, origin: Origin, count: int) -> None:
            """Count a vote."""

    runtime = Runtime(RuntimeNames("vague"), [declare("Vague", 1, Vague(), modules=[])], [])
    with pytest.raises(TypeError, match="no Rust type is known for <class 'int'>"):
        encode_metadata(runtime, 14)


def test_no_other_version_is_encoded(live: ChainClock) -> None:
    with pytest.raises(ValueError, match="14 or 15, got 16"):
        modelled(live.relay).metadata_in(16)


def test_constants_are_what_the_pallets_were_made_with(live: ChainClock) -> None:
    relay = {it.name: it for it in modelled(live.relay).runtime.pallets}
    held = {it.name: it.value for it in relay["Broadcaster"].constants}
    assert held["MaxStoredKeys"] == live.chains.relay_chain.broadcaster.config.max_stored_keys
    assert {it.name: it.value for it in relay["Balances"].constants} == {"ExistentialDeposit": 10**8}


def test_the_same_chains_have_the_same_metadata() -> None:
    first, again = (modelled(ChainClock(ChainSimulator(), lambda: None).relay).metadata_in(15) for _ in range(2))
    assert first == again


def test_ids_and_integers_have_their_rust_types() -> None:
    runtime = Runtime(RuntimeNames("types"), [], [])
    assert runtime.types.annotated(ParaId) == runtime.types.spelled("ParaId")
    assert runtime.types.annotated(list[u32]) == runtime.types.spelled("Vec<u32>")
    assert runtime.types.annotated(bytes | None) == runtime.types.spelled("Option<Vec<u8>>")


METADATA_BYTES = {
    "relaycast relay": ("8b2fc2e49959555d", "1159074d6bfe21f9"),
    "relaycast parachain 2000": ("8de74f95c95511fb", "85d3510b8b032a6a"),
    "relaycast parachain 3000": ("8de74f95c95511fb", "85d3510b8b032a6a"),
}
"""The first bytes of SHA-256 over versions 14 and 15."""


def test_metadata_keeps_its_bytes() -> None:
    """Names, order, docstrings and the paths of types are what clients generate code from."""
    found = {
        chain.name: tuple(sha256(modelled(chain).metadata_in(version)).hexdigest()[:16] for version in (14, 15))
        for chain in live_chains().served()
    }
    assert found == METADATA_BYTES
