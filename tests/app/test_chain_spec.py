"""Raw chain specs: what they hold, their state root, and what is no raw chain spec."""

import gzip
import json
from typing import Any

import pytest

from command_line import Command, Refused, Written
from shared_vectors import shared

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
