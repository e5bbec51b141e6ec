"""The page that ``compare`` writes: what differs in words, charts on one scale, every figure with its difference."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.browser import cut_on_paper, dumped
from app.page import parsed
from command_line import Command, Refused, Written
from relaycast.compare.comparison import Compared, compare_runs
from relaycast.compare.page import render_comparison
from relaycast.compare.rows import choice_rows, figure_rows, left_out, meaning, scenario_rows, verdict
from relaycast.scenario.policy_choice import KINDS, PolicyTable
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable

BASE = Scenario(
    name="feeds",
    blocks=12,
    parachains=[
        ParachainTable(id=2_000, publish=PublishTable(keys=30, every=2, changed=2)),
        ParachainTable(id=3_000, name="reader", subscribe=[SubscriptionTable(publisher=2_000)]),
    ],
)


@pytest.fixture(scope="module")
def compared() -> Compared:
    return compare_runs(BASE, replace(BASE, policies=PolicyTable(cache="none")))


def test_the_page_is_well_formed_and_needs_no_script(compared: Compared, tmp_path: Path) -> None:
    text = render_comparison(compared)
    page = parsed(text)
    assert page.named("script") == []
    assert len(page.named("svg")) == 6
    file = tmp_path / "report.html"
    file.write_text(text)
    _, console = dumped(file, tmp_path)
    assert console == []


def test_on_paper_charts_are_whole_and_the_ground_is_white(compared: Compared, tmp_path: Path) -> None:
    text = render_comparison(compared)
    screen, paper = cut_on_paper(text, tmp_path)
    assert screen != "0 cut, ground rgb(255, 255, 255)", "on a screen as narrow as that they scroll"
    assert paper == "0 cut, ground rgb(255, 255, 255)"
    assert "@media screen and (prefers-color-scheme: dark)" in text, "paper is white where the screen is dark"


def test_what_differs_comes_first_in_words(compared: Compared) -> None:
    text = render_comparison(compared)
    ((kind, ours, theirs),) = choice_rows(*(it.policies for it in compared.scenarios))
    assert (kind, ours[0], theirs[0]) == ("cache", "structure", "none")
    assert theirs[1] == "Nothing stays: every block with a change proves all subscribed paths again."
    assert text.index(theirs[1]) < text.index("What a block carries")
    assert scenario_rows(*compared.scenarios) == []


def test_the_verdict_agrees_with_the_figures(compared: Compared) -> None:
    comparison = compared.comparison
    first, second = comparison.first.subscribers[3_000], comparison.second.subscribers[3_000]
    told = verdict(comparison)
    assert f"{second.proof_bytes.total - first.proof_bytes.total:,} bytes" in told
    assert "more" in told
    assert f"{first.own_bytes.total - second.own_bytes.total:,} bytes" in told
    assert f"told {second.redeliveries:,} values more once again" in told
    same = verdict(compare_runs(BASE, BASE).comparison)
    assert same.count("as many bytes") == 3


def test_every_figure_of_every_reader_is_there_with_its_difference(compared: Compared) -> None:
    text = render_comparison(compared)
    first, second = (it.subscribers[3_000] for it in (compared.comparison.first, compared.comparison.second))
    rows, missing = list(figure_rows(first, second)), left_out(first, second)
    assert missing.startswith(
        "7 figures left out, zero or absent on both sides: blocks that do not fit, overtaken values, "
    )
    assert len(rows) + len(missing.split(", zero or absent")[1].split(", ")) == 27
    assert f">{missing}</p>" in text
    for row in rows:
        assert row[1:3] not in {("0", "0"), ("-", "-")}
        cells = "".join(f"<td>{cell}</td>" for cell in row[1:3])
        assert f'<th scope="row">{row[0]}</th>{cells}' in text
        assert f">{row[3]}</td>" in text


def test_both_sides_are_drawn_on_one_scale(compared: Compared) -> None:
    page = parsed(render_comparison(compared))
    named = [it.attributes["aria-label"] for it in page.named("svg")]
    assert named[0] == named[1]
    assert named[2] == named[3]
    text = render_comparison(compared)
    charts = [part.split("</svg>")[0] for part in text.split("<svg")[1:]]
    scales = [chart.split('class="grid"')[5].split(">")[2].split("<")[0] for chart in charts[:4]]
    assert len(set(scales[:2])) == len(set(scales[2:])) == 1


def test_runs_of_the_page_are_those_of_run(compared: Compared, relaycast: Command, file: Written) -> None:
    told = relaycast("run", file(json.dumps({"extends": None, **_plain(BASE)}), "feeds.json"), "--json").json
    assert told["run_id"] == compared.runs[0].run_id
    assert told["subscribers"][0]["proof_bytes"] == {
        "p50": compared.runs[0].subscribers[0].proof_bytes.p50,
        "p99": compared.runs[0].subscribers[0].proof_bytes.p99,
        "max": compared.runs[0].subscribers[0].proof_bytes.max,
        "total": compared.runs[0].subscribers[0].proof_bytes.total,
    }


def _plain(scenario: Scenario) -> dict[str, object]:
    import msgspec  # noqa: PLC0415

    found = msgspec.to_builtins(scenario)
    assert isinstance(found, dict)
    return {name: value for name, value in found.items() if value is not None}


def test_scenarios_that_differ_are_told_apart_place_by_place() -> None:
    other = replace(BASE, blocks=6, relaychain=RelayChainTable(pov_percent=50))
    rows = scenario_rows(BASE, other)
    assert ("blocks", "12", "6") in rows
    assert ("relaychain.pov_percent", "85", "50") in rows
    assert len(rows) == 2
    text = render_comparison(compare_runs(BASE, other))
    assert "The two publish different things" in text
    parsed(text)


def test_a_reader_of_one_side_alone_has_a_table() -> None:
    chains = [
        *BASE.parachains[:1],
        ParachainTable(id=3_001, name="<b>", subscribe=[SubscriptionTable(publisher=2_000)]),
    ]
    text = render_comparison(compare_runs(BASE, replace(BASE, parachains=chains)))
    parsed(text)
    assert "No parachain subscribes in both." in text
    assert "3001 &lt;b&gt;" in text


def test_every_policy_says_what_it_does() -> None:
    for kind, names in KINDS.items():
        for name in names:
            assert meaning(kind, name).endswith((".", ")"))
    assert meaning("max_cached_node", 512)


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("relaycast.compare.comparison.compare_runs", None)
    (tmp_path / "file").write_text("")
    told = refused("compare", "oracle", "--policy", "cache=none", "--out", "file/below")
    assert told == "--out file/below: got not a directory, expected a folder that can be written"


def test_the_command_leaves_a_page_and_the_figures(relaycast: Command, tmp_path: Path) -> None:
    ended = relaycast("compare", "config-sync", "--policy", "cache=none", "--blocks", "5", "--out", "there")
    (folder,) = (tmp_path / "there").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["comparison.json", "report.html"]
    assert f"report: {folder.relative_to(tmp_path)}/report.html" in ended.out
    again = relaycast("compare", "config-sync", "--policy", "cache=none", "--blocks", "5", "--out", "there", "--json")
    assert json.loads((folder / "comparison.json").read_bytes()) == again.json
    assert len(list((tmp_path / "there").iterdir())) == 1
