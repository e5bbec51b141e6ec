"""A client made from the interface of a canister sends what it was given, and gives what it was sent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candid_peers.did_client import CallFailed, DidClient, did_client, typed_client
from candid_peers.peer_shapes import kept_by_all
from gateway.candid.candid_types import DrawnValues
from relaycast_gateway.candid import Variant, parse_types
from relaycast_gateway.icrc.interface import CanisterRole, interface_text, methods_of
from relaycast_gateway.principal import principal_text

pytestmark = pytest.mark.brokers

CANISTER, CALLER = principal_text(b"\x07\x01"), principal_text(b"\x2a\x01")


class ToldCanister(ThreadingHTTPServer):
    """Answers each call with the results that it was told for the method, and keeps the arguments."""

    def __init__(self, role: CanisterRole, results: Mapping[str, list[Any]]) -> None:
        super().__init__(("127.0.0.1", 0), Call)
        self.served = methods_of(role)
        self.results = dict(results)
        self.came: list[tuple[str, str | None, list[Any]]] = []


class Call(BaseHTTPRequestHandler):
    server: ToldCanister

    def do_POST(self) -> None:
        _, start, canister, method = self.path.split("/")
        assert (start, canister, self.headers["Content-Type"]) == ("icrc", CANISTER, "application/candid")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        served = self.server.served[method]
        self.server.came.append((method, self.headers["Icrc-Caller"], served.decode_arguments(body)))
        if method in self.server.results:
            self.answer(200, "application/candid", served.encode_results(self.server.results[method]))
        else:
            self.answer(403, "text/plain", b"not for you")

    def answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep standard error clean."""


@contextmanager
def told(role: CanisterRole, **results: list[Any]) -> Iterator[tuple[ToldCanister, str]]:
    """Serve a canister until the block ends, and give its URL."""
    with ToldCanister(role, results) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module", params=list(CanisterRole))
def at(request: pytest.FixtureRequest) -> Iterator[tuple[CanisterRole, ToldCanister, DidClient]]:
    role = request.param
    with told(role) as (server, url), did_client(interface_text(role), url, CANISTER, CALLER) as client:
        yield role, server, client


@settings(max_examples=10)
@given(data=st.data())
def test_every_method_carries_its_arguments_and_results(
    at: tuple[CanisterRole, ToldCanister, DidClient], data: st.DataObject
) -> None:
    role, server, client = at
    assert sorted(client.methods) == sorted(methods_of(role))
    for name, method in methods_of(role).items():
        arguments, results = parse_types(method.arguments), parse_types(method.results)
        given_ = data.draw(DrawnValues(arguments).list_of(arguments.arguments or ()).filter(kept_by_all))
        server.results[name] = data.draw(DrawnValues(results).list_of(results.arguments or ()).filter(kept_by_all))
        assert client.call(name, given_) == server.results[name]
        assert server.came.pop() == (name, CALLER, given_)


def test_a_refused_call_shows_its_status_and_reason() -> None:
    role = CanisterRole.BROADCASTER
    with told(role) as (_, url), did_client(interface_text(role), url, CANISTER, CALLER) as client:
        with pytest.raises(CallFailed) as refusal:
            client.call("icrc72_confirm_messages", [[1]])
        assert (refusal.value.status, refusal.value.body) == (403, "not for you")


def test_a_client_in_typescript_passes_a_strict_compiler_and_makes_its_calls(tmp_path: Path) -> None:
    role, file = CanisterRole.BROADCASTER, tmp_path / "broadcaster.did"
    file.write_text(interface_text(role), "utf-8")
    results: dict[str, list[Any]] = {
        "icrc72_publish": [[Variant("Ok", [1 << 70]), None]],
        "icrc72_publish_relay": [[None]],
        "icrc72_confirm_messages": [Variant("allAccepted")],
        "icrc72_handle_notification": [],
        "icrc72_get_broadcaster_stats": [[{0: "some:stat", 1: Variant("Nat", 7)}]],
    }
    with told(role, **results) as (server, url):
        made = typed_client(file, url, CANISTER, CALLER)
    assert made == {"ids": [[str(1 << 70)], None], "relayed": 1, "all": True, "names": ["some:stat"]}
    assert [(method, caller) for method, caller, _ in server.came] == [(method, CALLER) for method in results]
    ((event,),) = server.came[0][2]
    assert event["id"] == 1 << 64
    assert event["data"].value[0] == {0: "price", 1: Variant("Nat", (1 << 200) + 1)}
    assert event["data"].value[1] == {0: "raw", 1: Variant("Blob", b"\0\xff")}
    assert server.came[2][2] == [[(1 << 200) + 1]]
