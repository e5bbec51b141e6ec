"""``relaycast runtime``: what a runtime is, what it answers, and what an upgrade changes."""

import gzip
import json

import pyarrow as pa
import pytest

from command_line import Command, Refused, Written
from relaycast_pallets.frame.state import State
from relaycast_trie import StateVersion
from relaycast_trie.scale import encode_bytes
from shared_vectors import shared
from wasm.fixed_answers import KEY, WRITTEN, bank, runtime_code, version
from wasm.metadata.small_metadata import named_metadata, portable_metadata

COMPRESSED = bytes.fromhex("52bc537646db8e05")
OLD, NEW = bank(portable_metadata(14)), bank(portable_metadata(16), spec=2, transaction=2)


def test_show_prints_what_a_runtime_is(relaycast: Command, file: Written) -> None:
    shown = relaycast("runtime", "show", file(OLD, "bank.wasm"))
    assert shown.code == 0
    lines = {line[:20].strip(): line[20:].strip() for line in shown.out.splitlines() if len(line) > 20}
    assert lines["spec"] == "bank 1"
    assert lines["state version"] == "1"
    assert lines["metadata"] == "V14, 1 pallet"
    assert lines["missing imports"] == "ext_from_another_planet_version_1"
    assert lines["runtime APIs"] == "Core 4, Metadata 4"
    assert lines["code"].startswith(f"{len(OLD):,} bytes, 0x")
    assert shown.out.splitlines()[-1].split() == ["42", "Bank", "3", "1", "1", "1", "1"]


def test_show_prints_json_with_every_item(relaycast: Command, file: Written) -> None:
    shown = relaycast("runtime", "show", file(NEW, "bank.wasm"), "--json").json
    assert (shown["spec_name"], shown["spec_version"], shown["wasm_bytes"]) == ("bank", 2, len(NEW))
    assert shown["apis"][0] == {"name": "Core", "id": "0xdf6acb689907609b", "version": 4}
    (pallet,) = shown["metadata"]["pallets"]
    assert pallet["calls"][0]["fields"][1] == {"name": "sum", "type": "Compact<u32>"}


def test_show_prints_all_of_one_pallet(relaycast: Command, file: Written, refused: Refused) -> None:
    name = file(OLD, "bank.wasm")
    shown = relaycast("runtime", "show", name, "--pallet", "Bank").out
    assert shown.startswith("Bank, index 42, storage prefix BankPrefix\n")
    assert "Twox64Concat(u32), Blake2_128Concat(Vec<u8>) => Batch<RuntimeCall>" in shown
    assert "to: AccountId32, sum: Compact<u32>" in shown
    assert relaycast("runtime", "show", name, "--pallet", "Bank", "--json").json["index"] == 42
    line = refused("runtime", "show", name, "--pallet", "Bnak")
    assert line == "--pallet: got 'Bnak', expected a pallet of bank.wasm (did you mean Bank?)"


def test_a_runtime_comes_in_many_shapes(relaycast: Command, file: Written) -> None:
    packed = COMPRESSED + pa.compress(OLD, codec="zstd", asbytes=True)
    code = f"0x{OLD.hex()}"
    spec = json.dumps({"name": "Bank", "genesis": {"raw": {"top": {"0x3a636f6465": code}, "childrenDefault": {}}}})
    shapes: list[str | bytes] = [packed, code, f'"{code}"\n', spec, gzip.compress(spec.encode())]
    shapes.append(json.dumps([["0x3a636f6465", f"0x{packed.hex()}"]]))
    for shape in shapes:
        shown = relaycast("runtime", "show", file(shape, "shape"), "--json")
        assert shown.code == 0, shown.err
        assert shown.json["wasm_bytes"] == len(OLD)
    assert shown.json["code_bytes"] == len(packed)


