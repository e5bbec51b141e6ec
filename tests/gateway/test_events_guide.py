"""The programs of the guide to events do what the guide says."""

import importlib.util
import json
import re
import runpy
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import relaycast as rc
from clients.conversation import PEERS
from docs.code_blocks import ROOT, blocks_of, commands_of
from peers import missing
from relaycast.cli.command import execute
from relaycast.serve.in_process import ServedNetwork
from relaycast_trie import ProofError

BLOCKS = blocks_of(ROOT / "docs" / "guides" / "events.md")
PROGRAMS = {block.title: block.text for block in BLOCKS if block.title}
COMMANDS = [command for block in BLOCKS if block.language == "console" for command, _ in commands_of(block.text)]
EXECUTOR = "@acala-network/chopsticks-executor"


def command_of(beginning: str) -> str:
    (found,) = (command for command in COMMANDS if command.startswith(beginning))
    return found


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as free:
        return int(free.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("localhost", port)) == 0


@contextmanager
def received(folder: Path) -> Iterator[tuple[ServedNetwork, list[str]]]:
    """Do what the page says up to the first event; yield the chains and the lines that the receiver printed."""
    port = free_port()
    folder.mkdir(exist_ok=True)
    (folder / "receiver.py").write_text(PROGRAMS["receiver.py"].replace("8080", str(port)))
    allowed = shlex.split(command_of("relaycast serve"))[-1].replace("8080", str(port))
    with (
        rc.serve("oracle", allow_sink=[allowed]) as chains,
        subprocess.Popen([sys.executable, "receiver.py"], cwd=folder, stdout=subprocess.PIPE, text=True,
                         stderr=subprocess.DEVNULL) as receiver,
    ):  # fmt: skip
        try:
            end = monotonic() + 60
            while not listens(port) and monotonic() < end:
                sleep(0.05)
            subscribe = shlex.split(command_of("relaycast subscribe add http://").replace("8080", str(port)))[1:]
            assert execute([*subscribe, "--url", chains.http_url]) == 0
            chains.new_block(3)
            assert receiver.stdout is not None
            yield chains, [receiver.stdout.readline()]
        finally:
            receiver.kill()


def relay_root(chains: ServedNetwork, data: dict[str, Any]) -> str:
    return str(chains.call("chain_getHeader", data["blockHash"])["stateRoot"])


def test_the_receiver_prints_what_the_page_lists(tmp_path: Path) -> None:
    with received(tmp_path) as (_, lines):
        kind, subject, data = lines[0].split(" ", 2)
        assert kind == "io.relaycast.data.published"
        assert subject.startswith("price/")
        listed = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", (ROOT / "docs/guides/events.md").read_text(), re.MULTILINE)
        named = {name for line in listed for name in re.findall(r"`(\w+)`", line)}
        assert set(json.loads(data)) <= named


def test_the_consumers_on_the_page_are_those_that_real_brokers_are_tried_with() -> None:
    consumers = {name for name in PROGRAMS if name.startswith("consume_")}
    assert consumers == {"consume_mqtt.py", "consume_nats.py", "consume_kafka.py", "consume_amqp.py"}
    for name in consumers:
        assert PROGRAMS[name] == (ROOT / "tests" / "brokers" / "scripts" / name).read_text()


def test_every_subscription_on_the_page_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [shlex.split(command)[1:] for command in COMMANDS if command.startswith("relaycast subscribe add")]
    table = re.findall(r"^\| [^|]+ \| (`--.+`.*) \|$", (ROOT / "docs/guides/events.md").read_text(), re.MULTILINE)
    options = [shlex.split(option) for line in table for option in re.findall(r"`(--[^`]+)`", line)]
    assert len(options) > 7
    commands += [["subscribe", "add", "--sink", "http://127.0.0.1/", *option] for option in options]
    has_proton = importlib.util.find_spec("proton") is not None
    left_out = [] if has_proton else [it for it in commands if any(part.startswith("amqp") for part in it)]
    with rc.serve("oracle", allow_sink=["127.0.0.1", "localhost"]) as chains:
        for command in commands:
            expected = 2 if command in left_out else 0  # without its library, an AMQP sink is refused in one line
            assert execute([*command, "--url", chains.http_url]) == expected, command
    assert len(capsys.readouterr().out.splitlines()) == len(commands) - len(left_out)


@pytest.mark.matrix("X-07")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the program leaves its file to the end of its process
def test_a_payload_is_checked_in_python_and_a_lie_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with received(tmp_path) as (chains, lines):
        data = json.loads(lines[0].split(" ", 2)[2])
        root = relay_root(chains, data)
    (tmp_path / "check.py").write_text(PROGRAMS["check.py"])
    is_proven([sys.executable, "check.py"], data, root, tmp_path)
    monkeypatch.chdir(tmp_path)
    for change, trusted in lies(data, root):
        (tmp_path / "event.json").write_text(json.dumps(data | change))
        monkeypatch.setattr(sys, "argv", ["check.py", trusted])
        with pytest.raises((AssertionError, ProofError)):
            runpy.run_path("check.py")


@pytest.mark.clients
@pytest.mark.matrix("X-07")
def test_a_payload_is_checked_in_javascript_and_a_lie_is_found(tmp_path: Path) -> None:
    packages = PEERS / "oracle" / "node_modules"
    if not (packages / EXECUTOR).is_dir():
        missing(f"{EXECUTOR} is not in .peers/oracle: .ci/peers installs it")
    with received(tmp_path) as (chains, lines):
        data = json.loads(lines[0].split(" ", 2)[2])
        root = relay_root(chains, data)
    (tmp_path / "node_modules").symlink_to(packages)
    (tmp_path / "check.mjs").write_text(PROGRAMS["check.mjs"])
    command = ["node", "check.mjs"]
    is_proven(command, data, root, tmp_path)
    for change, trusted in lies(data, root):
        assert ended(command, data | change, trusted, tmp_path).returncode != 0, change


def ended(command: list[str], data: dict[str, Any], trusted: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "event.json").write_text(json.dumps(data))
    return subprocess.run([*command, trusted], cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def is_proven(command: list[str], data: dict[str, Any], root: str, folder: Path) -> None:
    """Run a program on what came."""
    good = ended(command, data, root, folder)
    assert (good.returncode, good.stdout) == (0, "proven\n"), good.stderr


def lies(data: dict[str, Any], root: str) -> list[tuple[dict[str, Any], str]]:
    """Return changes of a payload, each with the root that it is checked against, of which none is proven."""
    other = data["value"][:-1] + ("0" if data["value"][-1] != "0" else "1")
    return [
        ({"value": other}, root),
        ({"value": data["value"] + "00"}, root),
        ({"key": "0x" + "00" * 32}, root),
        ({"publisher": data["publisher"] + 1}, root),
        ({"proof": data["proof"][1:]}, root),
        ({"proof": [data["proof"][0][:-1] + "0", *data["proof"][1:]]}, root),
        ({}, "0x" + "11" * 32),
    ]
