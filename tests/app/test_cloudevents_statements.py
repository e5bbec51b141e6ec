"""The statements of the CloudEvents Subscriptions text that a short exchange decides, by its sections, over HTTP.

One gateway is served for all rows. Its log has five events: WAMP publications and one of ICRC-72. A subscription that
begins in the past gets them at its own path of one sink.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from typing import Any

import pytest

import relaycast as rc
from app.icrc_wire import Served
from app.served_canisters import PUBLISHED, ask, event
from app.webhook import Request, webhook
from gateway.cloudevents.served_gateway import Api, visit
from gateway.cloudevents.test_protocol_settings import INVALID, NEEDED, VALID
from relaycast.serve.in_process import ServedNetwork
from relaycast_gateway.candid import Variant
from relaycast_gateway.clock import SECOND
from relaycast_gateway.delivery.sink_address import parse_sink
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import text
from relaycast_gateway.rfc3339 import parse_time
from relaycast_gateway.wamp.client.client import WampClient

PUSH, PULL, GITHUB = "com.github.push", "com.github.pull.created", "com.github."
ISSUE, PRICE = "org.example.issue.created", "org.example.price"
TYPES = {"a": PUSH, "b": PULL, "c": ISSUE, "d": PUSH, "e": PRICE}
ALL = "abcde"
ALLOWED = ["127.0.0.1", "::1", "192.0.2.1", "2001:db8::1"]


class Manager:
    """A subscription manager as its clients see it."""

    def __init__(self, chains: ServedNetwork, sink: str, came: list[Request]) -> None:
        self.url, self.sink, self.came = chains.http_url, sink, came
        self.minimal = {"protocol": "HTTP", "sink": f"{sink}minimal", "types": ["none"]}

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Return the status and the document of an answer."""
        sent = {"Content_Type": "application/json", **headers} if body is not None else headers
        raw = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        status, _, found = ask(self.url + path, method, raw, **sent)
        return status, json.loads(found) if found else None

    def create(self, **members: object) -> Any:
        status, made = self.ask("POST", "/subscriptions", self.minimal | members)
        assert status == 201, made
        return made

    def shown(self, **members: object) -> Any:
        """Create a subscription, and return what is shown of it later."""
        made = self.create(**members)
        status, found = self.ask("GET", f"/subscriptions/{made['id']}")
        assert (status, found) == (200, made)
        return found

    def refused(self, *absent: str, **members: object) -> tuple[int, str]:
        """Return status and member of a refusal to create, which stores nothing."""
        before = self.ask("GET", "/subscriptions")
        proposed = {name: value for name, value in (self.minimal | members).items() if name not in absent}
        status, problem = self.ask("POST", "/subscriptions", proposed)
        assert problem["type"] == "urn:relaycast:problem:invalid", problem
        assert problem["detail"] == f"{problem['member']}: got {problem['got']}, expected {problem['expected']}"
        assert self.ask("GET", "/subscriptions") == before
        return status, problem["member"]

    def got(self, **members: object) -> str:
        """Return which events a subscription of the past is sent."""
        path = f"/{len(self.came)}-{monotonic()}"
        own = {"sink": self.sink.rstrip("/") + path, "types": sorted(set(TYPES.values())), "config": {"since": 1}}
        made = self.create(**(own | members))
        self.settle(made["id"])
        self.ask("DELETE", f"/subscriptions/{made['id']}")
        return "".join(name_of(it.body) for it in self.came if it.path == path)

    def settle(self, subscription: str) -> None:
        """Return when a subscription has seen the whole log and waits for nothing."""
        end = monotonic() + 30
        while True:
            (state,) = [it for it in self.ask("GET", "/deliveries")[1] if it["subscription"] == subscription]
            if not state["behind"] and not state["pending"]:
                return
            assert monotonic() < end, state
            sleep(0.002)

    def updated(self, change: dict[str, object], method: str = "PUT", **members: object) -> tuple[int, Any]:
        made = self.create(**members)
        return self.ask(method, f"/subscriptions/{made['id']}", self.minimal | change)


def name_of(body: bytes) -> str:
    found = json.loads(body)
    return str(found[0] if isinstance(found, list) else found)


@pytest.fixture(scope="module")
def manager() -> Iterator[Manager]:
    async def publish(url: str) -> None:
        async with await WampClient.connect(url) as client:
            for name in "abcd":
                await client.publish(TYPES[name], [name])

    with webhook() as (sink, came), rc.serve("oracle", history=["com.", "org."], allow_sink=ALLOWED) as chains:
        asyncio.run(publish(chains.wamp_url))
        served = Served(chains)
        served.register(PRICE)
        headers = pairs_of([("ce:team", text("Blue")), ("ce:Bad-Name", text("x"))])
        assert served.publish(event(5, PRICE, Variant("Text", "e")) | {"headers": headers})[0].tag == "Ok"
        yield Manager(chains, sink, came)


