"""A node in front of a real runtime: every answer is the runtime's own, at the block that was asked for."""

import pytest

from app.runtime_chain_served import ServedRuntime
from relaycast_collator import WasmBlockBuilt
from relaycast_node.extrinsic.extrinsic import extrinsic_hash
from relaycast_node.rpc.header_json import hexed
from relaycast_pallets.frame.well_known_keys import RelayProofRequest, Top
from relaycast_trie import StorageProof, blake2_256
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.scale import ScaleReader, encode_bytes

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from relaycast.serve.runtime_chains import ChainLabel
from relaycast_wasm import WasmRuntime
from wasm.text_runtime import CHILD, HEADER, METADATA, REQUEST, text_runtime

KEY, VALUE = b"k" * 32, b"a value of which nobody knows the length"
LABEL = ChainLabel("Text", {"ss58Format": 7, "tokenSymbol": "TXT"})


def call(kind: int, rest: bytes = b"") -> bytes:
    return encode_bytes(bytes([kind]) + rest)


WRITE, WRITE_CHILD = call(1, KEY + VALUE), call(3, KEY + VALUE)
PANIC, INVALID = call(5), call(7)


@pytest.fixture(scope="module")
def runtime() -> WasmRuntime:
    return WasmRuntime.load(text_runtime())


@pytest.fixture
def served(runtime: WasmRuntime) -> ServedRuntime:
    return ServedRuntime(runtime, {b":code": text_runtime(), b"there": b"1"}, LABEL)


def test_what_the_chain_is_called_is_what_its_specification_says(served: ServedRuntime) -> None:
    assert served.ask("system_chain") == "Text"
    assert served.ask("system_properties") == {"ss58Format": 7, "tokenSymbol": "TXT"}


def test_metadata_and_version_are_the_runtime_s(served: ServedRuntime, runtime: WasmRuntime) -> None:
    assert served.ask("state_getMetadata") == hexed(METADATA)
    version = served.ask("state_getRuntimeVersion")
    assert (version["specName"], version["specVersion"]) == ("text-runtime", 7)
    assert version["apis"] == [[hexed(api), number] for api, number in runtime.version.apis.items()]


def test_a_method_that_it_exports_answers_and_another_one_is_named(served: ServedRuntime) -> None:
    assert served.ask("state_call", "Metadata_metadata", "0x") == hexed(encode_bytes(METADATA))
    assert served.ask("system_accountNextIndex", hexed(bytes(32))) == 0
    assert served.ask("state_call", "Core_nothing", "0x") == (
        4003,
        "Client error: Execution failed: Other: Exported method Core_nothing is not found",
        None,
    )


def test_a_runtime_that_knows_no_nonces_says_so() -> None:
    code = text_runtime().replace(b"AccountNonceApi_account_nonce", b"AccountNonceApi_account_nonxe")
    served = ServedRuntime(WasmRuntime.load(code, kept=None), {b":code": code}, LABEL)
    missing = "Exported method AccountNonceApi_account_nonce is not found"
    assert served.ask("system_accountNextIndex", hexed(bytes(32))) == (1, "Unable to query nonce.", missing)


def test_a_panic_comes_with_the_runtime_s_own_words_and_leaves_nothing(served: ServedRuntime) -> None:
    before = served.parachain.state.snapshot()
    code, message, _ = served.ask("state_call", "BlockBuilder_apply_extrinsic", hexed(PANIC))
    assert code == 4003
    assert message == "Client error: Execution failed: Execution aborted due to panic: the extrinsic asked for it"
    assert served.parachain.state.snapshot() == before


def test_a_call_that_writes_leaves_no_trace(served: ServedRuntime) -> None:
    before = served.parachain.state.snapshot()
    assert served.ask("state_call", "BlockBuilder_apply_extrinsic", hexed(WRITE)) == "0x0000"
    assert served.ask("system_dryRun", hexed(WRITE_CHILD)) == "0x0000"
    assert served.ask("system_dryRun", hexed(INVALID)) == "0x010000"
    assert served.parachain.state.snapshot() == before
    assert served.ask("state_getStorage", hexed(KEY)) is None


def test_a_submitted_extrinsic_stands_in_the_next_block(served: ServedRuntime) -> None:
    facts: list[WasmBlockBuilt] = []
    served.clock.facts.connect(lambda fact: facts.append(fact) if isinstance(fact, WasmBlockBuilt) else None)
    served.clock.new_block()
    assert served.ask("author_submitExtrinsic", hexed(WRITE)) == hexed(extrinsic_hash(WRITE))
    assert served.ask("author_pendingExtrinsics") == [hexed(WRITE)]
    served.clock.new_block()
    block = served.ask("chain_getBlock")["block"]
    assert block["extrinsics"][1:] == [hexed(WRITE)]
    assert block["extrinsics"] == list(map(hexed, facts[-1].block.extrinsics))
    assert served.ask("author_pendingExtrinsics") == []
    assert served.ask("state_getStorage", hexed(KEY)) == hexed(VALUE)
    before = served.ask("chain_getBlockHash", 1)
    assert served.ask("state_getStorage", hexed(KEY), before) is None
    assert served.ask("author_submitExtrinsic", hexed(WRITE))[0] == 1012


