"""Statement proofs on the command line: made, verified against what a reader has, and weighed in an X-ray."""

from typing import Any

import pytest
from hypothesis import given

from command_line import Command, Refused, Written
from relaycast.xray.nodes import xray
from relaycast_trie import ChildInfo, StateVersion, StorageProof, blake2_256, build_database, generate_proof
from shared_vectors import Selection, unhex, unhex_all
from strategies import Pairs, pairs_with_questions

PAIRS = [[f"0x{blake2_256(bytes([index])).hex()}", f"0x{bytes([index] * 40).hex()}"] for index in range(60)]
KEYS = [key for key, _ in PAIRS[:3]]
ABSENT = "0x1234"


def made(relaycast: Command, file: Written, *options: str) -> Any:
    keys = [part for key in (*KEYS, ABSENT) for part in ("--key", key)]
    return relaycast("proof", "make", *keys, *options, file(PAIRS, "pairs.json")).json


def verify(relaycast: Command, proof: Any, name: str, *options: str) -> Any:
    keys = [part for key in (*KEYS, ABSENT) for part in ("--key", key)]
    return relaycast("proof", "verify", "--root", proof["root"], *keys, "--statement", name, *options, "proof.json")


def test_a_statement_proof_holds_for_a_reader_who_has_the_values(relaycast: Command, file: Written) -> None:
    proof = made(relaycast, file, "--statement")
    assert proof["root"] == made(relaycast, file)["root"]
    file(proof, "proof.json")
    ended = verify(relaycast, proof, "pairs.json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.json == {"values": {**dict(PAIRS[:3]), ABSENT: None}}


def test_it_weighs_less_than_a_compact_proof_and_an_xray_says_so(relaycast: Command, file: Written) -> None:
    sizes = {
        option: sum(len(node) // 2 - 1 for node in made(relaycast, file, *option)["nodes"])
        for option in ((), ("--compact",), ("--statement",))
    }
    name = file(made(relaycast, file), "full.json")
    keys = [part for key in (*KEYS, ABSENT) for part in ("--key", key)]
    totals = relaycast("proof", "show", "--json", *keys, name).json["totals"]
    assert (totals["proof_bytes"], totals["compact_bytes"], totals["statement_bytes"]) == tuple(sizes.values())
    assert totals["statement_keys"] == 4
    assert sizes[()] > sizes["--compact",] > sizes["--statement",]
    text = relaycast("proof", "show", *keys, name).out
    saved = sizes[()] - sizes["--statement",]
    line = f"statement  {sizes['--statement',]:,} bytes, {saved:,} less ({saved / sizes[()]:.0%}), for a reader who has"
    assert f"{line} the 4 values" in text


def test_without_keys_an_xray_takes_the_values_that_are_there(relaycast: Command, file: Written) -> None:
    name = file(made(relaycast, file), "full.json")
    totals = relaycast("proof", "show", "--json", name).json["totals"]
    db, root = build_database({unhex(key): unhex(value) for key, value in PAIRS}, state_version=StateVersion.V1)
    assert totals["statement_bytes"] == sum(map(len, generate_proof(db, root, map(unhex, KEYS))))
    assert totals["statement_keys"] == 3


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda pairs: [[pairs[0][0], "0x00"], *pairs[1:]], "RootMismatch"),  # another value
        (lambda pairs: pairs[1:], "ValueMismatch"),  # a key that is there is claimed to be absent
        (lambda pairs: [*pairs, [ABSENT, "0x05"]], "ValueMismatch"),  # one that is not there is claimed to be
    ],
)
def test_a_false_statement_is_not_believed(relaycast: Command, file: Written, change: Any, kind: str) -> None:
    proof = made(relaycast, file, "--statement")
    file(proof, "proof.json")
    ended = verify(relaycast, proof, file(change(PAIRS), "claimed.json"))
    assert (ended.code, ended.json["error"]["kind"]) == (1, kind)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda nodes: nodes[:-1], "IncompleteProof"),
        (lambda nodes: [*nodes, nodes[0]], "ExtraneousNode"),
        (lambda nodes: nodes[::-1], "InvalidNode|RootMismatch|ValueMismatch|ExtraneousNode|IncompleteProof"),
    ],
)
def test_a_spoilt_statement_proof_says_why(relaycast: Command, file: Written, spoil: Any, kind: str) -> None:
    proof = made(relaycast, file, "--statement")
    file(spoil(proof["nodes"]), "proof.json")
    ended = verify(relaycast, proof, "pairs.json")
    assert ended.code == 1
    assert ended.json["error"]["kind"] in kind.split("|")


def test_long_values_are_put_in_as_the_state_version_has_them(relaycast: Command, file: Written) -> None:
    proof = made(relaycast, file, "--statement", "--state-version", "0")
    file(proof, "proof.json")
    assert verify(relaycast, proof, "pairs.json", "--state-version", "0").code == 0
    assert verify(relaycast, proof, "pairs.json").json["error"]["kind"] == "RootMismatch"


@pytest.mark.parametrize("selection", [Selection("trie_db/proofs.json", own=own) for own in (True, False)], ids=str)
def test_an_xray_weighs_the_proofs_of_trie_db(selection: Selection) -> None:
    for vector in selection.cases():
        if vector["trie_db_proof"] is not None and vector["keys"]:
            proof = StorageProof(unhex_all(vector["storage_proof"]))
            totals = xray(proof, root=unhex(vector["root"]), statement=unhex_all(vector["keys"])).totals
            assert totals.statement_bytes == sum(map(len, unhex_all(vector["trie_db_proof"])))


@given(pairs_with_questions())
def test_an_xray_weighs_what_is_generated(drawn: tuple[Pairs, list[bytes]]) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, questions)
    totals = xray(proof, root=root, statement=questions).totals
    if questions:
        assert totals.statement_bytes == sum(map(len, generate_proof(db, root, questions)))
        assert totals.statement_keys == len(questions)
    assert xray(proof, root=root).totals.statement_bytes is None, "nobody asked"


def test_a_proof_that_goes_on_into_child_tries_has_no_single_statement(relaycast: Command, file: Written) -> None:
    child_db, child_root = build_database({b"key": b"value" * 9}, state_version=StateVersion.V1)
    name = ChildInfo.new_default(b"pubsub\xe8\x03\x00\x00").prefixed_storage_key()
    top_db, root = build_database({name: child_root}, state_version=StateVersion.V1)
    nodes = [*StorageProof.generate(top_db, root, [name]), *StorageProof.generate(child_db, child_root, [b"key"])]
    given_nodes = file([f"0x{node.hex()}" for node in nodes])
    assert relaycast("proof", "show", "--json", given_nodes).json["totals"]["statement_bytes"] is None
    assert "statement" not in relaycast("proof", "show", given_nodes).out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("make", "--key", "0x01", "--compact", "--statement", "f"), "proof make: got --compact and --statement, exp"),
        (
            ("verify", "--root", f"0x{'00' * 32}", "--key", "0x01", "--compact", "--statement", "g", "f"),
            "proof verify: got --compact and --statement, expected one of them",
        ),
        (
            ("verify", "--root", f"0x{'00' * 32}", "--key", "0x01", "--state-version", "1", "f"),
            "--state-version: got 1, expected it beside --statement",
        ),
        (
            ("verify", "--root", f"0x{'00' * 32}", "--key", "0x01", "--statement", "nowhere.json", "f"),
            "nowhere.json: got no such file or directory",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(refused: Refused, arguments: tuple[str, ...], line: str) -> None:
    assert refused("proof", *arguments).startswith(line)
