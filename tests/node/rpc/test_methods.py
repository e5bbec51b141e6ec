"""The methods of each group, as a Substrate node answers them."""

from collections.abc import Callable
from typing import Any

import pytest

from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.rpc.account_text import account_of, base58
from relaycast_trie import CHILD_STORAGE_PREFIX, ChildInfo, StorageProof, blake2_256
from relaycast_trie.scale import ScaleReader, encode_bytes
from small_chain import ALICE, SmallChain

Ask = Callable[..., Any]

CHILD = b"pubsub" + (2000).to_bytes(4, "little")
PREFIXED = "0x" + (CHILD_STORAGE_PREFIX + CHILD).hex()
NOWHERE = "0x" + "ee" * 32
ALICE_SS58 = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
ALICE_KEY = "d43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d"


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


def test_the_system_group_describes_the_node(ask: Ask) -> None:
    assert ask("system_name") == "relaycast"
    assert ask("system_version") == "1.2.3"
    assert ask("system_chain") == "Small"
    assert ask("system_chainType") == "Development"
    assert ask("system_properties") == {"ss58Format": 42, "tokenDecimals": 12, "tokenSymbol": "UNIT"}
    assert ask("system_health") == {"peers": 0, "isSyncing": False, "shouldHavePeers": False}
    assert ask("system_nodeRoles") == ["Authority"]
    assert ask("system_syncState") == {"startingBlock": 0, "currentBlock": 2, "highestBlock": 2}
    assert ask("system_localPeerId").startswith("12D3KooW")


def test_an_account_may_be_an_address_of_any_network_or_hex() -> None:
    assert account_of(ALICE_SS58) == bytes.fromhex(ALICE_KEY)
    assert account_of("0x" + ALICE_KEY) == bytes.fromhex(ALICE_KEY)
    assert account_of("15oF4uVJwmo4TdGW7VfQxNLavjCXviqxT9S1MgbjMNHr6Sp5") == bytes.fromhex(ALICE_KEY)
    assert account_of(ALICE_SS58[:-1] + "Z") is None
    assert account_of(ALICE_SS58[:-1]) is None
    assert account_of("l" + ALICE_SS58[1:]) is None
    assert account_of("0x" + ALICE_KEY[2:]) is None
    assert account_of("1" * 5_000) is None
    assert base58(b"\x00\x01") == "12"


def test_the_next_nonce_is_the_pools(ask: Ask) -> None:
    assert ask("system_accountNextIndex", hexed(ALICE)) == 5
    assert ask("account_nextIndex", ALICE_SS58) == 0


def test_headers_and_blocks_have_the_shapes_of_a_node(ask: Ask, chain: SmallChain) -> None:
    block, parent = chain.best, chain.blocks[1]
    header = {
        "parentHash": hexed(parent.hash),
        "number": "0x2",
        "stateRoot": hexed(block.header.state_root),
        "extrinsicsRoot": hexed(block.header.extrinsics_root),
        "digest": {"logs": ["0x0661757261" + "20" + "0200000000000000"]},
    }
    assert ask("chain_getHeader") == header
    assert ask("chain_getHeader", hexed(block.hash)) == header
    assert ask("chain_getBlock", None) == {"block": {"header": header, "extrinsics": []}, "justifications": None}
    assert ask("chain_getHeader", hexed(chain.genesis_hash))["number"] == "0x0"
    assert ask("chain_getHeader", NOWHERE) is None
    assert ask("chain_getBlock", NOWHERE) is None


def test_hashes_are_asked_for_by_number_hex_list_or_nothing(ask: Ask, chain: SmallChain) -> None:
    hashes = [hexed(block.hash) for block in chain.blocks]
    assert ask("chain_getBlockHash") == hashes[2]
    assert ask("chain_getHead", None) == hashes[2]
    assert ask("chain_getBlockHash", 0) == hashes[0]
    assert ask("chain_getBlockHash", "0x1") == hashes[1]
    assert ask("chain_getBlockHash", 3) is None
    assert ask("chain_getBlockHash", [0, "0x02", 9]) == [hashes[0], hashes[2], None]
    assert ask("chain_getFinalizedHead") == ask("chain_getFinalisedHead") == hashes[0]
    assert ask("chain_getBlockHash", 2**32)[0] == 3001


