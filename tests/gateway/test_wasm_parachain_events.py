"""What the event log has of parachains that somebody else's code builds."""

from collator.hand_made_parachain import HandMadeParachain
from gateway.heard_chains import Heard
from relaycast_collator import ChainSimulator, WasmBlockBuilt
from relaycast_gateway.chain_feed import EVENT_COUNT, EVENTS
from relaycast_gateway.cloudevents.event import attributes_of
from relaycast_gateway.icrc16 import blob, nat
from relaycast_gateway.principal import chain_principal
from relaycast_pallets.frame.typed_storage import storage_prefix

WASM = 1_500
RAW = b"\x04\x00\x00\x00\x00\x00\x00\x00"
NOW = storage_prefix("Timestamp", "Now")


def test_each_block_of_a_wasm_parachain_is_one_event_with_what_its_storage_says() -> None:
    chains = ChainSimulator()
    parachain = HandMadeParachain(WASM)
    chains.add_wasm_parachain(parachain)
    genesis = parachain.head.hash
    heard = Heard(chains)
    parachain.state.put(EVENTS, RAW)
    parachain.state.put(EVENT_COUNT, b"\x01\x00\x00\x00")
    parachain.state.put(NOW, (1_700_000_000_000).to_bytes(8, "little"))
    for _ in range(3):
        chains.step()

    built = [fact for fact in heard.facts if isinstance(fact, WasmBlockBuilt)]
    records = [it for it in heard.records() if it.source == chain_principal(genesis)]
    assert [it.topic for it in records] == [f"io.relaycast.block.imported.p{WASM}"] * len(built)
    for record, fact in zip(records, built, strict=True):
        header, told = fact.block.header, dict(record.data.content)
        assert (told["number"], told["hash"]) == (nat(header.number), blob(header.hash))
        assert (told["events"], told["rawEvents"]) == (nat(1), blob(RAW))
        assert dict(told["relayParent"].content)["hash"] == blob(fact.relay_parent.hash)
        assert record.occurred_ns == 1_700_000_000_000 * 1_000_000
        assert attributes_of(record)["paraid"] == WASM


def test_a_wasm_parachain_that_leaves_no_events_tells_none() -> None:
    chains = ChainSimulator()
    chains.add_wasm_parachain(HandMadeParachain(WASM))
    heard = Heard(chains)
    chains.step()
    (record,) = (it for it in heard.records() if it.topic.endswith(f"p{WASM}"))
    told = dict(record.data.content)
    assert (told["events"], told["rawEvents"]) == (nat(0), blob(b"\x00"))
