"""Requests to the interface, most of them nearly right, and what must hold after them."""

import asyncio
import json
import random
from typing import Any

from fresh_process import Weight, settled_weight
from gateway.cloudevents.served_gateway import MINIMAL, Api, problem_in, visit
from relaycast_gateway.clock import settle
from relaycast_gateway.cloudevents.subscription import realized

METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH")
PATHS = (
    "/subscriptions",
    "/subscriptions/{id}",
    "/subscriptions/{id}/delivery",
    "/deliveries",
    "/deadletters",
    "/deadletters/{id}",
    "/deadletters/{id}/redeliver",
    "/services",
    "/openapi.json",
    "/metrics",
)
QUERIES = (
    "",
    "",
    "",
    "?limit=1",
    "?limit=-1",
    "?after=",
    "?after=%00",
    "?limit=1&limit=1",
    "?x=%ff",
    "?type=a&protocol=HTTP",
)
TYPES = (
    "application/json",
    "application/json",
    "application/json; charset=utf-8",
    "text/plain",
    "",
    "application/json;;",
)
HEADERS = {"If_Match": '"1"', "Prefer": "return=minimal", "If_None_Match": '"1"', "Origin": "null"}
SCALARS: tuple[Any, ...] = (None, True, 0, -1, 1 << 70, 1.5, "", "x", "é", "\x00", "/a b", [], {}, [[]], {"": ""})
MEMBERS: dict[str, tuple[Any, ...]] = {
    "id": ("x", 5),
    "source": ("/relay", "urn:a:b", "%zz"),
    "types": (["a"], ["a", ""], ["a"] * 300),
    "config": ({"interval": 2}, {"data": "none"}, {"since": "0"}, {"since": 0}, {"proof": True}, {"intervall": 1}),
    "filter": ({"exact": {"type": "a"}}, {"all": [{"any": [{"not": {"prefix": {"id": "a"}}}]}]}, {"sql": "id = 'a'"},
               {"sql": "id = = 'a'"}, {"exact": {"type": "a", "id": "b"}}, {"nothing": {}}, {}),
    "filters": ([], [{"suffix": {"type": "d"}}], [{}]),
    "sink": ("http://127.0.0.1:9/", "http://10.0.0.1/", "https://u:p@127.0.0.1/a?b", "mqtt://127.0.0.1", "kafka://127.0.0.1/t",
             "http://localhost:99999/", "http://[::1", "http://***@127.0.0.1/"),
    "protocol": ("HTTP", "HTTP", "MQTT3", "MQTT5", "AMQP", "KAFKA", "NATS", "http"),
    "protocolsettings": ({}, {"method": "PUT"}, {"headers": {"A": "b"}}, {"headers": {"Host": "b"}}, {"topicname": "t"},
                         {"subject": "a.b"}, {"address": "q", "linkproperties": {"a": 1}}),
    "sinkcredential": ({"credentialtype": "PLAIN", "identifier": "u", "secret": "s"}, {"credentialtype": "PLAIN"}),
    "delivery": ({"window": 4}, {"attempts": 0}, {"contentmode": "structured"}, {"contentmode": "other"}),
}  # fmt: skip


def proposed(chance: random.Random) -> Any:
    """Return a subscription object, mostly nearly right."""
    if chance.random() < 0.03:
        return chance.choice(SCALARS)
    made: dict[str, Any] = dict(MINIMAL) if chance.random() < 0.8 else {}
    for name in chance.sample(sorted(MEMBERS), chance.randrange(5)):
        made[name] = chance.choice(MEMBERS[name] if chance.random() < 0.85 else SCALARS)
    if chance.random() < 0.05:
        made[chance.choice(["Filter", "x", "", "\ud83d\ude00"])] = 1
    return made


def body(chance: random.Random) -> bytes:
    """Return a body: JSON, or JSON with damage."""
    data = json.dumps(proposed(chance)).encode()
    damage = chance.random()
    if damage < 0.05:
        return data[: chance.randrange(len(data) + 1)]
    if damage < 0.08:
        at = chance.randrange(len(data) + 1)
        return data[:at] + chance.randbytes(3) + data[at:]
    if damage < 0.09:
        return b"[" * chance.randrange(1, 30_000)
    if damage < 0.1:
        return b" " * 40_000
    return data


async def fuzz(api: Api, requests: int, seed: int) -> int:
    """Send ``requests`` in eight streams; return how many were taken."""
    taken = 0

    async def stream(chance: random.Random, count: int) -> None:
        nonlocal taken
        known: list[str] = ["nothing", "%00", "0" * 26]
        for _ in range(count):
            method = chance.choice(METHODS if chance.random() < 0.5 else ("POST", "PUT"))
            path = chance.choice(PATHS if chance.random() < 0.3 else PATHS[:2]).replace("{id}", chance.choice(known))
            headers = {"Content_Type": chance.choice(TYPES)}
            headers |= {name: value for name, value in HEADERS.items() if chance.random() < 0.05}
            raw = body(chance) if method in {"POST", "PUT", "PATCH"} else None
            answer = await api.ask(method, path + chance.choice(QUERIES), raw=raw, **headers)
            assert 200 <= answer.status < 500, (method, path, raw, answer)
            if answer.status >= 400:
                if method != "HEAD":
                    problem_in(answer)
                continue
            taken += 1
            if method == "POST" and path == "/subscriptions":
                known.append(answer.json["id"])
                if len(known) > 30:
                    assert (await api.ask("DELETE", f"/subscriptions/{known.pop(3)}")).status in {200, 404}

    await asyncio.gather(*(stream(random.Random(f"{seed}-{it}"), requests // 8) for it in range(8)))
    return taken


async def nothing_is_half_stored(api: Api) -> None:
    listed = (await api.ask("GET", "/subscriptions")).json
    assert {it["id"] for it in listed} == {state.subscription_id for state in api.gateway.deliveries.states()}
    stored = api.gateway.book._store.all()
    assert [it.shown() for it in stored] == listed
    assert all(realized(it.members) == it.members for it in stored)


def weights(rounds: int, requests: int, *, seed: int) -> list[Weight]:
    """Send rounds of requests to one server; return what the process holds after each, all deleted again."""
    weighed: list[Weight] = []

    async def work(api: Api) -> None:
        for number in range(rounds):
            await fuzz(api, requests, seed=seed + number)
            await nothing_is_half_stored(api)
            await _delete_all(api)
            weighed.append(settled_weight())

    visit(work, seconds=1_800)
    return weighed


async def _delete_all(api: Api) -> None:
    for listed in (await api.ask("GET", "/subscriptions")).json:
        assert (await api.ask("DELETE", f"/subscriptions/{listed['id']}")).status == 200
    assert not api.gateway.book
    await settle()
