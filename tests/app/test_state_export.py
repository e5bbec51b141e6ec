"""States from chain specs and exports: every form gives the same state, and what is none is refused by its place."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import relaycast as rc
from command_line import Command, Refused, Written
from relaycast.genesis.chain_spec import missing_children, read_chain_spec
from relaycast.genesis.state_export import read_state
from relaycast_trie import CHILD_STORAGE_PREFIX, StateVersion, trie_root
from shared_vectors import shared

TOP = {b"a": b"one", b"ab": b"two" * 20, b"b": bytes(100)}
CHILD = {b"inner": b"value", b"other": bytes(40)}
NAME = b"pubsub\xd0\x07\x00\x00"


def hexed(pairs: dict[bytes, bytes]) -> dict[str, str]:
    return {f"0x{key.hex()}": f"0x{value.hex()}" for key, value in pairs.items()}


def listed(pairs: dict[bytes, bytes]) -> list[list[str]]:
    return [list(pair) for pair in hexed(pairs).items()]


def parquet(rows: list[tuple[Any, Any, Any]], file: Path) -> str:
    children, keys, values = zip(*rows, strict=True)
    pq.write_table(pa.table({"child": list(children), "key": list(keys), "value": list(values)}), file)
    return file.name


FORMS: dict[str, Any] = {
    "list": listed(TOP),
    "object": hexed(TOP),
    "answer": {"jsonrpc": "2.0", "id": 1, "result": listed(TOP)},
    "parts": {"top": listed(TOP)},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_json_form_gives_the_same_state(form: str, file: Written, relaycast: Command) -> None:
    state = read_state(file(FORMS[form], "state.json"))
    assert (state.name, state.top, state.children) == ("state", TOP, {})
    shown = relaycast("import", "state", "state.json", "--json").json
    root = f"0x{trie_root(TOP, state_version=StateVersion.V1).hex()}"
    assert shown == {"name": "state", "entries": 3, "children": 0, "state_root": root}


@pytest.mark.parametrize("kind", ["json", "bytes", "text", "gzip", "with its root"])
def test_children_come_with_their_entries(kind: str, file: Written, tmp_path: Path, relaycast: Command) -> None:
    prefixed = f"0x{(CHILD_STORAGE_PREFIX + NAME).hex()}"
    rows = [*((None, *pair) for pair in TOP.items()), *((NAME, *pair) for pair in CHILD.items())]
    parts = {"top": hexed(TOP), "childrenDefault": {f"0x{NAME.hex()}": listed(CHILD)}}
    if kind == "json":
        name = file(parts, "state.json")
    elif kind == "gzip":
        name = file(gzip.compress(json.dumps(parts).encode()), "state.json.gz")
    elif kind == "bytes":
        name = parquet(rows, tmp_path / "state.parquet")
    elif kind == "text":
        texts = [tuple(part if part is None else f"0x{part.hex()}" for part in row) for row in rows]
        name = parquet([(child and prefixed, key, value) for child, key, value in texts], tmp_path / "state.parquet")
    else:
        root = trie_root(CHILD, state_version=StateVersion.V1)
        name = file({**parts, "top": hexed({**TOP, CHILD_STORAGE_PREFIX + NAME: root})}, "state.json")
    state = read_state(name)
    assert (state.top, state.children) == (TOP, {NAME: CHILD})
    whole = {**TOP, CHILD_STORAGE_PREFIX + NAME: trie_root(CHILD, state_version=StateVersion.V1)}
    root = trie_root(whole, state_version=StateVersion.V1)
    assert relaycast("import", "state", name, "--json").json["state_root"] == f"0x{root.hex()}"


def test_a_child_whose_entries_are_missing_is_named(file: Written, relaycast: Command) -> None:
    name = file(hexed({**TOP, CHILD_STORAGE_PREFIX + NAME: bytes(32)}), "state.json")
    assert missing_children(read_state(name)) == [NAME]
    assert relaycast("import", "state", name, "--json").json["missing_children"] == [f"0x{NAME.hex()}"]
    assert "1 in the top trie of which no entry is here" in relaycast("import", "state", name).out


def test_a_root_that_does_not_match_makes_the_exit_code_one(file: Written, relaycast: Command) -> None:
    name, root = file(listed(TOP)), trie_root(TOP, state_version=StateVersion.V1).hex()
    fine, other = (relaycast("import", "state", name, "--root", f"0x{it}") for it in (root, "00" * 32))
    assert (fine.code, other.code) == (0, 1)
    assert "matches     yes" in fine.out
    assert f"matches     no, expected 0x{'00' * 32}" in other.out


def test_the_relay_chain_starts_from_an_export(file: Written, relaycast: Command) -> None:
    name = file(listed(TOP), "state.json")
    shown = relaycast("demo", "config-sync", "--blocks", "4", "--genesis", name, "--json")
    assert shown.code == 0
    assert shown.json["relaychain"]["genesis"] == "state"
    assert shown.json["relaychain"]["genesis_entries"] == 3
    assert shown.json["relaychain"]["genesis_root"] == f"0x{trie_root(TOP, state_version=StateVersion.V1).hex()}"
    assert rc.Network(genesis=name).genesis_entries == 3


def test_a_chain_spec_is_a_state_too(relaycast: Command, tmp_path: Path) -> None:
    spec = str(shared("data/westend-genesis.json.gz"))
    state = read_state(spec)
    assert state == read_chain_spec(spec)
    assert state.state_version is StateVersion.V0
    shown = [relaycast("import", verb, spec, "--json").json for verb in ("state", "chain-spec")]
    assert shown[0] == shown[1]
    pairs = listed(state.top_with_child_roots())
    (tmp_path / "westend.json").write_text(json.dumps(pairs))
    exported = relaycast("import", "state", "westend.json", "--state-version", "0", "--json").json
    assert exported["state_root"] == relaycast("import", "chain-spec", spec, "--json").json["state_root"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (5, "state.json: got 5, expected pairs"),
        ([], "state.json: got a state without a key in its top trie, expected pairs"),
        ([["0x01"]], "state.json at [0]: got a list of 1 item, expected a"),
        ([["0x01", None]], "state.json at [0] (value): got null, expected 0x and an even number of hex digits"),
        ([["0x01", "0x2"]], "state.json at [0] (value): got '0x2' with an odd number of digits"),
        ([["0x01", "0x"], ["0x01", "0x02"]], "state.json at [1]: got the key '0x01' again, expected every key once"),
        ({"0xa1": "0x", "0xA1": "0x"}, "state.json['0xA1']: got the key '0xa1' again, expected every key once"),
        ({"top": {"0x01": "0x"}, "children": {}}, "state.json: got the member 'children', expected top, and childrenD"),
        ({"top": {"0x01": "0x"}, "childrenDefault": []}, "state.json at .childrenDefault: got a list of 0 items"),
        ({"error": {"message": "no such block"}}, "state.json at .error: got 'no such block', expected an answer with"),
        ({"result": 3}, "state.json at .result: got 3, expected pairs"),
        ({"genesis": {"runtimeGenesis": {}}}, "state.json at genesis.raw: got a spec whose genesis holds 'runtimeG"),
    ],
)
def test_what_is_no_state_is_refused_by_its_place(refused: Refused, file: Written, content: Any, line: str) -> None:
    name = "state.json"
    (Path(name)).write_text(json.dumps(content))
    assert refused("import", "state", name).startswith(line)


def test_a_child_with_entries_that_do_not_make_its_root_is_refused(refused: Refused, file: Written) -> None:
    parts = {
        "top": hexed({**TOP, CHILD_STORAGE_PREFIX + NAME: bytes(32)}),
        "childrenDefault": {f"0x{NAME.hex()}": hexed(CHILD)},
    }
    line = refused("import", "state", file(parts, "state.json"))
    assert line.startswith(
        f"state.json: got 0x{'00' * 32} as root of child 0x{NAME.hex()}, whose 2 entries have another root"
    )


def test_parquet_that_is_no_state_is_refused(refused: Refused, file: Written, tmp_path: Path) -> None:
    assert refused("import", "state", file(b"PAR1nothing", "a.parquet")).startswith(
        "a.parquet: got 11 bytes without a footer"
    )
    pq.write_table(pa.table({"k": [b"a"]}), tmp_path / "b.parquet")
    assert refused("import", "state", "b.parquet") == (
        "b.parquet: got the columns k, expected key and value, and child where there are children"
    )
    pq.write_table(pa.table({"key": ["0x01", "02"], "value": ["0x", "0x"]}), tmp_path / "c.parquet")
    assert refused("import", "state", "c.parquet").startswith("c.parquet row 2 (key): got '02', expected 0x and an")
