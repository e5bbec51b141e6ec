"""``trie`` and ``proof`` on the command line: what they print, and what they refuse."""

import io
import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import Command, Refused, Written
from relaycast.genesis import state_export
from relaycast_trie import ChildInfo, StateVersion, StorageProof, blake2_256, build_database
from relaycast_trie.node_codec import encode_branch, encode_leaf

PAIRS: list[list[str]] = [["0x01", "0x02"], ["0x11", "0x03"], ["0x1234", "0x" + "09" * 38]]
ROOT = "0xc8c32b5e7ff9dc95dd475b60e79ebe1506568e0f005f1214484336717830e9f8"
EMPTY_ROOT = "0x03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314"

Proof = dict[str, Any]


def hashed(node: str) -> str:
    return f"0x{blake2b(bytes.fromhex(node[2:]), digest_size=32).hexdigest()}"


@pytest.fixture
def proof(relaycast: Command, file: Written) -> Proof:
    ended = relaycast("proof", "make", "--state-version", "1", "--key", "0x1234", "--key", "0x99", file(PAIRS))
    made: Proof = ended.json
    return made


@pytest.mark.parametrize("engine", ["auto", "plain"])
def test_a_root_is_printed_alone(relaycast: Command, file: Written, engine: str) -> None:
    ended = relaycast("trie", "root", "--state-version", "1", "--engine", engine, file(PAIRS))
    assert (ended.code, ended.out, ended.err) == (0, f"{ROOT}\n", "")


def test_the_state_version_matters_where_values_are_long(relaycast: Command, file: Written) -> None:
    assert relaycast("trie", "root", "--state-version", "0", file(PAIRS)).out != f"{ROOT}\n"


def test_no_pairs_have_the_empty_root(relaycast: Command, file: Written) -> None:
    assert relaycast("trie", "root", file([])).out == f"{EMPTY_ROOT}\n"


def test_a_dash_is_standard_input(relaycast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(PAIRS).encode())))
    assert relaycast("trie", "root", "-").out == f"{ROOT}\n"


def test_a_proof_has_its_root_and_its_nodes_in_order(proof: Proof) -> None:
    assert proof["root"] == ROOT
    assert proof["nodes"] == sorted(proof["nodes"])
    assert ROOT in map(hashed, proof["nodes"])


@pytest.mark.parametrize(
    "shape",
    [
        lambda nodes: {"nodes": nodes},
        lambda nodes: nodes,
        lambda nodes: {"at": "0x00", "proof": nodes},
        lambda nodes: {"jsonrpc": "2.0", "id": 1, "result": {"at": "0x00", "proof": nodes}},
    ],
    ids=["ours", "a bare list", "state_getReadProof", "its whole answer"],
)
def test_a_proof_proves_a_value_and_an_absence(
    relaycast: Command, file: Written, proof: Proof, shape: Callable[[list[str]], Any]
) -> None:
    ended = relaycast(
        "proof", "verify", "--root", ROOT, "--key", "0x1234", "--key", "0x99", file(shape(proof["nodes"]))
    )
    assert ended.code == 0
    assert ended.json == {"values": {"0x1234": PAIRS[2][1], "0x99": None}}


@pytest.mark.parametrize("quote", ["", '"'], ids=["bare", "quoted"])
def test_a_proof_may_be_one_scale_string(relaycast: Command, file: Written, proof: Proof, quote: str) -> None:
    encoded = StorageProof(bytes.fromhex(node[2:]) for node in proof["nodes"]).encode()
    name = file(f"{quote}0x{encoded.hex()}{quote}\n", "proof.hex")
    assert relaycast("proof", "verify", "--root", ROOT, "--key", "0x99", name).json == {"values": {"0x99": None}}


