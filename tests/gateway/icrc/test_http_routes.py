"""Canisters over HTTP: calls, interfaces, the list; who may call, and what a body may hold."""

import asyncio
import gzip
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from gateway.icrc.http_stage import (
    ALICE,
    BOB,
    NOTIFY,
    PROBLEM_TYPE,
    STATS,
    TRUSTED,
    CallAnswer,
    CallSite,
    NotingSubscriber,
    call_site,
    notification,
    principal,
    refusing,
)
from relaycast_gateway.candid import CandidError, Variant, encode
from relaycast_gateway.icrc.canister import Promise
from relaycast_gateway.icrc.http import call_limits
from relaycast_gateway.icrc.http.call_limits import MOST_BODY_BYTES, decode_argument, values_of
from relaycast_gateway.icrc.interface import CanisterRole, every_method, interface_text, methods_of
from relaycast_gateway.principal import ANONYMOUS, principal_text

SUB = principal("sub")
PATH = f"/icrc/{principal_text(SUB)}"


def visit(work: Callable[[CallSite, NotingSubscriber], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with call_site("sub", **options) as site:
            canister = site.wire.canister(SUB)
            assert isinstance(canister, NotingSubscriber)
            await work(site, canister)

    asyncio.run(run())


def failing() -> object:
    raise KeyError("secret")


def problem(answer: CallAnswer, status: int, kind: str) -> str:
    """Return the detail of a problem document."""
    assert (answer.status, answer.headers["Content-Type"]) == (status, PROBLEM_TYPE), answer.data
    assert answer.json["status"] == status
    assert answer.json["type"] == f"urn:relaycast:problem:{kind}"
    assert "\n" not in answer.json["detail"]
    return str(answer.json["detail"])


def test_a_call_reaches_the_canister_with_its_caller_and_the_result_comes_back() -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        given = [notification(1), notification(2, Variant("Map", [{0: "a", 1: Variant("Blob", b"\x00\xff")}]))]
        answer = await site.call(SUB, NOTIFY, given)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/candid")
        assert every_method()[NOTIFY].decode_results(answer.data) == []
        assert canister.noted == [(ALICE, given)]
        canister.answer = lambda: Variant("Ok", Variant("Nat", 7))
        answer = await site.call(SUB, TRUSTED, [], Content_Type="application/octet-stream")
        assert every_method()[TRUSTED].decode_results(answer.data) == [Variant("Ok", Variant("Nat", 7))]

    visit(work)


def test_a_promise_is_answered_when_it_is_settled() -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        promise: Promise[object] = Promise()
        canister.answer = lambda: promise
        asked = asyncio.create_task(site.call(SUB, TRUSTED, []))
        while not canister.noted:
            await asyncio.sleep(0.002)
        assert not asked.done()
        promise.settle(Variant("Err", "later"))
        assert every_method()[TRUSTED].decode_results((await asked).data) == [Variant("Err", "later")]

    visit(work)


def test_a_result_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaycast_gateway.icrc_routes.ANSWER_SECONDS", 0.01)

    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        promise: Promise[object] = Promise()
        canister.answer = lambda: promise
        assert "no result within" in problem(await site.call(SUB, TRUSTED, []), 503, "unavailable")
        promise.settle(Variant("Ok", None))
        assert (await site.call(SUB, STATS)).status == 200

    visit(work)


@pytest.mark.matrix("ICRC72-94")
@pytest.mark.parametrize("claimed", [None, ANONYMOUS])
def test_the_anonymous_principal_is_refused_on_every_update_and_may_query(claimed: bytes | None) -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        for name, method in canister.interface.items():
            answer = await site.call(SUB, name, [], caller=claimed)
            if method.is_query:
                assert answer.status == 200
            else:
                assert name in problem(answer, 403, "forbidden")
        assert canister.noted == []

    visit(work)


def test_nobody_claims_the_principal_of_a_canister_that_is_served_here() -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        assert "own" in problem(await site.call(SUB, NOTIFY, [], caller=SUB), 403, "forbidden")
        assert "own" in problem(await site.ask("GET", "/icrc", Icrc_Caller=principal_text(SUB)), 403, "forbidden")
        assert canister.noted == []

    visit(work)


@pytest.mark.parametrize("text", ["", "aaaaa", "2vxsx-fae-x", "ALICE", principal_text(ALICE).upper(), "a" * 5_000])
def test_a_caller_that_is_no_principal_is_refused(text: str) -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        answer = await site.ask("POST", f"{PATH}/{NOTIFY}", encode("(vec nat)", [[]]), Icrc_Caller=text)
        assert "expected the text of a principal" in problem(answer, 400, "malformed")
        assert canister.noted == []

    visit(work)


def test_what_is_not_there_is_not_found() -> None:
    async def work(site: CallSite, _: NotingSubscriber) -> None:
        for path in ("/icrc/x/candid", f"/icrc/{principal_text(BOB)}/candid"):
            problem(await site.ask("GET", path), 404, "notfound")
        for path in (f"/icrc/{principal_text(BOB)}/{NOTIFY}", f"/icrc/nobody/{NOTIFY}", f"{PATH}/icrc72_publish"):
            problem(await site.ask("POST", path, b"", Icrc_Caller=principal_text(ALICE)), 404, "notfound")
        listed = problem(await site.ask("POST", f"{PATH}/notify", b""), 404, "notfound")
        assert all(name in listed for name in methods_of(CanisterRole.SUBSCRIBER))

    visit(work)


def test_a_canister_that_refuses_is_422_with_its_reason_and_one_that_fails_says_no_more() -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        canister.answer = refusing("not\ntoday")
        assert problem(await site.call(SUB, TRUSTED, []), 422, "refused") == "not today"
        canister.answer = failing
        assert "secret" not in problem(await site.call(SUB, TRUSTED, []), 422, "refused")
        canister.answer = lambda: Variant("Ok", None)
        assert (await site.call(SUB, TRUSTED, [])).status == 200

    visit(work)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/cbor", ""])
def test_other_types_of_bodies_are_refused(kind: str) -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        answer = await site.call(SUB, NOTIFY, [], Content_Type=kind)
        assert "application/candid" in problem(answer, 415, "media-type")
        packed = gzip.compress(every_method()[NOTIFY].encode_argument([]))
        answer = await site.ask(
            "POST", f"{PATH}/{NOTIFY}", packed, Icrc_Caller=principal_text(ALICE), Content_Encoding="gzip"
        )
        assert "encoding" in problem(answer, 415, "media-type")
        assert canister.noted == []

    visit(work)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "DIDL"),
        (b"{}", "DIDL"),
        (encode("(nat)", [1]), "expected vec, got nat"),
        (encode("(vec record {id : nat})", [[{"id": 1}]]), ""),
        (encode("(vec nat)", [[1, 2]]) + b"\x00", "expected record, got nat"),
        (every_method()[NOTIFY].encode_argument([notification()])[:-3], ""),
        (every_method()[NOTIFY].encode_argument([]) + b"\x00", "follow"),
    ],
)
def test_a_body_that_is_no_argument_is_told_what_is_wrong(body: bytes, fault: str) -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        answer = await site.ask("POST", f"{PATH}/{NOTIFY}", body, Icrc_Caller=principal_text(ALICE))
        said = problem(answer, 400, "candid")
        assert said.startswith(f"the argument of {NOTIFY}: ")
        assert fault in said
        assert canister.noted == []

    visit(work)


