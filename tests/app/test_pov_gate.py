"""Proof sizes under version control: what is kept is read back, what grew is named with its causes."""

import tomllib
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.weather import weather
from command_line import Command, Refused, Written
from file_contents import contents
from relaycast.pov.gate import described, judge, tolerance_of
from relaycast.pov.snapshot import (
    PublisherSizes,
    ScenarioSizes,
    Snapshot,
    SubscriberSizes,
    read_snapshot,
    render_kept,
    write_kept,
)
from relaycast.refusal import BadInput
from relaycast_ledger.outcome import Percentiles

_KEPT: list[bytes] = []
"""What was kept first, for all tests that begin with it."""


@pytest.fixture
def kept(relaycast: Command, file: Written) -> str:
    """Keep the sizes of two scenarios."""
    file(weather(), "weather.toml")
    if _KEPT:
        return file(_KEPT[0], "pov.snapshot.toml")
    ended = relaycast("pov", "snapshot", "weather.toml", "config-sync")
    assert (ended.code, ended.out) == (0, "pov.snapshot.toml: kept weather (new), config-sync (new)\n")
    _KEPT.append(Path("pov.snapshot.toml").read_bytes())
    return "pov.snapshot.toml"


def test_the_same_scenarios_leave_the_same_bytes_and_pass(relaycast: Command, kept: str, tmp_path: Path) -> None:
    before = contents(tmp_path)
    ended = relaycast("pov", "snapshot", "--check")
    assert (ended.code, ended.err) == (0, "")
    assert "20 sizes of config-sync, weather compared with pov.snapshot.toml: none grew beyond 0%" in ended.out
    assert contents(tmp_path) == before
    assert relaycast("pov", "snapshot").code == 0
    assert contents(tmp_path) == before


def test_what_is_kept_is_what_a_run_leaves_of_itself(relaycast: Command, kept: str, tmp_path: Path) -> None:
    run = relaycast("run", "weather.toml", "--json").json
    left = read_snapshot(tmp_path / "out" / run["run_id"] / "pov.snapshot.toml").scenarios["weather"]
    held = read_snapshot(kept).scenarios["weather"]
    assert held == msgspec.structs.replace(left, source="weather.toml")
    assert relaycast("pov", "snapshot", "weather.toml", "--check", "--out", f"out/{run['run_id']}/{kept}").code == 0


def test_growth_is_named_with_its_causes_and_nothing_is_written(
    relaycast: Command, kept: str, file: Written, tmp_path: Path
) -> None:
    file(weather(value=60), "weather.toml")
    before = contents(tmp_path)
    ended = relaycast("pov", "snapshot", "--check", "--tolerance", "2%")
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert lines[0] == "grew: weather, subscriber 3000"
    assert any(line.startswith("  proof_bytes total ") and line.endswith("%)") for line in lines)
    cause = lines[lines.index("  proofs of all blocks:") + 1]
    assert cause.startswith("    +")
    assert cause.endswith(" values of publisher 2000")
    assert max(len(line) for line in lines if line.startswith(" ")) < 80
    assert "config-sync, subscriber" not in ended.out
    assert contents(tmp_path) == before

    grown = read_snapshot(kept).scenarios["weather"].subscribers[3000]
    verdict = relaycast("pov", "snapshot", "weather.toml", "--check", "--json").json
    assert not verdict["ok"]
    (total,) = [it for it in verdict["grown"] if it["figure"] == "proof_bytes total"]
    assert total["kept"] == grown.proof_bytes.total
    by_cause = [it for it in verdict["because"] if it["sizes"] == "proof_bytes"]
    assert sum(cause["more_bytes"] for cause in by_cause[0]["causes"]) == total["measured"] - total["kept"]