BAD = 400
Row = tuple[str, str, Callable[[Manager], object], object]


def filtered(section: str, statement: str, filter: object, expected: str) -> Row:  # noqa: A002 - the member's name
    return section, statement, lambda it: it.got(filter=filter), expected


def wrong(section: str, statement: str, member: str, *absent: str, **members: object) -> Row:
    return section, statement, lambda it: it.refused(*absent, **members), (BAD, member)


def with_same_id(it: Manager) -> bool:
    return bool(it.create(id="x")["id"] == it.create(id="x")["id"])


def first_id_after_update(it: Manager) -> bool:
    made = it.create()
    path = f"/subscriptions/{made['id']}"
    return bool(it.ask("PUT", path, it.minimal)[1]["id"] == it.ask("GET", path)[1]["id"] == made["id"])


EXACT: dict[str, object] = {"exact": {"type": PUSH}}
ROWS: list[Row] = [
    ("id", "an id on input is ignored, and ids are unique", with_same_id, False),
    ("id", "an id never changes", first_id_after_update, True),
    ("id", "an update cannot give another id", lambda it: it.updated({"id": "x"})[1]["member"], "id"),
    ("source", "events have the source", lambda it: it.got(source="/nothing"), ""),
    wrong("source", "a source is not empty", "source", source=""),
    wrong("source", "a source is a URI", "source", source="a b"),
    wrong("source", "escapes of a source are complete", "source", source="/%4"),
    ("source", "a path is a source", lambda it: it.shown(source="/sensors/tn-1/alerts")["source"],
     "/sensors/tn-1/alerts"),
    ("types", "events have one of the types", lambda it: it.got(types=[PUSH, PRICE]), "ade"),
    ("types", "a type is compared whole", lambda it: it.got(types=["com.github", "com.github.pushed"]), ""),
    wrong("types", "a type is not empty", "types[0]", types=[""]),
    wrong("types", "types are an array", "types", types="a"),
    wrong("types", "an array of types has items", "types", types=[]),
    ("config", "the example of the text", lambda it: it.shown(config={"data": "hello", "interval": 5})["config"],
     {"data": "hello", "interval": 5, "proof": False}),
    ("config", "config modifies the generation", lambda it: it.got(config={"since": 1, "interval": 2}), "bd"),
    wrong("config", "a key is not empty", "config", config={"": 1}),
    wrong("config", "a key is one of subscriptionconfig", "config.intervall", config={"intervall": 5}),
    wrong("config", "an interval is an Integer", "config.interval", config={"interval": "5"}),
    wrong("config", "data is a String", "config.data", config={"data": 5}),
    wrong("config", "proof is a Boolean", "config.proof", config={"proof": 1}),
    wrong("config", "since is an event or a time", "config.since", config={"since": "yesterday"}),
    wrong("config", "no word is an id", "config.since", config={"since": "now"}),  # by its letters it could be one
    wrong("config", "no event is before the first", "config.since", config={"since": "-5"}),
    wrong("config", "config is a Map", "config", config=None),
    ("filter", "no filter implies true", lambda it: it.got(), ALL),
    wrong("filter", "an unsupported dialect is refused", "filter", filter={"jsonata": {}}),
    wrong("filter", "a filter is an object", "filter", filter=None),
    wrong("filter", "one dialect names a filter", "filter", filter={**EXACT, "prefix": {"type": "a"}}),
    wrong("filter", "filter and filters exclude one another", "filters", filter=EXACT, filters=[EXACT]),
    ("filter", "filters are all true", lambda it: it.got(filters=[{"prefix": {"type": GITHUB}}, {"not": EXACT}]), "b"),
    wrong("sink", "a sink is required", "sink", "sink"),
    wrong("sink", "a sink is valid for its protocol", "sink", sink="ftp://127.0.0.1/"),
    wrong("protocol", "a protocol is required", "protocol", "protocol"),
    wrong("protocol", "protocols are compared with their case", "protocol", protocol="http"),
    wrong("protocolsettings", "settings are known", "protocolsettings.metod", protocolsettings={"metod": "POST"}),
    ("3.2.2.1", "a method defaults to POST", lambda it: it.shown()["protocolsettings"], {"method": "POST"}),
    wrong("3.2.2.1", "headers are a Map", "protocolsettings.headers", protocolsettings={"headers": ["a"]}),
    wrong("3.2.2.2", "MQTT needs a topic", "protocolsettings.topicname", protocol="MQTT5", sink="mqtt://127.0.0.1"),
    ("3.2.2.2", "quality is 1, retained not",
     lambda it: it.shown(protocol="MQTT5", sink="mqtt://127.0.0.1",
                         protocolsettings={"topicname": "t"})["protocolsettings"],
     {"topicname": "t", "qos": 1, "retain": False}),
    wrong("3.2.2.2", "quality is 0, 1 or 2", "protocolsettings.qos", protocol="MQTT5", sink="mqtt://127.0.0.1",
          protocolsettings={"topicname": "t", "qos": 3}),
    wrong("3.2.2.3", "AMQP needs an address", "protocolsettings.address", protocol="AMQP", sink="amqp://127.0.0.1"),
    wrong("3.2.2.4", "Kafka needs a topic", "protocolsettings.topicname", protocol="KAFKA", sink="kafka://127.0.0.1"),
    wrong("3.2.2.5", "NATS needs a subject", "protocolsettings.subject", protocol="NATS", sink="nats://127.0.0.1"),
    filtered("exact", "the whole value", EXACT, "ad"),
    filtered("exact", "with its case", {"exact": {"type": PUSH.title()}}, ""),
    filtered("exact", "an extension", {"exact": {"team": "Blue"}}, "e"),
    filtered("exact", "an absent attribute is false", {"not": {"exact": {"team": "Blue"}}}, "abcd"),
    wrong("exact", "one property", "filter.exact", filter={"exact": {"type": "a", "id": "b"}}),
    wrong("exact", "no empty value", "filter.exact.type", filter={"exact": {"type": ""}}),
    wrong("exact", "no empty name", "filter.exact", filter={"exact": {"": "a"}}),
    filtered("prefix", "starts with the value", {"prefix": {"type": GITHUB}}, "abd"),
    filtered("prefix", "with its case", {"prefix": {"type": "COM."}}, ""),
    wrong("prefix", "one property", "filter.prefix", filter={"prefix": {}}),
    filtered("suffix", "ends with the value", {"suffix": {"type": ".created"}}, "bc"),
    wrong("suffix", "no empty value", "filter.suffix.type", filter={"suffix": {"type": ""}}),
    filtered("all", "all are true", {"all": [{"prefix": {"type": GITHUB}}, {"suffix": {"type": ".created"}}]}, "b"),
    wrong("all", "at least one filter", "filter.all", filter={"all": []}),
    wrong("all", "an array", "filter.all", filter={"all": EXACT}),
    wrong("all", "items are filters", "filter.all[0]", filter={"all": [{}]}),
    filtered("any", "one is true", {"any": [EXACT, {"exact": {"type": PRICE}}]}, "ade"),
    wrong("any", "at least one filter", "filter.any", filter={"any": []}),
    filtered("not", "the inverse", {"not": EXACT}, "bce"),
    wrong("not", "one filter", "filter.not", filter={"not": [EXACT]}),
    wrong("not", "a filter", "filter.not", filter={"not": None}),
    wrong("create", "members are known", "fliter", fliter={}),
    wrong("create", "attempts are counted from 1", "delivery.attempts", delivery={"attempts": 0}),
    wrong("create", "settings of a delivery are known", "delivery.retries", delivery={"retries": 1}),
    wrong("create", "a credential is whole", "sinkcredential.secret",
          sinkcredential={"credentialtype": "PLAIN", "identifier": "u"}),
    wrong("create", "a credential is of a known type", "sinkcredential.credentialtype",
          sinkcredential={"credentialtype": "OAUTH"}),
]  # fmt: skip