@pytest.mark.matrix("ICRC72-97")
def test_a_body_beyond_the_limit_is_refused_before_it_is_read_also_without_a_length() -> None:
    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        path, caller = f"{PATH}/{NOTIFY}", principal_text(ALICE)
        answer = await site.ask("POST", path, bytes(MOST_BODY_BYTES + 1), Icrc_Caller=caller)
        assert f"{MOST_BODY_BYTES:,}" in problem(answer, 413, "too-large")

        async def parts() -> Any:
            for _ in range(40):
                yield bytes(100_000)

        headers = {"Icrc-Caller": caller, "Content-Type": "application/candid"}
        async with site.client.post(site.url + path, data=parts(), headers=headers) as response:
            assert response.status == 413
        whole = every_method()[NOTIFY].encode_argument([notification(1, Variant("Blob", bytes(2_000_000)))])
        assert (await site.ask("POST", path, whole, Icrc_Caller=caller)).status == 200
        assert len(canister.noted) == 1

    visit(work)


@pytest.mark.matrix("ICRC72-97")
def test_calls_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaycast_gateway.icrc_routes.MOST_CALLS_UNDER_WAY", 3)

    async def work(site: CallSite, canister: NotingSubscriber) -> None:
        promise: Promise[object] = Promise()
        canister.answer = lambda: promise
        asked = [asyncio.create_task(site.call(SUB, TRUSTED, [])) for _ in range(3)]
        while len(canister.noted) < 3:
            await asyncio.sleep(0.002)
        problem(await site.call(SUB, NOTIFY, []), 429, "too-many")
        promise.settle(Variant("Ok", None))
        assert [answer.status for answer in await asyncio.gather(*asked)] == [200] * 3
        assert (await site.call(SUB, NOTIFY, [])).status == 200

    visit(work)


