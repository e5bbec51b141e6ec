"""Raw chain specs: what they hold, their state root, and what is no raw chain spec."""

import gzip
import json
from typing import Any

import pytest

import relaycast as rc
from command_line import Command, Refused, Written
from relaycast.genesis.chain_spec import read_chain_spec
from relaycast.refusal import BadInput
from relaycast_trie import StateVersion, trie_root
from relaycast_trie.scale import encode_u32
from relaycast_wasm.code_blob import MAGIC
from relaycast_wasm.engine.sections import leb128
from relaycast_wasm.runtime_version import CORE
from shared_vectors import shared
from wasm.fixed_answers import bank
from wasm.fixed_answers import version as runtime_version
from wasm.metadata.small_metadata import portable_metadata

SPEC: dict[str, Any] = {
    "name": "Little",
    "genesis": {
        "raw": {
            "top": {"0x01": "0x02", "0x3a636f6465": "0x" + "00" * 40},
            "childrenDefault": {"0x7075": {"0x01": "0x02"}, "0x7076": {}},
        }
    },
}


@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("kusama", "0xb0006203c3a6e6bd2c6a17b1d4ae8ca49a31da0f4579da950b127774b44aef6b"),
        ("westend", "0x7e92439a94f79671f9cade9dff96a094519b9001a7432244d46ab644bb6f746f"),
    ],
)
def test_a_real_genesis_has_its_real_state_root(relaycast: Command, name: str, root: str) -> None:
    summary = relaycast("import", "chain-spec", str(shared(f"data/{name}-genesis.json.gz")), "--json").json
    assert summary["state_root"] == root
    assert summary["name"].lower() == name
    assert summary["entries"] > 90
    assert summary["children"] == 0


def test_child_tries_stand_under_their_prefixed_keys(relaycast: Command, file: Written) -> None:
    summary = relaycast("import", "chain-spec", file(SPEC), "--json").json
    child = relaycast("trie", "root", "--state-version", "0", file([["0x01", "0x02"]], "child.json")).out.strip()
    prefixed = "0x" + (b":child_storage:default:".hex() + "7075")
    top = [*SPEC["genesis"]["raw"]["top"].items(), (prefixed, child)]
    root = relaycast("trie", "root", "--state-version", "0", file([list(pair) for pair in top])).out.strip()
    assert summary == {"name": "Little", "entries": 2, "children": 2, "state_root": root}


PREFIX = b":child_storage:default:"
CHILD = {b"\x01": b"\x02", b"long": bytes(40)}


def spec_with(root: bytes | None, child: dict[bytes, bytes] | None = CHILD) -> dict[str, Any]:
    """Return a spec with a child trie, and in ``top`` what it has as root of it."""
    top = {"0x01": "0x02"} | ({} if root is None else {f"0x{(PREFIX + b'pu').hex()}": f"0x{root.hex()}"})
    children = {} if child is None else {"0x7075": {f"0x{key.hex()}": f"0x{it.hex()}" for key, it in child.items()}}
    return {"name": "Forked", "genesis": {"raw": {"top": top, "childrenDefault": children}}}


@pytest.mark.parametrize("version", [0, 1])
def test_roots_of_child_tries_in_top_change_nothing_where_they_are_those_of_the_entries(
    relaycast: Command, file: Written, version: int
) -> None:
    plain, forked = (
        file(spec_with(None), "plain.json"),
        file(spec_with(trie_root(CHILD, state_version=StateVersion(version))), "forked.json"),
    )
    for verb in (("import", "chain-spec"), ("import", "state")):
        assert relaycast(*verb, forked, "--json").json == relaycast(*verb, plain, "--json").json
    runs = [
        relaycast("demo", "config-sync", "--blocks", "3", "--genesis", it, "--json").json["relaychain"]
        for it in (plain, forked)
    ]
    assert runs[0]["genesis_root"] == runs[1]["genesis_root"]
    assert rc.Network(genesis=forked).genesis_entries == rc.Network(genesis=plain).genesis_entries