@pytest.mark.parametrize(
    ("spoil", "options", "kind"),
    [
        (lambda nodes: nodes[1:], [], "MissingNode"),  # the value is gone
        (lambda nodes: [node[:-2] for node in nodes], [], "RootMismatch"),  # every node is cut by a byte
        (lambda nodes: [], [], "RootMismatch"),
        (lambda nodes: [*nodes, "0x1234"], ["--strict"], "UnusedNodes"),
        (lambda nodes: [*nodes, nodes[0]], ["--strict"], "DuplicateNode"),
    ],
    ids=["dropped", "truncated", "empty", "one more", "one twice"],
)
def test_a_proof_that_does_not_hold_says_why(
    relaycast: Command,
    file: Written,
    proof: Proof,
    spoil: Callable[[list[str]], list[str]],
    options: list[str],
    kind: str,
) -> None:
    name = file({"nodes": spoil(proof["nodes"])})
    ended = relaycast("proof", "verify", "--root", ROOT, "--key", "0x1234", *options, name)
    assert ended.code == 1
    assert ended.json["error"]["kind"] == kind
    assert ended.json["error"]["message"]
    assert ended.err == ""


@pytest.mark.parametrize("extra", ["0x1234", None], ids=["unused", "duplicate"])
def test_without_strict_nodes_too_many_do_no_harm(
    relaycast: Command, file: Written, proof: Proof, extra: str | None
) -> None:
    name = file({"nodes": [*proof["nodes"], extra or proof["nodes"][0]]})
    assert relaycast("proof", "verify", "--root", ROOT, "--key", "0x99", name).code == 0


