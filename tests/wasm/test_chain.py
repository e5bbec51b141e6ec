"""Chains whose blocks a runtime builds: kept whole or not at all, and accepted by the runtime's own execution."""

from dataclasses import replace

import pytest

from genesis_states import genesis
from relaycast_collator.header import Header
from relaycast_pallets.frame.state import State
from relaycast_trie import ChildInfo, StateVersion
from relaycast_trie.scale import encode_bytes
from relaycast_wasm.blocks.applied import EXHAUSTS_RESOURCES, is_success
from relaycast_wasm.blocks.block_builder import ONLY_INHERENTS, BlockBuilder
from relaycast_wasm.blocks.inherents import TIMESTAMP, relay_inherents
from relaycast_wasm.chain import RuntimeChain
from relaycast_wasm.engine.limits import RuntimeAnswer
from relaycast_wasm.exceptions import BlockRefused
from relaycast_wasm.overlay import OverlayedChanges
from relaycast_wasm.runtime import WasmRuntime
from wasm.real_chains import (
    ALICE,
    BOB,
    CODE,
    broken,
    digest_of,
    item,
    next_block,
    relay,
    runtime_of,
    slot_of,
    state_of,
    top_of,
    writer,
)
from wasm.text_runtime import CHILD, LOST, text_runtime

GENESIS_HASHES = {
    "westend": "e143f23803ac50e8f6f8e62695d1ce9e4e1d68aa36c1cd2cfd15340213f3423e",
    "kusama": "b0a8d493285c2df73290dfb7e61f870f17b41801197a149ca93654499ea3dafe",
}
"""By these everybody knows the chains."""

KEY, OTHER = b"k" * 32, b"o" * 32


@pytest.fixture(scope="module")
def text() -> WasmRuntime:
    return WasmRuntime.load(text_runtime())


@pytest.fixture
def chain(text: WasmRuntime) -> RuntimeChain:
    """Return a chain of the runtime in WebAssembly text, with some keys."""
    held = {bytes([number]) * 32: bytes(40) for number in range(20)}
    return RuntimeChain(text, State(held, {ChildInfo.new_default(CHILD): held}, engine="plain", window=4))


def same(chain: RuntimeChain, text: WasmRuntime) -> RuntimeChain:
    """Return another chain with the same state."""
    state = State(engine="plain", window=4)
    state.load(chain.state.dump())
    return RuntimeChain(text, state)


def opaque(*extrinsics: bytes) -> list[bytes]:
    return list(map(encode_bytes, extrinsics))


@pytest.mark.parametrize("name", GENESIS_HASHES)
def test_a_chain_starts_from_the_genesis_that_everybody_knows(name: str) -> None:
    state = State(genesis(name), state_version=StateVersion.V0, engine="plain")
    assert RuntimeChain(runtime_of(name), state).head.hash.hex() == GENESIS_HASHES[name]


def test_westend_builds_blocks_of_transactions_and_accepts_them_elsewhere() -> None:
    chain, elsewhere = relay("westend"), relay("westend")
    tx = writer(chain, chain.head.hash)
    good = tx.sign(tx.transfer(BOB.public, 10**12), ALICE, nonce=0)
    overdraft = tx.sign(tx.transfer(BOB.public, 10**30), ALICE, nonce=1)
    bad, stale = broken(tx.sign(tx.transfer(BOB.public, 1), ALICE, nonce=2)), good
    remark = tx.sign(tx.remark(b"here"), ALICE, nonce=2)
    block = next_block(chain, [good, overdraft, bad, stale, remark])
    assert block.extrinsics[-3:] == (good, overdraft, remark)
    assert [is_success(it) for it in block.results] == [True] * (len(block.results) - 2) + [False, True]
    assert [it.reason for it in block.refused] == ["its signature does not fit", "its nonce is used up"]
    assert chain.account_nonce(ALICE.public) == 3
    elsewhere.import_block(block.header, block.extrinsics)
    next_one = next_block(chain)
    elsewhere.import_block(next_one.header, next_one.extrinsics)
    assert (elsewhere.head, elsewhere.state.root) == (chain.head, chain.state.root)


def test_a_transaction_is_judged_and_tried_without_a_trace() -> None:
    chain = relay("westend")
    tx = writer(chain, chain.head.hash)
    next_block(chain)
    before = chain.state.snapshot()
    good = tx.sign(tx.transfer(BOB.public, 10**12), ALICE, nonce=0)
    assert chain.validate_transaction(good)[0] == 0
    assert chain.validate_transaction(broken(good)) == b"\x01\x00\x04"
    assert is_success(chain.dry_run(good))
    assert (chain.state.snapshot(), chain.account_nonce(ALICE.public)) == (before, 0)


