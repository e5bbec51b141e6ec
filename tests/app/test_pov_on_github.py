"""Proof sizes on GitHub: annotations, the summary of the job, and the shell lines of the workflow and the action."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.weather import weather
from command_line import Command, Refused, Written
from relaycast.pov.gate import Figure, Verdict
from relaycast.pov.github import Findings, annotation_lines, escaped, escaped_property, summary

CI = Path(__file__).parents[2] / "docs" / "ci"

NOTHING_ELSE = Findings([], [], allow_oversize=False)

Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def job_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a file be the summary of a job."""
    file = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    return file


@pytest.fixture
def kept(relaycast: Command, file: Written) -> str:
    """Keep the sizes of a scenario."""
    file(weather(), "weather.toml")
    assert relaycast("pov", "snapshot", "weather.toml").code == 0
    return "pov.snapshot.toml"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Return what runs lines as the runner does, with what this Python has as ``relaycast``."""
    (tmp_path / "bin").mkdir()
    for name, line in (("relaycast", "-m relaycast"), ("python", "")):
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {line} "$@"\n')
        command.chmod(0o755)

    def run(lines: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(filter(None, sys.path)),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_WORKSPACE": str(tmp_path),
            "HOME": str(tmp_path),
            **variables,
        }
        asked = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines]
        return subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize(
    ("text", "expected", "in_a_property"),
    [
        ("100% of a: b, c", "100%25 of a: b, c", "100%25 of a%3A b%2C c"),
        ("two\r\nlines", "two%0D%0Alines", "two%0D%0Alines"),
        ("%0A", "%250A", "%250A"),  # what looks escaped stays what it is
        ("plain", "plain", "plain"),
    ],
)
def test_a_workflow_command_keeps_its_text_whole(text: str, expected: str, in_a_property: str) -> None:
    assert escaped(text) == expected
    assert escaped_property(text) == in_a_property


def grown(scenario: str, subscriber: int = 3000) -> Figure:
    return Figure(scenario=scenario, subscriber=subscriber, figure="proof_bytes p50", kept=10, measured=11)


def test_no_name_makes_a_command_or_a_cell_of_its_own() -> None:
    name = "a::b,c%\n::error::x | *y* <b>"
    verdict = Verdict(tolerance=0.0, grown=[grown(name)], compared=1)
    (line,) = annotation_lines(verdict, NOTHING_ELSE, Path("kept, 1.toml"))
    title = "a%3A%3Ab%2Cc%25%0A%3A%3Aerror%3A%3Ax | *y* <b>%2C subscriber 3000%3A 1 size grew"
    assert line == f"::error file=kept%2C 1.toml,title={title}::proof_bytes p50 10 -> 11 (+10.0%25)"
    text = summary(verdict, NOTHING_ELSE, [name], Path("kept.toml"))
    (row,) = (it for it in text.splitlines() if it.startswith("| a"))
    assert row == (r"| a::b,c% ::error::x \| \*y\* \<b\> | 3000 | proof\_bytes p50 | 10 | 11 | +10.0% |")


def test_the_tenth_annotation_counts_those_that_github_would_not_show() -> None:
    verdict = Verdict(tolerance=0.0, grown=[grown("weather", 3_000 + number) for number in range(12)], compared=12)
    lines = list(annotation_lines(verdict, NOTHING_ELSE, Path("kept.toml")))
    assert len(lines) == 10
    assert lines[-1] == "::error file=kept.toml,title=proof sizes::3 more are in the summary of the job"


def test_a_check_without_growth_annotates_nothing_and_sums_up(relaycast: Command, kept: str, job_summary: Path) -> None:
    ended = relaycast("pov", "snapshot", "--check", "--github")
    assert ended.code == 0
    assert "::" not in ended.out
    assert job_summary.read_text().startswith("### Proof sizes: passed\n\n10 sizes of weather compared with ")
    assert "none grew beyond 0%" in job_summary.read_text()


def test_growth_is_an_error_and_shrinkage_a_warning(
    relaycast: Command, kept: str, file: Written, job_summary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path.parent))
    job_summary.write_text("what an earlier command said\n\n")
    file(weather(value=60, changed=1), "weather.toml")
    ended = relaycast("pov", "snapshot", "--check", "--github")
    assert ended.code == 1
    errors, warnings = (
        [it for it in ended.out.splitlines() if it.startswith(f"::{level}")] for level in ("error", "warning")
    )
    place = f"file={tmp_path.name}/pov.snapshot.toml,title=weather%2C subscriber 3000%3A"
    assert len(errors) == 1
    assert errors[0].startswith(f"::error {place} ")
    assert "%0Aproofs of all blocks:%0A  +" in errors[0]
    assert warnings[0].startswith(f"::warning {place} ")
    text = job_summary.read_text()
    assert text.startswith("what an earlier command said\n\n### Proof sizes: failed\n")
    grew, _, shrank = text.partition("#### What shrank\n")
    assert "| weather | 3000 | proof\\_bytes first |" in grew.partition("#### What grew\n")[2]
    assert "| weather | 3000 | own\\_bytes total |" in shrank


def test_blocks_that_do_not_fit_are_errors_unless_they_are_allowed(
    relaycast: Command, file: Written, job_summary: Path
) -> None:
    file(weather(value=2_000) + "[relaychain]\nmax_pov_bytes = 6_000\n", "weather.toml")
    assert relaycast("pov", "snapshot", "weather.toml", "--allow-oversize").code == 0
    ended = relaycast("pov", "snapshot", "--check", "--github")
    assert ended.code == 1
    assert "::error file=pov.snapshot.toml,title=blocks do not fit::weather: Does not fit:" in ended.out
    assert job_summary.read_text().startswith("### Proof sizes: failed\n")
    allowed = relaycast("pov", "snapshot", "--check", "--github", "--allow-oversize")
    assert allowed.code == 0
    assert "::warning file=pov.snapshot.toml,title=blocks do not fit::" in allowed.out


def test_what_cannot_be_compared_is_an_error(relaycast: Command, kept: str, file: Written, job_summary: Path) -> None:
    file(weather().replace("blocks = 10", "blocks = 11"), "weather.toml")
    ended = relaycast("pov", "snapshot", "--check", "--github")
    assert ended.code == 1
    assert "title=cannot be compared::weather: kept are 10 blocks with seed 3" in ended.out
    assert "- cannot be compared: weather: kept are 10 blocks" in job_summary.read_text()


def test_json_has_standard_output_for_itself(relaycast: Command, kept: str, file: Written, job_summary: Path) -> None:
    file(weather(value=60), "weather.toml")
    ended = relaycast("pov", "snapshot", "--check", "--github", "--json")
    assert not ended.json["ok"]
    assert ended.err.startswith("::error file=pov.snapshot.toml,")


def test_outside_of_a_job_nothing_is_written(
    relaycast: Command, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(tmp_path.rglob("*"))
    for value in (None, ""):
        if value is None:
            monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
        else:
            monkeypatch.setenv("GITHUB_STEP_SUMMARY", value)
        assert relaycast("pov", "snapshot", "--check", "--github").code == 0
    assert sorted(tmp_path.rglob("*")) == before


def test_a_summary_that_cannot_be_written_is_said_below_the_verdict(kept: str, shell: Shell, tmp_path: Path) -> None:
    ended = shell("relaycast pov snapshot --check --github", GITHUB_STEP_SUMMARY=str(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"relaycast: {tmp_path}: ")
    assert len(ended.stderr.splitlines()) == 1
    assert "none grew beyond 0%" in ended.stdout


def test_annotations_belong_to_a_check(refused: Refused, kept: str) -> None:
    assert refused("pov", "snapshot", "oracle", "--github").startswith("--github: got no --check, expected --check")


def run_lines(file: str, step_names: list[str]) -> list[str]:
    """Return the commands of the steps of these names, as the runner would hand them to a shell."""
    parsed = yaml.safe_load((CI / file).read_text())
    steps: list[dict[str, Any]]
    if "runs" in parsed:
        steps = parsed["runs"]["steps"]
    else:
        (job,) = parsed["jobs"].values()
        assert job["defaults"]["run"]["shell"] == "bash"
        steps = job["steps"]
    by_name = {str(step.get("name")): str(step.get("run")) for step in steps}
    return [by_name[name] for name in step_names]


@pytest.mark.slow
def test_the_workflow_passes_fails_and_shows_as_it_says(kept: str, file: Written, shell: Shell, tmp_path: Path) -> None:
    assert run_lines("pov.yml", ["Install"]) == ['pip install "$(echo ./relaycast-*.whl)[wasm]"']
    names = ["Hold proof sizes against pov.snapshot.toml", "Show what the snapshot would become"]
    check, show = run_lines("pov.yml", names)
    assert shell("git init -q && git add pov.snapshot.toml").returncode == 0
    assert shell(check).returncode == 0
    assert "none grew beyond 2%" in (tmp_path / "summary.md").read_text()
    file(weather(value=60), "weather.toml")
    assert shell(check).returncode == 1
    assert "#### What grew" in (tmp_path / "summary.md").read_text()
    shown = shell(show)
    assert shown.returncode == 0
    assert "-proof_bytes = {" in shown.stdout
    assert "+proof_bytes = {" in shown.stdout


def test_the_action_is_composite_and_every_input_is_used() -> None:
    action = yaml.safe_load((CI / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    steps = action["runs"]["steps"]
    assert [step["uses"] for step in steps if "uses" in step] == ["actions/setup-python@v5"], "nothing is checked out"
    assert all(step["shell"] == "bash" for step in steps if "run" in step)
    assert not any("${{" in step.get("run", "") for step in steps), "inputs reach a shell as variables alone"
    values = [value for step in steps for value in (*step.get("env", {}).values(), *step.get("with", {}).values())]
    assert sorted(values) == sorted(f"${{{{ inputs.{name} }}}}" for name in action["inputs"])
    assert all(isinstance(it["default"], str) and it["description"] for it in action["inputs"].values())


def test_the_action_installs_the_clone_that_it_is_a_part_of_or_what_it_is_told(shell: Shell, tmp_path: Path) -> None:
    (install,) = run_lines("action.yml", ["Install relaycast"])
    pip = tmp_path / "bin" / "python"
    pip.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > asked\n')
    shell(install, SOURCE="", EXTRAS="wasm", GITHUB_ACTION_PATH=str(CI))
    *_, place = (tmp_path / "asked").read_text().splitlines()
    assert place.endswith("[wasm]"), "scenarios with real runtimes are measured, too"
    assert (Path(place.removesuffix("[wasm]")) / "pyproject.toml").samefile(CI.parents[1] / "pyproject.toml")
    sources = {
        ("./a folder", ""): "./a folder",
        ("./a folder", "wasm,spark"): "./a folder[wasm,spark]",
        ("git+https://host/owner/relaycast@1", "wasm"): "relaycast[wasm] @ git+https://host/owner/relaycast@1",
        ("git+https://host/owner/relaycast@1", ""): "relaycast @ git+https://host/owner/relaycast@1",
    }
    for (source, extras), wanted in sources.items():
        shell(install, SOURCE=source, EXTRAS=extras, GITHUB_ACTION_PATH=str(CI))
        asked = (tmp_path / "asked").read_text().splitlines()
        assert asked == ["-m", "pip", "install", "--disable-pip-version-check", wanted]


def test_the_action_passes_and_fails_as_a_check_does(kept: str, file: Written, shell: Shell, tmp_path: Path) -> None:
    (check,) = run_lines("action.yml", ["Compare proof sizes"])
    inputs = {"SCENARIOS": "", "SNAPSHOT": kept, "TOLERANCE": "2%", "ALLOW_OVERSIZE": "false"}
    assert shell(check, **inputs).returncode == 0
    assert "### Proof sizes: passed" in (tmp_path / "summary.md").read_text()
    file(weather(value=60), "weather.toml")
    failed = shell(check, **inputs)
    assert failed.returncode == 1
    assert "\n::error file=pov.snapshot.toml,title=weather%2C subscriber 3000" in failed.stdout
    assert shell(check, **{**inputs, "TOLERANCE": "900%", "SCENARIOS": "wea*.toml"}).returncode == 0
    assert shell(check, **{**inputs, "SCENARIOS": "nowhere.toml"}).returncode == 2


@pytest.mark.slow
def test_the_action_warns_of_blocks_that_do_not_fit_where_they_are_allowed(
    relaycast: Command, file: Written, shell: Shell
) -> None:
    file(weather(value=2_000) + "[relaychain]\nmax_pov_bytes = 6_000\n", "weather.toml")
    relaycast("pov", "snapshot", "weather.toml", "--allow-oversize")
    (check,) = run_lines("action.yml", ["Compare proof sizes"])
    inputs = {"SCENARIOS": "weather.toml", "SNAPSHOT": "pov.snapshot.toml", "TOLERANCE": "0%"}
    assert shell(check, **inputs, ALLOW_OVERSIZE="false").returncode == 1
    assert shell(check, **inputs, ALLOW_OVERSIZE="true").returncode == 0
