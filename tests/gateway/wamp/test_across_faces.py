"""What a WAMP client publishes is a CloudEvent, and what chains and others append is a WAMP event, each once."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from collator.networks import PUBLISHER, SUBSCRIBER, key, network, publish
from gateway.cloudevents.served_gateway import SINK, Api, draft, visit
from gateway.wamp.broker_peers import Town, kept
from relaycast_gateway import crockford
from relaycast_gateway.icrc16 import from_json, map_of, nat
from relaycast_gateway.rfc3339 import format_time
from relaycast_gateway.wamp.history.rules import HistoryRules

RULES = HistoryRules([kept("com.shop.")])


async def sent(api: Api) -> list[dict[str, Any]]:
    """Return each CloudEvent that arrived at the sink: its attributes and its data."""
    await api.settled()
    return [
        {**{name.removeprefix("ce-"): text for name, text in it.properties}, "data": json.loads(it.body)}
        for it in api.sinks.of(SINK)
    ]


@pytest.mark.matrix("X-02")
@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "file"])
def test_a_publication_is_one_cloudevent_and_an_appended_event_one_wamp_event(tmp_path: Path, on_disk: bool) -> None:
    async def work(api: Api) -> None:
        town = Town(api.gateway.log, rules=RULES)
        town.broker.start()
        await api.create(types=["com.shop.price"])
        reader, writer = town.session(), town.session()
        reader.subscribe("com.shop.", match="prefix")
        writer.publish("com.shop.price", None, {"eur": 5}, acknowledge=True)
        await town.settle()
        api.gateway.log.append(draft(map_of({"eur": nat(6)}), "com.shop.price"))
        await town.settle()

        received = await sent(api)
        records = api.gateway.log.read()
        assert [it["data"] for it in received] == [{"eur": 5}, {"eur": 6}]
        assert [it["type"] for it in received] == ["com.shop.price"] * 2
        assert [(it.args, it.kwargs) for it in reader.events] == [([], {"eur": 5}), ([], {"eur": 6})]
        assert [it.publication for it in reader.events] == [it.pub_id for it in records]
        assert writer.published == [records[0].pub_id]
        assert [crockford.decode(it["id"]) for it in received] == [it.event_id for it in records]
        assert len(records) == 2, "nothing comes back as a new event"
        await town.broker.stop()

    visit(work, folder=tmp_path / "gateway" if on_disk else None)


def test_a_text_that_looks_like_bytes_reaches_a_sink_as_a_text_and_bytes_as_bytes() -> None:
    async def work(api: Api) -> None:
        town = Town(api.gateway.log, rules=RULES)
        town.broker.start()
        await api.create(types=["com.shop.price"])
        town.session().publish("com.shop.price", ["0x00ff", b"\x00\xff"], acknowledge=True)
        await town.settle()
        (received,) = await sent(api)
        assert received["data"] == [{"$Text": "0x00ff"}, "0x00ff"]
        await town.broker.stop()

    visit(work)


@pytest.mark.matrix("WAMP-73")
def test_an_event_of_a_realm_of_its_own_goes_to_no_sink() -> None:
    async def work(api: Api) -> None:
        town = Town(api.gateway.log, rules=RULES, realm_name="shop", realm_prefix="shop:")
        town.broker.start()
        await api.create()
        town.session().publish("com.shop.price", None, {"eur": 5}, acknowledge=True)
        await town.settle()
        api.gateway.log.append(draft(map_of({"eur": nat(6)}), "com.shop.price"))
        await town.settle()
        assert [it["data"] for it in await sent(api)] == [{"eur": 6}]
        await town.broker.stop()

    visit(work)


@pytest.mark.matrix("X-02")
def test_what_chains_publish_reaches_the_subscribers_of_its_topic_in_order() -> None:
    async def work(api: Api) -> None:
        town = Town(api.gateway.log, rules=RULES)
        town.broker.start()
        net = network()
        api.gateway.follow(net, "net")
        exact, pattern, gaps = (town.session() for _ in range(3))
        exact.subscribe(f"io.relaycast.data.published.p{PUBLISHER}")
        pattern.subscribe("io.relaycast.", match="prefix")
        gaps.subscribe("io.relaycast.subscriber.updated..", match="wildcard")
        net.subscribe(SUBSCRIBER, PUBLISHER, [key(0)])
        for number in range(4):
            publish(net, PUBLISHER, {key(0): bytes([number])})
            net.step()
            await asyncio.sleep(0)
        await town.settle()
        records = api.gateway.log.read()
        assert [it.publication for it in pattern.events] == [it.pub_id for it in records]
        assert [it.details["topic"] for it in pattern.events] == [it.topic for it in records]
        values = [it.kwargs["value"] for it in exact.events if it.kwargs]
        assert values == [bytes([number]) for number in range(4)][: len(values)]
        assert len(values) >= 3
        assert gaps.events
        newest = pattern.events[-1].details
        assert newest["_event_id"] == records[-1].text_id
        assert newest["_time"] == format_time(records[-1].occurred_ns)
        assert [it.details.get("_subject") for it in pattern.events] == [it.subject for it in records]
        assert {it.details["topic"] for it in gaps.events} == {
            f"io.relaycast.subscriber.updated.p{SUBSCRIBER}.p{PUBLISHER}"
        }
        await town.broker.stop()

    visit(work)


def test_a_payload_that_only_wamp_has_is_readable_json_elsewhere() -> None:
    async def work(api: Api) -> None:
        town = Town(api.gateway.log, rules=RULES)
        town.broker.start()
        writer = town.session()
        writer.publish("com.shop.a", [1, "x"], {"b": b"\x00"}, acknowledge=True)
        writer.publish("com.shop.a")
        writer.publish("com.shop.a", [[None, True, -1.5]])
        await town.settle()
        await api.create(config={"since": 0})
        received = await sent(api)
        assert [it["data"] for it in received] == [
            {"args": [1, "x"], "kwargs": {"b": "0x00"}},
            None,
            [[None, True, -1.5]],
        ]
        assert [from_json(it["data"]) for it in received] == [it.data for it in api.gateway.log.read()]
        await town.broker.stop()

    visit(work)


def test_an_event_that_is_kept_from_some_clients_goes_to_no_sink() -> None:
    async def work(api: Api) -> None:
        town = Town(api.gateway.log, rules=RULES)
        town.broker.start()
        await api.create()
        writer = town.session()
        writer.publish("com.shop.a", [1], eligible_authrole=["admin"])
        writer.publish("com.shop.a", [2], exclude_authid=["bob"])
        writer.publish("com.shop.a", [3], exclude_authid=[])
        await town.settle()
        assert [it["data"] for it in await sent(api)] == [[3]]
        await town.broker.stop()

    visit(work)
