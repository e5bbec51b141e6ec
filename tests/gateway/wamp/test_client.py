"""The client and the router, over both transports and with every serializer."""

import asyncio

import pytest

from gateway.wamp.served_router import TRANSPORTS, ServedRouter, play
from relaycast_gateway.wamp.authentication import Salting, WampUser
from relaycast_gateway.wamp.client.client import WampClient
from relaycast_gateway.wamp.client.values import JoinRefused, SessionEnded
from relaycast_gateway.wamp.errors import (
    AUTHENTICATION_FAILED,
    CLOSE_NORMAL,
    CLOSE_SYSTEM_SHUTDOWN,
    NO_MATCHING_AUTH_METHOD,
    NO_SUCH_REALM,
    WampProtocolError,
)
from relaycast_gateway.wamp.router_config import RouterConfig
from relaycast_gateway.wamp.serializers import SERIALIZER_NAMES, serialize

everywhere = pytest.mark.parametrize(
    ("transport", "serializer"), [(transport, name) for transport in TRANSPORTS for name in SERIALIZER_NAMES]
)
each_transport = pytest.mark.parametrize("transport", TRANSPORTS)

USERS = RouterConfig.default(
    [
        WampUser.of("ticket-user", "user", ticket="let me in"),
        WampUser.of("cra-user", "admin", secret="a secret"),
        WampUser.of("salted-user", "user", secret="a secret", salt=Salting("grains", iterations=100)),
        WampUser.of_token("both", "user", "a token"),
    ]
)


@pytest.mark.matrix("WAMP-62")
@everywhere
def test_a_client_joins_and_leaves(transport: str, serializer: str) -> None:
    async def scene(it: ServedRouter) -> None:
        client = await it.client(transport, serializer)
        assert client.details["authrole"] == "anonymous"
        assert it.router.figures().sessions == 1
        await client.leave()
        assert it.router.figures().sessions == 0
        assert client.ended is not None
        assert client.ended.reason == "wamp.close.goodbye_and_out"
        with pytest.raises(SessionEnded):
            await client.publish("a.b")
        await client.leave()

    play(scene)


@pytest.mark.matrix("WAMP-62")
@each_transport
@pytest.mark.parametrize(
    ("authid", "proof", "method", "role"),
    [
        ("ticket-user", {"ticket": "let me in"}, "ticket", "user"),
        ("cra-user", {"secret": "a secret"}, "wampcra", "admin"),
        ("salted-user", {"secret": "a secret"}, "wampcra", "user"),
        ("both", {"ticket": "a token", "secret": "a token"}, "wampcra", "user"),
        ("both", {"ticket": "a token"}, "ticket", "user"),
    ],
)
def test_a_client_proves_who_it_is(transport: str, authid: str, proof: dict[str, str], method: str, role: str) -> None:
    async def scene(it: ServedRouter) -> None:
        client = await it.client(transport, authid=authid, **proof)
        told = [client.details[name] for name in ("authid", "authmethod", "authrole")]
        assert told == [authid, method, role]

    play(scene, USERS)


@pytest.mark.matrix("WAMP-62")
@each_transport
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"realm": "no.such"}, NO_SUCH_REALM),
        ({}, NO_MATCHING_AUTH_METHOD),
        ({"authid": "ticket-user", "ticket": "let me out"}, AUTHENTICATION_FAILED),
        ({"authid": "cra-user", "secret": "another"}, AUTHENTICATION_FAILED),
        ({"authid": "salted-user", "secret": "another"}, AUTHENTICATION_FAILED),
        ({"authid": "nobody", "secret": "a secret", "ticket": "a ticket"}, AUTHENTICATION_FAILED),
    ],
)
def test_a_client_that_may_not_join_learns_why(transport: str, options: dict[str, str], reason: str) -> None:
    async def scene(it: ServedRouter) -> None:
        with pytest.raises(JoinRefused) as refused:
            await it.client(transport, **options)
        assert refused.value.reason == reason
        assert str(refused.value) == f"{reason}: {refused.value.message}"
        assert refused.value.message
        assert it.router.figures().sessions == 0

    play(scene, USERS)


