"""``relaycast icrc``: canisters from the command line, a subscriber that prints, with errors in one line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

import relaycast as rc
from command_line import Command, Refused
from relaycast.serve.access import access_for
from relaycast.serve.gateway_face import icrc_settings
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast_gateway.candid import Variant, parse_values
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc.interface import CanisterRole, every_method, interface_text
from relaycast_gateway.icrc_face import BROADCASTER
from relaycast_gateway.principal import principal_of_name, principal_text

TOKEN = "a-token-of-some-length-for-ann"


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    with rc.serve("oracle", allow_sink=["127.0.0.1"]) as chains:
        yield chains


@pytest.fixture
def icrc(oracle: ServedNetwork, relaycast: Command) -> Command:
    def run(*arguments: str) -> Any:
        return relaycast("icrc", *arguments, "--url", oracle.http_url)

    return run


def registered(namespace: str) -> str:
    return f'(vec {{record {{namespace = "{namespace}"; config = vec {{}}}}}})'


def event(number: int, namespace: str, data: str = "") -> str:
    value = data or f"variant {{Nat = {number}}}"
    return f'record {{id = {number}; timestamp = 1; namespace = "{namespace}"; data = {value}}}'


@contextmanager
def listening(url: str, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run ``icrc listen`` as a user does; yield the process when it listens, with what it says of that."""
    command = [sys.executable, "-m", "relaycast", "icrc", "listen", *arguments, "--url", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process, process.stderr.readline()
        finally:
            process.kill()


def lines_of(process: "subprocess.Popen[str]", count: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(count)]


def stopped(process: "subprocess.Popen[str]", number: int = signal.SIGINT) -> str:
    """End a listener as Ctrl-C does, and return what it still printed as errors."""
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return err


def test_a_publication_is_registered_and_published_to_and_the_results_are_candid(icrc: Command) -> None:
    ended = icrc("call", "icrc72_register_publication", registered("com.example.typed"), "--as", "alice")
    assert (ended.code, ended.err) == (0, "")
    (results,) = parse_values(ended.out, every_method()["icrc72_register_publication"].results)
    assert [result.tag for result in cast("list[Variant]", results)] == ["Ok"]
    sent = f"vec {{{event(1, 'com.example.typed')}; {event(2, 'com.example.typed')}}}"
    ended = icrc("call", "icrc72_publish", sent, "--as", principal_text(principal_of_name("alice")))
    assert ended.out == "(vec { opt variant { Ok = vec {  } }; opt variant { Ok = vec {  } } })\n"
    ended = icrc("call", "icrc72_publish", sent, "--as", "mallory")
    assert ended.out.count("Unauthorized") == 2
    stats = icrc("call", "icrc72_get_broadcaster_stats", "--canister", principal_text(BROADCASTER)).out
    assert stats == icrc("call", "icrc72_get_broadcaster_stats", "--canister", "broadcaster").out
    assert "icrc72:broadcaster:stats:events" in stats


def test_the_server_may_come_first(oracle: ServedNetwork, relaycast: Command) -> None:
    ended = relaycast("icrc", "call", f"{oracle.http_url}/icrc", "icrc72_get_publications", "record {take = opt 1}")
    assert ended.code == 0
    assert ended.out.count("publicationId") == 1


@pytest.mark.parametrize("role", CanisterRole)
def test_interfaces_are_printed(role: CanisterRole, relaycast: Command) -> None:
    assert relaycast("icrc", "did", str(role)).out == interface_text(role)
    assert relaycast("icrc", "did").out == interface_text(CanisterRole.ORCHESTRATOR)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "METHOD: got none, expected the name of a method"),
        (
            ("icrc72_publsh",),
            "METHOD: got 'icrc72_publsh', expected a method of ICRC-72 or ICRC-77 (did you mean icrc72_",
        ),
        (("icrc72_publish", "(vec {"), "the arguments of icrc72_publish: got '(vec {', expected Candid text"),
        (("icrc72_publish", "(vec {})", "x"), "icrc call: got 'x' too, expected one argument in Candid, in quotes"),
        (("icrc72_publish",), "the arguments of icrc72_publish: got '()', expected Candid text"),
        (("icrc72_publish", "vec {}"), "--as: got no caller, expected --as PRINCIPAL, or --token-file"),
        (
            ("icrc72_publish", "vec {}", "--as", "a-b"),
            "--as: got 'a-b', expected the text of a principal, or a name of",
        ),
        (("icrc72_publish", "vec {}", "--as", "x", "--token-file", "y"), "--as: got 'x' beside --token-file, expected"),
        (
            ("icrc72_publish", "vec {}", "--canister", "broadcastr"),
            "--canister: got 'broadcastr', expected the text of",
        ),
        (
            ("icrc72_publish", "vec {}", "--canister", "aaaaa-aa", "--as", "x"),
            "icrc72_publish: got a refusal (there is no canister aaaaa-aa here",
        ),
        (
            ("icrc72_publish", "vec {}", "--canister", "orchestrator", "--as", "x"),
            "icrc72_publish: got a refusal (there is no method 'icrc72_publish' here",
        ),
        (
            ("icrc72_get_subscriber_stats",),
            "--canister: got none, for icrc72_get_subscriber_stats, expected the princip",
        ),
        (("icrc72_handle_notification", "vec {}", "--as", "x"), "icrc72_handle_notification: got a refusal ("),
        (("icrc72_get_publishers", "record {}", "--token-file", "gone"), "--token-file gone: got no such file"),
    ],
)
def test_a_call_that_cannot_be_meant_is_one_line(
    oracle: ServedNetwork, refused: Refused, arguments: tuple[str, ...], line: str
) -> None:
    assert refused("icrc", "call", *arguments, "--url", oracle.http_url).startswith(line)


