"""What the gateway says of itself: methods, OpenAPI, the service, figures, whether it is ready."""

import pytest
from openapi_spec_validator import validate

from gateway.cloudevents.served_gateway import Api, problem_in, visit
from relaycast_gateway.cloudevents.operations import OPERATIONS
from relaycast_gateway.cloudevents.protocol_settings import SETTINGS


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