def test_an_xray_accounts_for_every_byte(relaycast: Command, file: Written, proof: Proof) -> None:
    picture = relaycast("proof", "show", "--json", file(proof)).json
    totals = picture["totals"]
    assert picture["roots"] == [ROOT]
    assert totals["proof_bytes"] == sum(len(node) // 2 - 1 for node in proof["nodes"])
    assert totals["structure_bytes"] + totals["value_bytes"] == totals["proof_bytes"]
    assert totals["compact_bytes"] < totals["proof_bytes"]
    kinds = {node.get("path", ""): node["kind"] for node in picture["nodes"]}
    assert kinds == {
        "": "branch",
        "0": "inline leaf",
        "1": "branch",
        "11": "inline leaf",
        "12": "leaf",
        "1234": "value",
    }


def test_an_xray_names_unused_nodes(relaycast: Command, file: Written, proof: Proof) -> None:
    name = file({"nodes": [*proof["nodes"], "0xffff"]})
    picture = relaycast("proof", "show", "--root", ROOT, "--key", "0x1234", "--json", name).json
    assert picture["unused"] == [hashed("0xffff")]
    assert picture["totals"]["unreached_bytes"] == 2


def test_one_root_need_not_be_named_for_an_xray_of_keys(
    relaycast: Command, refused: Refused, file: Written, proof: Proof
) -> None:
    picture = relaycast("proof", "show", "--key", "0x99", "--json", file(proof)).json
    assert len(picture["unused"]) == len(proof["nodes"]) - 1
    two = file([*proof["nodes"], "0x00"], "two.json")
    assert (
        refused("proof", "show", "--key", "0x99", two)
        == "two.json: got a proof with 2 roots, expected --root beside --key"
    )


def test_an_xray_counts_what_comes_twice(relaycast: Command, file: Written, proof: Proof) -> None:
    name = file([*proof["nodes"], proof["nodes"][0], proof["nodes"][0]])
    assert relaycast("proof", "show", "--json", name).json["repeated_nodes"] == 2
    assert "repeated   2 of the nodes came before" in relaycast("proof", "show", name).out
    assert "repeated" not in relaycast("proof", "show", file(proof)).out


def test_a_proof_may_stand_on_the_command_line(relaycast: Command, proof: Proof) -> None:
    data = StorageProof([bytes.fromhex(node[2:]) for node in proof["nodes"]]).encode()
    text = f"0x{data.hex()}"
    assert relaycast("proof", "show", "--json", text).json["roots"] == [ROOT]
    assert relaycast("proof", "verify", "--root", ROOT, "--key", "0x99", text).json == {"values": {"0x99": None}}


def test_what_always_prints_json_may_be_told_so(relaycast: Command, file: Written, proof: Proof) -> None:
    assert relaycast("trie", "root", "--json", file(PAIRS)).json == {"root": ROOT}
    assert relaycast("proof", "make", "--json", "--key", "0x1234", "--key", "0x99", file(PAIRS)).json == proof
    assert relaycast("proof", "verify", "--json", "--root", ROOT, "--key", "0x99", file(proof)).code == 0


def test_an_xray_of_a_proof_that_fails_shows_what_there_is(relaycast: Command, file: Written, proof: Proof) -> None:
    ended = relaycast("proof", "show", "--root", ROOT, "--key", "0x1234", file({"nodes": proof["nodes"][1:]}))
    assert ended.code == 1
    assert "not proven MissingNode" in ended.out
    assert "leaf" in ended.out


@pytest.mark.parametrize("options", ["", "--root {root}", "--root {root} --key 0x01"])
def test_a_root_node_that_does_not_decode_is_an_error(relaycast: Command, file: Written, options: str) -> None:
    name, root = file(["0xffff"]), hashed("0xffff")
    given = options.format(root=root).split()
    ended = relaycast("proof", "show", *given, name)
    assert ended.code == 1
    assert f"not proven InvalidNode: node {root} does not decode: " in ended.out
    told = relaycast("proof", "show", *given, name, "--json")
    assert (told.code, told.json["error"]["kind"]) == (1, "InvalidNode")
    page = relaycast("proof", "show", *given, name, "--html", "p.html")
    assert page.code == 1
    assert "does not decode" in Path("p.html").read_text("utf-8")


def test_a_root_that_no_node_has_is_an_error_without_keys_too(relaycast: Command, file: Written, proof: Proof) -> None:
    ended = relaycast("proof", "show", "--root", hashed("0xffff"), file(proof), "--json")
    assert (ended.code, ended.json["error"]["kind"]) == (1, "RootMismatch")


def test_an_xray_walks_into_child_tries(relaycast: Command, file: Written) -> None:
    child_db, child_root = build_database({b"key": b"value" * 9}, state_version=StateVersion.V1)
    info = ChildInfo.new_default(b"pubsub\xe8\x03\x00\x00")
    top_db, root = build_database({info.prefixed_storage_key(): child_root}, state_version=StateVersion.V1)
    nodes = [
        *StorageProof.generate(top_db, root, [info.prefixed_storage_key()]),
        *StorageProof.generate(child_db, child_root, [b"key"]),
    ]
    picture = relaycast("proof", "show", "--json", file([f"0x{node.hex()}" for node in nodes])).json
    assert picture["roots"] == [f"0x{root.hex()}"]
    assert picture["totals"]["unreached_bytes"] == 0
    assert [node["kind"] for node in picture["nodes"]] == ["leaf", "leaf", "value"]


def test_shared_nodes_do_not_multiply(relaycast: Command, file: Written) -> None:
    """A chain of branches that name one child sixteen times would be walked 16^12 times."""
    nodes = [encode_leaf(b"", bytes(32))]
    for _ in range(12):
        nodes.append(encode_branch(b"", [blake2_256(nodes[-1])] * 16, None))
    picture = relaycast("proof", "show", "--json", file([f"0x{node.hex()}" for node in nodes])).json
    assert len(picture["nodes"]) == 1 + 12 * 16


def test_a_value_in_csv_may_be_as_long_as_code(relaycast: Command, file: Written) -> None:
    value = f"0x{'ab' * 100_000}"
    assert relaycast("trie", "root", file(f"key,value\n0x3a636f6465,{value}\n")).out == (
        relaycast("trie", "root", file([["0x3a636f6465", value]])).out
    )


@pytest.mark.parametrize("form", ["csv", "csv with a mark", "parquet", "parquet in hex", "an object"])
def test_pairs_come_in_the_files_that_people_have(
    form: str, relaycast: Command, file: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["key,value", *(f"{key},{value}" for key, value in PAIRS)]
    columns = list(zip(*PAIRS, strict=True))
    match form:
        case "csv" | "csv with a mark":
            Path("pairs").write_text("\r\n".join(lines), "utf-8-sig" if "mark" in form else "utf-8", newline="")
        case "parquet" | "parquet in hex":
            cells = columns if "hex" in form else [[bytes.fromhex(it[2:]) for it in column] for column in columns]
            pq.write_table(pa.table(dict(zip(("key", "value"), cells, strict=True))), "pairs")
        case _:
            Path("pairs").write_text(json.dumps(dict(PAIRS)))
    assert relaycast("trie", "root", "pairs").out == relaycast("trie", "root", file(PAIRS)).out


def test_a_trie_is_shown_to_its_end_or_its_limit(relaycast: Command, file: Written) -> None:
    assert "... and 4 more" in relaycast("trie", "show", "--limit", "2", file(PAIRS)).out
    assert "more" not in relaycast("trie", "show", file(PAIRS)).out
    assert relaycast("trie", "show", "--json", file([])).json["roots"] == [EMPTY_ROOT]


COLUMNS = "key and value, and child where there are children"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("nope", "input.json line 1 column 1: got 'nope', expected JSON: expecting value"),
        ("", "input.json line 1 column 1: got the end of the text, expected JSON: expecting value"),
        ("3", f"input.json: got 3, expected {state_export.EXPECTED}"),
        ('[["0x01"]]', 'input.json at [0]: got a list of 1 item, expected a ["0xkey", "0xvalue"] pair'),
        (
            '[["0x01", "0x02"], ["0xabc", "0x"]]',
            "input.json at [1] (key): got '0xabc' with an odd number of digits, "
            "expected 0x and an even number of hex digits",
        ),
        ('[["01", "0x"]]', "input.json at [0] (key): got '01', expected 0x and an even number of hex digits"),
        ('[["0x01", 7]]', "input.json at [0] (value): got 7, expected 0x and an even number of hex digits"),
        ('[["0xa  b", "0x"]]', "input.json at [0] (key): got '0xa  b', expected 0x and an even number of hex digits"),
        ('[["0xab", "0x"], ["0xAB", "0x01"]]', "input.json at [1]: got the key '0xab' again, expected every key once"),
        ("[" * 200_000, "input.json: got values nested too deeply, expected JSON at most a few hundred levels deep"),
        ("key,values\n0x01,0x\n", f"input.json: got the columns key, values, expected {COLUMNS}"),
        ("key,value,key\n0x01,0x,0x\n", f"input.json: got the columns key, value, key, expected {COLUMNS}"),
        ("key,value\n0x01\n", "input.json line 2: got 1 cell, expected 2 cells"),
        (
            "key,value\n0x01,0x\n0x02,5\n",
            "input.json line 3 (value): got '5', expected 0x and an even number of hex digits",
        ),
        ("key,value\n0x01,0x\n0x01,0x05\n", "input.json line 3: got the key '0x01' again, expected every key once"),
        ('key,value\n"0x01,0x\n', "input.json line 2: got text that is not CSV (unexpected end of data), expected CSV"),
        (
            "key,value,child\n0x01,0x,0x02\n",
            "input.json line 2: got an entry of a child trie, expected pairs of one trie: no column child, or nothing "
            "in it",
        ),
    ],
)
def test_pairs_that_are_none_are_refused(refused: Refused, file: Written, content: Any, line: str) -> None:
    assert refused("trie", "root", file(content)) == " ".join(line.split())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"nodes": ["0x0"]}', "input.json at .nodes[0]: got '0x0' with an odd number of digits"),
        ('{"knots": []}', "input.json: got an object without nodes ('knots'), expected"),
        ('{"nodes": [], "nodes": []}', "input.json: got 'nodes' twice in one object"),
        ("08a08001", "input.json: got '08a08001', expected 0x before the hex digits, or JSON"),
        (
            '{"jsonrpc": "2.0", "error": {"code": -32000, "message": "UnknownBlock"}}',
            "input.json at .error: got 'UnknownBlock', expected an answer with a result",
        ),
        ('"0x08"', "input.json: got '0x08' (2 items announced, 0 bytes left at byte 0), expected a proof as SCALE"),
    ],
)
def test_a_proof_file_that_is_none_is_refused(refused: Refused, file: Written, content: Any, told: str) -> None:
    assert refused("proof", "verify", "--root", ROOT, "--key", "0x01", file(content)).startswith(told)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["proof", "verify", "--root", "0x12", "--key", "0x01", "f"], "--root: got '0x12', expected 0x and 64 hex"),
        (["proof", "make", "--key", "01", "f"], "--key: got '01', expected 0x and an even number of hex digits"),
        (["proof", "make", "--key", "-", "f"], "--key: got '-', expected 0x and an even number of hex digits"),
        (["proof", "verify", "--root", ROOT, "--key", "0x", "0x08"], "the proof: got '0x08' (2 items announced"),
        (["trie", "show", "--limit", "-1", "f"], 'trie show: Invalid value "-1" for --limit. Must be >= 0.'),
        (["trie", "root", "f", "g"], "trie root: got 'g' too, expected no further argument"),
        (["trie", "root", "nowhere.json"], "nowhere.json: got no such file or directory, expected a file"),
        (["trie", "root", "."], ".: got a directory, expected a file"),
        (["trie", "rot", "f"], "trie: got 'rot', expected a verb, did you mean root?"),
        (["trie", "root", "--state-version", "2", "f"], 'trie root: Invalid value "2" for --state-version. Choose'),
        (["trie", "root", "--state-versoin", "1"], "trie root: "),
        (["proof", "verify", "--root", ROOT, "f"], 'proof verify: got no --key, expected a key, 0x and hex digits'),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(refused: Refused, arguments: list[str], told: str) -> None:
    assert refused(*arguments).startswith(told)