def test_a_root_of_a_child_trie_that_is_another_is_refused(refused: Refused, file: Written) -> None:
    name = file(spec_with(bytes(32)), "forked.json")
    line = f"forked.json: got 0x{bytes(32).hex()} as root of child 0x7075, whose 2 entries have another root, "
    for verb in (("import", "chain-spec", name), ("import", "state", name), ("demo", "config-sync", "--genesis", name)):
        assert refused(*verb).startswith(line)


def test_a_chain_does_not_start_from_a_root_without_its_entries(
    refused: Refused, relaycast: Command, file: Written
) -> None:
    name = file(spec_with(bytes(32), None), "forked.json")
    assert relaycast("import", "chain-spec", name, "--json").json["missing_children"] == ["0x7075"]
    line = "forked.json: got the root of child 0x7075 without its entries, expected all entries of a child trie"
    scenario = file('extends = "config-sync"\n[relaychain]\ngenesis = "forked.json"\n', "scenario.toml")
    code = file(bank(portable_metadata(14)), "bank.wasm")
    for verb in (
        ("demo", "config-sync", "--genesis", name),
        ("run", scenario),
        ("serve", scenario, "--port", "0"),
        ("runtime", "call", code, "greeting", "0x", "--state", name),
    ):
        assert refused(*verb) == line
    for start in (name, read_chain_spec(name)):
        with pytest.raises(BadInput, match="the root of child 0x7075 without its entries"):
            rc.Network(genesis=start)
        with pytest.raises(BadInput, match="the root of child 0x7075 without its entries"):
            rc.Network().parachain(3000, genesis=start, wasm=code)


@pytest.mark.parametrize("version", [0, 1])
def test_a_state_root_is_that_of_the_version_that_the_runtime_in_the_spec_names(
    relaycast: Command, file: Written, version: int
) -> None:
    sections = {b"runtime_version": runtime_version(state_version=version), b"runtime_apis": CORE + encode_u32(4)}
    parts = (bytes([len(name)]) + name + content for name, content in sections.items())
    code = MAGIC + b"".join(b"\x00" + leb128(len(part)) + part for part in parts)
    top = {b":code": code, b"long": bytes(40)}
    raw = {"top": {f"0x{key.hex()}": f"0x{it.hex()}" for key, it in top.items()}, "childrenDefault": {}}
    name = file({"name": "Named", "genesis": {"raw": raw}})
    root = trie_root(top, state_version=StateVersion(version))
    for verb in ("chain-spec", "state"):
        assert relaycast("import", verb, name, "--json").json["state_root"] == f"0x{root.hex()}"


def test_gzip_and_state_version_1_are_understood(relaycast: Command, file: Written) -> None:
    plain = relaycast("import", "chain-spec", file(SPEC), "--json").json
    packed = file(gzip.compress(json.dumps(SPEC).encode()), "spec.json.gz")
    assert relaycast("import", "chain-spec", packed, "--json").json == plain
    newer = relaycast("import", "chain-spec", "--state-version", "1", packed, "--json").json
    assert newer["state_root"] != plain["state_root"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"genesis": {"runtimeGenesis": {}}}, "spec.json at genesis.raw: got a spec whose genesis holds 'runtime"),
        ({"name": "x"}, "spec.json at genesis.raw: got a spec whose top level holds 'name', expected a raw chain spec"),
        ([], "spec.json: got a list of 0 items, expected a raw chain spec"),
        ({"genesis": {"raw": {}}}, "spec.json at genesis.raw.top: got null, expected an object"),
        ({"genesis": {"raw": {"top": {"0x1": "0x"}}}}, "spec.json at genesis.raw.top (key): got '0x1' with an odd"),
        ({"genesis": {"raw": {"top": {"0x01": "zz"}}}}, "spec.json at genesis.raw.top['0x01']: got 'zz', expected 0x"),
        (
            {"genesis": {"raw": {"top": {"0xab": "0x", "0xAB": "0x"}}}},
            "spec.json at genesis.raw.top: got the key '0xAB' again in other letters",
        ),
        (gzip.compress(json.dumps(SPEC).encode())[:-20], "spec.json: got gzip data that does not unpack"),
    ],
)  # fmt: skip
def test_what_is_no_raw_chain_spec_is_refused(refused: Refused, file: Written, content: Any, told: str) -> None:
    assert refused("import", "chain-spec", file(content, "spec.json")).startswith(told)
