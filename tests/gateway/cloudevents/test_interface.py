"""The HTTP interface of the manager: the five operations, what they refuse, and what they say of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from gateway.cloudevents.served_gateway import MINIMAL, SINK, Api, problem_in, served, visit
from relaycast_gateway.cloudevents.operations import OPERATIONS
from relaycast_gateway.cloudevents.protocol_settings import SETTINGS
from relaycast_gateway.cloudevents.ulid import is_ulid
from relaycast_gateway.routes import MOST_BODY_BYTES


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


@pytest.mark.matrix("CE-05", "CE-07", "CE-86")
def test_an_id_is_the_managers_alone() -> None:
    async def work(api: Api) -> None:
        first, second = await api.create(id="x"), await api.create(id="x")
        assert len({first["id"], second["id"], "x"}) == 3
        path = f"/subscriptions/{first['id']}"
        problem = await api.refused("PUT", path, MINIMAL | {"id": second["id"]})
        assert problem["member"] == "id"
        assert (await api.ask("PUT", path, MINIMAL | {"id": first["id"]})).json["id"] == first["id"]
        assert (await api.ask("PUT", path, MINIMAL)).json["id"] == first["id"]

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


WRONG: list[tuple[str, dict[str, Any] | None, str]] = [
    ("CE-24", {"sink": None}, "sink"),
    ("CE-26", {"protocol": None}, "protocol"),
    ("CE-27", {"protocol": "http"}, "protocol"),
    ("CE-10", {"source": ""}, "source"),
    ("CE-10", {"source": "a b"}, "source"),
    ("CE-10", {"source": "/%4"}, "source"),
    ("CE-12", {"types": [""]}, "types[0]"),
    ("CE-12", {"types": "a"}, "types"),
    ("CE-12", {"types": []}, "types"),
    ("CE-13", {"config": {"": 1}}, "config"),
    ("CE-14", {"config": {"intervall": 5}}, "config.intervall"),
    ("CE-15", {"config": {"interval": "5"}}, "config.interval"),
    ("CE-15", {"config": {"data": 5}}, "config.data"),
    ("CE-15", {"config": {"proof": 1}}, "config.proof"),
    ("CE-15", {"config": {"since": "yesterday"}}, "config.since"),
    ("CE-15", {"config": {"since": "now"}}, "config.since"),  # which Crockford's Base32 reads as event 21532
    ("CE-15", {"config": {"since": "-5"}}, "config.since"),
    ("CE-15", {"config": None}, "config"),
    ("CE-21", {"filter": {"jsonata": {}}}, "filter"),
    ("CE-29", {"protocolsettings": {"metod": "POST"}}, "protocolsettings.metod"),
    ("CE-25", {"sink": "ftp://127.0.0.1/"}, "sink"),
    ("CE-108", {"filter": None}, "filter"),
    ("CE-108", {"filter": {"all": [{}]}}, "filter.all[0]"),
    ("CE-108", {"filter": {"not": None}}, "filter.not"),
    ("CE-100", {"fliter": {}}, "fliter"),
    ("CE-111", {"delivery": {"attempts": 0}}, "delivery.attempts"),
    ("CE-111", {"delivery": {"retries": 1}}, "delivery.retries"),
    ("CE-102", {"sinkcredential": {"credentialtype": "PLAIN", "identifier": "u"}}, "sinkcredential.secret"),
    ("CE-102", {"sinkcredential": {"credentialtype": "OAUTH"}}, "sinkcredential.credentialtype"),
]


@pytest.mark.parametrize(("line", "change", "member"), WRONG, ids=[f"{line} {member}" for line, _, member in WRONG])
@pytest.mark.matrix(
    "CE-10", "CE-12", "CE-13", "CE-14", "CE-15", "CE-21", "CE-24", "CE-25", "CE-26", "CE-27", "CE-29", "CE-84",
    "CE-86", "CE-100", "CE-102", "CE-108", "CE-111",
)  # fmt: skip
def test_a_wrong_member_is_named_and_nothing_is_stored(line: str, change: dict[str, Any], member: str) -> None:
    assert line

    async def work(api: Api) -> None:
        proposed = MINIMAL | change
        if line in {"CE-24", "CE-26"}:
            del proposed[member]
        problem = await api.refused("POST", "/subscriptions", proposed)
        assert problem["type"] == "urn:relaycast:problem:invalid"
        assert problem["member"] == member
        assert problem["detail"] == f"{member}: got {problem['got']}, expected {problem['expected']}"
        assert (await api.ask("GET", "/subscriptions")).json == []
        assert api.gateway.deliveries.states() == []

    visit(work)


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


@pytest.mark.matrix("CE-82")
def test_each_path_says_which_methods_it_takes() -> None:
    async def work(api: Api) -> None:
        made = await api.create()
        for path, operations in OPERATIONS.items():
            place = path.replace("{id}", made["id"])
            answer = await api.ask("OPTIONS", place)
            allowed = set(answer.headers["Allow"].split(", "))
            assert answer.status == 204
            assert set(operations) | {"OPTIONS"} <= allowed
            for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - allowed:
                refused = await api.ask(method, place)
                assert problem_in(refused)["status"] == 405
                assert set(refused.headers["Allow"].split(",")) == allowed
        assert (await api.ask("OPTIONS", "/subscriptions")).headers["Allow"] == "GET, POST, HEAD, OPTIONS"
        one = await api.ask("OPTIONS", f"/subscriptions/{made['id']}")
        assert one.headers["Allow"] == "GET, PUT, DELETE, HEAD, OPTIONS"

    visit(work)


@pytest.mark.matrix("CE-82")
def test_the_openapi_document_is_valid_and_describes_what_is_answered() -> None:
    async def work(api: Api) -> None:
        document = (await api.ask("GET", "/openapi.json")).json
        validate(document)
        assert set(document["paths"]) == set(OPERATIONS)
        from jsonschema import Draft202012Validator  # noqa: PLC0415

        schema = {"$ref": "#/components/schemas/Subscription", "components": document["components"]}
        made = await api.create(
            filter={"all": [{"exact": {"type": "a"}}, {"not": {"sql": "TRUE"}}]},
            types=["a"],
            source="/x",
            config={"since": 1},
            sinkcredential={"credentialtype": "ACCESSTOKEN", "accesstoken": "t"},
        )
        checker = Draft202012Validator(schema)
        checker.validate(made)
        assert not checker.is_valid(made | {"protocolsettings": {"qos": 1}})
        assert not checker.is_valid(made | {"filters": []})
        problem = {"$ref": "#/components/schemas/Problem", "components": document["components"]}
        Draft202012Validator(problem).validate(await api.refused("POST", "/subscriptions", {}))

    visit(work)


@pytest.mark.matrix("CE-30", "CE-107")
def test_the_service_says_what_a_subscription_may_ask_for() -> None:
    async def work(api: Api) -> None:
        service = (await api.ask("GET", "/services")).json
        assert service["subscriptionconfig"] == {
            "data": "String",
            "interval": "Integer",
            "proof": "Boolean",
            "since": "String or Integer",
        }
        assert service["subscriptiondialects"] == ["exact", "prefix", "suffix", "all", "any", "not", "sql"]
        assert service["protocols"] == ["HTTP", "MQTT3", "MQTT5", "AMQP", "KAFKA", "NATS"]
        assert {name: set(held) for name, held in service["protocolsettings"].items()} == {
            name: set(held) for name, held in SETTINGS.items()
        }
        assert service["apis"] == ["HTTP"]
        for dialect in service["subscriptiondialects"]:
            example = {"all": [{"exact": {"a": "b"}}], "any": [{"exact": {"a": "b"}}], "not": {"exact": {"a": "b"}}}
            given = example.get(dialect, "TRUE" if dialect == "sql" else {"a": "b"})
            await api.create(filter={dialect: given})

    visit(work)


@pytest.mark.matrix("CE-03", "CE-88")
def test_a_subscription_survives_a_restart_and_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with served(folder=tmp_path) as api:
            made = await api.create(types=["io.relaycast.data.published"], config={"interval": 2})
            updated = await api.create()
            other = f"/subscriptions/{updated['id']}"
            await api.ask("PUT", other, MINIMAL | {"sink": "http://127.0.0.1:9/other"})
            deleted = await api.create()
            await api.ask("DELETE", f"/subscriptions/{deleted['id']}")
            api.publish(1, 2, 3)
            await api.settled()
            assert api.sinks.bodies() == ["2"]
        async with served(folder=tmp_path) as api:
            path = f"/subscriptions/{made['id']}"
            assert (await api.ask("GET", path)).json == made
            assert (await api.ask("GET", other)).headers["ETag"] == '"2"'
            assert len((await api.ask("GET", "/subscriptions")).json) == 2
            api.publish(4, 5, 6)
            await api.settled()
            assert api.sinks.bodies() == ["4", "6"]
            assert api.sinks.bodies("http://127.0.0.1:9/other") == ["4", "5", "6"]
            fares = (await api.ask("GET", f"{path}/delivery")).json
            assert (fares["delivered"], fares["behind"]) == (3, 0)
            fresh = await api.create()
            assert fresh["id"] > made["id"]

    asyncio.run(run())


def test_files_are_their_owners_alone_also_those_that_others_could_read(tmp_path: Path) -> None:
    for name in ("events", "deliveries", "subscriptions"):
        file = tmp_path / f"{name}.sqlite"
        file.touch()
        file.chmod(0o644)

    async def run() -> None:
        async with served(folder=tmp_path) as api:
            await api.create()
            api.publish(1)
            await api.settled()
            modes = {
                file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob("*.sqlite*") if file.suffix != ".lock"
            }
            assert {"events.sqlite", "events.sqlite-wal", "deliveries.sqlite", "subscriptions.sqlite-wal"} < set(modes)
            assert set(modes.values()) == {0o600}, modes

    asyncio.run(run())


def test_two_gateways_do_not_share_a_folder(tmp_path: Path) -> None:
    from relaycast_gateway.gateway import Gateway  # noqa: PLC0415
    from relaycast_ledger.exceptions import WorkFolderInUse  # noqa: PLC0415

    async def run() -> None:
        async with served(folder=tmp_path):
            with pytest.raises(WorkFolderInUse):
                Gateway.open(tmp_path)

    asyncio.run(run())


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
            "source": "/principal/aaaaa-aa",
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


def test_figures_are_bounded_and_hold_no_secret() -> None:
    async def work(api: Api) -> None:
        for at in range(120):
            await api.create(sink=f"http://user:pa55word@127.0.0.1:9/{at}")
        api.publish("x")
        await api.settled()
        answer = await api.ask("GET", "/metrics")
        figures = answer.data.decode()
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "pa55word" not in figures
        assert figures.count("relaycast_events_delivered_total{") == 101
        assert 'relaycast_events_delivered_total{subscription="others"} 20.0' in figures
        assert 'relaycast_subscriptions{protocol="HTTP",status="active"} 120.0' in figures

    visit(work)


def test_a_server_that_starts_is_not_ready() -> None:
    async def work(api: Api) -> None:
        assert (await api.ask("GET", "/readyz")).status == 200
        api.gateway.is_ready = False
        assert (await api.ask("GET", "/readyz")).status == 503
        assert (await api.ask("GET", "/healthz")).status == 200
        api.gateway.is_ready = True

    visit(work)


def test_equal_objects_realize_to_themselves() -> None:
    async def work(api: Api) -> None:
        made = await api.create(protocolsettings={"headers": {"X-Tenant": "a"}}, types=["a"], config={"since": "0"})
        again = await api.ask("PUT", f"/subscriptions/{made['id']}", made)
        assert again.json == made
        assert json.dumps(again.json) == json.dumps(made)

    visit(work)
