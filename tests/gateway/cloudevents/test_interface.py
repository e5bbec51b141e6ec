"""The HTTP interface of the manager: the five operations, what they refuse, and what they say of it."""

import asyncio
import json
from typing import Any

import pytest

from gateway.cloudevents.served_gateway import MINIMAL, SINK, Api, visit
from relaycast_gateway.cloudevents.caller import EVERYBODY_HERE
from relaycast_gateway.cloudevents.ulid import is_ulid
from relaycast_gateway.routes import LISTED_AT_ONCE


@pytest.mark.matrix("CE-02", "CE-83", "CE-85", "CE-06")
def test_a_subscription_is_created_with_its_defaults_shown() -> None:
    async def work(api: Api) -> None:
        answer = await api.ask("POST", "/subscriptions", MINIMAL)
        made = answer.json
        assert answer.status == 201
        assert answer.headers["Location"] == f"/subscriptions/{made['id']}"
        assert answer.headers["ETag"] == '"1"'
        assert is_ulid(made.pop("id"))
        assert made == {
            "config": {"data": "full", "interval": 1, "proof": False},
            "sink": SINK,
            "protocol": "HTTP",
            "protocolsettings": {"method": "POST"},
            "delivery": {"attempts": 10, "maxage": 86_400, "timeout": 30, "window": 1, "contentmode": "binary"},
        }
        settings = {"MQTT5": {"topicname": "t"}, "AMQP": {"address": "q"}}
        shown = {}
        for protocol, given in settings.items():
            sink = f"{'mqtt' if protocol == 'MQTT5' else 'amqp'}://127.0.0.1"
            shown[protocol] = (await api.create(protocol=protocol, sink=sink, protocolsettings=given))[
                "protocolsettings"
            ]
        assert (shown["MQTT5"]["qos"], shown["MQTT5"]["retain"]) == (1, False)
        assert shown["AMQP"]["sendersettlementmode"] == "unsettled"

    visit(work)


@pytest.mark.slow
@pytest.mark.matrix("CE-04", "CE-110")
def test_ten_thousand_subscriptions_have_ids_of_their_own_and_then_there_is_a_limit() -> None:
    async def work(api: Api) -> None:
        book, caller = api.gateway.book, api.server.access.caller(None)
        assert caller is not None
        made = [await book.create(caller, MINIMAL) for _ in range(10_000)]
        ids = [it.id for it in made]
        assert len(set(ids)) == 10_000
        assert ids == sorted(ids)
        problem = await api.refused("POST", "/subscriptions", MINIMAL, status=429)
        assert problem["detail"] == "there are 10,000 subscriptions, which is the limit; delete one first"
        await api.ask("DELETE", f"/subscriptions/{ids[0]}")
        await api.create()
        listed = (await api.ask("GET", "/subscriptions")).json
        assert len(listed) == 10_000

    visit(work)


@pytest.mark.matrix("CE-87", "CE-98")
def test_a_subscription_is_retrieved_until_it_is_deleted() -> None:
    async def work(api: Api) -> None:
        made = await api.create(types=["a"])
        path = f"/subscriptions/{made['id']}"
        answer = await api.ask("GET", path)
        assert (answer.status, answer.json) == (200, made)
        assert (await api.ask("HEAD", path)).status == 200
        assert (await api.ask("GET", path, If_None_Match='"1"')).status == 304
        assert (await api.ask("DELETE", path)).json == made
        for method, body in [("GET", None), ("DELETE", None), ("PUT", MINIMAL)]:
            problem = await api.refused(method, path, body, status=404)
            assert problem["type"] == "urn:relaycast:problem:notfound"
        await api.refused("GET", "/subscriptions/nothing", status=404)

    visit(work)


@pytest.mark.matrix("CE-98")
def test_no_attempt_begins_once_a_delete_was_answered() -> None:
    async def work(api: Api) -> None:
        made = await api.create(sink=SINK)
        api.publish(*range(100))
        await asyncio.sleep(0)
        await api.ask("DELETE", f"/subscriptions/{made['id']}")
        count = len(api.sinks.sent)
        api.publish(*range(10))
        await asyncio.sleep(0.05)
        assert len(api.sinks.sent) == count
        assert api.gateway.deliveries.states() == []

    visit(work)


