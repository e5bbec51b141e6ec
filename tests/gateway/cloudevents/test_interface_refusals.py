"""What the manager refuses: the member that is wrong is named, nothing is stored, what was in force stays so."""

from typing import Any

import pytest

from gateway.cloudevents.served_gateway import MINIMAL, SINK, Api, visit
from relaycast_gateway.routes import MOST_BODY_BYTES


@pytest.mark.matrix("CE-22", "CE-113")
def test_a_refused_update_leaves_the_old_subscription_in_force() -> None:
    async def work(api: Api) -> None:
        made = await api.create(filter={"suffix": {"type": "published"}})
        path = f"/subscriptions/{made['id']}"
        assert (await api.refused("PUT", path, MINIMAL | {"filter": {"jsonata": {}}}))["member"] == "filter"
        assert (await api.refused("PUT", path, {"protocol": "HTTP"}))["member"] == "sink"
        assert (await api.refused("PUT", path, {"sink": SINK}))["member"] == "protocol"
        answer = await api.ask("GET", path)
        assert (answer.json, answer.headers["ETag"]) == (made, '"1"')
        api.publish("taken")
        api.publish("left", namespace="io.relaycast.key.expired")
        await api.settled()
        assert api.sinks.bodies() == ["taken"]

    visit(work)


@pytest.mark.parametrize(
    ("raw", "headers", "status", "says"),
    [
        (b"{", {}, 400, "line 1, column 2: got"),
        (b"", {}, 400, "line 1, column 1: got expecting value, expected JSON"),
        (b"\xff{}", {}, 400, "byte 1: got bytes that are no UTF-8, expected JSON in UTF-8"),
        (b'{"sink": "a", "sink": "b"}', {}, 400, "an object: got the member 'sink' twice, expected each member once"),
        (b'{"config": {"a": 1, "a": 1}}', {}, 400, "an object: got the member 'a' twice"),
        (b"[" * 9_000, {}, 400, "nested more than"),
        (b"[" * 90 + b"]" * 90, {}, 400, "nested more than"),
        (b'{"a": NaN}', {}, 400, "a number: got NaN, expected a number of JSON"),
        (b'{"a": ' + b"1" * 9_000 + b"}", {}, 400, "a number with thousands of digits"),
        (b'{"a": "\\ud800"}', {}, 400, "half of a surrogate pair"),
        (b"[]", {}, 400, "the document: got an array of 0 items, expected an object, the subscription"),
        (b"null", {}, 400, "the document: got null"),
        (b"{}", {"Content_Type": "text/plain"}, 415, "Content-Type: got 'text/plain', expected application/json"),
        (b"{}", {"Content_Type": "application/json; charset=utf-16"}, 415, "Content-Type: got"),
        (b"{}", {"Content_Encoding": "gzip"}, 415, "Content-Encoding"),
        (b" " * (MOST_BODY_BYTES + 1), {}, 413, "the body: got more than 32,768 bytes"),
    ],
)
@pytest.mark.matrix("CE-100")
def test_a_body_that_cannot_be_meant_is_one_problem(raw: bytes, headers: Any, status: int, says: str) -> None:
    async def work(api: Api) -> None:
        made = await api.create()
        for method, path in [("POST", "/subscriptions"), ("PUT", f"/subscriptions/{made['id']}")]:
            problem = await api.refused(method, path, raw=raw, status=status, **headers)
            assert says in problem["detail"]
        assert (await api.ask("GET", "/subscriptions")).json == [made]

    visit(work)


@pytest.mark.matrix("CE-100")
def test_a_body_without_a_length_has_the_same_limit() -> None:
    async def work(api: Api) -> None:
        async def chunks() -> Any:
            for _ in range(100):
                yield b" " * 1_000

        url = api.server.url("http") + "/subscriptions"
        headers = {"Content-Type": "application/json"}
        async with api.client.post(url, data=chunks(), headers=headers) as response:
            assert response.status == 413
            assert (await response.json(content_type=None))["status"] == 413

    visit(work)