def test_storage_is_read_at_any_block(ask: Ask, chain: SmallChain) -> None:
    first = hexed(chain.blocks[1].hash)
    assert ask("state_getStorage", "0x6131") == hexed(b"ONE")
    assert ask("state_getStorageAt", "0x6131", first) == hexed(b"one")
    assert ask("state_getStorage", "0x62") is None
    assert ask("state_getStorageHash", "0x6131") == hexed(blake2_256(b"ONE"))
    assert ask("state_getStorageSize", "0x6132") == 60
    assert ask("state_getStorageSize", "0x61") == 63  # no value, so all below it
    assert ask("state_getStorageSize", "0x7a") is None
    assert ask("state_getKeys", "0x61") == ["0x6131", "0x6132"]
    assert ask("state_getPairs", "0x61", first) == [["0x6131", hexed(b"one")], ["0x6132", hexed(b"two" * 20)]]


def test_keys_come_in_pages_of_a_thousand_at_most(ask: Ask, chain: SmallChain) -> None:
    assert ask("state_getKeysPaged", "0x61", 1) == ["0x6131"]
    assert ask("state_getKeysPagedAt", "0x61", 10, "0x6131") == ["0x6132"]
    assert ask("state_getKeysPaged", None, 1_000, "0x61ff", hexed(chain.blocks[1].hash)) == ["0x62"]
    assert ask("state_getKeysPaged", "0x61", 1_001) == (
        4002,
        "count exceeds maximum value. value: 1001, max: 1000",
        None,
    )


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("state_getStorage", ["0x61"]),
        ("state_getKeysPaged", ["0x61", 1, None]),
        ("state_getMetadata", []),
        ("state_getRuntimeVersion", []),
        ("state_call", ["Core_version", "0x"]),
        ("state_getReadProof", [["0x61"]]),
        ("state_getChildReadProof", [PREFIXED, ["0x61"]]),
        ("childstate_getStorage", [PREFIXED, "0x61"]),
        ("payment_queryInfo", ["0x0c040001"]),
    ],
)
def test_a_block_that_is_not_there_is_a_client_error(ask: Ask, method: str, params: list[Any]) -> None:
    missing = f"Client error: UnknownBlock: Header was not found in the database: {NOWHERE}"
    assert ask(method, *params, NOWHERE) == (4003, missing, None)


def test_a_state_that_is_gone_is_a_client_error(ask: Ask, chain: SmallChain) -> None:
    gone = chain.blocks[1].hash
    del chain.states[gone]
    message = f"Client error: UnknownBlock: State already discarded for {hexed(gone)}"
    assert ask("state_getStorage", "0x61", hexed(gone)) == (4003, message, None)


def test_read_proofs_verify_against_the_state_root(ask: Ask, chain: SmallChain) -> None:
    block = chain.best
    proof = ask("state_getReadProof", ["0x6131", "0x62"], hexed(block.hash))
    assert proof["at"] == hexed(block.hash)
    nodes = StorageProof(bytes.fromhex(node[2:]) for node in proof["proof"])
    verified = nodes.verify(block.header.state_root, [b"a1", b"b"], strict=True)
    assert (verified[b"a1"], verified[b"b"]) == (b"ONE", None)


def test_child_proofs_take_the_prefixed_key(ask: Ask, chain: SmallChain) -> None:
    key = b"x" * 32
    proof = ask("state_getChildReadProof", PREFIXED, [hexed(key)])
    nodes = StorageProof(bytes.fromhex(node[2:]) for node in proof["proof"])
    assert nodes.verify_child(chain.best.header.state_root, ChildInfo.new_default(CHILD), [key])[key] == b"price"
    assert ask("state_getChildReadProof", hexed(CHILD), [hexed(key)]) == (
        4003,
        "Client error: Invalid child storage key",
        None,
    )


