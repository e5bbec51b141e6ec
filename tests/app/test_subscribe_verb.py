"""``relaycast subscribe``: the manager from the command line, with its errors in one line."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import relaycast as rc
from app.webhook import webhook
from command_line import Command, Refused, Written
from relaycast.serve.in_process import ServedNetwork


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    with rc.serve("oracle", allow_sink=["127.0.0.1", "localhost"]) as chains:
        yield chains


@pytest.fixture
def subscribe(oracle: ServedNetwork, relaycast: Command) -> Iterator[Command]:
    def run(*arguments: str) -> Any:
        return relaycast("subscribe", *arguments, "--url", oracle.http_url)

    yield run
    for it in run("list", "--json").json:
        run("remove", it["id"])


def wait_for(condition: Any) -> None:
    end = monotonic() + 30
    while not condition():
        assert monotonic() < end, "nothing came"
        sleep(0.01)


@pytest.mark.matrix("CE-23", "CE-02")
def test_a_feed_reaches_a_webhook(oracle: ServedNetwork, subscribe: Command) -> None:
    with webhook() as (sink, came):
        made = subscribe("add", "--sink", sink, "--type", "io.relaycast.data.published", "--config", "proof=true")
        assert (made.code, made.err) == (0, "")
        oracle.new_block(6)
        wait_for(lambda: len(came) >= 3)
        first = came[0]
        assert first.headers["ce-type"] == "io.relaycast.data.published"
        assert first.headers["ce-source"] == "/oracle/relay"
        data = json.loads(first.body)
        assert data["value"].startswith("0x")
        assert data["proof"]
        sequences = [it.headers["ce-sequence"] for it in came]
        assert sequences == sorted(sequences)
        (line,) = subscribe("list").out.splitlines()
        assert line.startswith(f"{made.out.strip()}  HTTP   {sink}  active, ")
        shown = subscribe("show", made.out.strip()).json
        assert shown["subscription"]["config"]["proof"] is True
        assert shown["delivery"]["dead"] == 0
        assert subscribe("deadletters", made.out.strip()).out == "no dead letters\n"
        assert subscribe("remove", made.out.strip()).out == f"removed {made.out.strip()}\n"
    assert subscribe("list").out == "no subscriptions\n"


def test_dead_letters_are_listed_and_tried_again(oracle: ServedNetwork, subscribe: Command) -> None:
    with webhook(lambda _: (400, {})) as (sink, came):
        name = subscribe("add", "--sink", sink, "--sql", "type = 'io.relaycast.block.imported'").out.strip()
        oracle.new_block(2)
        wait_for(lambda: "dead letters" in subscribe("list").out)
        wait_for(lambda: " pending" not in subscribe("list").out)
        letters = subscribe("deadletters", name)
        assert "io.relaycast.block.imported  1 attempt, until " in letters.out
        listed = subscribe("deadletters", name, "--json").json
        count = len(came)
        again = subscribe("deadletters", name, "--redeliver")
        assert again.out == f"{len(listed)} events to be delivered again\n"
        wait_for(lambda: len(came) >= count + len(listed))


def test_every_option_becomes_a_member(subscribe: Command, file: Written) -> None:
    options = ["--sink", "http://127.0.0.1:9/", "--type", "a", "--type", "b", "--source", "/relay"]
    options += ["--filter", '{"exact": {"subject": "x"}}', "--config", "interval=5", "--config", "since=1"]
    options += ["--setting", "method=PUT", "--setting", 'headers={"X-A": "b"}', "--delivery", "window=8"]
    made = subscribe("add", *options, "--json").json
    assert made["types"] == ["a", "b"]
    assert made["source"] == "/relay"
    assert made["filter"] == {"exact": {"subject": "x"}}
    assert (made["config"]["interval"], made["config"]["since"]) == (5, 1)
    assert made["protocolsettings"] == {"headers": {"X-A": "b"}, "method": "PUT"}
    assert made["delivery"]["window"] == 8
    name = file({**made, "config": {"interval": 7}})
    again = subscribe("add", "--file", name, "--config", "data=none", "--json").json
    assert again["config"] == {"data": "none", "interval": 7, "proof": False}
    assert again["id"] != made["id"]
    mqtt = subscribe("add", "mqtt://127.0.0.1", "--setting", "topicname=feed", "--json").json
    assert mqtt["protocol"] == "MQTT5"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["add"], "subscribe add: got no sink, expected where events go, such as http://localhost:8080/"),
        (
            ["add", "http://a/", "--sink", "http://b/"],
            "--sink: got 'http://b/' beside 'http://a/', expected one of them",
        ),
        (["add", "--sink", "http://10.0.0.1/"], "sink: got http://10.0.0.1/, expected a public host, or one that"),
        (["add", "--sink", "http://a/", "--protocol", "http"], "protocol: got 'http', expected one of HTTP, MQTT3"),
        (["add", "--sink", "http://a/", "--config", "interval=0"], "config.interval: got 0, expected a whole number"),
        (["add", "--sink", "http://a/", "--config", "interval"], "--config: got 'interval', expected KEY=VALUE"),
        (["add", "--sink", "http://a/", "--filter", "{"], "--filter: got "),
        (["add", "--sink", "http://a/", "--filter", "{}", "--sql", "TRUE"], "--filter: got --filter and --sql"),
        (["add", "--sink", "http://a/", "--sql", "= ="], "filter.sql: got "),
        (["add", "--file", "missing.json"], "missing.json: got no such file or directory"),
        (["show", "../x"], "--url "),
        (["remove", "nothing"], "--url "),
    ],
)
def test_what_the_manager_refuses_is_one_line(
    oracle: ServedNetwork, refused: Refused, arguments: list[str], line: str
) -> None:
    assert refused("subscribe", *arguments, "--url", oracle.http_url).startswith(line)


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("127.0.0.1:9944", "--url: got '127.0.0.1:9944', expected the address of a server"),
        ("http://127.0.0.1:1", "--url http://127.0.0.1:1: got connection refused, expected a server that runs"),
        ("ftp://127.0.0.1", "--url: got 'ftp://127.0.0.1', expected the address of a server"),
    ],
)
def test_a_server_that_is_not_there_is_one_line(refused: Refused, url: str, line: str) -> None:
    assert refused("subscribe", "list", "--url", url).startswith(line)


def test_the_address_of_the_subscriptions_does_as_well(oracle: ServedNetwork, relaycast: Command) -> None:
    listed = relaycast("subscribe", "list", "--url", f"{oracle.http_url}/subscriptions")
    assert (listed.out, listed.err) == ("no subscriptions\n", "")


def test_another_server_is_told_from_a_manager(refused: Refused) -> None:
    with webhook() as (sink, _):
        assert "got an answer of another kind, expected a server of relaycast" in refused(
            "subscribe", "list", "--url", sink
        )


@pytest.mark.parametrize("status", [200, 422])
@pytest.mark.parametrize("words", [("subscribe", "list"), ("icrc", "call", "icrc72_get_publications", "(record {})")])
def test_json_that_nests_too_deep_is_an_answer_of_another_kind(
    refused: Refused, words: tuple[str, ...], status: int
) -> None:
    class Deep(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"[" * 100_000)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Deep) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            line = refused(*words, "--url", f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()
    assert "got an answer of another kind, expected a server of relaycast" in line


def test_a_token_comes_from_a_file(refused: Refused, tmp_path: Path) -> None:
    line = refused("subscribe", "list", "--token-file", "missing")
    assert line == "--token-file missing: got no such file or directory, expected a file with a token"
    (tmp_path / "empty").write_text("# nothing\n")
    assert refused("subscribe", "list", "--token-file", "empty").startswith("--token-file empty: got no token")