def test_a_runtime_of_metadata_by_version_gives_the_newest(relaycast: Command, file: Written) -> None:
    listing = bytes.fromhex("0c0e000000100000000000ff7f")
    methods = {
        "Metadata_metadata_versions": listing,
        "Metadata_metadata_at_version": b"\x01" + encode_bytes(portable_metadata(16)),
    }
    code = bank(portable_metadata(14), answers=methods)
    assert relaycast("runtime", "show", file(code, "bank.wasm"), "--json").json["metadata_version"] == 16


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "input: got nothing, expected a runtime: Wasm, compressed or not, its 0x hex, or a raw chain spec or"),
        (b"hello", "input: got 'hello', expected a runtime"),
        (b"\xff\xfe", "input: got 0xfffe at its start, expected a runtime"),
        (b"0xabc", "input: got '0xabc' with an odd number of digits, expected 0x and"),
        (b"0xabcd", "input: got 0xabcd at its start, expected a runtime"),
        (OLD[:-20], "input: got "),
        (COMPRESSED + b"no zstd", "input: got no runtime: its compressed part is damaged"),
        (b'{"0x01": "0x02"}', "input: got a state without :code, expected a runtime"),
        (b'{"0x3a636f6465": "0x02"}', "input at :code: got 0x02 at its start, expected a runtime"),
        (bank(b"meta\x07"), "input, its metadata: got metadata of version 9 to 16 expected, got 7 at byte 4"),
        (bank(portable_metadata(14)[:-1]), "input, its metadata: got "),
        (runtime_code({"Core_version": b"\x01"}), "input: got no runtime: what Core_version answers"),
        (runtime_code({"Core_version": version()}), "input: got no export Metadata_metadata, expected a runtime"),
        (runtime_code({}), "input: got the runtime exports no Core_version, expected a runtime"),
    ],
)  # fmt: skip
def test_what_is_no_runtime_is_refused(refused: Refused, file: Written, content: bytes, line: str) -> None:
    name = file(content, "input")
    assert refused("runtime", "show", name).startswith(line)
    assert refused("runtime", "diff", name, file(OLD, "bank.wasm")).startswith(line)


def test_call_prints_what_a_method_answers(relaycast: Command, file: Written) -> None:
    name = file(OLD, "bank.wasm")
    called = relaycast("runtime", "call", name, "Core_version")
    assert (called.code, called.out) == (0, f"0x{version().hex()}\n")
    assert relaycast("runtime", "call", name, "Core_version", "--json").json == {
        "output": f"0x{version().hex()}",
        "log": [],
    }


def test_call_reads_a_state(relaycast: Command, file: Written) -> None:
    name = file(OLD, "bank.wasm")
    state = file([[f"0x{KEY.hex()}", "0x6869"]], "state.json")
    assert relaycast("runtime", "call", name, "greeting").out == "0x00\n"
    assert relaycast("runtime", "call", name, "greeting", "0x", "--state", state).out == "0x01086869\n"


LONG = bytes(40)
"""A value that a state of version 1 stores outside of its trie node."""


def changed_root(before: int, after: int) -> bytes:
    """The root after the value under ``KEY`` was written in another state version."""
    state = State({KEY: LONG, b"other": LONG}, state_version=StateVersion(before), window=1)
    state.migrate(StateVersion(after))
    state.put(KEY, WRITTEN)
    return state.commit()


@pytest.mark.parametrize("state_version", [0, 1])
def test_a_call_reads_a_state_that_is_written_as_its_runtime_writes(
    relaycast: Command, file: Written, state_version: int
) -> None:
    name = file(bank(portable_metadata(14), state_version=state_version), "bank.wasm")
    pairs = {f"0x{key.hex()}": f"0x{LONG.hex()}" for key in (KEY, b"other")}
    for state in (pairs, {"name": "Bank", "genesis": {"raw": {"top": pairs, "childrenDefault": {}}}}):
        called = relaycast("runtime", "call", name, "root", "0x", "--state", file(json.dumps(state), "state.json"))
        assert called.out == f"0x{changed_root(state_version, state_version).hex()}\n"


def test_a_call_takes_another_state_version_by_its_option(relaycast: Command, file: Written) -> None:
    state = file({f"0x{key.hex()}": f"0x{LONG.hex()}" for key in (KEY, b"other")}, "state.json")
    name = file(OLD, "bank.wasm")
    for before in (0, 1):
        called = relaycast("runtime", "call", name, "root", "0x", "--state", state, "--state-version", str(before))
        assert called.out == f"0x{changed_root(before, 1).hex()}\n"


def test_a_state_stays_as_its_own_runtime_wrote_it(relaycast: Command, file: Written) -> None:
    old = bank(portable_metadata(14), state_version=0)
    top = {KEY: LONG, b"other": LONG, b":code": old}
    pairs = {f"0x{key.hex()}": f"0x{value.hex()}" for key, value in top.items()}
    state = State(top, state_version=StateVersion.V0, window=1)
    state.migrate(StateVersion.V1)
    state.put(KEY, WRITTEN)
    called = relaycast("runtime", "call", file(NEW, "new.wasm"), "root", "0x", "--state", file(pairs, "state.json"))
    assert called.out == f"0x{state.commit().hex()}\n"


