"""The guide to ICRC-72 does what it says: its commands, its programs and its tables."""

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
from relaycast_gateway.icrc.broadcaster.policy import BroadcastPolicy
from relaycast_gateway.icrc.http import call_limits
from relaycast_gateway.icrc.orchestrator.config_keys import PUBLICATION_KEYS, SUBSCRIPTION_KEYS
from relaycast_gateway.icrc.orchestrator.settings import OrchestratorSettings
from relaycast_gateway.icrc.replay.settings import ReplaySettings
from relaycast_gateway.icrc16 import DEEPEST, MOST_DIGITS
from relaycast_gateway.matching.namespaces import NamespacePattern

PAGE = ROOT / "docs" / "guides" / "icrc.md"
TEXT = PAGE.read_text()
BLOCKS = blocks_of(PAGE)
PROGRAMS = {block.title: block.text for block in BLOCKS if block.title}
COMMANDS = [found for block in BLOCKS if block.language == "console" for found in commands_of(block.text)]


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    """Serve as the page says."""
    (command,) = (shlex.split(it) for it, _ in COMMANDS if it.startswith("relaycast serve"))
    with rc.serve("oracle", allow_sink=[command[command.index("--allow-sink") + 1]]) as chains:
        yield chains


def run(program: str, url: str, folder: Path) -> str:
    (folder / program).write_text(PROGRAMS[program])
    command = [sys.executable, program, url]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def test_the_calls_answer_what_the_page_says(oracle: ServedNetwork, capsys: pytest.CaptureFixture[str]) -> None:
    calls = [shlex.split(command)[1:] for command, _ in COMMANDS if command.startswith("relaycast icrc call")]
    assert len(calls) == 3
    for call in calls:
        assert execute([*call, "--url", oracle.http_url]) == 0
        out = capsys.readouterr().out
        assert "Ok" in out or "com.example.feed" in out


def test_the_programs_publish_and_subscribe(oracle: ServedNetwork, tmp_path: Path) -> None:
    assert run("publish.py", oracle.http_url, tmp_path) == "published\n"
    (printed,) = (out for command, out in COMMANDS if command.startswith("python subscribe.py"))
    assert run("subscribe.py", oracle.http_url, tmp_path).split() == "".join(printed).split()


@pytest.mark.matrix("ICRC72-102")
def test_the_patterns_of_the_table_select_what_it_says() -> None:
    rows = re.findall(r"^\| `([a-z.*]+)` \| (?:this|all|a `\*`)", TEXT, re.MULTILINE)
    namespaces = ["com.example.feed", "com.example.a", "com.example.a.b", "com.example", "com.x.feed", "com.x.y.feed"]
    selected = {pattern: [it for it in namespaces if NamespacePattern(pattern).matches(it)] for pattern in rows}
    assert selected == {
        "com.example.feed": ["com.example.feed"],
        "com.example.*": ["com.example.feed", "com.example.a", "com.example.a.b"],
        "*.feed": ["com.example.feed", "com.x.feed", "com.x.y.feed"],
        "com.*.feed": ["com.example.feed", "com.x.feed"],
    }
    assert not NamespacePattern("*.sys").matches("icrc72:subscriber.sys")


def test_every_key_of_a_subscription_and_those_of_publications_are_known() -> None:
    keys = set(re.findall(r"^\| `((?:icrc72|relaycast):[a-z0-9:]+)` \|", TEXT, re.MULTILINE))
    assert keys >= set(SUBSCRIPTION_KEYS)
    assert keys <= set(SUBSCRIPTION_KEYS) | set(PUBLICATION_KEYS)


def test_the_limits_are_those_of_the_settings() -> None:
    policy, settings, replays = BroadcastPolicy(), OrchestratorSettings(), ReplaySettings()
    assert call_limits.MOST_BODY_BYTES == 2 << 20
    expected = [
        f"{call_limits.VALUES_OF_A_BATCH:,}; {call_limits.VALUES_OF_A_CALL:,}",
        str(DEEPEST),
        f"{MOST_DIGITS:,}, as on every face",
        f"{policy.most_events:,}; {policy.notifications_a_call}",
        str(settings.most_items),
        f"{policy.most_unconfirmed:,}; then it waits",
        f"{settings.most_subscriptions:,} each; {settings.most_subscriptions_of_a_subscriber:,} of a subscriber, "
        f"{settings.most_publications_of_a_publisher:,} of a publisher",
        str(replays.most_active),
    ]
    assert settings.most_subscriptions == settings.most_publications
    table = TEXT[TEXT.index("## Limits") :]
    assert re.findall(r"^\| .+ \| (.+) \|$", table, re.MULTILINE)[1:] == expected
    assert f"within {policy.confirm_seconds:g} seconds" in TEXT
