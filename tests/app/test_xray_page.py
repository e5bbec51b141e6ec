"""``proof show --html``: any proof as a page, path by path, with what is not needed marked."""

import json
import re
from pathlib import Path

import pytest

from app.browser import dumped
from app.page import parsed
from command_line import Command, Refused, Written
from relaycast.genesis.storage_names import storage_name
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.frame.well_known_keys import static_relay_keys
from relaycast_trie import StateVersion, StorageProof, TrieDBMut, blake2_256, build_database
from relaycast_xcm import ParaId
from shared_vectors import OWN, cases_in

PAIRS = {blake2_256(bytes([index])): bytes([index]) * (10 + 9 * (index % 5)) for index in range(60)}
KEYS = sorted(PAIRS)


def proof_of(keys: list[bytes]) -> tuple[StorageProof, bytes]:
    db, root = build_database(list(PAIRS.items()), state_version=StateVersion.V1)
    return StorageProof.generate(db, root, keys), root


def hexes(proof: StorageProof) -> list[str]:
    return [f"0x{node.hex()}" for node in proof]


def added(page: str) -> int:
    return sum(int(cell.replace(",", "")) for cell in re.findall(r'<td class="adds">([\d,]+)</td>', page))


def test_every_byte_of_the_proof_is_in_one_row(relaycast: Command, file: Written, tmp_path: Path) -> None:
    proof, _ = proof_of(KEYS[:9])
    plain = relaycast("proof", "show", file(hexes(proof)))
    ended = relaycast("proof", "show", "input.json", "--html", "proof.html")
    page = (tmp_path / "proof.html").read_text()
    parsed(page)
    assert ended == plain
    assert added(page) == proof.proof_bytes
    assert f"{proof.proof_bytes:,} bytes in {len(proof)} nodes" in page
    for key in KEYS[:9]:
        assert f"0x{key.hex()}" in page
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_keys_come_first_and_nodes_that_they_do_not_need_are_marked(
    relaycast: Command, file: Written, tmp_path: Path
) -> None:
    proof, _ = proof_of(KEYS[:9])
    wanted = [argument for key in KEYS[3:5] for argument in ("--key", f"0x{key.hex()}")]
    shown = relaycast("proof", "show", file(hexes(proof)), *wanted, "--html", "proof.html", "--json").json
    page = (tmp_path / "proof.html").read_text()
    rows = [it.attributes["data-key"] for it in parsed(page).named("tr") if "data-key" in it.attributes]
    assert rows[:2] == [f"asked for 0x{key.hex()}" for key in KEYS[3:5]]
    assert f"2 keys are proven; {len(shown['unused'])} nodes are not needed" in page
    assert page.count('<td class="l"><span class="key c-unused">') == len(shown["unused"]) > 3


def test_keys_that_are_not_proven_are_said_not_to_be(relaycast: Command, file: Written, tmp_path: Path) -> None:
    proof, _ = proof_of(KEYS[:3])
    ended = relaycast("proof", "show", file(hexes(proof)), "--key", f"0x{KEYS[40].hex()}", "--html", "proof.html")
    assert ended.code == 1
    assert "Not proven: " in (tmp_path / "proof.html").read_text()


def test_child_tries_and_well_known_keys_go_by_their_names(relaycast: Command, file: Written, tmp_path: Path) -> None:
    info = derive_child_info(ParaId(2_000))
    db, child = build_database(list(PAIRS.items()), state_version=StateVersion.V1)
    top = TrieDBMut(db, state_version=StateVersion.V1)
    top.insert(info.prefixed_storage_key(), child)
    for key in static_relay_keys(ParaId(3_000)):
        top.insert(key, b"x" * 40)
    root = top.commit()
    nodes = [*StorageProof.generate(db, root, [info.prefixed_storage_key(), *static_relay_keys(ParaId(3_000))])]
    nodes += StorageProof.generate(db, child, KEYS[:4])
    relaycast("proof", "show", file([f"0x{node.hex()}" for node in nodes]), "--html", "proof.html")
    page = (tmp_path / "proof.html").read_text()
    parsed(page)
    assert "Child trie of publisher 2000" in page
    assert "Paras.Heads" in page
    assert "Configuration.ActiveConfig" in page
    assert added(page) == StorageProof(nodes).proof_bytes


def test_every_static_key_has_a_name() -> None:
    names = [storage_name(key) for key in static_relay_keys(ParaId(2_000))]
    assert len(set(names)) == len(names)
    assert all(names)
    assert storage_name(derive_child_info(ParaId(7)).prefixed_storage_key()) == "child trie of publisher 7"
    assert storage_name(bytes(40)) == storage_name(b"") == ""


def test_nodes_that_are_not_understood_are_shown_as_they_are(relaycast: Command, file: Written, tmp_path: Path) -> None:
    proof, root = proof_of(KEYS[:2])
    name = file(json.dumps([*hexes(proof), "0xff00ff", "0x00"]), "<b>proof.json")
    relaycast("proof", "show", name, "--root", f"0x{root.hex()}", "--html", "proof.html")
    page = (tmp_path / "proof.html").read_text()
    parsed(page)
    assert "Nodes that no root leads to" in page
    assert "&lt;b&gt;proof" in page


def test_a_large_proof_is_shown_as_far_as_there_is_room(
    relaycast: Command, file: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relaycast.xray.page.MAX_ROWS", 10)
    monkeypatch.setattr("relaycast.xray.page.MAX_NODES", 5)
    proof, _ = proof_of(KEYS)
    relaycast("proof", "show", file(hexes(proof)), "--key", f"0x{KEYS[50].hex()}", "--html", "proof.html")
    page = (tmp_path / "proof.html").read_text()
    assert page.count("<tr data-key") == 10
    assert f"… and {len(KEYS) - 10} keys more" in page
    assert f'<tr data-key="asked for 0x{KEYS[50].hex()}">' in page
    assert re.search(r"… and \d+ nodes more", page)
    assert f"{proof.proof_bytes:,} B in the proof" in page


def test_a_page_that_cannot_be_written_is_refused(refused: Refused, file: Written) -> None:
    proof, _ = proof_of(KEYS[:2])
    file("a file", "taken")
    told = refused("proof", "show", file(hexes(proof)), "--html", "taken/proof.html")
    assert told == "--html taken/proof.html: got not a directory, expected a file that can be written"


def test_a_browser_shows_an_answer_of_a_node(relaycast: Command, file: Written, tmp_path: Path) -> None:
    nodes = cases_in(OWN / "smoldot" / "relay_proofs_real_runtime.json")[0]["proof"]
    relaycast("proof", "show", file({"result": {"at": "0x00", "proof": nodes}}), "--html", "proof.html")
    shown, console = dumped(tmp_path / "proof.html", tmp_path, fragment="#find=hrmpchannels")
    assert console == []
    assert shown.count('class="found"') == 3