@pytest.mark.parametrize(
    ("method", "kind", "reason"),
    [
        ("panic", "RuntimePanicked", "no money"),
        ("absent", "MissingHostFunction", "there is no host function ext_from_another_planet_version_1"),
    ],
)
def test_a_call_that_gives_no_answer_ends_with_one(
    relaycast: Command, file: Written, method: str, kind: str, reason: str
) -> None:
    name = file(OLD, "bank.wasm")
    ended = relaycast("runtime", "call", name, method)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines()[-1].startswith(f"relaycast: {kind}: ")
    assert ended.err.endswith(f" failed: {reason}\n")
    told = relaycast("runtime", "call", name, method, "--json")
    assert (told.code, told.json["error"]) == (1, {"kind": kind, "message": reason})
    if method == "panic":
        assert told.json["log"] == ended.err.splitlines()[:-1] == ["error runtime: no money"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("Core_versin",), "METHOD: got 'Core_versin', expected a method that the runtime exports (did you mean"),
        (("Core_version", "0x0"), "ARGUMENTS: got '0x0' with an odd number of digits, expected 0x and an even number"),
        (("Core_version", "none"), "none: got no such file or directory, expected a file that can be read"),
        (("greeting", "0x", "--state", "none"), "none: got no such file or directory, expected a file"),
    ],
)  # fmt: skip
def test_calls_that_cannot_be_meant_are_refused(
    refused: Refused, file: Written, arguments: tuple[str, ...], line: str
) -> None:
    assert refused("runtime", "call", file(OLD, "bank.wasm"), *arguments).startswith(line)


def test_diff_of_a_runtime_with_itself_is_nothing(relaycast: Command, file: Written) -> None:
    name = file(OLD, "bank.wasm")
    ended = relaycast("runtime", "diff", name, name)
    assert (ended.code, ended.out) == (0, "bank 1 -> bank 1: 0 changes\n")


def test_diff_names_what_breaks_clients(relaycast: Command, file: Written) -> None:
    old, new = file(OLD, "old.wasm"), file(NEW, "new.wasm")
    ended = relaycast("runtime", "diff", old, new)
    assert ended.code == 1
    lines = ended.out.splitlines()
    breaking = (
        "breaks version transaction_version changed: 1 -> 2 (transactions signed for the old version are refused)"
    )
    assert breaking in lines
    assert "       call Bank.pay deprecated" in lines
    assert lines[-1] == "bank 1 -> bank 2: 7 changes, 1 of them breaks clients"
    told = relaycast("runtime", "diff", old, new, "--json")
    assert (told.code, told.json["breaking"], len(told.json["changes"])) == (1, 1, 7)
    assert told.json["after"] == {"spec_name": "bank", "spec_version": 2}
    assert {it["name"] for it in told.json["changes"] if it["breaks"]} == {"transaction_version"}


def test_diff_says_when_types_cannot_be_compared(relaycast: Command, file: Written) -> None:
    old, new = file(bank(named_metadata(13)), "old.wasm"), file(OLD, "new.wasm")
    out = relaycast("runtime", "diff", old, new).out
    assert "metadata types changed: V13, which names its types -> V14, which describes its types" in out
    assert "note   transaction_version stays 1, although " in out
    assert "note   spec_version stays 1: clients keep the metadata that they know" in out


def test_names_cannot_give_orders_to_the_terminal(relaycast: Command, file: Written) -> None:
    wild = named_metadata(12).replace(b"Empty", b"\x1b[2Jx")
    shown = relaycast("runtime", "show", file(bank(wild), "bank.wasm")).out
    assert "\x1b" not in shown
    assert "\\x1b[2Jx" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chain", "spec", "metadata"), [("westend", "westend 1", "V11"), ("kusama", "kusama 1020", "V9")]
)
def test_the_first_runtimes_of_real_chains_are_shown_and_called(
    relaycast: Command, chain: str, spec: str, metadata: str
) -> None:
    genesis = str(shared(f"data/{chain}-genesis.json.gz"))
    shown = relaycast("runtime", "show", genesis).out
    assert f"spec                 {spec}\n" in shown
    assert f"metadata             {metadata}, " in shown
    assert "missing imports      none" in shown
    called = relaycast("runtime", "call", genesis, "GrandpaApi_grandpa_authorities", "0x", "--state", genesis)
    assert (called.code, len(called.out) > 200) == (0, True)
    ended = relaycast("runtime", "call", genesis, "AccountNonceApi_account_nonce", "0x01")
    assert ended.code == 1
    assert "Bad input data provided to account_nonce" in ended.err.splitlines()[-1]