def test_a_watched_extrinsic_tells_its_block_and_that_it_is_final(served: ServedRuntime) -> None:
    served.ask("author_submitAndWatchExtrinsic", hexed(WRITE))
    served.clock.new_block()
    block = served.ask("chain_getBlockHash")
    served.clock.new_block(2)
    assert [result for _, result in served.told()] == ["ready", {"inBlock": block}, {"finalized": block}]


@pytest.mark.parametrize("refused", [PANIC, INVALID], ids=["it panics", "it is invalid"])
def test_an_extrinsic_that_the_block_refuses_leaves_the_pool_and_no_trace(
    served: ServedRuntime, refused: bytes
) -> None:
    served.ask("author_submitAndWatchExtrinsic", hexed(refused))
    served.ask("author_submitExtrinsic", hexed(WRITE))
    served.clock.new_block()
    assert served.ask("chain_getBlock")["block"]["extrinsics"][1:] == [hexed(WRITE)]
    assert served.ask("author_pendingExtrinsics") == []
    assert [result for _, result in served.told()] == ["ready", "invalid"]
    assert served.ask("state_getStorage", hexed(b"lost")) is None


def test_keys_and_proofs_of_its_own_state(served: ServedRuntime) -> None:
    for data in (WRITE, WRITE_CHILD):
        served.ask("author_submitExtrinsic", hexed(data))
    served.clock.new_block()
    assert served.ask("state_getKeysPaged", hexed(b"k"), 10) == [hexed(KEY)]
    header = served.ask("chain_getHeader")
    proof = served.ask("state_getReadProof", [hexed(KEY)])["proof"]
    root = bytes.fromhex(header["stateRoot"][2:])
    assert StorageProof(bytes.fromhex(it[2:]) for it in proof).verify(root, [KEY])[KEY] == VALUE
    child = ChildInfo.new_default(CHILD).prefixed_storage_key()
    assert served.ask("childstate_getStorage", hexed(child), hexed(KEY)) == hexed(VALUE)


def test_a_call_sees_the_state_of_the_block_that_it_names(served: ServedRuntime) -> None:
    key = RelayProofRequest((Top(KEY),)).encode()
    genesis = served.ask("chain_getBlockHash")
    served.ask("dev_setStorage", [[hexed(REQUEST), hexed(key)]])
    served.clock.new_block()
    method = "KeyToIncludeInRelayProof_keys_to_prove"
    assert served.ask("state_call", method, "0x") == hexed(key)
    assert served.ask("state_call", method, "0x", genesis) == "0x00"


def test_what_developers_write_is_sealed_by_the_next_block(served: ServedRuntime) -> None:
    assert served.ask("dev_setStorage", [[hexed(b"there"), hexed(b"2")]]) == 1
    assert served.ask("state_getStorage", hexed(b"there")) == hexed(b"1")
    assert served.ask("dev_newBlock") == served.ask("chain_getBlockHash")
    assert served.ask("state_getStorage", hexed(b"there")) == hexed(b"2")


def test_the_relay_proof_of_its_blocks_can_be_had(served: ServedRuntime) -> None:
    served.clock.new_block(2)
    proof = served.ask("dev_proof")
    root = bytes.fromhex(proof["relayParent"]["stateRoot"][2:])
    assert proof["full"] == proof["pruned"]
    assert root in {blake2_256(bytes.fromhex(node[2:])) for node in proof["full"]["nodes"]}
    assert proof["tries"] == []


def test_a_new_runtime_answers_from_its_block_on_and_the_old_one_before(
    served: ServedRuntime, runtime: WasmRuntime
) -> None:
    newer = text_runtime().replace(b"text-runtime", b"next-runtime")
    served.ask("state_subscribeRuntimeVersion")
    served.ask("dev_setStorage", [[hexed(b":code"), hexed(newer)]])
    served.clock.new_block(2)
    assert served.ask("state_getRuntimeVersion")["specName"] == "next-runtime"
    genesis = served.ask("chain_getBlockHash", 0)
    assert served.ask("state_getRuntimeVersion", genesis)["specName"] == "text-runtime"
    told = [result["specName"] for _, result in served.told()]
    assert told == ["text-runtime", "next-runtime"]


@pytest.mark.parametrize(("code", "expected"), [("0x1234", "no runtime"), (None, "cannot be removed")])
def test_code_that_is_none_is_refused(served: ServedRuntime, code: str | None, expected: str) -> None:
    error, _, reason = served.ask("dev_setStorage", [[hexed(b":code"), code]])
    assert error == -32602
    assert expected in reason
    assert served.ask("dev_newBlock") == served.ask("chain_getBlockHash", 1)


def test_the_node_asks_the_header_of_the_block_that_it_sealed(served: ServedRuntime) -> None:
    served.clock.new_block()
    header = served.chain.best.header
    assert served.ask("chain_getHeader")["stateRoot"] == hexed(header.state_root)
    assert served.parachain.state.root == header.state_root
    assert served.ask("state_getStorage", hexed(HEADER)) is None
    assert ScaleReader(header.encode()).take(32) == served.chain.genesis_hash
