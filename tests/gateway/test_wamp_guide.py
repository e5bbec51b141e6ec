"""The guide to WAMP does what it says: its commands, its program, its tables and its file."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import relaycast as rc
from docs.code_blocks import ROOT, blocks_of, commands_of
from relaycast.cli.command import execute
from relaycast.serve.in_process import ServedNetwork
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.wamp.router_file import read_router_config

PAGE = ROOT / "docs" / "guides" / "wamp.md"
TEXT = PAGE.read_text()
BLOCKS = blocks_of(PAGE)
PROGRAMS = {block.title: block.text for block in BLOCKS if block.title}
COMMANDS = [command for block in BLOCKS if block.language == "console" for command, _ in commands_of(block.text)]

ARGUMENTS = {
    "limit", "reverse", "topic",
    *(f"{bound}_{kind}" for bound in ("from", "after", "before", "until") for kind in ("time", "publication")),
}  # fmt: skip


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    """Serve with the topics that the page keeps."""
    (command,) = (it for it in COMMANDS if "--history" in it)
    words = shlex.split(command)
    with rc.serve("oracle", history=[words[words.index("--history") + 1]]) as chains:
        chains.new_block(4)
        yield chains


def test_the_commands_read_what_they_say(oracle: ServedNetwork, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [shlex.split(command)[1:] for command in COMMANDS if command.startswith("relaycast history io")]
    assert len(commands) == 2
    for command in commands:
        told = [word for word in command if word != "--follow"]
        assert execute([*told, "--url", oracle.wamp_url]) == 0
        rows = capsys.readouterr().out.splitlines()
        assert len(rows) == int(told[told.index("--limit") + 1])
        assert all(told[1] in row for row in rows)


def test_the_program_prints_what_its_comment_says(oracle: ServedNetwork, tmp_path: Path) -> None:
    (tmp_path / "publish.py").write_text(PROGRAMS["publish.py"])
    command = [sys.executable, "publish.py", oracle.wamp_url]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"# (\[.*)$", PROGRAMS["publish.py"], re.MULTILINE)
    assert found is not None
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{found[1]}\n", "")


def test_every_argument_is_listed_with_its_option(oracle: ServedNetwork, capsys: pytest.CaptureFixture[str]) -> None:
    rows = re.findall(r"^\| (`.+`) \| (`--.+`) \| .+ \|$", TEXT, re.MULTILINE)
    assert {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)} == ARGUMENTS
    for _, options in rows:
        for option in re.findall(r"`(--[^`]+)`", options):
            words = option.replace("TIME", "2020-01-01T00:00:00Z").replace("ID", "77").split()
            code = execute(["history", "com.example.", *words, "--url", oracle.wamp_url])
            assert code == 0 or "77" in words, option
    capsys.readouterr()


def test_every_topic_of_the_chains_is_in_the_table(oracle: ServedNetwork) -> None:
    gateway = oracle._server.gateway
    assert gateway is not None
    listed = {name for row in re.findall(r"^\| (`[a-z].+`) \| [^|]+ \|$", TEXT, re.MULTILINE)
              for name in re.findall(r"`([\w.]+)`", row)}  # fmt: skip
    forms = [re.sub(r"p\d+", "p\\\\d+", re.escape(name)) for name in listed]
    forms = [form.replace("PALLET", r"[a-z_0-9]+").replace("EVENT", r"[a-z_0-9]+") for form in forms]
    known = re.compile(r"io\.relaycast\.(" + "|".join([*forms, r"pallet\.[a-z_0-9.]+(\.p\d+)*(\.relay)?"]) + ")")
    topics = {record.topic for record in gateway.log.read(limit=10_000) if record.topic.startswith("io.")}
    assert topics
    assert [topic for topic in topics if not known.fullmatch(topic)] == []


def test_the_routers_file_says_what_its_comments_say(tmp_path: Path) -> None:
    (tmp_path / "router.toml").write_text(PROGRAMS["router.toml"])
    ticket = tmp_path / "alice.ticket"
    ticket.write_text("a-ticket-of-some-length\n")
    ticket.chmod(0o600)
    config = read_router_config(tmp_path / "router.toml")
    (realm,) = config.realms
    assert (realm.name, realm.anonymous_role, [user.authid for user in realm.users]) == (
        "relaycast",
        "guest",
        ["alice"],
    )
    kept = {rule.pattern: rule for rule in realm.history}
    assert kept[TopicPattern("com.example.", Match.PREFIX)].retention.count == 100_000
    assert not kept[TopicPattern("com.example.debug")].is_persistent
    assert not kept[TopicPattern("com.example.noise")].is_kept
    for limit, value in re.findall(r"^(most_\w+) = ([\d_]+)", PROGRAMS["router.toml"], re.MULTILINE):
        assert getattr(config.limits, limit) == int(value)
    for name in re.findall(r"^\| `(\w+)` \| .+ \|$", TEXT[TEXT.index("## Set the router up") :], re.MULTILINE):
        assert hasattr(realm, name), name