def test_child_storage_takes_the_prefixed_key(ask: Ask) -> None:
    x, y = hexed(b"x" * 32), hexed(b"y" * 32)
    assert ask("childstate_getStorage", PREFIXED, x) == hexed(b"price")
    assert ask("childstate_getStorageHash", PREFIXED, x) == hexed(blake2_256(b"price"))
    assert ask("childstate_getStorageSize", PREFIXED, y) == 4
    assert ask("childstate_getStorageEntries", PREFIXED, [y, "0x00", x]) == [hexed(b"rate"), None, hexed(b"price")]
    assert ask("childstate_getKeys", PREFIXED, "0x") == [x, y]
    assert ask("childstate_getKeysPaged", PREFIXED, None, 1) == [x]
    assert ask("childstate_getKeysPaged", PREFIXED, "0x", 5, x) == [y]
    nothing = "0x" + (CHILD_STORAGE_PREFIX + b"nothing").hex()
    assert ask("childstate_getStorage", nothing, x) is None
    assert ask("childstate_getKeys", nothing, "0x") == []
    assert ask("childstate_getStorage", hexed(CHILD), x)[:2] == (4003, "Client error: Invalid child storage key")


def test_changes_are_listed_from_block_to_block(ask: Ask, chain: SmallChain) -> None:
    genesis, first, second = (hexed(block.hash) for block in chain.blocks)
    found = ask("state_queryStorage", ["0x6131", "0x6132"], genesis, second)
    assert found == [
        {"block": genesis, "changes": [["0x6131", hexed(b"one")], ["0x6132", hexed(b"two" * 20)]]},
        {"block": second, "changes": [["0x6131", hexed(b"ONE")]]},
    ]
    assert ask("state_queryStorageAt", ["0x62"], first) == [{"block": first, "changes": [["0x62", hexed(b"three")]]}]
    assert ask("state_queryStorageAt", ["0x62"]) == [{"block": second, "changes": [["0x62", None]]}]
    assert ask("state_queryStorageAt", []) == []
    code, message, _ = ask("state_queryStorage", ["0x61"], second, genesis)
    assert (code, message) == (
        4001,
        f'Cannot resolve a block range [\'"2 ({second})"\' ... \'"0 ({genesis})"]. from number > to number',
    )
    assert ask("state_queryStorage", ["0x61"], NOWHERE)[0] == 4001


def test_the_runtime_is_described_as_clients_read_it(ask: Ask) -> None:
    version = ask("state_getRuntimeVersion")
    assert version["specName"] == "small"
    assert (version["specVersion"], version["transactionVersion"]) == (7, 3)
    assert version["apis"][0] == ["0xdf6acb689907609b", 5]
    assert ask("chain_getRuntimeVersion") == version
    assert ask("state_getMetadata") == hexed(b"meta\x0e")


def test_runtime_calls_answer_in_scale(ask: Ask) -> None:
    reader = ScaleReader(bytes.fromhex(ask("state_call", "Core_version", "0x")[2:]))
    assert (reader.bytes_(), reader.bytes_()) == (b"small", b"relaycast")
    assert [reader.u32() for _ in range(3)] == [1, 7, 0]
    apis = [(reader.take(8).hex(), reader.u32()) for _ in range(reader.length())]
    assert apis[0] == ("df6acb689907609b", 5)
    assert (reader.u32(), reader.u8()) == (3, 1)
    reader.done()
    assert ask("state_call", "Metadata_metadata", "0x") == hexed(encode_bytes(b"meta\x0e"))
    assert ask("state_call", "Metadata_metadata_versions", "0x") == "0x080e0000000f000000"
    assert ask("state_call", "Metadata_metadata_at_version", "0x0f000000") == hexed(b"\x01" + encode_bytes(b"meta\x0f"))
    assert ask("state_call", "Metadata_metadata_at_version", "0x10000000") == "0x00"
    assert ask("state_call", "AccountNonceApi_account_nonce", hexed(ALICE)) == "0x05000000"
    assert ask("state_call", "TransactionPaymentApi_query_length_to_fee", "0x05000000") == hexed(
        (15).to_bytes(16, "little")
    )
    weight = ask("state_call", "TransactionPaymentCallApi_query_weight_to_fee", "0x2800")
    assert weight == hexed((20).to_bytes(16, "little"))


