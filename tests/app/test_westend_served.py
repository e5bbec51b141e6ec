"""Westend of 2020 as the relay chain behind a node: its pool, its fees and its trials are those of its runtime."""

import pytest

from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.rpc.header_json import hexed
from relaycast_pallets.frame.well_known_keys import para_head
from relaycast_trie import StorageProof
from relaycast_xcm import ParaId

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from app.runtime_chain_served import ServedRelayChain
from relaycast.serve.runtime_chains import ChainLabel
from relaycast_wasm import RuntimeVersion
from relaycast_wasm.metadata.of_runtime import metadata_of
from relaycast_wasm.transactions.extrinsics import TransactionWriter
from wasm.real_chains import ALICE, BOB, FUNDS, broken, runtime_of, top_of

pytestmark = pytest.mark.slow

UNIT = 10**12


@pytest.fixture
def westend() -> ServedRelayChain:
    return ServedRelayChain(runtime_of("westend"), top_of("westend"), ChainLabel("Westend", {"ss58Format": 42}))


@pytest.fixture
def writer(westend: ServedRelayChain) -> TransactionWriter:
    runtime = runtime_of("westend")
    return TransactionWriter(metadata_of(runtime), runtime.version, westend.chain.genesis_hash)


def transfer(writer: TransactionWriter, nonce: int, amount: int = UNIT) -> bytes:
    return writer.sign(writer.transfer(BOB.public, amount), ALICE, nonce=nonce)


def test_transfers_go_into_the_next_block_and_the_nonce_follows(
    westend: ServedRelayChain, writer: TransactionWriter
) -> None:
    sent = [transfer(writer, nonce) for nonce in range(3)]
    for data in sent:
        assert westend.ask("author_submitExtrinsic", hexed(data)) == hexed(extrinsic_hash(data))
    assert westend.ask("system_accountNextIndex", hexed(ALICE.public)) == 3
    westend.clock.new_block()
    assert westend.ask("chain_getBlock")["block"]["extrinsics"][-3:] == list(map(hexed, sent))
    assert westend.ask("author_pendingExtrinsics") == []
    assert westend.ask("system_accountNextIndex", hexed(ALICE.public)) == 3
    assert westend.ask("system_accountNextIndex", hexed(BOB.public)) == 0


def test_one_whose_nonce_is_to_come_waits_for_the_one_before(
    westend: ServedRelayChain, writer: TransactionWriter
) -> None:
    first, second = transfer(writer, 0), transfer(writer, 1)
    westend.ask("author_submitExtrinsic", hexed(second))
    westend.clock.new_block()
    assert hexed(second) not in westend.ask("chain_getBlock")["block"]["extrinsics"]
    westend.ask("author_submitExtrinsic", hexed(first))
    assert westend.ask("author_pendingExtrinsics") == [hexed(first), hexed(second)]
    westend.clock.new_block()
    assert westend.ask("chain_getBlock")["block"]["extrinsics"][-2:] == [hexed(first), hexed(second)]


def test_the_pool_refuses_what_the_runtime_does_not_take(westend: ServedRelayChain, writer: TransactionWriter) -> None:
    westend.ask("author_submitExtrinsic", hexed(transfer(writer, 0)))
    westend.clock.new_block()
    nobody = writer.sign(writer.remark(b""), BOB, nonce=1)
    refused = {
        hexed(broken(transfer(writer, 1))): "Transaction has a bad signature",
        hexed(writer.sign(writer.remark(b"x"), ALICE, nonce=0)): "Transaction is outdated",
    }
    for data, reason in refused.items():
        assert westend.ask("author_submitExtrinsic", data) == (1010, "Invalid Transaction", reason)
    assert westend.ask("author_submitExtrinsic", hexed(nobody)) == hexed(extrinsic_hash(nobody))
    assert westend.ask("author_pendingExtrinsics") == []
    code, message, _ = westend.ask("author_submitExtrinsic", "0x0c040001")
    assert code == 1002
    assert "Bad input data provided to validate_transaction" in message


def test_an_overdraft_is_included_and_fails(westend: ServedRelayChain, writer: TransactionWriter) -> None:
    westend.ask("author_submitExtrinsic", hexed(transfer(writer, 0, FUNDS)))
    assert westend.ask("system_dryRun", hexed(transfer(writer, 0, FUNDS))).startswith("0x0001")
    westend.clock.new_block()
    assert westend.ask("system_accountNextIndex", hexed(ALICE.public)) == 1


def test_what_it_costs_is_asked_of_the_runtime_in_the_words_of_its_time(
    westend: ServedRelayChain, writer: TransactionWriter
) -> None:
    data = transfer(writer, 0)
    info = westend.ask("payment_queryInfo", hexed(data))
    assert (type(info["weight"]), info["class"]) == (int, "normal")
    assert int(info["partialFee"]) > 0
    assert westend.ask("system_dryRun", hexed(data)) == "0x0000"
    assert westend.ask("payment_queryFeeDetails", hexed(data)) == (
        1,
        "Unable to query fee details.",
        "Exported method TransactionPaymentApi_query_fee_details is not found",
    )
    assert westend.ask("payment_queryInfo", "0x1234")[:2] == (2, "Unable to query dispatch info.")


def test_its_state_holds_the_heads_of_modelled_parachains_and_can_be_proven(westend: ServedRelayChain) -> None:
    westend.clock.new_block(3)
    key = para_head(ParaId(2000))
    header = westend.ask("chain_getHeader")
    proof = westend.ask("state_getReadProof", [hexed(key)])["proof"]
    nodes = StorageProof(bytes.fromhex(node[2:]) for node in proof)
    value = nodes.verify(bytes.fromhex(header["stateRoot"][2:]), [key])[key]
    assert value is not None
    assert westend.ask("state_getStorage", hexed(key)) == hexed(value)


def test_its_version_and_metadata_are_those_of_2020(westend: ServedRelayChain) -> None:
    version = westend.ask("state_getRuntimeVersion")
    assert (version["specName"], version["specVersion"], version["stateVersion"]) == ("westend", 1, 0)
    answer = bytes.fromhex(westend.ask("state_call", "Core_version", "0x")[2:])
    assert RuntimeVersion.decode(answer) == runtime_of("westend").version
    assert westend.ask("state_getMetadata") == hexed(runtime_of("westend").metadata())


def test_a_past_block_is_asked_in_its_own_state(westend: ServedRelayChain, writer: TransactionWriter) -> None:
    genesis = westend.ask("chain_getBlockHash", 0)
    westend.ask("author_submitExtrinsic", hexed(transfer(writer, 0)))
    westend.clock.new_block()
    nonce = "AccountNonceApi_account_nonce"
    assert westend.ask("state_call", nonce, hexed(ALICE.public)) == "0x01000000"
    assert westend.ask("state_call", nonce, hexed(ALICE.public), genesis) == "0x00000000"
    assert westend.ask("system_dryRun", hexed(transfer(writer, 0)), genesis) == "0x0000"
    assert westend.ask("system_dryRun", hexed(transfer(writer, 0))) == "0x010003"