@pytest.mark.matrix("CE-89", "CE-90", "CE-91", "CE-92", "CE-93")
def test_subscriptions_are_listed_page_by_page() -> None:
    async def work(api: Api) -> None:
        assert (await api.ask("GET", "/subscriptions")).json == []
        nothing = await api.ask("GET", "/subscriptions", Prefer="return=minimal")
        assert (nothing.status, nothing.data) == (204, b"")
        made = [await api.create(types=[f"type-{at % 3}"]) for at in range(7)]
        mqtt = await api.create(protocol="MQTT3", sink="mqtt://127.0.0.1", protocolsettings={"topicname": "t"})
        assert (await api.ask("GET", "/subscriptions")).json == [*made, mqtt]
        pages, path = [], "/subscriptions?limit=3"
        while path:
            answer = await api.ask("GET", path)
            pages.append([it["id"] for it in answer.json])
            path = answer.headers.get("Link", "").partition(">")[0].removeprefix("<")
        assert [len(page) for page in pages] == [3, 3, 2]
        assert [each for page in pages for each in page] == [it["id"] for it in [*made, mqtt]]
        fares = await api.ask("GET", "/deliveries?limit=3")
        assert [it["subscription"] for it in fares.json] == [it["id"] for it in made[:3]]
        assert fares.headers["Link"] == f'</deliveries?limit=3&after={made[2]["id"]}>; rel="next"'
        assert (await api.ask("GET", "/subscriptions?protocol=MQTT3")).json == [mqtt]
        of_type = (await api.ask("GET", "/subscriptions?type=type-1")).json
        assert of_type == [made[1], made[4], mqtt]
        for query, member in [
            ("limit=0", "limit"),
            ("limit=1001", "limit"),
            ("limit=x", "limit"),
            ("limit=1&limit=2", "limit"),
            ("after=x", "after"),
            ("lmit=1", "lmit"),
            ("=1", "a member"),
        ]:
            problem = await api.refused("GET", f"/subscriptions?{query}")
            assert (problem["type"], problem["member"]) == ("urn:relaycast:problem:parameter", member)

    visit(work)


@pytest.mark.matrix("CE-94", "CE-95", "CE-96", "CE-97")
def test_an_update_replaces_everything_but_the_id() -> None:
    async def work(api: Api) -> None:
        made = await api.create(source="/a", types=["b"], filter={"exact": {"type": "b"}}, config={"interval": 3})
        path = f"/subscriptions/{made['id']}"
        answer = await api.ask("PUT", path, MINIMAL | {"sink": "http://127.0.0.1:9/other"})
        assert answer.status == 200
        assert answer.headers["ETag"] == '"2"'
        assert set(answer.json) == {"id", "config", "sink", "protocol", "protocolsettings", "delivery"}
        assert answer.json["config"]["interval"] == 1
        assert (await api.ask("GET", path)).json == answer.json
        unknown = f"/subscriptions/{'0' * 26}"
        assert (await api.refused("PUT", unknown, MINIMAL, status=404))["title"]
        assert len((await api.ask("GET", "/subscriptions")).json) == 1

    visit(work)


@pytest.mark.matrix("CE-96")
def test_what_is_in_flight_ends_under_the_old_settings_and_the_next_goes_out_under_the_new() -> None:
    async def work(api: Api) -> None:
        made = await api.create()
        api.sinks.gate = asyncio.Event()
        api.publish("one", "two")
        while not api.sinks.sent:
            await asyncio.sleep(0.001)
        await api.ask("PUT", f"/subscriptions/{made['id']}", MINIMAL | {"sink": "http://127.0.0.1:9/other"})
        api.sinks.gate.set()
        await api.settled()
        assert api.sinks.bodies() == ["one"]
        assert api.sinks.bodies("http://127.0.0.1:9/other") == ["two"]

    visit(work)


@pytest.mark.matrix("CE-96")
def test_if_match_keeps_two_writers_from_overwriting_each_other() -> None:
    async def work(api: Api) -> None:
        made = await api.create()
        path = f"/subscriptions/{made['id']}"
        for tag in ('"1"', '"7", "1"', "*"):
            assert (await api.ask("PUT", path, MINIMAL, If_Match=tag.replace("1", "1"))).status == 200
            await api.ask("PUT", path, MINIMAL)
            made = await api.create()
            path = f"/subscriptions/{made['id']}"
        await api.ask("PUT", path, MINIMAL)
        problem = await api.refused("PUT", path, MINIMAL, status=412, If_Match='"1"')
        assert problem["detail"] == f'subscription {made["id"]} has the entity tag "2" by now'
        await api.refused("DELETE", path, status=412, If_Match='"1"')
        assert (await api.ask("DELETE", path, If_Match='"2"')).status == 200

    visit(work)


