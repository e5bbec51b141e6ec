"""The runtime in WebAssembly text does what its table says: what is tested with it rests on that."""

import pytest

from relaycast_collator.header import Header, ordered_root
from relaycast_pallets.frame.state import State
from relaycast_trie import ChildInfo
from relaycast_trie.scale import encode_bytes, encode_vec
from relaycast_wasm import CallFailed, OverlayedChanges, RuntimePanicked, StateBacking, WasmRuntime
from wasm.text_runtime import CHILD, INHERENT, LOST, PROOF_SIZE, text_runtime

KEY = b"k" * 32


@pytest.fixture(scope="module")
def runtime() -> WasmRuntime:
    return WasmRuntime.load(text_runtime())


def built(runtime: WasmRuntime, state: State, extrinsics: list[bytes]) -> tuple[Header, OverlayedChanges]:
    """Return the header of a block with these extrinsics, and what it changes; what is not valid is left out."""
    overlay = OverlayedChanges(StateBacking(state))
    header = Header(bytes(32), 1, bytes(32), bytes(32))
    runtime.call("Core_initialize_block", header.encode(), overlay)
    for extrinsic in extrinsics:
        overlay.start_transaction()
        said = runtime.call("BlockBuilder_apply_extrinsic", encode_bytes(extrinsic), overlay).output
        if said == b"\x00\x00":
            overlay.commit_transaction()
        else:
            overlay.roll_back_transaction()
    return Header.decode(runtime.call("BlockBuilder_finalize_block", b"", overlay).output), overlay


def test_it_says_who_it_is(runtime: WasmRuntime) -> None:
    assert (runtime.version.spec_name, runtime.version.spec_version, runtime.version.state_version) == (
        "text-runtime",
        7,
        1,
    )
    assert runtime.missing_imports == []
    assert runtime.metadata().startswith(b"meta\x0e")


def test_a_block_holds_what_its_extrinsics_wrote_and_the_same_runtime_executes_it(runtime: WasmRuntime) -> None:
    state = State({b"old": b"1", b"older": b"2"}, engine="plain")
    extrinsics = [b"\x01" + KEY + b"v" * 40, b"\x03" + KEY + b"w" * 50, b"\x02old", b"\x04olde", b"\x08" + KEY]
    header, overlay = built(runtime, state, extrinsics)
    changes = overlay.changes()
    assert changes[None].items() >= {KEY: b"v" * 40, b"old": None, b"older": None}.items()
    assert changes[ChildInfo.new_default(CHILD)] == {KEY: b"w" * 50}
    assert header.state_root == state.root_with(changes)
    assert header.extrinsics_root == ordered_root(extrinsics)
    body = encode_vec(map(encode_bytes, extrinsics))
    runtime.call("Core_execute_block", header.encode() + body, OverlayedChanges(StateBacking(state)))
    wrong = encode_vec(map(encode_bytes, extrinsics[1:]))
    with pytest.raises(RuntimePanicked):
        runtime.call("Core_execute_block", header.encode() + wrong, OverlayedChanges(StateBacking(state)))


def test_an_extrinsic_that_is_not_valid_leaves_nothing_behind(runtime: WasmRuntime) -> None:
    state = State(engine="plain")
    header, overlay = built(runtime, state, [b"\x07"])
    assert LOST not in overlay.changes()[None]
    assert header == built(runtime, state, [])[0]


def test_a_panic_comes_with_its_own_message(runtime: WasmRuntime) -> None:
    with pytest.raises(
        RuntimePanicked, match=r"^BlockBuilder_apply_extrinsic failed: the extrinsic asked for it$"
    ) as it:
        built(runtime, State(engine="plain"), [b"\x05"])
    assert it.value.log == ("error text: the extrinsic asked for it",)


def test_the_inherent_comes_out_of_the_inherent_data(runtime: WasmRuntime) -> None:
    overlay = OverlayedChanges(StateBacking(State(engine="plain")))
    for data in (b"short", b"d" * 70, b"long" * 5_000):
        given = encode_vec([b"timstap0" + encode_bytes(b"12345678"), b"sysi1337" + encode_bytes(data)])
        made = runtime.call("BlockBuilder_inherent_extrinsics", given, overlay).output
        assert made == encode_vec([encode_bytes(b"\x00" + data)])
        runtime.call("BlockBuilder_apply_extrinsic", made[1:], overlay)
        assert overlay.get(INHERENT) == data


def test_the_collation_info_has_messages_watermark_and_head(runtime: WasmRuntime) -> None:
    overlay = OverlayedChanges(StateBacking(State(engine="plain")))
    inherent = b"\x00" + encode_bytes(b"parent head") + (7).to_bytes(4, "little")
    for extrinsic in (inherent, b"\x09first", b"\x09" + b"second" * 20):
        runtime.call("BlockBuilder_apply_extrinsic", encode_bytes(extrinsic), overlay)
    said = runtime.call("CollectCollationInfo_collect_collation_info", b"h" * 200, overlay).output
    messages = encode_vec(map(encode_bytes, (b"first", b"second" * 20)))
    assert said == messages + bytes(2) + bytes(4) + (7).to_bytes(4, "little") + encode_bytes(b"h" * 200)


def test_without_a_recorder_the_proof_size_is_none(runtime: WasmRuntime) -> None:
    _, overlay = built(runtime, State(engine="plain"), [b"\x06"])
    assert overlay.changes()[None][PROOF_SIZE] == b"\xff" * 8


def test_an_empty_extrinsic_is_not_valid(runtime: WasmRuntime) -> None:
    overlay = OverlayedChanges(StateBacking(State(engine="plain")))
    assert runtime.call("BlockBuilder_apply_extrinsic", b"\x00", overlay).output == b"\x01\x00\x00"
    with pytest.raises(CallFailed):
        runtime.call("BlockBuilder_apply_extrinsic", encode_bytes(b"\x0b"), overlay)