def test_a_runtime_call_that_cannot_be_made_is_a_client_error(ask: Ask) -> None:
    assert ask("state_call", "Core_nothing", "0x") == (
        4003,
        "Client error: Execution failed: Other: Exported method Core_nothing is not found",
        None,
    )
    code, message, _ = ask("state_call", "AccountNonceApi_account_nonce", "0x00")
    assert code == 4003
    assert message.startswith("Client error: Execution failed: Bad input data provided to account_nonce: ")
    assert ask("state_call", "Core_version", "0x00")[0] == 4003


def test_what_a_call_weighs_and_costs(ask: Ask) -> None:
    bare = hexed(encode_bytes(b"\x04\x00\x01\x08hi"))
    info = {"weight": {"ref_time": 1_000, "proof_size": 20}, "class": "normal", "partialFee": "0"}
    assert ask("payment_queryInfo", bare) == info
    assert ask("payment_queryFeeDetails", bare) == {"inclusionFee": None}
    assert ask("payment_queryInfo", "0x1234")[:2] == (2, "Unable to query dispatch info.")
    call = "0x00010868690b000000"
    details = ask("state_call", "TransactionPaymentCallApi_query_call_fee_details", call)
    assert details == "0x01" + b"".join(it.to_bytes(16, "little") for it in (12_000, 300, 45, 0)).hex()
    assert (
        ask("state_call", "TransactionPaymentCallApi_query_call_info", call)
        == "0xa10f5000" + (12_345).to_bytes(16, "little").hex()
    )


def test_a_transaction_that_is_not_valid_says_so_in_scale(ask: Ask) -> None:
    bare = encode_bytes(b"\x04\x00\x01\x08hi")
    asked = hexed(b"\x02" + bare + bytes(32))
    assert (
        ask("state_call", "TaggedTransactionQueue_validate_transaction", asked) == "0x010101"
    )  # no unsigned validator


def test_the_pool_takes_lists_and_gives_back(ask: Ask) -> None:
    data = encode_bytes(b"\x04\x00\x01\x08hi")
    assert ask("author_submitExtrinsic", hexed(data)) == hexed(extrinsic_hash(data))
    assert ask("author_pendingExtrinsics") == [hexed(data)]
    assert ask("author_submitExtrinsic", hexed(data)) == (
        1013,
        "Transaction Already Imported",
        hexed(extrinsic_hash(data)),
    )
    assert ask("author_submitExtrinsic", "0x1234")[0] == 1001
    assert ask("author_removeExtrinsic", [{"extrinsic": hexed(data)}]) == [hexed(extrinsic_hash(data))]
    assert ask("author_removeExtrinsic", [{"hash": hexed(extrinsic_hash(data))}]) == []
    assert ask("author_removeExtrinsic", [{"hash": "0x12"}])[2] == (
        "bytesOrHash[0].hash: got '0x12', expected a hash: 0x and 64 hex digits"
    )
    assert ask("system_dryRun", hexed(data)) == "0x0000"
    assert ask("system_dryRun", "0x1234")[:2] == (2, "Unable to dry run extrinsic")


def test_blocks_come_when_a_developer_wants_them(ask: Ask, chain: SmallChain) -> None:
    data = hexed(encode_bytes(b"\x04\x00\x01\x08hi"))
    assert ask("dev_newBlock") == hexed(chain.blocks[3].hash)
    assert ask("dev_newBlock", 2, [data]) == hexed(chain.blocks[5].hash)
    assert ask("chain_getBlock", hexed(chain.blocks[4].hash))["block"]["extrinsics"] == [data]
    assert ask("dev_newBlock", {"count": 2}) == hexed(chain.blocks[7].hash)
    assert ask("dev_newBlock", 0)[2] == "count: got 0, expected a number of blocks from 1 to 1,000"
    assert ask("dev_setBlockTime", "500ms") == "500ms"
    assert ask("dev_setBlockTime", 6_000) == "6s"
    assert ask("dev_setBlockTime", "manual") == "manual"
    assert ask("dev_setBlockTime", "soon")[0] == -32602
    assert ask("dev_setStorage", [["0x6131", "0x01"], ["0x6132", None]]) == 2
    assert ask("state_getStorage", "0x6131") == "0x01"
    assert ask("dev_publish", 2000, "price", "0x01")[0] == -32602