@pytest.mark.parametrize("fault", ["no timestamp", "no data of parachains"])
def test_a_block_that_fails_leaves_the_state_byte_for_byte(fault: str) -> None:
    chain = relay("westend")
    inherents = relay_inherents(slot_of(chain), chain.head)
    given = inherents | {TIMESTAMP: b"\x01"} if fault == "no timestamp" else {TIMESTAMP: inherents[TIMESTAMP]}
    before = chain.state.snapshot(), chain.state.root, chain.head
    with pytest.raises(BlockRefused):
        chain.build_block(given, digest=[digest_of(chain)])
    assert (chain.state.snapshot(), chain.state.root, chain.head) == before


@pytest.mark.slow
def test_a_block_that_writes_new_code_is_the_last_of_the_old() -> None:
    key = item("Sudo", "Key")
    chain = RuntimeChain(
        runtime_of("westend"),
        State(top_of("westend") | {key: ALICE.public}, state_version=StateVersion.V0, engine="plain"),
    )
    tx = writer(chain, chain.head.hash)
    code = chain.runtime.code + b"\x00\x05\x04none"
    set_code = tx.call("System", "set_code_without_checks", encode_bytes(code))
    block = next_block(chain, [tx.sign(tx.call("Sudo", "sudo", set_code), ALICE, nonce=0)])
    assert not block.refused
    assert (chain.state.get(CODE), chain.runtime.code) == (code, code)
    assert len(next_block(chain).results) == 2


def test_a_refused_and_a_panicked_extrinsic_leave_nothing_behind_and_are_no_part_of_the_proof(
    chain: RuntimeChain, text: WasmRuntime
) -> None:
    plain = same(chain, text)
    with_refusals = plain.build_block({}, opaque(b"\x01" + KEY + b"v", b"\x07", b"\x05", b"\x08" + KEY))
    assert [it.result for it in with_refusals.refused] == [b"\x01\x00\x00", b""]
    assert with_refusals.refused[1].reason.endswith("the extrinsic asked for it")
    assert plain.state.get(LOST) is None
    kept = opaque(b"\x01" + KEY + b"v", b"\x08" + KEY)
    assert with_refusals.extrinsics == tuple(kept)
    block = chain.build_block({}, kept)
    assert (block.header, block.own_proof) == (with_refusals.header, with_refusals.own_proof)


def test_what_a_block_writes_into_child_tries_stands_in_its_root_and_its_proof(chain: RuntimeChain) -> None:
    info = ChildInfo.new_default(CHILD)
    block = chain.build_block({}, opaque(b"\x03" + KEY + b"w" * 50, b"\x0a" + bytes(32), b"\x02" + bytes(32)))
    assert chain.state.child(info).get(KEY) == b"w" * 50
    assert block.header.state_root == chain.state.root
    assert block.changes[info] == {KEY: b"w" * 50}


@pytest.mark.parametrize("part", ["state root", "extrinsics root", "number", "body", "parent"])
def test_a_block_that_is_not_what_it_says_is_not_imported(chain: RuntimeChain, text: WasmRuntime, part: str) -> None:
    other = same(chain, text)
    block = other.build_block({}, opaque(b"\x01" + KEY + b"v"))
    header, body = block.header, list(block.extrinsics)
    lies: dict[str, tuple[Header, list[bytes]]] = {
        "state root": (replace(header, state_root=bytes(32)), body),
        "extrinsics root": (replace(header, extrinsics_root=bytes(32)), body),
        "number": (replace(header, number=2), body),
        "body": (header, opaque(b"\x01" + OTHER + b"v")),
        "parent": (replace(header, parent_hash=bytes(32)), body),
    }
    before = chain.state.snapshot(), chain.head
    named = {"number": "block 2 does not follow on block 0", "parent": f"the parent 0x{'00' * 32}, block 0 is 0x"}
    with pytest.raises(BlockRefused, match=named.get(part)):
        chain.import_block(*lies[part])
    assert (chain.state.snapshot(), chain.head) == before
    chain.import_block(header, body)
    assert chain.state.root == other.state.root


def test_a_state_that_is_not_the_heads_starts_no_chain(text: WasmRuntime) -> None:
    with pytest.raises(ValueError, match="the head has the state root"):
        RuntimeChain(text, state_of("westend"), Header(bytes(32), 0, bytes(32)))


def test_a_block_of_inherents_alone_leaves_what_waits_for_a_later_one(chain: RuntimeChain) -> None:
    asked: list[str] = []

    def closed(method: str, data: bytes, /, *, overlay: OverlayedChanges) -> RuntimeAnswer:
        asked.append(method)
        answer = chain.call(method, data, overlay=overlay)
        return RuntimeAnswer(ONLY_INHERENTS) if method == "Core_initialize_block" else answer

    builder = BlockBuilder(closed, chain.overlay(), chain.head)
    builder.apply_waiting(opaque(b"\x01" + KEY + b"v"))
    assert asked == ["Core_initialize_block"]
    assert [(it.result, it.extrinsic) for it in builder.refused] == [
        (EXHAUSTS_RESOURCES, *opaque(b"\x01" + KEY + b"v"))
    ]
