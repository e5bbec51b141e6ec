"""A small runtime as a parachain: it is asked what it wants proven, and its messages reach the relay chain."""

import pytest

from relaycast_collator.relay_chain import RelayChain
from relaycast_collator.wasm_parachain import BlockNotBuilt
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.well_known_keys import CURRENT_SLOT, Child, RelayProofRequest, Top, static_relay_keys
from relaycast_trie import ChildInfo
from relaycast_trie.scale import encode_bytes
from relaycast_wasm.parachain import PARACHAIN_ID, RuntimeParachain
from relaycast_wasm.runtime import WasmRuntime
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import CheckpointRefused
from wasm.text_runtime import CHILD, INHERENT, REQUEST, item, text_runtime

PUBLISHER, READER = ParaId(1_000), ParaId(2_000)
KEY, ABSENT, TOP = b"p" * 32, b"q" * 32, b"wanted of the top trie"
WANTED = (Top(TOP), Child(derive_child_info(PUBLISHER).storage_key, KEY), Child(b"pubsub-none", ABSENT))


@pytest.fixture(scope="module")
def text() -> WasmRuntime:
    return WasmRuntime.load(text_runtime())


@pytest.fixture
def relay() -> RelayChain:
    """Return a relay chain with a value at the wanted keys."""
    chain = RelayChain(window=8, trie_engine="plain")
    chain.state.put(TOP, b"value")
    chain.state.child(derive_child_info(PUBLISHER)).put(KEY, b"published" * 8)
    chain.seal_genesis()
    return chain


def para_of(text: WasmRuntime, genesis: dict[bytes, bytes] | None = None) -> RuntimeParachain:
    """Return a parachain that asks for what is ``WANTED``, unless its genesis is another."""
    top = {REQUEST: RelayProofRequest(WANTED).encode()} if genesis is None else genesis
    return RuntimeParachain(READER, text, State(top, engine="plain", window=4))


def test_what_the_runtime_asks_for_is_proven_and_handed_in(text: WasmRuntime, relay: RelayChain) -> None:
    para = para_of(text)
    parent = relay.build_block()
    block = para.build_block(parent, relay)
    proof, root = block.relay_proof, parent.state_root
    assert proof.verify(root, [TOP, CURRENT_SLOT])[TOP] == b"value"
    info = derive_child_info(PUBLISHER)
    assert proof.verify_child(root, info, [KEY])[KEY] == b"published" * 8
    given = para.state.get(INHERENT)
    assert given is not None
    assert proof.encode() in given
    without = para_of(text, {}).build_block(parent, relay)
    static = relay.prove_read(parent, list(static_relay_keys(READER)))
    assert without.relay_proof == static
    assert len(proof) > len(static)


def test_messages_to_the_relay_chain_leave_with_the_block(text: WasmRuntime, relay: RelayChain) -> None:
    para = para_of(text)
    para.submit(encode_bytes(b"\x09first"))
    para.submit(encode_bytes(b"\x09second"))
    parent = relay.build_block()
    block = para.build_block(parent, relay)
    assert block.upward_messages == (b"first", b"second")
    assert block.taken.hrmp_watermark == parent.number
    assert para.waiting == []


def test_the_shares_of_a_block_are_all_of_its_proof_child_tries_too(text: WasmRuntime, relay: RelayChain) -> None:
    many = {bytes([number]) * 32: bytes(40) for number in range(30)}
    state = State(many, {ChildInfo.new_default(CHILD): many}, engine="plain", window=4)
    para = RuntimeParachain(READER, text, state)
    for extrinsic in (
        b"\x08" + bytes(32),
        b"\x02" + b"\x05" * 32,
        b"\x0a" + b"\x07" * 32,
        b"\x03" + b"\x08" * 32 + b"v",
    ):
        para.submit(encode_bytes(extrinsic))
    block = para.build_block(relay.build_block(), relay)
    shares = {(share.pallet, share.item): share for share in block.shares}
    assert sum(share.proof_bytes for share in block.shares) == block.own_proof.proof_bytes
    assert shares["(child tries)", f"0x{CHILD.hex()}"].proof_bytes > 0
    assert shares["System", "Header"].writes == 1
    assert sum(share.reads for share in block.shares) > 0


