"""Compact proofs on the command line: those of sp-trie are read, shown, verified, and ours are as theirs."""

import json
from typing import Any

import pytest

from command_line import Command, Refused, Written
from relaycast_trie import CompactProof
from shared_vectors import OWN, Case, cases_in, unhex, unhex_all

PROOFS = OWN / "trie_db/proofs.json"
PAIRS = [["0x01", "0x02"], ["0x11", "0x03"], ["0x1234", "0x" + "09" * 38]]


def hexed(texts: list[str]) -> list[str]:
    return [f"0x{text}" for text in texts]


@pytest.fixture(scope="module")
def case() -> Case:
    """A proof of sp-trie in which values stand outside and keys are proven absent."""
    return next(it for it in cases_in(PROOFS) if it["set"] == "uniform32_3_v33")


def test_a_compact_proof_of_sp_trie_is_shown_as_its_storage_proof(relaycast: Command, file: Written) -> None:
    for vector in cases_in(PROOFS):
        compact = file(hexed(vector["compact_proof"]), "compact.json")
        plain = file(hexed(vector["storage_proof"]), "plain.json")
        root = f"0x{vector['root']}"
        shown = relaycast("proof", "show", "--compact", compact, "--json").json
        assert shown["roots"] == [root], "derived, for a compact proof has one"
        assert shown == relaycast("proof", "show", "--root", root, plain, "--json").json, vector["set"]


def test_a_compact_proof_with_child_tries_is_shown_whole(relaycast: Command, file: Written) -> None:
    (vector,) = cases_in(OWN / "trie_db/child_tries.json")
    shown = relaycast("proof", "show", "--compact", file(hexed(vector["compact_proof"])), "--json").json
    assert shown["roots"] == [f"0x{vector['root']}"]
    assert shown["totals"]["nodes"] == len(vector["storage_proof"])
    assert shown["totals"]["unreached_bytes"] == 0
    assert any(":" in node.get("path", "") for node in shown["nodes"]), "a path inside a child trie"


@pytest.mark.parametrize("shape", ["list", "nodes", "result", "scale hex", "scale bytes"])
def test_values_of_a_compact_proof_are_verified_in_every_shape(
    relaycast: Command, file: Written, case: Case, shape: str
) -> None:
    nodes = hexed(case["compact_proof"])
    scale = CompactProof(tuple(unhex_all(nodes))).to_bytes()
    shapes: dict[str, Any] = {
        "list": nodes,
        "nodes": {"nodes": nodes},
        "result": {"jsonrpc": "2.0", "result": {"proof": nodes}},
        "scale hex": f"0x{scale.hex()}",
        "scale bytes": scale,
    }
    keys = [part for key in case["keys"] for part in ("--key", f"0x{key}")]
    asked = ("verify", "--compact", "--strict", "--root", f"0x{case['root']}", *keys, file(shapes[shape]))
    values = [None if value is None else f"0x{value}" for value in case["values"]]
    assert list(relaycast("proof", *asked).json["values"].values()) == values


def test_a_compact_proof_is_made_as_it_is_read(relaycast: Command, file: Written) -> None:
    made = relaycast("proof", "make", "--compact", "--key", "0x1234", "--key", "0x99", file(PAIRS, "pairs.json")).json
    told = relaycast("proof", "verify", "--compact", "--root", made["root"], "--key", "0x1234", file(made, "c.json"))
    assert told.json == {"values": {"0x1234": "0x" + "09" * 38}}
    printed = relaycast("proof", "show", "--compact", "--key", "0x1234", file(made, "c.json")).out
    size = sum(map(len, unhex_all(made["nodes"])))
    assert f"compact    {size} bytes" in printed, "what it was read from is what it would take"
    assert f"read from  {size} bytes in {len(made['nodes'])} nodes of a compact proof" in printed


def test_who_forgets_that_a_proof_is_compact_is_told(relaycast: Command, file: Written, case: Case) -> None:
    assert "try --compact" in relaycast("proof", "show", file(hexed(case["compact_proof"]), "c.json")).out
    assert "try --compact" not in relaycast("proof", "show", file(hexed(case["storage_proof"]), "p.json")).out
    assert "try --compact" not in relaycast("proof", "show", "--compact", file(hexed(case["compact_proof"]))).out


@pytest.mark.parametrize("value", ["0x8003000000", "0x01410100"])
def test_a_value_that_looks_like_a_compact_node_makes_no_proof_compact(
    relaycast: Command, file: Written, value: str
) -> None:
    """These are a branch whose child is left out, and a node behind an escape byte."""
    pairs = [["0x01", value + "00" * 40], ["0x11", "0x03"]]
    made = relaycast("proof", "make", "--key", "0x01", file(pairs, "pairs.json")).json
    assert any(node.startswith(value) for node in made["nodes"])
    assert "try --compact" not in relaycast("proof", "show", file(made, "p.json")).out


def test_a_compact_proof_of_another_root_is_not_recommended(relaycast: Command, file: Written, case: Case) -> None:
    name = file(hexed(case["compact_proof"]), "c.json")
    assert "try --compact" in relaycast("proof", "show", "--root", f"0x{case['root']}", name).out
    assert "try --compact" not in relaycast("proof", "show", "--root", f"0x{'07' * 32}", name).out
    assert "try --compact" not in relaycast("proof", "show", file(hexed(case["compact_proof"][:-1]), "d.json")).out


@pytest.mark.parametrize(
    ("change", "kind", "told"),
    [
        (lambda nodes: nodes[:-1], "IncompleteProof", "nodes that are none: the proof ends before the last node"),
        (lambda nodes: [], "IncompleteProof", "0 nodes that are none: the proof ends before the last node that is"),
        (lambda nodes: [*nodes, "0x00"], "ExtraneousNode", "nodes that are none: the proof goes on after the last"),
        (lambda nodes: ["0xff", *nodes], "InvalidNode", "a node that does not decode (the length of the partial key"),
    ],
    ids=["too short", "empty", "too long", "junk"],
)
def test_what_is_no_compact_proof_says_why(
    relaycast: Command, refused: Refused, file: Written, case: Case, change: Any, kind: str, told: str
) -> None:
    name = file(change(hexed(case["compact_proof"])), "c.json")
    line = refused("proof", "show", "--compact", name)
    assert line.startswith("c.json: got ")
    assert told in line
    assert line.endswith(", expected a compact proof, its nodes in their order")
    ended = relaycast("proof", "verify", "--compact", "--root", f"0x{case['root']}", "--key", "0x00", name)
    assert (ended.code, json.loads(ended.out)["error"]["kind"]) == (1, kind)


def test_another_root_is_refused_with_the_one_that_the_proof_has(refused: Refused, file: Written, case: Case) -> None:
    other, name = f"0x{'07' * 32}", file(hexed(case["compact_proof"]), "c.json")
    line = f"--root: got {other}, expected the root that c.json has, 0x{unhex(case['root']).hex()}"
    assert refused("proof", "show", "--compact", "--root", other, name) == line
