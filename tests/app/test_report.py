"""``report.html``: well-formed, self-contained, escaped, small however long the run, with every path in it."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from app.browser import cut_on_paper, dumped, without_scripts
from app.page import parsed
from command_line import Command, Written
from relaycast.report.page import MAX_KEYS, render_report
from relaycast.report.pictures import MAX_NODES, MAX_ROWS
from relaycast.report.story import why
from relaycast.report.trie_view import CAUSES
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast.simulation.simulation import Simulation
from relaycast_ledger import NodeTotals
from relaycast_ledger.accounting import IN_THE_PROOF, PRUNED
from relaycast_ledger.outcome import (
    InvariantsOutcome,
    Outcome,
    Percentiles,
    Point,
    PublisherCost,
    PublisherOutcome,
    RelayOutcome,
    Share,
    SubscriberOutcome,
    latency,
    percentiles,
)
from relaycast_ledger.proof_picture import ProofPicture
from relaycast_ledger.run_statistics import SubscriberStatistics
from relaycast_xcm import ParaId

HOSTILE = "<script>alert('x')</script>\"'&{{ 7*7 }}{% raw %}"

SMALL = Scenario(
    name="small",
    description="two publishers",
    blocks=10,
    parachains=[
        ParachainTable(
            id=2_000, name="prices", publish=PublishTable(keys=12, value_bytes=[16, 200], changed=3, prefix="price")
        ),
        ParachainTable(id=2_001, name="news", publish=PublishTable(keys=2, every=4)),
        ParachainTable(
            id=3_000,
            name="reader",
            subscribe=[
                SubscriptionTable(publisher=2_000, keys=["price/0", "price/1", "price/7"]),
                SubscriptionTable(publisher=2_001),
            ],
        ),
    ],
)


def ran(scenario: Scenario) -> Outcome:
    simulation = Simulation.prepare(scenario)
    simulation.keep_accounts()
    return simulation.run()


@pytest.fixture(scope="module")
def run() -> Outcome:
    return ran(SMALL)


@pytest.fixture(scope="module")
def text(run: Outcome) -> str:
    return render_report(run, SMALL)


def test_the_page_is_well_formed_and_loads_nothing(text: str) -> None:
    page = parsed(text)
    assert len(page.named("script")) == 1
    (policy,) = page.named("meta", http_equiv="Content-Security-Policy")
    assert policy.attributes["content"].startswith("default-src 'none';")
    assert "http://" not in text
    assert "https://" not in text


def test_charts_and_tables_speak_to_those_who_do_not_see_them(text: str) -> None:
    page = parsed(text)
    assert all(it.attributes["role"] == "img" and it.attributes["aria-label"] for it in page.named("svg"))
    assert all(it.attributes.get("scope") in {"col", "row"} for it in page.named("th"))
    (label,) = page.named("label")
    assert page.named("input", id=label.attributes["for"])


def test_nothing_that_a_scenario_says_becomes_markup_or_template() -> None:
    chains = [
        ParachainTable(id=2_000, name=HOSTILE, publish=PublishTable(keys=3, prefix=HOSTILE)),
        ParachainTable(id=3_000, name=HOSTILE, subscribe=[SubscriptionTable(publisher=2_000)]),
    ]
    scenario = Scenario(name=HOSTILE, description=HOSTILE, parachains=chains, blocks=6)
    page = render_report(ran(scenario), scenario)
    assert len(parsed(page).named("script")) == 1
    assert "alert('x')" not in page
    assert "{{ 7*7 }}" in page
    assert page.count("&lt;script&gt;") > 10


def test_every_subscribed_key_has_a_row_with_its_name_and_hash(run: Outcome, text: str) -> None:
    rows = [it.attributes["data-key"] for it in parsed(text).named("tr") if "data-key" in it.attributes]
    assert len(run.key_names) == 5
    for (_, key), name in run.key_names.items():
        assert rows.count(f"{name} 0x{key.hex()}") == len(run.pictures[3_000]) + 1 == 3
    assert sum("Configuration.ActiveConfig" in row for row in rows) == 2
    assert sum("child trie of publisher 2000" in row for row in rows) == 2


def test_what_rows_add_is_the_proof(run: Outcome, text: str) -> None:
    for picture in run.pictures[3_000]:
        (point,) = (it for it in run.series[3_000] if it.block == picture.tick)
        heading = f"relay block {picture.tick}: {point.proof_bytes:,} bytes of relay proof"
        assert heading in text
        view = text[text.index(heading) :].split('class="view"', 1)[0]
        added = re.findall(r'<td class="adds">([\d,]+)</td>', view)
        assert sum(int(cell.replace(",", "")) for cell in added) == point.proof_bytes


def test_keys_share_out_what_their_publishers_took(run: Outcome, text: str) -> None:
    (reader,) = run.subscribers
    taken = sum(it.by_cause[cause].node_bytes for it in reader.publishers for cause in IN_THE_PROOF if cause != "top")
    assert sum(it.proof_bytes for it in run.keys[3_000]) == taken
    assert sum(it.callbacks for it in run.keys[3_000]) == reader.callbacks
    table = text[text.index('id="keys"') :]
    assert [row.split()[0] for row in re.findall(r'data-key="([^"]+)"', table)] == [
        run.key_names[it.publisher, it.key] for it in run.keys[3_000]
    ]


def test_every_trie_is_there_at_a_glance(run: Outcome, text: str) -> None:
    drawn = [it.attributes["aria-label"] for it in parsed(text).named("svg", class_="icicle")]
    assert len(drawn) == sum(len(picture.tries) for picture in run.pictures[3_000])
    assert drawn[1].startswith("Child trie of publisher 2000 prices: every node as wide as")
    assert re.search(r'<rect class="t-pruned_unchanged" [^>]*><title>leaf at ', text)


def test_nodes_are_drawn_by_their_cause_with_their_bytes(text: str) -> None:
    drawn = [it for it in parsed(text).named("i") if "title" in it.attributes]
    styles = {it.attributes["class"].split()[0].removeprefix("c-") for it in drawn}
    assert {"static", "top", "new", "changed", "value", "pruned_unchanged", "own"} <= styles
    assert any(re.search(r"hash 0x[0-9a-f]{64}\n0x[0-9a-f]+", it.attributes["title"]) for it in drawn)
    assert any("references to siblings" in it.attributes["title"] for it in drawn)
    for cause in CAUSES:
        if cause not in {"given", "unused"}:
            assert f'<span class="key c-{cause}"></span>' in text


def test_the_same_run_gives_the_same_page(text: str) -> None:
    assert render_report(ran(SMALL), SMALL) == text


def test_a_run_without_deliveries_has_a_page() -> None:
    scenario = replace(SMALL, blocks=1)
    assert "Nothing was delivered" in render_report(ran(scenario), scenario)


def test_a_starved_reader_is_shown_as_cut_short() -> None:
    scenario = replace(SMALL, relaychain=RelayChainTable(max_pov_bytes=6_800))
    page = render_report(ran(scenario), scenario)
    assert "cut short" in page
    assert "the budget ended before all was read" in page


@pytest.mark.parametrize("fragment", ["", "#find=PRICE/7", "#find=0x"])
def test_a_browser_shows_it_without_complaint(tmp_path: Path, text: str, fragment: str) -> None:
    page = tmp_path / "report.html"
    page.write_text(text)
    shown, console = dumped(page, tmp_path, fragment=fragment)
    assert console == []
    rows = re.findall(r'<tr data-key="([^"]*)"([^>]*)>', shown)
    found = [key for key, more in rows if "found" in more]
    hidden = [key for key, more in rows if "hidden" in more]
    assert len(rows) > 20
    assert '<div class="find">' in shown
    if fragment == "#find=PRICE/7":
        assert len(found) == 3
        assert all(key.startswith("price/7 ") for key in found)
        assert len(hidden) == len(rows) - 3
        assert "3 of " in shown
        assert shown.count('<details class="view" open') == 2
    elif fragment:
        assert len(found) == len(rows)
    else:
        assert found == hidden == []


def test_on_paper_no_chart_or_table_is_cut(text: str, tmp_path: Path) -> None:
    screen, paper = cut_on_paper(text, tmp_path)
    assert not screen.startswith("0 cut"), "on a screen as narrow as that they scroll"
    assert paper == "0 cut, ground rgb(255, 255, 255)"


def test_without_scripts_everything_is_there_but_the_search(tmp_path: Path, text: str) -> None:
    page = tmp_path / "report.html"
    page.write_text(text)
    shown, _ = dumped(without_scripts(page), tmp_path, fragment="#find=price/7")
    assert re.search(r'<div class="find" hidden', shown)
    rows = re.findall(r"<tr data-key[^>]*>", shown)
    assert len(rows) == text.count("<tr data-key")
    assert not any("hidden" in row or "found" in row for row in rows)


def test_the_command_writes_the_same_page_for_a_hostile_name(relaycast: Command, file: Written, tmp_path: Path) -> None:
    scenario = '[[parachains]]\nid = 2000\nname = "<i>&"\npublish = { keys = 2 }\n[[parachains]]\nid = 3000\n'
    relaycast("run", file(f"blocks = 5\n{scenario}subscribe = [{{ publisher = 2000 }}]\n", "s.toml"))
    (report,) = (tmp_path / "out").glob("*/report.html")
    assert "&lt;i&gt;&amp;" in report.read_text()
    parsed(report.read_text())


@pytest.mark.slow
def test_a_long_run_of_many_readers_stays_small() -> None:
    blocks, readers = 10_000, 100
    outcome = synthetic(blocks=blocks, readers=readers)
    page = render_report(outcome, SMALL)
    assert len(page.encode()) < 5_000_000
    parsed(page)
    assert "Each of 400 columns stands for 25.0 blocks" in page
    assert "all 100 readers: lowest, median and highest" in page
    assert f"{max(it.proof_bytes for it in outcome.series[3_000]):,}" in page


def test_four_thousand_keys_are_shown_as_far_as_there_is_room() -> None:
    chains = [
        ParachainTable(id=2_000, publish=PublishTable(keys=4_000, value_bytes=40)),
        ParachainTable(id=3_000, subscribe=[SubscriptionTable(publisher=2_000)]),
    ]
    scenario = Scenario(parachains=chains, blocks=4, relaychain=RelayChainTable(max_publishers=10))
    page = render_report(ran(scenario), scenario)
    assert len(page.encode()) < 5_000_000
    assert page.count("<tr data-key") <= MAX_ROWS + 32 + MAX_KEYS
    assert page.count('<td class="l"><code title="0x') <= 2 * MAX_NODES
    assert re.search(r"… and 3,\d\d\d keys more", page)


def synthetic(*, blocks: int, readers: int) -> Outcome:
    """Return the outcome of a run that never was: sizes that go up and down."""

    def point(block: int, reader: int) -> Point:
        causes = (60, 0, 2_000 + 37 * ((block * 7 + reader) % 101), 0, 500)
        size = 9_400 + sum(causes)
        whole: dict[str, Any] = {
            "pov_bytes": size,
            "compressed_bytes": size - 100,
            "own_pov_bytes": 4_000,
            "message_bytes": 4,
        }
        return Point(block, 5_000 + sum(causes), 5_000, 4_000, 20, 100_000, sum(causes), True, causes, **whole)

    lines = [[point(block, it) for block in range(1, blocks + 1)] for it in range(3)]
    series = {3_000 + it: lines[it % 3] for it in range(readers)}
    totals = {cause: NodeTotals(blocks, 1_000 * blocks) for cause in IN_THE_PROOF}
    cost = PublisherCost(
        para_id=2_000,
        keys=50,
        keys_walked=50 * blocks,
        keys_changed=20 * blocks,
        callbacks=20 * blocks,
        proof_bytes=5_000 * blocks,
        by_cause=totals,
        sibling_bytes=900 * blocks,
        uncacheable=NodeTotals(),
        cached=NodeTotals(),
        pruned={name.removeprefix("pruned_"): NodeTotals() for name in PRUNED},
        ref_time=1,
        proof_size=1,
        endings={"finished": blocks},
    )
    subscribers = [
        SubscriberOutcome(
            para_id=para_id,
            name=f"reader {para_id}",
            keys=50,
            blocks=blocks,
            deliveries=20 * blocks,
            callbacks=20 * blocks,
            proof_bytes=percentiles([it.proof_bytes for it in points]),
            static_bytes=percentiles([it.static_bytes for it in points]),
            own_bytes=percentiles([it.own_bytes for it in points]),
            pov_bytes=percentiles([it.pov_bytes for it in points]),
            compressed_bytes=percentiles([it.compressed_bytes for it in points]),
            pov_share=Share(0.01, 0.02, 0.03),
            compressed_share=Share(0.01, 0.02, 0.03),
            pov_parts=dict.fromkeys(("static", "top", "proof", "own", "messages"), Share(0.0, 0.01, 0.01)),
            message_free_bytes=1 << 20,
            any_key_bytes=1 << 15,
            uncharged=[],
            oversize_blocks=0,
            large_blocks=0,
            fullest_block=None,
            first_proof_bytes=0,
            warm_up_blocks=0,
            told_again=0,
            latency_blocks=latency([2, 3, 200]),
            incomplete_blocks=0,
            message_bytes=Percentiles(0, 0, 0, 0),
            waiting_bytes_max=0,
            refused_bytes=0,
            disabled_publishers=[],
            publishers=[cost] * 20,
        )
        for para_id, points in series.items()
    ]
    return Outcome(
        run_id="0123456789abcdef",
        name="long",
        description="",
        version="0",
        engine="local",
        seed=0,
        blocks=blocks,
        block_seconds=6.0,
        relaychain=RelayOutcome(
            genesis="modelled",
            genesis_entries=1,
            genesis_root="0x",
            state_root="0x",
            allowed_pov_bytes=1_000_000,
            max_pov_bytes=1_200_000,
        ),
        publishers=[
            PublisherOutcome(
                para_id=2_000 + it, name="", keys=50, sent=1, published=1, refused_messages=0, value_bytes=1, sizes=[1]
            )
            for it in range(20)
        ],
        subscribers=subscribers,
        oversize_blocks=0,
        invariants=InvariantsOutcome(True, []),
        series=series,
        latencies={para_id: {2: 10, 3: 5, 200: 1} for para_id in series},
    )


def told(**changes: Any) -> str:
    """Return why the synthetic reader's bytes were spent, with something changed about it."""
    outcome = synthetic(blocks=20, readers=2)
    reader = replace(outcome.subscribers[0], publishers=outcome.subscribers[0].publishers[:1])
    return why(replace(outcome, subscribers=[replace(reader, **changes)]))