@each_transport
def test_a_client_learns_that_the_router_stops(transport: str) -> None:
    async def scene(it: ServedRouter) -> None:
        client = await it.client(transport)
        ended = asyncio.create_task(client.until_ended())
        await it.router.stop()
        assert (await ended).reason == CLOSE_SYSTEM_SHUTDOWN

    play(scene)


@each_transport
def test_a_client_learns_that_its_connection_is_gone(transport: str) -> None:
    async def scene(it: ServedRouter) -> None:
        client = await it.client(transport)
        it.connections.abandon_all()
        assert (await client.until_ended()).reason == "wamp.close.transport_lost"
        with pytest.raises(SessionEnded, match="the connection is gone"):
            await client.call("a.b")

    play(scene)


def test_a_client_is_told_in_a_line_why_it_cannot_connect() -> None:
    async def scene(it: ServedRouter) -> None:
        host, port = it.urls["websocket"].split("/")[2], it.urls["rawsocket"].rpartition(":")[2]
        for url, said in {
            "rs://127.0.0.1:9": "Connect call failed",
            f"rs://{host}": "instead of a RawSocket handshake",
            f"ws://127.0.0.1:{port}/wamp": "disconnected",
            it.urls["websocket"].replace("/wamp", "/other"): "404",
        }.items():
            with pytest.raises(ConnectionError, match=said) as refused:
                await WampClient.connect(url)
            assert str(refused.value).startswith(f"{url}: ")
            assert "\n" not in str(refused.value)
        with pytest.raises(ValueError, match="expected ws://, wss://, rs:// or rss://, got 'http://a'"):
            await WampClient.connect("http://a")
        with pytest.raises(ValueError, match="expected a host and a port"):
            await WampClient.connect("rs://localhost")
        with pytest.raises(ValueError, match="expected one of json, msgpack, cbor"):
            await WampClient.connect(it.urls["rawsocket"], serializer="xml")

    play(scene)


@each_transport
def test_leaving_a_client_closes_its_session(transport: str) -> None:
    async def scene(it: ServedRouter) -> None:
        async with await WampClient.connect(it.urls[transport]) as client:
            assert it.router.figures().sessions == 1
        assert it.router.figures().sessions == 0
        assert client.ended is not None
        assert client.ended.reason != CLOSE_NORMAL  # the router has answered

    play(scene)


@each_transport
def test_a_client_does_not_wait_for_ever(transport: str) -> None:
    async def scene() -> None:
        hung_up = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()
            hung_up.set()

        async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
            scheme = "ws" if transport == "websocket" else "rs"
            url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            with pytest.raises(ConnectionError, match=r"no session after 0\.05 seconds"):
                await WampClient.connect(url, patience_seconds=0.05)
            await hung_up.wait()

    asyncio.run(scene())


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"challenge": 5},
        {"challenge": "{}", "salt": 5},
        {"challenge": "{}", "salt": "grains", "iterations": "many"},
        {"challenge": "{}", "salt": "grains", "iterations": 1 << 31},  # the derivation would take minutes
        {"challenge": "{}", "salt": "grains", "keylen": 1 << 31},
    ],
)
def test_a_challenge_that_asks_for_too_much_is_refused(extra: dict[str, object]) -> None:
    async def challenge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        await reader.readexactly(int.from_bytes((await reader.readexactly(4))[1:]))
        data = serialize([4, "wampcra", extra], "msgpack")
        writer.write(len(data).to_bytes(4) + data)
        await reader.read()
        writer.close()

    async def scene() -> None:
        async with await asyncio.start_server(challenge, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(WampProtocolError, match=r"CHALLENGE\.Extra"):
                await WampClient.connect(f"rs://127.0.0.1:{port}", authid="ann", secret="a secret")

    asyncio.run(scene())
