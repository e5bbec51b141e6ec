"""The wire of a server: canisters of the process in turns of its loop, others over HTTP, in order and bounded."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from gateway.icrc.http_stage import (
    ALICE,
    NOTIFY,
    STATS,
    TRUSTED,
    NotingSubscriber,
    call_site,
    notification,
    principal,
    refusing,
    until,
)
from relaycast_gateway.candid import Variant
from relaycast_gateway.clock import VirtualClock, settle
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.icrc.canister import Answer, Promise
from relaycast_gateway.icrc.http import remote_calls
from relaycast_gateway.icrc.http.http_wire import HttpWire
from relaycast_gateway.principal import principal_text

SUB, OTHER = principal("sub"), principal("other")


def wire_of(clock: Any = None, **options: Any) -> HttpWire:
    wire = HttpWire(SinkGuard(["127.0.0.1"]), clock or VirtualClock(), **options)
    wire.begin()
    return wire


def run(work: Callable[[], Any]) -> None:
    asyncio.run(work())


def noting(order: list[Any], what: object) -> Callable[[Answer], None]:
    return lambda _answer: order.append(what)


def failing() -> object:
    raise KeyError("secret")


async def asked(wire: HttpWire, callee: bytes, method: str, argument: object = None) -> Answer:
    answers: list[Answer] = []
    wire.call(ALICE, callee, method, argument, answers.append)
    await until(lambda: answers)
    assert len(answers) == 1
    return answers[0]


def test_a_call_in_the_process_comes_in_a_later_turn_in_the_order_of_the_calls() -> None:
    async def work() -> None:
        wire = wire_of()
        one, two = NotingSubscriber(SUB, wire), NotingSubscriber(OTHER, wire)
        wire.add(one)
        wire.add(two)
        order: list[int] = []
        for number in range(6):
            to = (SUB, OTHER)[number % 2]
            wire.call(ALICE, to, NOTIFY, [notification(number)], noting(order, number))
        assert one.noted == two.noted == []
        await settle()
        assert [argument[0]["id"] for _, argument in one.noted] == [0, 2, 4]
        assert [argument[0]["id"] for _, argument in two.noted] == [1, 3, 5]
        assert order == list(range(6))
        await wire.close()

    run(work)


def test_a_refusal_a_failure_and_nobody_are_answers_and_stop_nothing() -> None:
    async def work() -> None:
        wire = wire_of()
        canister = NotingSubscriber(SUB, wire)
        wire.add(canister)
        canister.answer = refusing("no")
        assert await asked(wire, SUB, TRUSTED, []) == Answer(refusal="no")
        canister.answer = failing
        assert "failed" in ((await asked(wire, SUB, TRUSTED, [])).refusal or "")
        assert "no method" in ((await asked(wire, SUB, "nothing")).refusal or "")
        assert "cannot be reached" in ((await asked(wire, OTHER, NOTIFY, [])).refusal or "")
        promise: Promise[object] = Promise()
        canister.answer = lambda: promise
        asyncio.get_running_loop().call_soon(promise.settle, 5)
        assert await asked(wire, SUB, TRUSTED, []) == Answer(5)
        await wire.close()

    run(work)


def test_what_is_asked_before_the_loop_runs_waits_for_it() -> None:
    wire = HttpWire(SinkGuard(), VirtualClock())
    canister = NotingSubscriber(SUB, wire)
    wire.add(canister)
    rung: list[str] = []
    done: Future[int] = Future()
    wire.call(ALICE, SUB, NOTIFY, [])
    wire.call_later(5, lambda: rung.append("kept"))
    wire.call_later(5, lambda: rung.append("canceled")).cancel()
    wire.when_done(done, lambda future: rung.append(f"done {future.result()}"))
    done.set_result(3)

    async def work() -> None:
        clock = wire._clock
        assert isinstance(clock, VirtualClock)
        assert canister.noted == []
        wire.begin()
        await settle()
        assert len(canister.noted) == 1
        assert rung == ["done 3"]
        await clock.advance(6)
        assert rung == ["done 3", "kept"]
        await wire.close()

    run(work)


def test_futures_are_told_in_the_order_given_and_in_the_loop() -> None:
    async def work() -> None:
        told: list[Any] = []
        wire = wire_of()
        futures: list[Future[int]] = [Future() for _ in range(3)]
        for future in futures:
            wire.when_done(future, lambda done: told.append(done.result()))
        for number in (2, 1):
            await asyncio.to_thread(futures[number].set_result, number)
        await settle()
        assert told == []
        await asyncio.to_thread(futures[0].set_result, 0)
        await until(lambda: len(told) == 3)
        assert told == [0, 1, 2]
        await wire.close()

    run(work)


def test_after_close_nothing_is_called_and_nobody_is_answered() -> None:
    async def work() -> None:
        clock = VirtualClock()
        told: list[Any] = []
        wire = wire_of(clock)
        canister = NotingSubscriber(SUB, wire)
        wire.add(canister)
        wire.call(ALICE, SUB, NOTIFY, [], told.append)
        wire.call_later(1, lambda: told.append("rung"))
        await wire.close()
        await clock.advance(2)
        assert (told, canister.noted) == ([], [])

    run(work)


def test_calls_to_another_process_keep_their_order_and_bring_results_back() -> None:
    async def work() -> None:
        async with call_site("sub", "other") as site:
            wire = wire_of()
            for callee in (SUB, OTHER):
                wire.remember(callee, site.url)
            order: list[tuple[bytes, int]] = []
            for number in range(20):
                for callee in (SUB, OTHER):
                    wire.call(ALICE, callee, NOTIFY, [notification(number)], noting(order, (callee, number)))
            await until(lambda: len(order) == 40)
            for callee in (SUB, OTHER):
                canister = site.wire.canister(callee)
                assert isinstance(canister, NotingSubscriber)
                assert [argument for _, argument in canister.noted] == [[notification(at)] for at in range(20)]
                assert {caller for caller, _ in canister.noted} == {ALICE}
                assert [number for to, number in order if to == callee] == list(range(20))
            canister = site.wire.canister(SUB)
            assert isinstance(canister, NotingSubscriber)
            canister.answer = lambda: Variant("Ok", Variant("Text", "é"))
            assert await asked(wire, SUB, TRUSTED, []) == Answer(Variant("Ok", Variant("Text", "é")))
            assert await asked(wire, SUB, STATS) == Answer([])
            canister.answer = refusing("too\nlate")
            assert (await asked(wire, SUB, TRUSTED, [])).refusal == f"{principal_text(SUB)}: too late"
            assert (wire.waiting, wire.failed) == (0, 1)
            await wire.close()

    run(work)


def test_where_a_canister_is_may_be_asked_for_each_call() -> None:
    async def work() -> None:
        async with call_site("sub") as site:
            places: dict[bytes, remote_calls.CanisterPlace] = {}
            wire = wire_of(place_of=places.get)
            assert "cannot be reached" in ((await asked(wire, SUB, STATS)).refusal or "")
            places[SUB] = remote_calls.CanisterPlace(site.url)
            assert await asked(wire, SUB, STATS) == Answer([])
            wire.remember(SUB, "http://127.0.0.1:1")
            assert "cannot connect" in ((await asked(wire, SUB, STATS)).refusal or "")
            wire.forget(SUB)
            assert await asked(wire, SUB, STATS) == Answer([])
            await wire.close()

    run(work)


def test_the_guard_decides_where_calls_go_and_redirects_are_not_followed() -> None:
    async def work() -> None:
        async with call_site("sub") as site:
            guarded = HttpWire(SinkGuard(), VirtualClock())
            guarded.begin()
            guarded.remember(SUB, site.url)
            assert "loopback" in ((await asked(guarded, SUB, STATS)).refusal or "")
            await guarded.close()

        async def away(_: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": f"{site.url}/icrc"})

        async with answering(away) as url:
            wire = wire_of()
            wire.remember(SUB, url)
            assert "HTTP 307" in ((await asked(wire, SUB, STATS)).refusal or "")
            await wire.close()

    run(work)


@asynccontextmanager
async def answering(handle: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    """Answer every request with ``handle``; yield the server's URL."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, b"", "no icrc72_get_subscriber_stats's"),
        (200, b"DIDL\x00\x01\x7d\x05", "expected vec, got nat"),
        (200, bytes(3_000_000), "an answer of more than"),
        (500, b"Traceback", "HTTP 500"),
        (422, json.dumps({"detail": "a\n" * 1_000}).encode(), "a a a"),
        (404, b"{}" * 10_000, "HTTP 404"),
        (500, b"[" * 4_000, "HTTP 500"),  # deeper than the parser goes
    ],
)
def test_an_answer_that_is_none_is_a_refusal_on_one_line(status: int, body: bytes, reason: str) -> None:
    async def work() -> None:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(status=status, body=body)

        async with answering(answer) as url:
            wire = wire_of()
            wire.remember(SUB, url)
            refusal = (await asked(wire, SUB, STATS)).refusal or ""
            assert reason in refusal
            assert "\n" not in refusal
            assert len(refusal) < 500
            await wire.close()

    run(work)