EVENT = {"id": 1, "timestamp": 1, "namespace": "a", "source": None, "headers": None, "prev_id": None, "prevId": None}
SMALL = Variant("Nat", 1)


def publishing(data: Variant, count: int = 1) -> bytes:
    """Return the body that publishes ``count`` events with ``data``."""
    return every_method()["icrc72_publish"].encode_argument([EVENT | {"data": data}] * count)


def longest() -> bytes:
    return b"\xff" * (MOST_BODY_BYTES - 300)


BOMBS: dict[str, Callable[[], bytes]] = {
    "numbers": lambda: publishing(Variant("Nats", [1] * 2_000_000)),
    "values": lambda: publishing(Variant("Array", [SMALL] * 200_000)),
    "empty lists": lambda: publishing(Variant("Array", [Variant("Array", [])] * 200_000)),
    "pairs": lambda: publishing(Variant("Map", [{0: "", 1: SMALL}] * 200_000)),
    "properties": lambda: publishing(Variant("Class", [{"name": "", "value": SMALL, "immutable": True}] * 150_000)),
    "events": lambda: publishing(SMALL, 50_000),
    "a long number": lambda: publishing(SMALL)[:-1] + longest()[:-1] + b"\x01",
    "a long blob": lambda: publishing(Variant("Blob", bytes(2_000_000))),
    "a long text": lambda: publishing(Variant("Text", "a" * 2_000_000)),
    "nulls": lambda: encode("(vec null)", [[None] * 1_000_000]),
    "nulls behind": lambda: encode("(vec record {}, vec null)", [[], [None] * 1_000_000]),
    "types": lambda: b"DIDL\xa0\x8d\x06" + b"\x6e\x7f" * 100_000 + b"\x00",
    "arguments": lambda: b"DIDL\x00\xc0\x84\x3d" + b"\x7f" * 1_000_000,
    "the number of types": lambda: b"DIDL" + longest(),
}
"""Writers of bodies that claim to hold far more than they are long, or are as long as may be; some take long."""


@pytest.mark.matrix("ICRC72-96")
@pytest.mark.parametrize("name", BOMBS)
def test_a_space_bomb_takes_at_most_100_ms_and_10_mb(name: str) -> None:
    body, method = BOMBS[name](), every_method()["icrc72_publish"]

    def read() -> float:
        begun = time.process_time()
        with suppress(CandidError):
            decode_argument(method, body)
        return time.process_time() - begun

    assert min(read() for _ in range(3)) <= 0.1
    tracemalloc.start()
    read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 10_000_000


def test_a_large_batch_that_is_meant_passes_the_quota() -> None:
    method = every_method()["icrc72_publish"]
    members = [{0: f"member {at}", 1: Variant("Int64", at)} for at in range(10)]
    event = {"id": 1, "timestamp": 1, "namespace": "a", "data": Variant("Map", members)}
    event |= {"source": None, "headers": None, "prev_id": None, "prevId": None}
    body = method.encode_argument([event] * 400)
    assert decode_argument(method, body) == [event] * 400
    assert values_of("icrc72_confirm_messages") == call_limits.VALUES_OF_A_CALL


@pytest.mark.matrix("ICRC72-95")
def test_the_interface_is_served_as_text_and_the_list_names_every_method() -> None:
    async def work(site: CallSite, _: NotingSubscriber) -> None:
        answer = await site.ask("GET", f"{PATH}/candid")
        assert answer.data.decode() == interface_text(CanisterRole.SUBSCRIBER)
        assert answer.headers["Content-Type"].startswith("text/plain")
        listed = (await site.ask("GET", "/icrc", Icrc_Caller=principal_text(BOB))).json
        assert listed["caller"] == principal_text(BOB)
        (entry,) = listed["canisters"]
        assert entry["url"] == site.url + PATH
        assert (entry["principal"], entry["role"]) == (principal_text(SUB), "subscriber")
        assert {it["name"]: it["query"] for it in entry["methods"]} == {
            method.name: method.is_query for method in methods_of(CanisterRole.SUBSCRIBER).values()
        }
        assert (await site.ask("GET", f"{PATH}/{NOTIFY}")).status == 405

    visit(work)