@pytest.mark.matrix("CE-108")
def test_an_empty_filter_is_none() -> None:
    async def work(api: Api) -> None:
        empty: list[dict[str, Any]] = [{"filter": {}}, {"filters": []}]
        for given in empty:
            made = await api.create(**given)
            assert "filter" not in made
            assert "filters" not in made
        kept = await api.create(filters=[{"exact": {"type": "x"}}])
        assert kept["filters"] == [{"exact": {"type": "x"}}]
        assert "filter" not in kept
        problem = await api.refused("POST", "/subscriptions", MINIMAL | {"filter": {}, "filters": []})
        assert problem["member"] == "filters"

    visit(work)


def test_dead_letters_are_listed_and_delivered_again() -> None:
    from relaycast_gateway.delivery.sender import Accepted, Refused  # noqa: PLC0415

    async def work(api: Api) -> None:
        api.sinks.answer = lambda _target, _message: Refused("the sink answered 400")
        made = await api.create()
        assert (await api.ask("GET", "/deadletters")).json == []
        api.publish(*range(5))
        await api.settled()
        path = f"/deadletters/{made['id']}"
        assert (await api.ask("GET", "/deadletters")).json == [{"subscription": made["id"], "dead": 5}]
        letters = (await api.ask("GET", path)).json
        assert [it["sequence"] for it in letters] == [1, 2, 3, 4, 5]
        assert letters[0] == {
            "subscription": made["id"],
            "sequence": 1,
            "reason": "the sink answered 400",
            "attempts": 1,
            "givenup": letters[0]["givenup"],
            "id": "1",
            "source": "/principal/aaaaa-aa/io.relaycast.data.published",
            "type": "io.relaycast.data.published",
            "time": "2023-11-14T22:13:20Z",
        }
        page = await api.ask("GET", f"{path}?limit=2")
        assert page.headers["Link"] == f'<{path}?limit=2&after=2>; rel="next"'
        assert [it["sequence"] for it in (await api.ask("GET", f"{path}?limit=2&after=4")).json] == [5]
        api.sinks.answer = lambda _target, _message: Accepted()
        api.sinks.sent.clear()
        some = await api.ask("POST", f"{path}/redeliver", {"sequences": [2, 4, 99]})
        assert some.json == {"subscription": made["id"], "redelivered": 2}
        await api.settled()
        assert sorted(api.sinks.bodies()) == ["1", "3"]
        assert (await api.ask("POST", f"{path}/redeliver")).json["redelivered"] == 3
        await api.settled()
        assert (await api.ask("GET", path)).json == []
        for body, member in [([], "the document"), ({"seqs": []}, "seqs"), ({"sequences": [0]}, "sequences[0]")]:
            assert (await api.refused("POST", f"{path}/redeliver", body))["member"] == member
        await api.refused("GET", f"/deadletters/{'0' * 26}", status=404)

    visit(work)


def test_equal_objects_realize_to_themselves() -> None:
    async def work(api: Api) -> None:
        made = await api.create(protocolsettings={"headers": {"X-Tenant": "a"}}, types=["a"], config={"since": "0"})
        again = await api.ask("PUT", f"/subscriptions/{made['id']}", made)
        assert again.json == made
        assert json.dumps(again.json) == json.dumps(made)

    visit(work)


@pytest.mark.parametrize("path", ["/subscriptions", "/deliveries"])
def test_others_work_while_a_long_list_is_put_together_and_what_is_deleted_meanwhile_is_left_out(path: str) -> None:
    async def work(api: Api) -> None:
        made = [(await api.create())["id"] for _ in range(3 * LISTED_AT_ONCE)]
        listed = asyncio.create_task(api.ask("GET", path))
        book, gone = api.gateway.book, made[-1]
        query, turns = book.query, list[int]()

        async def others() -> None:
            while not turns and not listed.done():
                await asyncio.sleep(0)
            await book.delete(EVERYBODY_HERE, gone)
            while not listed.done():
                turns.append(1)
                await asyncio.sleep(0)

        def queried(*args: Any, **options: Any) -> Any:
            turns.append(1)
            return query(*args, **options)

        book.query = queried  # type: ignore[method-assign]
        await others()
        found = [it.get("id", it.get("subscription")) for it in (await listed).json]
        assert len(turns) > 3
        assert found in ([*made[:-1]], made) if path == "/subscriptions" else found == made[:-1]

    visit(work)