def test_the_reasons_name_every_cause_that_matters_with_its_share() -> None:
    (cost,) = replace(synthetic(blocks=20, readers=1).subscribers[0]).publishers[:1]
    sums = dict.fromkeys(IN_THE_PROOF, NodeTotals())
    some = {**sums, "changed": NodeTotals(1, 900), "value": NodeTotals(1, 90), "top": NodeTotals(1, 10)}
    left = {**cost.pruned, "unchanged": NodeTotals(1, 750), "beyond_budget": NodeTotals(1, 250)}
    text = told(publishers=[replace(cost, by_cause=some, sibling_bytes=400, pruned=left)])
    assert "Of the 1,000 bytes that pub-sub put into the proofs of 3000 reader 3000, 90% are nodes that new" in text
    assert "and 9% are values" in text
    assert "1% are" not in text
    assert "40% are references to siblings" in text
    assert "1,000 bytes were collected and left out: 75% because nothing below had moved and 25% because the" in text
    alone = {**sums, "new": NodeTotals(1, 10)}
    assert "all are nodes where there was none before." in told(publishers=[replace(cost, by_cause=alone)])
    assert told(publishers=[replace(cost, by_cause=sums)]) == ""


def test_the_reasons_tell_of_budgets_disabled_publishers_and_the_price_of_the_cache() -> None:
    plain = told(own_bytes=percentiles([0]))
    assert "budget" not in plain
    assert "disabled" not in plain
    assert "own state" not in plain
    assert "In 7 of 20 blocks the budget ended before all was read." in told(incomplete_blocks=7)
    disabled = told(disabled_publishers=[2_000, 2_001])
    assert "3000 reader 3000 disabled 2000 and 2001: they are no longer read." in disabled
    assert "times as many" in told(own_bytes=percentiles([10**7]))


@pytest.mark.parametrize(
    ("blocks", "chosen"),
    [
        ([(3, True, 900), (4, True, 500), (5, True, 110), (6, True, 100)], [3, 5]),  # the median of 100 to 900 is 110
        ([(3, False, 50), (4, True, 900), (5, True, 110), (6, False, 100)], [4, 6]),  # the first one was cut short
        ([(3, False, 50), (4, False, 60)], [3, 4]),
        ([(3, True, 50)], [3]),
        ([], []),
    ],
)
def test_the_pictures_shown_are_the_first_whole_one_and_a_typical_later_one(
    blocks: list[tuple[int, bool, int]], chosen: list[int]
) -> None:
    tally = SubscriberStatistics()
    for tick, complete, pubsub in blocks:
        tally.points.append(Point(tick, 1_000 + pubsub, 1_000, 0, 1))
        tally.pictures.append(ProofPicture(tick, ParaId(3_000), tick - 1, complete, 1_000 + pubsub, 1_000, ()))
    assert [picture.tick for picture in tally.chosen_pictures] == chosen
