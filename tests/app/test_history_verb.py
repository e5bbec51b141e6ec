"""``relaycast history``: a topic's events from the command line, page by page, with errors in one line."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, aclosing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import relaycast as rc
from app.serve_process import ServeProcess
from command_line import Command, Refused
from relaycast.serve import history_reader
from relaycast.serve.history_reader import FollowedHistory, HistoryReader, RouterLost, asked_history
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


@contextmanager
def following(url: str, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """Follow the topic in a process of its own; ``with`` kills it at the end."""
    command = [sys.executable, "-m", "relaycast", "history", TOPIC, "--follow", "--json", "--url", url, *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def next_ids(process: "subprocess.Popen[str]", count: int) -> list[int]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline())["publication"] for _ in range(count)]


def next_line(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def stopped(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Stop it as a user does; return how it ended and what it printed meanwhile."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("kind", ["ws", "tcp"])
def test_following_goes_on_behind_the_last_event_when_the_server_starts_again(tmp_path: Path, kind: str) -> None:
    def serving(port: int = 0, rawsocket_port: int = 0) -> AbstractContextManager[ServedNetwork]:
        kept = tmp_path / "data"
        return rc.serve("oracle", history=["com.example."], data=kept, port=port, rawsocket_port=rawsocket_port)

    with ExitStack() as ends:
        with serving() as chains:
            sent = published(chains.wamp_url, 1, 2)
            url = str(chains.rawsocket_url if kind == "tcp" else chains.wamp_url)
            ports = [int(it.rpartition(":")[2]) for it in (chains.http_url, str(chains.rawsocket_url))]
            process = ends.enter_context(following(url))
            assert next_ids(process, 2) == sent
        assert next_line(process).startswith(f"relaycast: {url}: ")
        with serving(*ports) as chains:
            sent = published(chains.wamp_url, *range(3, 20))
            assert next_ids(process, 17) == sent
            sent = published(chains.wamp_url, 20)
            assert next_ids(process, 1) == sent
            assert stopped(process) == (0, "", ""), "one line for each loss, and no event twice"


def test_a_server_that_is_killed_is_waited_for_until_ctrl_c(tmp_path: Path) -> None:
    options = ("oracle", "--data", str(tmp_path / "data"), "--history", "com.example.", "--block-time", "manual")
    with ServeProcess(*options) as server:
        url = f"ws://127.0.0.1:{server.port}/wamp"
        sent = published(url, 1)
        with following(url) as process:
            assert next_ids(process, 1) == sent
            server.kill()
            assert "; connecting again until Ctrl-C" in next_line(process)
            assert stopped(process) == (0, "", "")


def test_what_is_published_while_the_connection_is_lost_is_new_whatever_the_limit() -> None:
    asked = asked_history(TOPIC, None, {}, topic=None, limit=2, is_reverse=False)
    at = FollowedHistory(asked.conditions, asked.limit)

    async def read(url: str, count: int) -> list[int]:
        async with HistoryReader.joined(url, "relaycast") as reader:
            await reader.find(asked)
            async with aclosing(reader.followed(at)) as events:
                if not count:
                    following = asyncio.ensure_future(anext(events))
                    while at.limit is not None:
                        await asyncio.sleep(0.01)
                    following.cancel()
                    await asyncio.wait({following})
                return [(await anext(events))["publication"] for _ in range(count)]

    with rc.serve("oracle", history=["com.example."]) as chains:
        assert asyncio.run(read(chains.wamp_url, 0)) == []
        sent = published(chains.wamp_url, *range(9))
        assert asyncio.run(read(chains.wamp_url, 9)) == sent


def test_following_says_so_when_the_server_has_forgotten_the_last_event() -> None:
    with ExitStack() as ends:
        with rc.serve("oracle", history=["com.example."]) as chains:
            url, port = chains.wamp_url, int(chains.http_url.rpartition(":")[2])
            sent = published(url, 1)
            process = ends.enter_context(following(url))
            assert next_ids(process, 1) == sent
        next_line(process)
        with rc.serve("oracle", history=["com.example."], port=port) as chains:
            assert next_line(process) == (
                f"relaycast: {url}: publication {sent[0]} is no longer kept; continuing with the oldest kept one\n"
            )
            later = published(url, 2, 3)
            assert next_ids(process, 2) == later
            assert stopped(process) == (0, "", "")


@pytest.mark.slow
def test_a_router_that_answers_no_more_is_lost_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_reader, "QUIET_SECONDS", 0.1)
    monkeypatch.setattr(history_reader, "SECONDS", 1)
    asked = asked_history(TOPIC, None, {}, topic=None, limit=None, is_reverse=False)

    async def read(server: ServeProcess) -> None:
        async with HistoryReader.joined(f"ws://127.0.0.1:{server.port}/wamp", "relaycast") as reader:
            await reader.find(asked)
            server.process.send_signal(signal.SIGSTOP)
            await anext(reader.followed(FollowedHistory(asked.conditions, asked.limit)))

    with ServeProcess("oracle", "--history", "com.example.", "--block-time", "manual") as server:
        try:
            with pytest.raises(RouterLost, match="got no answer, expected a router that runs"):
                asyncio.run(read(server))
        finally:
            server.process.send_signal(signal.SIGCONT)


def test_a_router_that_was_never_there_is_not_waited_for(refused: Refused) -> None:
    line = refused("history", TOPIC, "--follow", "--url", "ws://127.0.0.1:1/wamp")
    assert line == "--url ws://127.0.0.1:1/wamp: got connection refused, expected a router that runs: relaycast serve"


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
