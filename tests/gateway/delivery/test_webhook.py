"""The handshake of web hooks: a receiver is asked before it is sent anything, and its rate is kept."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from delivery_scene import Scene
from gateway.delivery.http_receiver import MESSAGE, receiver, sender
from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.delivery.deliveries import EventDeliveries
from relaycast_gateway.delivery.sender import Accepted, Gone, Retryable, SendOutcome
from relaycast_gateway.delivery.wire_message import WireMessage
from relaycast_gateway.record import EventRecord


class Validating:
    """A receiver that takes part in the handshake."""

    def __init__(self, **headers: str) -> None:
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.status = 200
        self.requests: list[tuple[str, str | None, str | None, str | None]] = []

    async def answer(self, request: web.Request) -> web.Response:
        asked = (request.headers.get(f"WebHook-Request-{name}") for name in ("Origin", "Rate"))
        origin, rate = asked
        self.requests.append((request.method, origin, rate, request.headers.get("Authorization")))
        return web.Response(status=self.status, headers=self.headers if request.method == "OPTIONS" else None)


def validated(peer: Validating, settings: dict[str, Any], count: int = 2) -> list[SendOutcome]:
    async def main() -> list[SendOutcome]:
        async with receiver(peer.answer) as server, sender(server.port, settings, {"accesstoken": "t"}) as made:
            return list(await asyncio.gather(*(made.send(MESSAGE) for _ in range(count))))

    return asyncio.run(main())


@pytest.mark.matrix("CE-62")
@pytest.mark.parametrize("allowed", ["feed.example", "*", "other.example, FEED.example"])
def test_a_receiver_is_asked_once_before_the_first_delivery(allowed: str) -> None:
    peer = Validating(WebHook_Allowed_Origin=allowed, WebHook_Allowed_Rate="120")
    assert validated(peer, {"requestorigin": "feed.example", "requestrate": 600}) == [Accepted()] * 2
    assert peer.requests == [("OPTIONS", "feed.example", "600", "Bearer t"), *[("POST", None, None, "Bearer t")] * 2]


NOT_ALLOWED = Retryable("the receiver did not allow deliveries of feed.example")


@pytest.mark.matrix("CE-62")
@pytest.mark.parametrize(
    ("headers", "status", "outcome"),
    [
        ({}, 200, NOT_ALLOWED),
        ({"WebHook_Allowed_Origin": "a.example"}, 200, NOT_ALLOWED),
        ({"WebHook_Allowed_Origin": "*"}, 405, Retryable("the receiver did not take the validation request: HTTP 405")),
        ({"WebHook_Allowed_Origin": "*"}, 503, Retryable("HTTP 503")),
        ({"WebHook_Allowed_Origin": "*"}, 410, Gone("HTTP 410")),
    ],
)  # fmt: skip
def test_without_the_receiver_s_leave_nothing_is_delivered(
    headers: dict[str, str], status: int, outcome: SendOutcome
) -> None:
    peer = Validating(**headers)
    peer.status = status
    assert validated(peer, {"requestorigin": "feed.example"}, count=1) == [outcome]
    assert [method for method, *_ in peer.requests] == ["OPTIONS"]


@pytest.mark.matrix("CE-62")
def test_without_the_setting_no_receiver_is_asked() -> None:
    peer = Validating()
    assert validated(peer, {}) == [Accepted()] * 2
    assert [method for method, *_ in peer.requests] == ["POST", "POST"]


@pytest.mark.matrix("CE-62")
@pytest.mark.parametrize(
    ("allowed", "asked", "gap"),
    [("120", 600, 0.5), ("*", 600, 0), (None, 600, 0.1), (None, None, 0), ("0", None, 0), ("many", 60, 1)],
)
def test_the_rate_that_a_receiver_allows_is_kept(allowed: str | None, asked: int | None, gap: float) -> None:
    async def main() -> None:
        clock = VirtualClock()
        headers = {"WebHook_Allowed_Origin": "*"} | ({} if allowed is None else {"WebHook_Allowed_Rate": allowed})
        settings = {"requestorigin": "feed.example"} | ({} if asked is None else {"requestrate": asked})
        async with receiver(Validating(**headers).answer) as server, sender(server.port, settings, clock=clock) as made:
            assert made.take_turn() == 0
            assert made.take_turn() > 0  # nobody knows yet
            assert await made.send(MESSAGE) == Accepted()
            assert made.take_turn() == pytest.approx(gap)
            clock.set(clock.now_ns() - 10**15)
            assert 0 <= made.take_turn() <= gap
            clock.set(clock.now_ns() + round(gap * SECOND))
            assert made.take_turn() == 0

    asyncio.run(main())


@pytest.mark.matrix("CE-62")
def test_a_first_event_that_dies_before_it_is_sent_leaves_the_next_one_its_turn_to_ask() -> None:
    async def main() -> None:
        scene, peer = Scene(), Validating(WebHook_Allowed_Origin="*")
        order = scene.order()

        def encode(record: EventRecord) -> WireMessage:
            if record.seq == 1:
                raise ValueError("too large")
            return WireMessage(str(record.seq).encode())

        async with receiver(peer.answer) as server, sender(server.port, {"requestorigin": "feed.example"}) as made:
            deliveries = EventDeliveries(scene.log, scene.store, sender_of=lambda _: made)
            deliveries.add(replace(order, encode=encode), 0)
            await deliveries.start()
            scene.log.append(3)
            async with asyncio.timeout(20):
                while deliveries.state("sub").cursor < 3 or deliveries.state("sub").pending:
                    await asyncio.sleep(0.01)
            assert [letter.reason for letter in deliveries.dead_letters("sub")] == [
                "the event cannot be encoded: too large"
            ]
            await deliveries.stop()
        assert [method for method, *_ in peer.requests] == ["OPTIONS", "POST", "POST"]

    asyncio.run(main())
