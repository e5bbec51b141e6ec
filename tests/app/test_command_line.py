"""The command as a whole: help, slips, pipes, quiet and colour, and what shells complete."""

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Command, Refused, Written
from relaycast.cli.command import build_app
from relaycast.cli.verbs import QUESTIONS, VERBS, WORDS

SUBVERBS = {
    "trie": ["root", "show"],
    "proof": ["make", "verify", "show"],
    "xcm": ["encode", "decode"],
    "scale": ["encode", "decode", "list"],
    "attack": ["spam", "depth", "churn", "squat", "omit", "extra", "callbacks", "price"],
    "import": ["chain-spec", "state"],
    "runtime": ["show", "call", "diff"],
    "subscribe": ["add", "list", "show", "remove", "deadletters"],
    "icrc": ["call", "listen", "did"],
    "vectors": ["export", "check"],
}
RELAYCAST = [sys.executable, "-m", "relaycast"]


_HELP: list[str] = []
"""The page of all verbs, printed once."""


def test_without_arguments_it_says_in_ten_lines_what_it_can_do(relaycast: Command) -> None:
    ended = relaycast()
    lines = ended.out.splitlines()
    assert (ended.code, len(lines), max(map(len, lines)) < 120) == (0, 10, True)
    for (question, verbs), line in zip(QUESTIONS.items(), lines[1:-1], strict=True):
        assert line.split("?")[0].strip() + "?" == question
        assert line.split("?")[1].strip().split(", ") == list(verbs)


def test_every_verb_answers_one_question() -> None:
    assert sum(map(len, QUESTIONS.values())) == len(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_line_and_a_help_page(verb: str, relaycast: Command) -> None:
    if not _HELP:
        _HELP.append(relaycast("--help").out)
    assert verb in _HELP[0]
    ended = relaycast(verb, "--help")
    assert ended.code == 0
    assert f"relaycast {verb}" in ended.out


def test_help_before_a_verb_is_the_help_of_it(relaycast: Command) -> None:
    assert relaycast("help", "proof", "verify").out == relaycast("proof", "verify", "--help").out
    assert relaycast("help").out == relaycast("--help").out


def test_words_that_people_type_lead_to_verbs_that_there_are(refused: Refused) -> None:
    for word, lead in WORDS.items():
        assert word not in VERBS
        named = set(re.findall(r"[a-z-]+", lead))
        assert named & {*VERBS, "--version"}, lead
        assert f"got '{word}', expected a verb: {lead} (see" in refused(word)


@pytest.mark.parametrize(
    "verb", [*(name for name in VERBS if name not in SUBVERBS), *(f"{a} {b}" for a in SUBVERBS for b in SUBVERBS[a])]
)
def test_the_help_of_a_verb_shows_an_example(verb: str, relaycast: Command) -> None:
    shown = relaycast(*verb.split(), "--help").out
    assert "Example:" in shown or verb in ("bench", "pov"), "groups show examples with their verbs"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("predict",),
            "predict: got no --keys, expected keys that the publisher has, or a scenario (see relaycast predict",
        ),
        (("predict", "--keys"), "predict: got --keys without a value, expected keys that the publisher has (see rel"),
        (("run",), "run: got no SCENARIO, expected a scenario in TOML, YAML or JSON, the name of a preset, or - for"),
        (("demoo",), "arguments: got 'demoo', expected a verb, did you mean demo? (see relaycast --help)"),
        (("proof", "shw"), "proof: got 'shw', expected a verb, did you mean show? (see relaycast proof --help)"),
        (("--hepl",), "arguments: got '--hepl', expected a flag, did you mean --help? (see relaycast --help)"),
        (("run", "oracle", "--blcks", "3"), "run: Unknown option: --blcks. Did you mean --blocks? (see relaycast run"),
        (("run", "oracle", "--blocks", "x"), "run: --blocks: got 'x', expected a whole number (see relaycast run"),
        (("run", "oracle", "--engine", "sprak"), 'run: Invalid value "sprak" for --engine. Choose from: "local", "spa'),
        (("run", "oracel"), "run: got 'oracel', expected a scenario file, or the name of a preset (did you mean orac"),
        (("demo", "hartbeats"), "the preset: got 'hartbeats', expected the name of a preset that can run (did you me"),
        (("compare", "oracle", "--policy", "cach=none"), "--policy: got 'cach', expected a kind of policy before the"),
        (("completion", "tcsh"), 'completion: Invalid value "tcsh" for SHELL. Choose from: "bash", "zsh", "fish".'),
    ],
)
def test_a_slip_on_the_command_line_is_named_with_what_was_meant(
    refused: Refused, arguments: tuple[str, ...], line: str
) -> None:
    assert refused(*arguments).startswith(line)


