"""A client made from the interface of a canister sends what it was given, and gives what it was sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candid_peers.did_client import CallFailed, DidClient, did_client
from candid_peers.peer_shapes import kept_by_all
from gateway.candid.candid_types import DrawnValues
from relaycast_gateway.candid import parse_types
from relaycast_gateway.icrc.interface import CanisterRole, interface_text, methods_of
from relaycast_gateway.principal import principal_text

pytestmark = pytest.mark.brokers

CANISTER, CALLER = principal_text(b"\x07\x01"), principal_text(b"\x2a\x01")


class ToldCanister(ThreadingHTTPServer):
    """Answers each call with the results that it was told, and keeps the arguments."""

    def __init__(self, role: CanisterRole) -> None:
        super().__init__(("127.0.0.1", 0), Call)
        self.served = methods_of(role)
        self.results: list[Any] | None = None
        self.came: list[tuple[str | None, list[Any]]] = []


class Call(BaseHTTPRequestHandler):
    server: ToldCanister

    def do_POST(self) -> None:
        _, start, canister, method = self.path.split("/")
        assert (start, canister, self.headers["Content-Type"]) == ("icrc", CANISTER, "application/candid")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        served = self.server.served[method]
        self.server.came.append((self.headers["Icrc-Caller"], served.decode_arguments(body)))
        if self.server.results is None:
            self.answer(403, "text/plain", b"not for you")
        else:
            self.answer(200, "application/candid", served.encode_results(self.server.results))

    def answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep standard error clean."""


@contextmanager
def told(role: CanisterRole) -> Iterator[tuple[ToldCanister, DidClient]]:
    with ToldCanister(role) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with did_client(interface_text(role), url, CANISTER, CALLER) as client:
            yield server, client
        server.shutdown()


@pytest.fixture(scope="module", params=list(CanisterRole))
def at(request: pytest.FixtureRequest) -> Iterator[tuple[CanisterRole, ToldCanister, DidClient]]:
    with told(request.param) as (server, client):
        yield request.param, server, client


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
        server.results = data.draw(DrawnValues(results).list_of(results.arguments or ()).filter(kept_by_all))
        assert client.call(name, given_) == server.results
        assert server.came.pop() == (CALLER, given_)


def test_a_refused_call_shows_its_status_and_reason() -> None:
    with told(CanisterRole.BROADCASTER) as (_, client):
        with pytest.raises(CallFailed) as refusal:
            client.call("icrc72_confirm_messages", [[1]])
        assert (refusal.value.status, refusal.value.body) == (403, "not for you")
