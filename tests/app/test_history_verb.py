"""``relaycast history``: a topic's events from the command line, page by page, with errors in one line."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import relaycast as rc
from command_line import Command, Refused
from relaycast.serve import history_reader
from relaycast.serve.in_process import ServedNetwork
from relaycast_gateway.wamp.client.client import WampClient

TOPIC = "com.example.price"
EVENTS = 25


def published(url: str, *prices: int, topic: str = TOPIC) -> list[int]:
    """Publish prices, and return the ids of the publications."""

    async def work() -> list[int]:
        async with await WampClient.connect(url) as client:
            sent = [await client.publish(topic, ["DOT"], {"price": price, "raw": bytes([price])}) for price in prices]
        return [int(it or 0) for it in sent]

    return asyncio.run(work())


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    with rc.serve("oracle", history=["com.example."], rawsocket_port=0) as chains:
        chains.new_block(4)
        yield chains


@pytest.fixture(scope="module")
def sent(oracle: ServedNetwork) -> list[int]:
    return published(oracle.wamp_url, *range(EVENTS))


@pytest.fixture
def history(oracle: ServedNetwork, relaycast: Command) -> Command:
    def run(*arguments: str) -> Any:
        return relaycast("history", *arguments, "--url", oracle.wamp_url)

    return run


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def prices_of(text: str) -> list[int]:
    return [line["kwargs"]["price"] for line in lines_of(text)]


def test_what_chains_told_is_printed_as_a_table(history: Command) -> None:
    ended = history("io.relaycast.data.published.p2000", "--limit", "3")
    assert (ended.code, ended.err) == (0, "")
    rows = ended.out.splitlines()
    assert len(rows) == 3
    for row in rows:
        time, publication, topic, _ = row.split(maxsplit=3)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", time)
        assert 1 <= int(publication) <= 1 << 53
        assert topic == "io.relaycast.data.published.p2000"
        assert re.search(r"  price/\d+ value=\"0x[0-9a-f]{2}", row), "the subject, then the data"


def test_a_history_comes_in_order_and_backwards_over_many_pages(
    history: Command, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_reader, "PAGE_EVENTS", 7)
    forward = history(TOPIC, "--json").out
    assert prices_of(forward) == list(range(EVENTS))
    assert [line["publication"] for line in lines_of(forward)] == sent
    assert prices_of(history(TOPIC, "--json", "--reverse").out) == list(reversed(range(EVENTS)))
    assert prices_of(history(TOPIC, "--json", "--limit", "10").out) == list(range(10))
    assert prices_of(history(TOPIC, "--json", "--limit", "10", "--reverse").out) == list(range(24, 14, -1))


def test_every_bound_is_asked_for_by_time_and_by_publication(history: Command, sent: list[int]) -> None:
    lines = lines_of(history(TOPIC, "--json").out)
    cases = {
        "--from": (list(range(10, EVENTS)), lambda at: list(range(at, EVENTS))),
        "--after": (list(range(11, EVENTS)), lambda at: list(range(at + 1, EVENTS))),
        "--before": (list(range(10)), lambda at: list(range(at))),
        "--until": (list(range(11)), lambda at: list(range(at + 1))),
    }
    times = [line["timestamp"] for line in lines]
    for option, (expected, _) in cases.items():
        assert prices_of(history(TOPIC, "--json", option, str(sent[10])).out) == expected, option
        by_time = prices_of(history(TOPIC, "--json", option, times[10]).out)
        compare = {"--from": str.__ge__, "--after": str.__gt__, "--before": str.__lt__, "--until": str.__le__}[option]
        assert by_time == [at for at, time in enumerate(times) if compare(time, times[10])], option
    both = history(TOPIC, "--json", "--after", str(sent[3]), "--after", times[0], "--until", str(sent[6])).out
    assert prices_of(both) == [4, 5, 6]


def test_prefixes_wildcards_topics_and_subscriptions_are_asked_for(history: Command, sent: list[int]) -> None:
    assert prices_of(history("com.example.", "--json", "--topic", TOPIC).out) == list(range(EVENTS))
    assert prices_of(history("com..price", "--json").out) == list(range(EVENTS))
    assert prices_of(history("com.exam", "--match", "prefix", "--json", "--limit", "2").out) == [0, 1]
    assert history("com.example.", "--topic", "com.example.other").out == "no events\n"
    subscription = lines_of(history("com.example.", "--json", "--limit", "1").out)[0]["subscription"]
    assert prices_of(history(str(subscription), "--json").out) == list(range(EVENTS))
    assert len(sent) == EVENTS


def test_bytes_are_hex_and_rawsocket_says_the_same(oracle: ServedNetwork, relaycast: Command, sent: list[int]) -> None:
    ended = relaycast("history", TOPIC, "--json", "--limit", "1", "--url", oracle.rawsocket_url)
    (line,) = lines_of(ended.out)
    assert (line["args"], line["kwargs"], line["publication"]) == (["DOT"], {"price": 0, "raw": "0x00"}, sent[0])


def test_events_are_followed_without_gap_or_repetition() -> None:
    with rc.serve("oracle", history=["com.example."]) as chains:
        first = published(chains.wamp_url, *range(10))
        command = [sys.executable, "-m", "relaycast", "history", TOPIC, "--follow", "--limit", "4", "--json"]
        with subprocess.Popen(
            [*command, "--url", chains.wamp_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        ) as process:  # fmt: skip
            assert process.stdout is not None
            kept = [json.loads(process.stdout.readline()) for _ in range(4)]
            later = published(chains.wamp_url, *range(10, 30))
            new = [json.loads(process.stdout.readline()) for _ in range(20)]
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert [line["publication"] for line in kept + new] == first[-4:] + later
    assert [line["kwargs"]["price"] for line in kept + new] == list(range(6, 30))
    assert (process.returncode, out, err) == (0, "", "")


def test_a_router_that_stops_ends_the_following_with_one_line() -> None:
    with rc.serve("oracle", history=["com.example."]) as chains:
        published(chains.wamp_url, 1)
        command = [sys.executable, "-m", "relaycast", "history", TOPIC, "--follow", "--json", "--url", chains.wamp_url]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.startswith(f"relaycast: --url {chains.wamp_url}: got ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["com. x"], "topic: got 'com. x', expected a topic such as com.example.feed"),
        (["0"], "subscription: got '0', expected a number from 1 to 2^53"),
        (["12345"], "history 12345: got an id that the router does not know, expected a subscription's id, or a topic"),
        (["com.other"], "history com.other: got a topic that is not kept, expected one that serve --history"),
        ([TOPIC, "--limit", "0"], "--limit: got 0, expected 1 or more"),
        ([TOPIC, "--from", "yesterday"], "--from: got 'yesterday', expected an RFC 3339 time with an offset"),
        ([TOPIC, "--after", "0"], "--after: got '0', expected the id of a publication, from 1 to 2^53"),
        ([TOPIC, "--after", "1", "--after", "2"], "--after: got '2' beside another one, expected one time and one"),
        ([TOPIC, "--after", "77"], f"history {TOPIC}: got "),
        ([TOPIC, "--topic", "a b"], "--topic: got 'a b', expected a topic"),
        ([TOPIC, "--match", "near"], "history: "),
        ([TOPIC, "--realm", "nowhere"], "--realm: got 'nowhere', expected a realm of the router"),
        ([TOPIC, "--follow", "--reverse"], "--follow: got --reverse beside it, expected one of them"),
        ([TOPIC, "--follow", "--until", "5"], "--follow: got --until beside it, expected one of them"),
        ([TOPIC, "--token-file", "missing"], "--token-file missing: got no such file or directory"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    oracle: ServedNetwork, refused: Refused, arguments: list[str], line: str
) -> None:
    assert refused("history", *arguments, "--url", oracle.wamp_url).startswith(line)


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://127.0.0.1:9944", "--url: got 'http://127.0.0.1:9944', expected a router, such as ws://127.0.0.1:9944"),
        ("127.0.0.1", "--url: got '127.0.0.1', expected a router"),
        ("ws://127.0.0.1:1/wamp", "--url ws://127.0.0.1:1/wamp: got "),
        ("tcp://127.0.0.1:1", "--url tcp://127.0.0.1:1: got "),
    ],
)
def test_a_router_that_is_not_there_is_one_line(refused: Refused, url: str, line: str) -> None:
    assert refused("history", TOPIC, "--url", url).startswith(line)


def test_the_address_of_the_relay_chain_does_as_well(
    oracle: ServedNetwork, relaycast: Command, sent: list[int]
) -> None:
    ended = relaycast("history", TOPIC, "--limit", "1", "--url", oracle.url)
    assert str(sent[0]) in ended.out


def test_nothing_is_printed_of_an_empty_history(oracle: ServedNetwork, relaycast: Command) -> None:
    ended = relaycast("history", "com.example.empty", "--url", oracle.wamp_url)
    assert (ended.code, ended.out) == (0, "no events\n")
    assert relaycast("history", "com.example.empty", "--json", "--url", oracle.wamp_url).out == ""


def test_a_file_of_tokens_may_be_the_servers(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# mine\na-token-of-some-length name=alice role=user\n")
    assert history_reader._credentials(str(file)) == ("alice", "a-token-of-some-length")
    file.write_text("a-token-of-some-length\n")
    assert history_reader._credentials(str(file))[0].startswith("token-")
