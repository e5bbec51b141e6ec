"""``_repr_html_``: what notebooks show of networks, runs, blocks, proofs, tries and deliveries."""

import re
from pathlib import Path
from typing import Any

import pytest

import relaycast as rc
from app.page import parsed
from relaycast.notebook.chains import COLOURS
from relaycast.notebook.markup import MAX_ROWS, bar, card
from relaycast.notebook.tries import nodes_card, root_card
from relaycast_ledger import Accounts
from relaycast_trie import CompactProof, StateVersion, StorageProof, TrieDB, TrieDBMut, build_database
from relaycast_trie.node_codec import EMPTY_ROOT

PAIRS = [(bytes([index]) * 4, bytes([index + 1]) * 50) for index in range(60)]


def page_of(thing: Any) -> str:
    """Return what a notebook shows, checked to be well-formed and to load nothing."""
    markup = thing._repr_html_()
    assert isinstance(markup, str)
    parsed(f"<!doctype html><html><body>{markup}</body></html>")
    return markup


@pytest.fixture(scope="module")
def net() -> rc.Network:
    net = rc.Network(seed=7)
    net.ledger.accounts = Accounts.BY_PUBLISHER
    oracle = net.publisher(2_000)
    feeds = oracle.publish_many({f"<b>{index}&": bytes([index]) * 40 for index in range(20)})
    net.subscriber(3_000, keys=feeds)
    net.subscriber(3_001, keys=feeds[:2])
    return net


@pytest.fixture(scope="module")
def run(net: rc.Network) -> Any:
    return net.run(blocks=6)


def test_a_network_shows_its_parachains_and_what_they_read(net: rc.Network, run: Any) -> None:
    shown = page_of(net)
    assert "relaycast network at block 6" in shown
    assert "20 of 2000" in shown
    assert "2 of 2000" in shown
    assert net.chains.relay_chain.head.state_root.hex() in shown
    assert "checks held" in page_of(net.ledger)


def test_a_run_shows_every_readers_figures(run: Any) -> None:
    shown = page_of(run)
    for para_id, it in run.subscribers.items():
        assert f">{para_id}<" in shown
        assert f">{it.proof_bytes.max:,}<" in shown
    assert "checks held" in shown
    assert "callbacks" in page_of(run.delivery)
    assert f"{run.subscribers[3_000].proof_bytes.p99:,}" in page_of(run.subscribers[3_000])


def test_a_feed_that_is_dead_has_no_latency() -> None:
    net = rc.Network(seed=7)
    net.subscriber(3_000, keys=[net.publisher(2_000).feed("never")])
    run = net.run(blocks=4)
    assert (run.delivery.callbacks, run.delivery.p99_blocks, run.delivery.max_blocks) == (0, None, None)
    with pytest.raises(TypeError):
        assert run.delivery.p50_blocks <= 2
    for shown in (page_of(run), page_of(run.delivery)):
        assert "nothing delivered" in shown
        assert "None" not in shown
    assert ">0/0<" not in page_of(run)
    assert ">-<" in page_of(run)
    assert ">-<" in page_of(run.subscribers[3_000])


def test_a_reader_shows_values_under_escaped_names(net: rc.Network, run: Any) -> None:
    alice = net.subscriber(3_001, keys=[])
    shown = page_of(alice)
    assert "<b>" not in shown
    assert "&lt;b&gt;0&amp;" in shown


def test_blocks_show_what_they_carry_by_cause(net: rc.Network, run: Any) -> None:
    net.publisher(2_000).publish("<b>0&", b"new")
    records = [record for _ in range(4) for record in net.ledger.step()]
    (record, *_) = [record for record in records if record.deliveries]
    shown = page_of(record)
    assert "changed " in shown
    assert f"{record.static_bytes:,}" in shown
    assert b"new".hex() in shown
    assert b"new".hex() in page_of(record.deliveries[0])
    assert "Relay block" in page_of(net.chains.relay_chain.head)
    collator = net.chains.collators[record.para_id]
    block = collator.parachain.build_block(collator.collate(net.chains.relay_chain.head).inherent)
    assert "relay proof 5," in page_of(block)


def test_a_proof_shows_its_largest_nodes_and_counts_the_rest() -> None:
    db, root = build_database(PAIRS, state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, [key for key, _ in PAIRS[:30]])
    shown = page_of(proof)
    assert f"bytes {proof.proof_bytes:,}" in shown
    assert shown.count("<tr>") == MAX_ROWS + 2
    assert f"and {len(proof) - MAX_ROWS:,} more" in shown
    assert "branch, 16 ways" in shown
    assert "bytes" in page_of(CompactProof.encode(proof, root))


def test_bytes_that_only_begin_like_a_node_are_a_value() -> None:
    shown = nodes_card("Nodes", [bytes(40)], {})
    assert ">value<" in shown
    assert "empty" not in shown


def test_tries_show_their_root_node_and_its_children() -> None:
    db, root = build_database(PAIRS, state_version=StateVersion.V1)
    shown = page_of(TrieDB(db, root))
    assert f"0x{root.hex()}" in shown
    assert "branch, 4 ways" in shown
    trie = TrieDBMut(db, root)
    assert "changed" not in page_of(trie)
    trie.insert(b"key", b"value")
    assert "changed" in page_of(trie)
    assert "it is empty" in root_card("Trie", EMPTY_ROOT, None, {})
    assert "not there" in page_of(TrieDB({}, bytes(32)))


def test_what_is_verified_is_shown_as_values_and_absences() -> None:
    db, root = build_database(PAIRS, state_version=StateVersion.V1)
    keys = [PAIRS[0][0], b"none"]
    shown = page_of(StorageProof.generate(db, root, keys).verify(root, keys))
    assert "absent" in shown
    assert PAIRS[0][1][:8].hex() in shown


def test_text_is_escaped_wherever_it_stands() -> None:
    bad = "<script>\"'&"
    shown = card(bad, {bad: bad}, columns=[bad], rows=[[bad]], figure=bar([(bad, 1, "red")], unit=bad))
    parsed(f"<!doctype html><html><body>{shown}</body></html>")
    assert "<script>" not in shown


def test_long_tables_are_cut_and_short_ones_are_not() -> None:
    assert "more" not in card("t", {}, columns=["a"], rows=[[1]] * (MAX_ROWS + 4))
    assert f"and {100 - MAX_ROWS} more" in card("t", {}, columns=["a"], rows=[[1]] * 100)


def test_colours_are_those_of_the_report_on_light_ground() -> None:
    css = (Path(rc.__file__).parent / "report" / "pages" / "page.css").read_text()
    light = css.split("@media", 1)[0]
    for cause, colour in COLOURS.items():
        name = "new" if cause == "pub-sub" else cause
        assert re.search(rf"--{name}: {colour};", light), cause