def test_a_tolerance_lets_small_growth_pass_and_no_more(relaycast: Command, kept: str, file: Written) -> None:
    file(weather(value=17), "weather.toml")
    check = ("pov", "snapshot", "weather.toml", "--check", "--json")
    grown = relaycast(*check).json["grown"]
    largest = max(it["measured"] / it["kept"] - 1 for it in grown)
    assert relaycast(*check, "--tolerance", f"{100 * largest + 0.01:.3f}%").code == 0
    assert relaycast(*check, "--tolerance", f"{100 * largest - 0.01:.3f}%").code == 1


def test_what_shrank_is_told_and_fails_nothing(relaycast: Command, kept: str, file: Written) -> None:
    file(weather(value=8, changed=1), "weather.toml")
    ended = relaycast("pov", "snapshot", "--check")
    assert ended.code == 0
    assert ended.out.startswith("shrank: weather, subscriber 3000\n")
    assert "weather: subscriber 3000 got 26 -> 19 callbacks" in ended.out
    assert "keep the smaller ones: the same command without --check" in ended.out


def test_a_rewrite_keeps_what_it_was_not_asked_about(relaycast: Command, kept: str, file: Written) -> None:
    before = read_snapshot(kept)
    file(weather(value=60), "weather.toml")
    assert "kept weather (again)" in relaycast("pov", "snapshot", "weather.toml").out
    after = read_snapshot(kept)
    assert after.scenarios["config-sync"] == before.scenarios["config-sync"]
    assert after.scenarios["weather"] != before.scenarios["weather"]
    assert relaycast("pov", "snapshot", "--check").code == 0


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda text: text.replace("blocks = 10", "blocks = 11"), "weather: kept are 10 blocks with seed 3, measured"),
        (lambda text: text.replace('name = "weather"', 'name = "climate"'), "climate: not in the kept snapshot"),
        (
            lambda text: text + "[[parachains]]\nid = 3001\nsubscribe = [{ publisher = 2000 }]\n",
            "weather: subscriber 3001 is not in the kept snapshot",
        ),
        (
            lambda text: text.replace("id = 3000", "id = 3002"),
            "weather: subscriber 3000 is in the kept snapshot, but not measured",
        ),
    ],
)
def test_what_only_one_side_has_fails(
    relaycast: Command, kept: str, file: Written, change: Callable[[str], str], line: str
) -> None:
    file(change(weather()), "weather.toml")
    ended = relaycast("pov", "snapshot", "weather.toml", "--check")
    assert ended.code == 1
    assert f"cannot be compared: {line}" in ended.out


def test_a_scenario_is_found_from_where_the_kept_file_is(
    relaycast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "sizes").mkdir()
    (tmp_path / "scenarios" / "weather.toml").write_text(weather())
    assert relaycast("pov", "snapshot", "scenarios/weather.toml", "--out", "sizes/kept.toml").code == 0
    assert read_snapshot("sizes/kept.toml").scenarios["weather"].source == "../scenarios/weather.toml"
    monkeypatch.chdir(tmp_path / "sizes")
    assert relaycast("pov", "snapshot", "--check", "--out", "kept.toml").code == 0
    (tmp_path / "scenarios" / "weather.toml").unlink()
    ended = relaycast("pov", "snapshot", "--check", "--out", "kept.toml")
    assert ended.code == 2
    assert ended.err.startswith("relaycast: kept.toml at source: got '../scenarios/weather.toml', expected a scenario")