def test_no_server_and_another_one_are_one_line(refused: Refused) -> None:
    for verb in (("call", "icrc72_get_publishers", "record {}"), ("listen", "a.b")):
        line = refused("icrc", *verb, "--url", "http://127.0.0.1:1")
        assert line.startswith("--url http://127.0.0.1:1: got ")
        assert refused("icrc", *verb, "--url", "ws://127.0.0.1").startswith("--url: got 'ws://127.0.0.1', expected the")
    network = living("oracle", "manual")
    with serving(network, gateway=Gateway.open()) as chains:
        for verb in (("call", "icrc72_get_publishers", "record {}"), ("listen", "a.b")):
            assert "expected a server of relaycast with --face icrc" in refused("icrc", *verb, "--url", chains.http_url)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("a b",), "NAMESPACE: got 'a b', expected a namespace or a pattern"),
        (("a.b", "--filter", "$."), "--filter: got '$.', expected a CandyPath"),
        (("a.b", "--skip", "0"), "--skip: got '0', expected M or M,O"),
        (("a.b", "--skip", "1,x"), "--skip: got '1,x', expected M or M,O"),
        (("a.b", "--replay", "x"), "--replay: got 'x', expected FROM or FROM..TO"),
        (("a.b", "--replay", "5..5"), "--replay: got '5..5', expected an end after the beginning"),
        (("a.b", "--port", "70000"), "--port: got 70000, expected a number from 0"),
        (
            ("com.example.nobody.registered",),
            "NAMESPACE com.example.nobody.registered: got a refusal (PublicationNotFo",
        ),
        (("io.relaycast.data.published", "--as", "-x"), "icrc listen: "),
    ],
)
def test_what_cannot_be_listened_to_is_one_line(
    oracle: ServedNetwork, refused: Refused, arguments: tuple[str, ...], line: str
) -> None:
    assert refused("icrc", "listen", *arguments, "--url", oracle.http_url).startswith(line)


def test_a_server_that_may_not_call_this_machine_says_so(refused: Refused) -> None:
    with rc.serve("oracle") as chains:
        line = refused("icrc", "listen", "io.relaycast.data.published", "--url", chains.http_url)
        assert "--allow-sink 127.0.0.1" in line