def test_a_parachain_goes_on_from_where_another_was_put_away(text: WasmRuntime, relay: RelayChain) -> None:
    first, second, third = para_of(text), para_of(text, {}), RuntimeParachain(PUBLISHER, text, State(engine="plain"))
    first.build_block(relay.build_block(), relay)
    first.submit(encode_bytes(b"\x01" + KEY + b"v"))
    dump = first.dump()
    second.load(dump)
    assert (second.head, second.waiting) == (first.head, first.waiting)
    parent = relay.build_block()
    assert second.build_block(parent, relay).header == first.build_block(parent, relay).header
    with pytest.raises(CheckpointRefused, match="got parachain 2000"):
        third.load(dump)


def test_a_relay_chain_without_what_the_runtime_needs_leaves_it_as_it_was(text: WasmRuntime, relay: RelayChain) -> None:
    para = para_of(text, {REQUEST: b"\x04\x09\x00"})
    para.submit(encode_bytes(b"\x01" + KEY + b"v"))
    before = para.state.snapshot(), para.head
    with pytest.raises(BlockNotBuilt, match="keys_to_prove answers is no RelayProofRequest: RelayStorageKey is Top"):
        para.build_block(relay.build_block(), relay)
    assert (para.state.snapshot(), para.head, len(para.waiting)) == (*before, 1)


@pytest.mark.parametrize(
    ("known", "other"),
    [(b"meta\x0e", b"meta\x63"), (b"Metadata_metadata", b"Metadata_mxtadata")],  # of no known version; none at all
)
def test_a_runtime_without_readable_metadata_builds_blocks_whose_items_have_no_names(
    text: WasmRuntime, relay: RelayChain, known: bytes, other: bytes
) -> None:
    parent = relay.build_block()
    named = para_of(text).build_block(parent, relay)
    block = para_of(WasmRuntime.load(text.code.replace(known, other), kept=None)).build_block(parent, relay)
    assert (block.header, block.own_proof) == (named.header, named.own_proof)
    assert sum(share.proof_bytes for share in block.shares) == block.own_proof.proof_bytes
    assert {share.pallet for share in block.shares} <= {"(unknown)", "(host)", "(child tries)", "trie"}
    assert block.log[-1].startswith("its storage items have no names: ")


PROCESSED, WATERMARK = (
    item(b"ParachainSystem", b"ProcessedDownwardMessages"),
    item(b"ParachainSystem", b"HrmpWatermark"),
)


@pytest.mark.parametrize(
    ("key", "value", "refusal"),
    [
        (PROCESSED, b"\xff" * 4, "it processed 4,294,967,295 downward messages, 0 wait for it"),
        (WATERMARK, b"\xff" * 4, "its watermark is relay block 4,294,967,295, its relay parent is 1"),
        (WATERMARK, b"\x01", "what it tells the relay chain cannot be read: 4 bytes expected"),
    ],
)
def test_a_block_that_tells_what_cannot_be_is_not_kept(
    relay: RelayChain, key: bytes, value: bytes, refusal: str
) -> None:
    para = para_of(old_text(), {key: value})
    before = para.state.snapshot(), para.head
    with pytest.raises(BlockNotBuilt, match=refusal):
        para.build_block(relay.build_block(), relay)
    assert (para.state.snapshot(), para.head) == before


def old_text() -> WasmRuntime:
    """Return the runtime as one that leaves in storage what others answer to ``CollectCollationInfo``."""
    name = b"CollectCollationInfo_collect_collation_info"
    return WasmRuntime.load(text_runtime().replace(name, name[:-1] + b"x"), kept=None)


def test_a_genesis_of_another_parachain_is_refused(text: WasmRuntime) -> None:
    with pytest.raises(ValueError, match="its genesis is that of parachain 1000, expected 2000"):
        para_of(text, {PARACHAIN_ID: PUBLISHER.encode()})
