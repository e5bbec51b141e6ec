"""How many requests a second a caller may make: the buckets by a virtual clock, and what a server answers beyond."""

import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.test_serve_http import ASK, TOKEN, small_server, started
from gateway.cloudevents.served_gateway import served
from relaycast.serve.access import Access
from relaycast.serve.request_rates import BURST_SECONDS, MOST_CALLERS, RateExceeded, RequestRates
from relaycast.serve.server import Server
from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.cloudevents.caller import Caller
from relaycast_gateway.listener import caller_at
from small_chain import SmallChain, SmallLive


def taken(rates: RequestRates, caller: str, count: int) -> int:
    """Return how many of ``count`` requests were let in."""
    return sum(rates.take(caller) is None for _ in range(count))


def test_a_burst_is_let_in_and_then_the_rate() -> None:
    clock = VirtualClock()
    rates = RequestRates(10, clock=clock)
    assert taken(rates, "a", 50) == 10 * BURST_SECONDS
    asyncio.run(clock.advance(0.5))
    assert taken(rates, "a", 50) == 5
    asyncio.run(clock.advance(3_600))
    assert taken(rates, "a", 50) == 10 * BURST_SECONDS
    assert rates.refused == 10 + 45 + 10


def test_callers_do_not_share_a_bucket() -> None:
    rates = RequestRates(1, clock=VirtualClock())
    assert taken(rates, "a", 10) == BURST_SECONDS
    assert taken(rates, "b", 10) == BURST_SECONDS


def test_a_request_that_waits_as_long_as_it_is_told_is_let_in() -> None:
    clock = VirtualClock()
    rates = RequestRates(3, clock=clock)
    taken(rates, "a", 100)
    excess = rates.take("a")
    assert excess == RateExceeded(3, 1)
    assert str(excess) == "the rate: got more requests, expected at most 3 requests a second; try again in 1 s"
    asyncio.run(clock.advance(excess.retry_seconds))
    assert rates.take("a") is None


@given(st.integers(1, 50), st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 40)), max_size=20))
def test_in_no_stretch_of_time_more_is_let_in_than_a_burst_and_the_rate(
    a_second: int, waits: list[tuple[int, int]]
) -> None:
    clock = VirtualClock()
    rates = RequestRates(a_second, clock=clock)
    let_in = []
    for wait_ns, count in waits:
        asyncio.run(clock.advance(wait_ns / SECOND))
        let_in += [clock.passed_ns()] * taken(rates, "a", count)
    for first, begin in enumerate(let_in):
        for last in range(first, len(let_in)):
            allowed = a_second * (BURST_SECONDS + (let_in[last] - begin) / SECOND)
            assert last - first + 1 <= math.floor(allowed + 1e-6)


@pytest.mark.parametrize("step_seconds", [-86_400, 86_400])
def test_a_clock_that_is_set_refuses_nothing_and_lets_nothing_more_in(step_seconds: int) -> None:
    clock = VirtualClock()
    rates = RequestRates(10, clock=clock)
    assert taken(rates, "a", 25) == 25
    clock.set(clock.now_ns() + step_seconds * SECOND)
    assert rates.take("a") is None
    assert taken(rates, "a", 100) == 10 * BURST_SECONDS - 26


def test_several_requests_are_let_in_together_or_not_at_all() -> None:
    clock = VirtualClock()
    rates = RequestRates(10, clock=clock)
    assert rates.take("a", 30) is None
    assert rates.take("a", 11) == RateExceeded(10, 1, count=11)
    assert rates.take("a", 10) is None
    assert rates.take("a", 25) == RateExceeded(10, 3, count=25)
    assert rates.refused == 2


def test_the_number_of_buckets_is_bounded_and_the_quietest_caller_goes_first() -> None:
    rates = RequestRates(1, clock=VirtualClock())
    taken(rates, "busy", BURST_SECONDS)
    taken(rates, "quiet", BURST_SECONDS)
    for number in range(MOST_CALLERS - 1):
        assert rates.take("busy") is not None
        rates.take(f"stranger {number}")
        assert len(rates) <= MOST_CALLERS
    assert rates.take("busy") is not None
    assert rates.take("quiet") is None


@pytest.mark.parametrize(
    ("address", "caller"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),  # a client may take any address of its network
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
    ],
)
def test_a_caller_without_a_token_is_its_address(address: str, caller: str) -> None:
    assert caller_at(address) == caller