@pytest.mark.parametrize(
    ("arguments", "module", "extra"),
    [
        (("bench", "spark", "--count", "0", "--blocks", "1"), "psutil", "spark"),
        (("prove", "state.json", "--out", "proofs.parquet", "--engine", "spark"), "pyspark", "spark"),
        (("bench", "spark"), "pyspark", "spark"),
    ],
)
def test_a_missing_module_of_an_extra_is_one_line_that_names_the_extra(
    arguments: tuple[str, ...],
    module: str,
    extra: str,
    refused: Refused,
    file: Written,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file([["0x01", "0x02"]], "state.json")
    for name in [it for it in sys.modules if it.startswith(("relaycast_spark.bulk_proofs", "relaycast.bench."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    line = refused(*arguments)
    said = rf"(\w+: got no module {module}(\.[\w.]+)?, expected the extra \"{extra}\"|PySpark is not installed): "
    assert re.fullmatch(said + rf"pip install -e '\.\[{extra}\]' in the clone of relaycast", line), line


def test_a_missing_module_of_ours_stays_a_fault(relaycast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "relaycast.cli.installed", None)
    with pytest.raises(ModuleNotFoundError):
        relaycast("doctor")


@pytest.mark.parametrize("verb", [("prove", "state.json"), ("run", "oracle", "--engine", "spark"), ("sweep", "s.toml")])
@pytest.mark.parametrize(
    ("master", "hint"),
    [
        ("loca[2]", " (did you mean local[2]?)"),
        ("Local[*]", " (did you mean local[*]?)"),
        ("spak://host:7077", " (did you mean spark://host:7077?)"),
        ("local[0]", ""),
        ("local[two]", ""),
        ("host:7077", ""),
        ("", ""),
    ],
)
def test_a_master_of_no_known_form_is_refused(
    verb: tuple[str, ...], master: str, hint: str, refused: Refused, file: Written
) -> None:
    file([["0x01", "0x02"]], "state.json")
    file('scenarios = ["oracle"]\n', "s.toml")
    more = ("--engine", "spark") if verb[0] == "sweep" else ()
    line = refused(*verb, *more, "--master", master, "--out", "out")
    known = "local, local[N], local[*], local-cluster[..], spark://HOST:PORT, yarn, k8s://HOST:PORT"
    assert line == f"--master: got {master!r}, expected {known}{hint}"


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
@pytest.mark.parametrize(
    "arguments",
    [("demo", "config-sync", "--blocks", "3"), ("schema",), ("attack", "depth", "--blocks", "9"), ("new", "mine")],
)
def test_quiet_prints_nothing_and_does_everything(
    flag: str, arguments: tuple[str, ...], relaycast: Command, tmp_path: Path
) -> None:
    ended = relaycast(*arguments, flag)
    assert (ended.code, ended.out) == (0, "")
    assert arguments[0] in ("schema", "attack") or list(tmp_path.iterdir())


def test_quiet_still_says_what_is_wrong(refused: Refused) -> None:
    assert "did you mean oracle?" in refused("-q", "demo", "oracel")


def test_verbose_has_a_short_name(relaycast: Command) -> None:
    long, short = (relaycast("demo", "config-sync", "--blocks", "4", flag).out for flag in ("--verbose", "-v"))
    assert long == short
    assert len(long) > len(relaycast("demo", "config-sync", "--blocks", "4").out)


def on_a_terminal(arguments: list[str], folder: Path, **environment: str) -> bytes:
    """Return what a command prints on a terminal."""
    leader, follower = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **environment}
    settings = {name: value for name, value in settings.items() if value}
    with subprocess.Popen(
        [*RELAYCAST, *arguments], stdin=follower, stdout=follower, stderr=follower, cwd=folder, env=settings
    ) as run:
        os.close(follower)
        printed = b""
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:
                break
            if not part:
                break
            printed += part
        run.wait(60)
    os.close(leader)
    return printed


def test_no_bar_is_drawn_for_one_who_wants_no_colour(tmp_path: Path) -> None:
    for command in (["run"], ["compare", "--policy", "cache=none"], ["pov", "snapshot"]):
        words = [*command, "oracle", *(["--blocks", "12"] if command[0] != "pov" else [])]
        assert b"\x1b[?25l" in on_a_terminal(words, tmp_path, NO_COLOR="")
        assert b"\x1b[?25l" not in on_a_terminal(words, tmp_path, NO_COLOR="1")


def test_colour_is_for_terminals_that_want_it(relaycast: Command, tmp_path: Path) -> None:
    attack = ["attack", "spam", "--blocks", "1", "--parachains", "1"]
    assert b"\x1b[32m" in on_a_terminal(attack, tmp_path, NO_COLOR="")
    assert b"\x1b[3" not in on_a_terminal(attack, tmp_path, NO_COLOR="1")
    piped = relaycast(*attack)
    assert "\x1b" not in piped.out
    assert (piped.code, piped.err) == (0, "")


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    with subprocess.Popen([*RELAYCAST, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.read(1)
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait(60) in (0, 141)


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_error_and_no_file_takes_their_place(
    closed: str, relaycast: Command, tmp_path: Path
) -> None:
    assert relaycast("demo", "config-sync", "--blocks", "3", "--out", "open").code == 0
    shell = ["/bin/sh", "-c", f'"$@" demo config-sync --blocks 3 --out closed {closed}', "sh"]
    ended = subprocess.run([*shell, *RELAYCAST], capture_output=True, cwd=tmp_path, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert files_in(tmp_path / "closed") == files_in(tmp_path / "open")


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_pipe_gets_whole_sentences_on_one_line(relaycast: Command) -> None:
    story = [
        line for line in relaycast("demo", "config-sync", "--blocks", "4").out.splitlines() if "Percentile" in line
    ]
    assert len(story) == 1
    assert story[0].startswith("Over 4 relay blocks")
    assert story[0].endswith(".")


def test_a_run_in_which_nothing_arrives_claims_no_latency(relaycast: Command, tmp_path: Path) -> None:
    out = relaycast("demo", "--blocks", "1", "--verbose").out
    assert "oracle  1 relay block, seed" in out
    assert "Over 1 relay block (" in out
    assert [line.split()[-2] for line in out.splitlines() if line.startswith("300")][:2] == ["-", "-"]
    assert "formula" not in out
    told = relaycast("run", "oracle", "--blocks", "1", "--json").json
    assert told["subscribers"][0]["latency_blocks"] == {"p50": None, "p99": None, "max": None}
    (page,) = tmp_path.rglob("report.html")
    assert "no delivery" in page.read_text(encoding="utf-8")


def test_every_bench_has_a_line_on_the_help_page(relaycast: Command) -> None:
    out = relaycast("bench", "--help").out
    assert "spark" in out
    assert "Make and verify proofs on Spark" in out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_with_every_verb_and_their_flags(shell: str, relaycast: Command, tmp_path: Path) -> None:
    script = relaycast("completion", shell).out
    assert all(verb in script for verb in VERBS)
    assert "blocks" in script
    assert "chain-spec" in script
    file = tmp_path / "script"
    file.write_text(script)
    interpreter = shutil.which(shell)
    if interpreter is not None:
        subprocess.run([interpreter, "-n", str(file)], check=True, timeout=60)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dem", ["demo"]),
        ("demo --js", ["--json"]),
        ("completion ba", ["bash"]),
        ("attack depth --json --block", ["--blocks"]),
        ("bench engine --json here.js", ["here.json"]),
        ("bench spark --json here.js", ["here.json"]),
        ("trie --json sho", ["show"]),  # --json takes a file in bench alone: elsewhere the next word is none
    ],
)
def test_bash_completes_what_is_typed(typed: str, offered: list[str], relaycast: Command, tmp_path: Path) -> None:
    file = tmp_path / "script"
    file.write_text(relaycast("completion", "bash").out)
    (tmp_path / "here.json").touch()
    line = f"relaycast {typed}"
    ask = (
        f"source {file}; COMP_WORDS=({line}); COMP_CWORD={line.count(' ')}; COMP_LINE='{line}'; "
        f"COMP_POINT={len(line)}; _relaycast; echo ${{COMPREPLY[@]}}"
    )
    answer = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, timeout=60, cwd=tmp_path)
    assert answer.stdout.split() == offered


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_flag_of_one_verb_hides_no_word_behind_it_for_taking_a_value_in_another(
    shell: str, relaycast: Command
) -> None:
    lists = re.findall(r"options_with_values[= ]'(.*)'", relaycast("completion", shell).out)
    assert lists
    for names in lists:
        assert {"--out", "--blocks"} <= set(names.split())
        assert not {"--json", "--statement"} & set(names.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_installed_into_the_home_folder(
    shell: str, relaycast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    ended = relaycast("completion", shell, "--install")
    place = Path(ended.out.partition(" is written")[0])
    assert place.is_relative_to(home)
    assert "demo" in place.read_text()
    assert place.read_text().strip() == relaycast("completion", shell).out.strip()


def test_every_verb_can_be_loaded() -> None:
    app = build_app()
    assert set(VERBS) <= set(app)