def test_a_genesis_is_kept_with_the_sizes_and_measured_with_again(
    relaycast: Command, file: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(weather(), "weather.toml")
    file([[f"0x{number:04x}", "0x02"] for number in range(4)], "pairs.json")
    (tmp_path / "sizes").mkdir()
    kept = ("--out", "sizes/kept.toml")
    assert relaycast("pov", "snapshot", "weather.toml", "--genesis", "pairs.json", *kept).code == 0
    sizes = read_snapshot("sizes/kept.toml").scenarios["weather"]
    assert sizes.genesis == "../pairs.json"
    run = relaycast("run", "weather.toml", "--genesis", "pairs.json", "--json").json
    left = read_snapshot(tmp_path / "out" / run["run_id"] / "pov.snapshot.toml").scenarios["weather"]
    assert sizes.subscribers == left.subscribers
    other = relaycast("pov", "snapshot", "weather.toml", "--check", *kept)
    assert other.code == 1
    assert "cannot be compared: weather: kept are sizes on the genesis ../pairs.json, measured are those" in other.out
    assert relaycast("pov", "snapshot", "weather.toml", "--check", "--genesis", "pairs.json", *kept).code == 0
    left_by_run = ("--out", f"out/{run['run_id']}/pov.snapshot.toml")
    assert relaycast("pov", "snapshot", "weather.toml", "--check", "--genesis", "pairs.json", *left_by_run).code == 0
    monkeypatch.chdir(tmp_path / "sizes")
    assert relaycast("pov", "snapshot", "--check", "--out", "kept.toml").code == 0
    before = Path("kept.toml").read_bytes()
    assert relaycast("pov", "snapshot", "--out", "kept.toml").code == 0
    assert Path("kept.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("oracle --genesis missing.json", "missing.json: got no such file or directory"),
        ("", "pov snapshot: got no scenario, expected a scenario file or the name of a preset"),
        (
            "orcle",
            "pov snapshot: got 'orcle', expected a scenario file, or the name of a preset (did you mean oracle?)",
        ),
        ("oracle oracle", "oracle: got the name 'oracle' again, expected scenarios with names of their own"),
        ("--check", "pov.snapshot.toml: got no such file, expected a kept snapshot"),
        ("oracle --out weather.toml", "weather.toml at schema: got nothing, expected 1"),
        ("oracle --out kept.txt", "kept.txt: got text that is not TOML"),
        ("oracle --out wrong.toml", "wrong.toml at scenarios[...].blocks: got a snapshot that does not fit (Expected"),
        ("oracle --out newer.toml", "newer.toml at schema: got 2, expected 1"),
        ("oracle --tolerance two", "--tolerance: got 'two', expected a percentage from 0% to 1000%, such as 2%"),
        ("oracle --tolerance=-1%", "--tolerance: got '-1%', expected a percentage"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    refused: Refused, file: Written, arguments: str, line: str
) -> None:
    file(weather(), "weather.toml")
    file("not = = toml", "kept.txt")
    file("schema = 2\n", "newer.toml")
    file('schema = 1\n[scenarios.a]\nblocks = "ten"\nseed = 1\n', "wrong.toml")
    assert refused("pov", "snapshot", *arguments.split()).startswith(line)


@pytest.mark.parametrize("name", ["plain", "two words", 'quo"ted', "dot.ted", "tab\t", "ünï🦊", ""])
def test_any_name_of_a_scenario_is_kept(name: str, tmp_path: Path) -> None:
    sizes = ScenarioSizes(blocks=1, seed=2, source="a b.toml")
    written = Snapshot(scenarios={name: sizes, "other": sizes})
    write_kept(tmp_path / "kept.toml", written)
    assert read_snapshot(tmp_path / "kept.toml") == written
    assert tomllib.loads(render_kept(written))["scenarios"].keys() == {name, "other"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.toml"]


@pytest.mark.parametrize(("text", "part"), [("2%", 0.02), ("0.5 %", 0.005), ("10", 0.1), ("0", 0.0)])
def test_a_tolerance_is_a_percentage(text: str, part: float) -> None:
    assert tolerance_of(text, "here") == pytest.approx(part)


@pytest.mark.parametrize("text", ["", "nan", "1001", "-0.1", "2 percent"])
def test_what_is_no_percentage_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="a percentage from 0% to 1000%"):
        tolerance_of(text, "here")


def test_growth_from_nothing_is_growth() -> None:
    def sizes(incomplete: int) -> ScenarioSizes:
        spread = {"p50": 1, "p99": 1, "max": 1, "total": 1}
        table: dict[str, Any] = dict.fromkeys(("proof_bytes", "static_bytes", "own_bytes"), spread)
        subscriber = {**table, "callbacks": 0, "incomplete_blocks": incomplete}
        return msgspec.convert({"blocks": 1, "seed": 1, "subscribers": {1: subscriber}}, ScenarioSizes)

    verdict = judge(Snapshot(scenarios={"a": sizes(0)}), {"a": sizes(1)}, tolerance=10)
    assert [str(figure) for figure in verdict.grown] == ["incomplete_blocks 0 -> 1 (from nothing)"]
    assert repr(verdict) == "<Verdict FAILED: 1 of 9 figures grew>"
    assert judge(Snapshot(scenarios={"a": sizes(1)}), {"a": sizes(0)}, tolerance=0).ok


def test_what_came_through_a_pipe_has_no_place_to_be_found_at(
    relaycast: Command, file: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(weather(), "weather.toml")
    with Path("weather.toml").open("rb") as stream:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(stream))
        assert relaycast("pov", "snapshot", "-").code == 0
    assert read_snapshot("pov.snapshot.toml").scenarios["weather"].source == ""
    ended = relaycast("pov", "snapshot", "--check")
    assert ended.err.startswith("relaycast: pov.snapshot.toml at source: got 'weather', expected a scenario file")
    assert relaycast("pov", "snapshot", "weather.toml", "--check").code == 0


def test_an_invariant_that_broke_is_said_before_any_size(relaycast: Command, file: Written) -> None:
    starved = weather(value=30, changed=40).replace("keys = 12", "keys = 40, every = 10").replace("= 10\n", "= 24\n")
    lossy = "[relaychain]\nmax_pov_bytes = 6_000\n[policies]\nroot_commit = 'after-first-key'\n"
    file(starved + lossy, "weather.toml")
    ended = relaycast("pov", "snapshot", "weather.toml")
    assert ended.code == 3
    assert ended.out.startswith("violated: weather: ")
    assert not relaycast("pov", "snapshot", "--check", "--json").json["ok"]


def test_a_kept_file_may_hold_nothing_yet(relaycast: Command, file: Written) -> None:
    file(weather(), "weather.toml")
    file("schema = 1\n", "pov.snapshot.toml")
    assert "weather: not in the kept snapshot" in relaycast("pov", "snapshot", "weather.toml", "--check").out
    assert relaycast("pov", "snapshot", "weather.toml").out == "pov.snapshot.toml: kept weather (new)\n"


def test_growth_is_explained_by_growth_and_shrinkage_by_shrinkage() -> None:
    def sizes(proof: int, own: int, new: int, changed: int) -> SubscriberSizes:
        publisher = PublisherSizes(
            top=0, new=new, changed=changed, unseen=0, value=0, cached=own, pruned=0, sibling_bytes=0
        )
        spread = Percentiles(proof, proof, proof, proof)
        return SubscriberSizes(
            proof_bytes=spread,
            static_bytes=Percentiles(0, 0, 0, 0),
            own_bytes=Percentiles(own, own, own, own),
            callbacks=1,
            incomplete_blocks=0,
            publishers={2_000: publisher},
        )

    before, after = sizes(100, 50, 60, 40), sizes(120, 30, 90, 30)
    kept = Snapshot(scenarios={"it": ScenarioSizes(blocks=1, seed=0, subscribers={3_000: before})})
    verdict = judge(kept, {"it": ScenarioSizes(blocks=1, seed=0, subscribers={3_000: after})}, tolerance=0.0)
    grew, _, shrank = "\n".join(described(verdict)).partition("shrank: ")
    assert "+30 new nodes" in grew
    assert "and 10 fewer by other causes" in grew
    assert "-" not in grew.replace("->", ""), "no shrinkage under growth"
    assert "proof_bytes" not in shrank
    assert "-20 cached nodes" in shrank
    assert "+" not in shrank