def test_a_listener_prints_each_event_confirms_it_and_stops_its_subscription(
    oracle: ServedNetwork, icrc: Command
) -> None:
    namespace = "com.example.heard"
    icrc("call", "icrc72_register_publication", registered(namespace), "--as", "alice")
    gateway = oracle._server.gateway
    assert gateway is not None
    assert gateway.icrc is not None
    with listening(oracle.http_url, namespace, "--filter", "$ > 1", "--as", "bob") as (process, said):
        bob = principal_text(principal_of_name("bob"))
        assert said.startswith("listening: subscription ")
        assert bob in said
        odd = 'variant {Map = vec {record {"note"; variant {Text = "\\u{202e}\\u{1b}[31m"}}}}'
        sent = "; ".join([event(1, namespace), event(2, namespace), event(3, namespace), event(4, namespace, odd)])
        icrc("call", "icrc72_publish", f"vec {{{sent}}}", "--as", "alice")
        found = lines_of(process, 2)
        assert [(it["number"], it["data"], it["namespace"]) for it in found] == [(2, 2, namespace), (3, 3, namespace)]
        assert {it["source"] for it in found} == {principal_text(principal_of_name("alice"))}
        assert stopped(process) == ""
    registry = gateway.icrc.orchestrator.registry
    (subscription,) = [it for it in registry.subscriptions.values() if it.namespace == namespace]
    assert subscription.is_stopped
    stats = dict(gateway.icrc.orchestrator.statistics.of_subscription(subscription, of_the_subscriber=1))
    assert stats["icrc72:subscription:stats:notifications"].content == 2
    assert stats["icrc72:subscription:stats:confirmations"].content == 2
    with listening(oracle.http_url, namespace, "--skip", "2,1", "--as", "bob") as (process, said):
        assert f"subscription {subscription.id} of {bob}" in said
        sent = "; ".join(event(number, namespace) for number in (5, 6, 7))
        icrc("call", "icrc72_publish", f"vec {{{sent}}}", "--as", "alice")
        assert [it["number"] for it in lines_of(process, 2)] == [5, 7]
        stopped(process, signal.SIGTERM)


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_listener_goes_on_when_the_server_starts_again(tmp_path: Path, relaycast: Command, is_kept: bool) -> None:
    namespace, data = "com.example.again", tmp_path / "data" if is_kept else None
    register = ("icrc", "call", "icrc72_register_publication", registered(namespace), "--as", "alice")
    publish = ("icrc", "call", "icrc72_publish", "--as", "alice")
    with ExitStack() as ends:
        with rc.serve("oracle", allow_sink=["127.0.0.1"], data=data) as chains:
            url, port = chains.http_url, int(chains.http_url.rpartition(":")[2])
            relaycast(*register, "--url", url)
            process, _ = ends.enter_context(listening(url, namespace, "--as", "bob"))
            relaycast(*publish, f"vec {{{event(1, namespace)}}}", "--url", url)
            assert [it["number"] for it in lines_of(process, 1)] == [1]
        with rc.serve("oracle", allow_sink=["127.0.0.1"], data=data, port=port) as chains:
            relaycast(*register, "--url", url)
            if not is_kept:
                other = f'vec {{record {{namespace = "{namespace}"; config = vec {{}}; memo = null}}}}'
                carol = ("icrc", "call", "icrc72_register_subscription", other, "--as", "carol")
                assert "Ok" in relaycast(*carol, "--url", url).out
                assert process.stderr is not None
                line = "relaycast: the server no longer has the subscription: subscribing again\n"
                assert process.stderr.readline() == line
                assert process.stderr.readline().startswith("listening: subscription ")
            relaycast(*publish, f"vec {{{event(2, namespace)}}}", "--url", url)
            assert [it["number"] for it in lines_of(process, 1)] == [2]
            assert stopped(process) == ""


def test_a_listener_gets_a_replay_of_what_it_missed(oracle: ServedNetwork, icrc: Command) -> None:
    namespace = "com.example.replayed"
    icrc("call", "icrc72_register_publication", registered(namespace), "--as", "alice")
    sent = "; ".join(event(number, namespace) for number in range(1, 8))
    icrc("call", "icrc72_publish", f"vec {{{sent}}}", "--as", "alice")
    with listening(oracle.http_url, namespace, "--replay", "3..6") as (process, _):
        found = lines_of(process, 3)
        assert [it["number"] for it in found] == [3, 4, 5]
        assert all(it["replay"] for it in found)
        icrc("call", "icrc72_publish", f"vec {{{event(8, namespace)}}}", "--as", "alice")
        (live,) = lines_of(process, 1)
        assert (live["number"], "replay" in live) == (8, False)
        stopped(process)


def test_a_token_says_who_calls_and_who_listens(tmp_path: Path, relaycast: Command, refused: Refused) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN} name=ann\n")
    tokens.chmod(0o600)
    wrong = tmp_path / "wrong"
    wrong.write_text("another-token-of-some-length\n")
    network = living("oracle", "manual")
    gateway = Gateway.open(icrc=icrc_settings(), allow_sink=["127.0.0.1"])
    gateway.follow(network.clock.chains, network.title, key_names=network.key_names)
    with serving(network, gateway=gateway, access=access_for((), (), str(tokens))) as chains:
        url = ("--url", chains.http_url)
        call = ("icrc", "call", "icrc72_register_publication", registered("com.example.of.ann"))
        for file in ((), ("--token-file", str(wrong))):
            assert refused(*call, *url, *file).startswith("--token-file: got no token that the server knows")
        assert refused("icrc", "listen", "a.b", *url, "--token-file", str(wrong)).startswith(
            "--token-file: got no token"
        )
        assert relaycast(*call, *url, "--token-file", str(tokens)).code == 0
        with listening(chains.http_url, "io.relaycast.data.published", "--token-file", str(tokens)) as (process, said):
            assert principal_text(principal_of_name("ann")) in said
            chains.new_block(2)
            (first,) = lines_of(process, 1)
            assert first["namespace"] == "io.relaycast.data.published"
            assert "time" in first
            stopped(process)


def test_a_reader_that_leaves_ends_the_listener(oracle: ServedNetwork, icrc: Command) -> None:
    namespace = "com.example.left"
    icrc("call", "icrc72_register_publication", registered(namespace), "--as", "alice")
    with listening(oracle.http_url, namespace) as (process, _):
        assert process.stdout is not None
        os.close(os.dup(process.stdout.fileno()))
        process.stdout.close()
        icrc("call", "icrc72_publish", f"vec {{{event(1, namespace)}}}", "--as", "alice")
        assert process.wait(timeout=60) == 141