def test_a_call_that_takes_too_long_is_given_up_and_the_next_one_goes_out() -> None:
    async def work() -> None:
        gate, came = asyncio.Event(), []

        async def answer(request: web.Request) -> web.Response:
            came.append(request.path)
            if len(came) == 1:
                await gate.wait()
            return web.Response(body=b"DIDL\x00\x00")

        async with answering(answer) as url:
            clock = VirtualClock()
            answers: list[Any] = []
            wire = wire_of(clock)
            wire.remember(SUB, url)
            for _ in range(2):
                wire.call(ALICE, SUB, NOTIFY, [], answers.append)
            await until(lambda: came)
            await clock.advance(29)
            assert answers == []
            await clock.advance(2)
            await until(lambda: len(answers) == 2)
            assert [answer.refusal is None for answer in answers] == [False, True]
            assert "no answer within 30 s" in (answers[0].refusal or "")
            gate.set()
            await wire.close()

    run(work)


@pytest.mark.matrix("ICRC72-97")
def test_calls_that_wait_are_bounded_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_calls, "MOST_WAITING_CALLS", 3)
    monkeypatch.setattr(remote_calls, "MOST_WAITING_BYTES", 10_000)

    async def work() -> None:
        gate = asyncio.Event()

        async def answer(_: web.Request) -> web.Response:
            await gate.wait()
            return web.Response(body=b"DIDL\x00\x00")

        async with answering(answer) as url:
            answers: list[Any] = []
            wire = wire_of()
            for callee in (SUB, OTHER):
                wire.remember(callee, url)
            for _ in range(5):
                wire.call(ALICE, SUB, NOTIFY, [], answers.append)
            await until(lambda: len(answers) == 2)
            assert all("3 calls" in answer.refusal for answer in answers)
            large = [notification(1, Variant("Blob", bytes(20_000)))]
            wire.call(ALICE, OTHER, NOTIFY, large, answers.append)
            await until(lambda: len(answers) == 3)
            assert "10,000 bytes" in answers[2].refusal
            assert wire.waiting == 3
            gate.set()
            await until(lambda: len(answers) == 6)
            assert [answer.refusal for answer in answers[3:]] == [None] * 3
            wire.call(ALICE, OTHER, NOTIFY, [{"id": "x"}], answers.append)
            await until(lambda: len(answers) == 7)
            assert "cannot be sent" in answers[6].refusal
            await wire.close()

    run(work)