def test_requests_beyond_the_rate_get_429_in_the_form_of_their_path() -> None:
    async def run() -> None:
        rates = RequestRates(2, clock=VirtualClock())
        async with served(rates=rates) as api:
            assert [(await api.ask("GET", "/subscriptions")).status for _ in range(8)] == [200] * 8
            problem = await api.refused("GET", "/subscriptions", status=429)
            assert problem["type"] == "urn:relaycast:problem:too-many"
            assert problem["detail"].endswith("expected at most 2 requests a second; try again in 1 s")
            answer = await api.ask("GET", "/nothing", Origin="http://localhost:1")
            assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
            assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:1"
            assert (
                answer.data == b"the rate: got more requests, expected at most 2 requests a second; try again in 1 s\n"
            )
            answer = await api.ask("POST", "/", ASK)
            assert (answer.status, answer.json["id"], answer.json["error"]["code"]) == (429, None, -32999)
            assert (await api.ask("GET", "/", Host="evil.example")).status == 429
            assert (await api.ask("GET", "/healthz")).status == 200
            assert (await api.ask("GET", "/readyz")).status == 200
            rates._full_at.clear()
            assert (await api.ask("GET", "/", Host="evil.example")).status == 403
            assert b"relaycast_requests_refused_total 4.0" in (await api.ask("GET", "/metrics")).data

    asyncio.run(run())


def test_tokens_have_buckets_of_their_own_and_strangers_those_of_their_addresses() -> None:
    alice, bob = TOKEN.encode(), b"another-token-of-some-length"
    access = Access(tokens=(alice, bob), callers={alice: Caller("alice"), bob: Caller("bob")})

    async def run() -> None:
        async with served(access, rates=RequestRates(1, clock=VirtualClock())) as api:
            for token, status in [("x" * 16, 401), (alice.decode(), 200), (bob.decode(), 200)]:
                api.token = token
                found = [(await api.ask("GET", "/subscriptions")).status for _ in range(6)]
                assert found == [status] * BURST_SECONDS + [429] * (6 - BURST_SECONDS)

    asyncio.run(run())


def test_messages_over_a_socket_count_like_requests_and_their_answers_carry_their_ids() -> None:
    async def run() -> None:
        chain = SmallChain({b"key": b"value"})
        chain.add()
        clock = VirtualClock()
        rates = RequestRates(2, clock=clock)
        server = Server(SmallLive(chain), title="small", key_names=dict, access=Access(), rates=rates)
        async with started(server) as client, client.ws_connect(server.url("ws")) as socket:
            for number in range(10):
                await socket.send_str(json.dumps(ASK | {"id": number}))
            answers = [json.loads(await socket.receive_str()) for _ in range(10)]
            assert [it["id"] for it in answers] == list(range(10))
            assert ["error" in it for it in answers] == [False] * 7 + [True] * 3  # opening the socket was one
            assert answers[-1]["error"] == {
                "code": -32999,
                "message": "RPC rate limit exceeded",
                "data": "the rate: got more requests, expected at most 2 requests a second; try again in 1 s",
            }
            await socket.send_str("[]")
            assert json.loads(await socket.receive_str())["id"] is None

    asyncio.run(run())


def test_a_batch_counts_as_the_requests_in_it() -> None:
    async def run() -> None:
        chain = SmallChain({b"key": b"value"})
        clock = VirtualClock()
        rates = RequestRates(10, clock=clock)
        server = Server(SmallLive(chain), title="small", key_names=dict, access=Access(), rates=rates)
        async with started(server) as client, client.ws_connect(server.url("ws")) as socket:
            for count, expected in [(30, 30), (10, None), (8, 8)]:  # opening the socket was one, a refused message too
                await socket.send_str(json.dumps([ASK] * count))
                answer = json.loads(await socket.receive_str())
                if expected is None:
                    assert (answer["id"], answer["error"]["code"]) == (None, -32999)
                else:
                    assert len(answer) == expected
            await clock.advance(BURST_SECONDS)
            for count, status in [(40, 200), (1, 429)]:
                async with client.post(server.url("http"), json=[ASK] * count) as response:
                    assert response.status == status
            await clock.advance(BURST_SECONDS)
            async with client.post(server.url("http"), json=[ASK] * 41) as response:
                assert (response.status, response.headers["Retry-After"]) == (429, "1")
                error = (await response.json())["error"]
            at_most = "at most 10 requests a second and 40 at once"
            assert error["data"] == f"the rate: got 40 more requests, expected {at_most}; try again in 1 s"

    asyncio.run(run())


def test_a_server_lets_in_a_burst_of_eighty_thousand_by_default() -> None:
    rates = small_server().rates
    assert rates.a_second * BURST_SECONDS == 80_000
