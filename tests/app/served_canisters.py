"""Canisters of a server as their callers see them: calls over HTTP, tokens, subscribers in this process."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from gateway.icrc.http_stage import NotingSubscriber
from relaycast.serve.access import access_for
from relaycast.serve.gateway_face import icrc_settings
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast_gateway.candid import Variant
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc.http.canister_host import CanisterHost
from relaycast_gateway.icrc.interface import CandidMethod, every_method
from relaycast_gateway.icrc.names import SUBSCRIBER_URL
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import text
from relaycast_gateway.principal import client_principal, principal_of_name, principal_text

ALICE, BOB = principal_of_name("alice"), principal_of_name("bob")

FEED = "com.example.feed"

PUBLISHED = "io.relaycast.data.published"

ADMIN_TOKEN, USER_TOKEN, OWN_TOKEN = (
    "an-admins-token-of-some-length",
    "a-users-token-of-some-length",
    "a-token-with-a-principal",
)

OWN = client_principal("test", "own")

CANDID = "application/candid"


def registration(namespace: str = FEED, **more: object) -> dict[str, object]:
    return {"namespace": namespace, "config": [], "memo": None, **more}


def subscription(namespace: str, url: str, **more: object) -> dict[str, object]:
    asked = {"filter": None, "skip": None, "stopped": None, **more}
    return registration(namespace, **asked) | {"config": pairs_of([(SUBSCRIBER_URL, text(url))])}


def event(number: int, namespace: str = FEED, data: Variant | None = None) -> dict[str, object]:
    absent = dict.fromkeys(("prev_id", "prevId", "source", "headers"))
    return {"id": number, "timestamp": 1, "namespace": namespace, "data": data or Variant("Nat", number), **absent}


def ask(
    url: str, method: str = "GET", body: bytes | None = None, /, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(url, body, sent, method=method)
    try:
        with urlopen(request, timeout=60) as response:
            return response.status, dict(response.headers), response.read()
    except HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read()


def call(url: str, callee: bytes, name: str, argument: object = None, /, **headers: str) -> tuple[int, Any]:
    """Call a method and return its status, with its result or its problem."""
    method = every_method()[name]
    headers = {"Content_Type": CANDID, **headers}
    status, _, body = ask(
        f"{url}/icrc/{principal_text(callee)}/{name}", "POST", method.encode_argument(argument), **headers
    )
    if status == 200:
        values = method.decode_results(body)
        return status, values[0] if values else None
    return status, json.loads(body)


def as_(caller: bytes) -> dict[str, str]:
    return {"Icrc_Caller": principal_text(caller)}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


@contextmanager
def guarded(token_file: str) -> Iterator[ServedNetwork]:
    """Serve with tokens."""
    network = living("oracle", "manual")
    gateway = Gateway.open(icrc=icrc_settings(), allow_sink=["127.0.0.1"])
    gateway.follow(network.clock.chains, network.title, key_names=network.key_names)
    with serving(network, gateway=gateway, access=access_for((), (), token_file)) as chains:
        yield chains


def hosted(
    url: str, work: Callable[[CanisterHost, NotingSubscriber], Awaitable[None]], *, caller: bytes = BOB, **options: Any
) -> None:
    """Serve a subscriber in this process while ``work`` runs."""

    async def run() -> None:
        async with CanisterHost.connected(url, principal=caller, **options) as host:
            subscriber = NotingSubscriber(host.principal, host.wire)
            host.add(subscriber)
            await work(host, subscriber)

    asyncio.run(run())


ARGUMENTS = {
    "icrc72_register_publication": '(vec {record {namespace = "com.example.all"; config = vec {}}})',
    "icrc72_register_subscription": '(vec {record {namespace = "com.example.all"; config = vec {}}})',
    "icrc72_update_publication": '(vec {record {namespace = opt "com.example.all"}})',
    "icrc72_update_subscription": "(vec {record {subscriptionId = opt 1; newStopped = opt true}})",
    "icrc72_get_subscription": "(vec {1})",
    "icrc72_get_publication_publishers": '(record {namespace = "com.example.all"})',
    "icrc72_get_publication_broadcasters": '(record {namespace = "com.example.all"})',
    "icrc72_is_authorized_publisher": '(vec {record {namespace = "a.b"; "principal" = principal "aaaaa-aa"}})',
    "icrc72_publish": '(vec {record {id = 1; timestamp = 1; namespace = "com.example.all"; data = variant {Nat = 1}}})',
    "icrc72_confirm_messages": "(vec {77})",
}
"""Arguments of methods for which neither nothing, nor an empty record, nor an empty vec will do."""

REFUSED = {"icrc72_handle_notification"}
"""Only the orchestrator notifies canisters of the server."""


def argument_for(method: CandidMethod) -> str:
    """Return an argument that the method takes, as Candid text."""
    if not method.takes_argument:
        return "()"
    return ARGUMENTS.get(method.name) or ("(vec {})" if "(vec " in method.arguments else "(record {})")