@pytest.mark.matrix(
    "CE-05", "CE-06", "CE-07", "CE-08", "CE-10", "CE-11", "CE-12", "CE-13", "CE-14", "CE-15", "CE-16", "CE-17", "CE-18",
    "CE-19", "CE-21", "CE-24", "CE-25", "CE-26", "CE-27", "CE-29", "CE-32", "CE-33", "CE-34", "CE-35", "CE-36",
    "CE-38", "CE-40", "CE-41", "CE-43", "CE-44", "CE-45", "CE-48", "CE-49", "CE-52", "CE-54", "CE-55", "CE-84", "CE-86",
    "CE-100", "CE-102", "CE-108", "CE-111",
)  # fmt: skip
@pytest.mark.parametrize(("section", "statement", "call", "expected"), ROWS, ids=[f"{it[0]}: {it[1]}" for it in ROWS])
def test_the_gateway_does_as_the_text_says(
    manager: Manager, section: str, statement: str, call: Callable[[Manager], object], expected: object
) -> None:
    assert call(manager) == expected, f"{section}: {statement}"


@pytest.mark.matrix("CE-25")
@pytest.mark.parametrize("protocol", VALID)
def test_the_interface_takes_the_sinks_of_a_protocol_and_no_others(manager: Manager, protocol: str) -> None:
    for sink in INVALID[protocol]:
        assert manager.refused(protocol=protocol, sink=sink, protocolsettings=NEEDED[protocol]) == (BAD, "sink")
    if protocol == "AMQP":
        pytest.importorskip("proton", reason="AMQP sinks need the library proton")
    for sink in VALID[protocol]:
        has_place = protocol in {"AMQP", "KAFKA"} and parse_sink(sink).path.strip("/")
        shown = manager.shown(protocol=protocol, sink=sink, protocolsettings={} if has_place else NEEDED[protocol])
        assert shown["protocol"] == protocol