@pytest.mark.slow
def test_a_value_of_100_megabytes_has_a_root(relaycast: Command, file: Written) -> None:
    value = bytes(100_000_000)
    ended = relaycast("trie", "root", file([["0x01", f"0x{value.hex()}"]]))
    leaf = "0x2201" + blake2b(value, digest_size=32).hexdigest()
    assert ended.out == hashed(leaf) + "\n"


def test_a_proof_is_read_as_scale_bytes_too(relaycast: Command, file: Written) -> None:
    pairs = [["0x01", "0x02"], ["0x0102", f"0x{'ab' * 40}"]]
    made = relaycast("proof", "make", "--key", "0x0102", file(pairs, "pairs.json")).json
    encoded = StorageProof(bytes.fromhex(node[2:]) for node in made["nodes"]).encode()
    binary = file(encoded, "proof.scale")
    arguments = ("--root", made["root"], "--key", "0x0102")
    assert relaycast("proof", "verify", *arguments, binary).json == {"values": {"0x0102": f"0x{'ab' * 40}"}}
    assert relaycast("proof", "show", binary, "--json").json["roots"] == [made["root"]]
    assert relaycast("proof", "verify", *arguments, f"0x{encoded.hex()}").code == 0


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"\x04\x10\x01", b"\x00\x01"])
def test_bytes_that_are_no_proof_are_refused(data: bytes, refused: Refused, file: Written) -> None:
    line = refused("proof", "show", file(data, "proof.scale"))
    assert line.startswith(f"proof.scale: got '0x{data.hex()}' (")
    assert line.endswith("expected a proof as SCALE Vec<Vec<u8>>")


def test_one_byte_is_one_byte(relaycast: Command, file: Written) -> None:
    made = relaycast("proof", "make", "--key", "0x01", file([["0x01", "0x02"]], "pairs.json")).out
    shown = relaycast("proof", "show", file(made, "proof.json")).out
    assert "proof      4 bytes in 1 node\n" in shown
    assert "values     1 byte\n" in shown