@pytest.mark.matrix("CE-103")
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_what_chains_clients_and_canisters_publish_arrives_as_valid_cloudevents(mode: str) -> None:
    feeds = ["com.example.one", "com.example.two"]

    async def publish(url: str) -> None:
        async with await WampClient.connect(url) as client:
            for number in range(5):
                await client.publish(PUSH, [number])

    with webhook() as (sink, came), rc.serve("oracle", history=["com.github."], allow_sink=ALLOWED) as chains:
        manager, served = Manager(chains, sink, came), Served(chains)
        made = manager.create(types=[PUSH, *feeds, PUBLISHED], sink=sink, delivery={"contentmode": mode, "window": 64})
        chains.new_block(3)
        asyncio.run(publish(chains.wamp_url))
        headers = pairs_of([("ce:team", text("Blue")), ("ce:Bad-Name", text("x")), ("ce:source", text("/else"))])
        for feed in feeds:  # one canister uses the same ids in both
            served.register(feed)
            served.publish(*(event(number, feed) | {"headers": headers} for number in range(1, 6)))
        manager.settle(made["id"])
        found = [attributes(it) for it in came]
        kept = served.gateway.log.read(limit=10_000)
        assert len(found) == sum(it.namespace in {PUSH, *feeds, PUBLISHED} for it in kept) > 100
    assert {it["type"] for it in found} == {PUSH, *feeds, PUBLISHED}
    assert len({(it["source"], it["id"]) for it in found}) == len(found)
    for it in found:
        assert all(re.fullmatch("[a-z0-9]{1,20}", name) for name in it)
        assert it["specversion"] == "1.0"
        assert all(it[name] for name in ("id", "source", "type", "time"))
        assert parse_time(it["time"]) > 0
        assert re.fullmatch(r"[!-~]+", it["source"])
    assert {it.get("team") for it in found if it["type"] in feeds} == {"Blue"}


def attributes(request: Request) -> dict[str, str]:
    """Return the context attributes of an event."""
    if request.headers["content-type"].startswith("application/cloudevents+json"):
        return {name: it for name, it in json.loads(request.body).items() if not name.startswith("data")}
    return {name[3:]: it for name, it in request.headers.items() if name.startswith("ce-")}


@pytest.mark.matrix("CE-111")
def test_attempts_and_ages_are_each_subscriptions_and_a_long_wait_is_cut_to_a_week() -> None:
    waits = {"/tries": 60, "/age": 60, "/week": 10**9}

    async def work(api: Api) -> None:
        with webhook(lambda it: (503, {"Retry-After": str(waits[it.path])})) as (sink, came):
            asked = {"/tries": {"attempts": 3}, "/age": {"maxage": 50}, "/week": {"maxage": 2_592_000}}
            ids = {
                path: (await api.create(sink=f"{sink[:-1]}{path}", delivery=delivery))["id"]
                for path, delivery in asked.items()
            }
            start = api.clock.now_ns()
            api.publish("x")

            async def states() -> dict[str, Any]:
                found = {it["subscription"]: it for it in (await api.ask("GET", "/deliveries")).json}
                return {path: found[it] for path, it in ids.items()}

            for attempts in (1, 2, 3):
                expected = {"/tries": attempts, "/age": min(attempts, 2), "/week": 1}
                while not all(
                    it["dead"] if (path, attempts) in ENDED else "nextattempt" in it
                    for path, it in (await states()).items()
                ):
                    await asyncio.sleep(0.002)
                assert Counter(it.path for it in came) == expected
                week = (await states())["/week"]["nextattempt"]
                assert parse_time(week) == start + 7 * 86_400 * SECOND
                await api.clock.advance(61)
            letters = {path: (await api.ask("GET", f"/deadletters/{it}")).json for path, it in ids.items()}
            reasons = {path: [(it["attempts"], it["reason"]) for it in found] for path, found in letters.items()}
            assert reasons == {
                "/tries": [(3, "given up after 3 attempts: HTTP 503")],
                "/age": [(2, "given up: the next attempt would come more than 50 s after the first: HTTP 503")],
                "/week": [],
            }

    visit(work, senders=None, seconds=30)


ENDED = {("/age", 2), ("/age", 3), ("/tries", 3)}
"""Which subscriptions have given up after so many attempts of the first one."""
