"""Secrets go to the sink and nowhere else; a mask that comes back keeps them."""

import json
import logging
from typing import Any

import pytest

from gateway.cloudevents.served_gateway import MINIMAL, Api, visit
from relaycast_gateway.delivery.sender import Refused
from relaycast_gateway.delivery.sink_address import MASK

SECRETS = {"user-part", "pass-part", "header-secret", "cookie-secret", "plain-secret", "access-secret"}
SINK = "http://user-part:pass-part@127.0.0.1:9/sink"
HEADERS = {"Authorization": "Bearer header-secret", "Cookie": "a=cookie-secret", "X-Tenant": "open"}
PLAIN = {"credentialtype": "PLAIN", "identifier": "somebody", "secret": "plain-secret"}
TOKEN = {"credentialtype": "ACCESSTOKEN", "accesstoken": "access-secret"}


def full(credential: dict[str, str]) -> dict[str, Any]:
    return MINIMAL | {"sink": SINK, "protocolsettings": {"headers": HEADERS}, "sinkcredential": credential}


@pytest.mark.parametrize("credential", [PLAIN, TOKEN])
@pytest.mark.matrix("CE-102", "CE-115")
def test_no_answer_log_or_figure_holds_a_secret(credential: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def work(api: Api) -> None:
        api.sinks.answer = lambda target, _message: Refused(f"refused by {target.sink}")
        texts = []
        made = await api.create(**full(credential))
        texts.append(json.dumps(made))
        api.publish("x")
        await api.settled()
        one = f"/subscriptions/{made['id']}"
        paths = ["/subscriptions", one, f"{one}/delivery", f"/deadletters/{made['id']}", "/metrics", "/openapi.json"]
        texts += [(await api.ask("GET", path)).data.decode() for path in paths]
        texts.append(await api.server.feed.page("localhost"))
        mistakes: list[dict[str, Any]] = [
            {"sink": "ftp://user-part:pass-part@h/"},
            {"types": []},
            {"sink": f"{SINK} x"},
        ]
        for wrong in mistakes:
            answer = await api.ask("POST", "/subscriptions", full(credential) | wrong)
            assert answer.status == 400
            texts.append(answer.data.decode())
        texts.append((await api.ask("DELETE", f"/subscriptions/{made['id']}")).data.decode())
        shown = [secret for secret in SECRETS for text in [*texts, caplog.text] if secret in text]
        assert shown == []
        assert made["sink"] == f"http://{MASK}@127.0.0.1:9/sink"
        assert made["protocolsettings"]["headers"] == {"Authorization": MASK, "Cookie": MASK, "X-Tenant": "open"}
        assert made["sinkcredential"]["credentialtype"] == credential["credentialtype"]
        (sent,) = api.sinks.sent
        target = sent[0]
        assert target.sink == "http://127.0.0.1:9/sink"
        assert target.settings["headers"] == {"X-Tenant": "open"}
        assert target.secrets["headers"] == {name: HEADERS[name] for name in ("Authorization", "Cookie")}
        assert "secret" not in repr(target)

    visit(work)


@pytest.mark.matrix("CE-115")
def test_a_mask_that_comes_back_keeps_the_secret() -> None:
    async def work(api: Api) -> None:
        made = await api.create(**full(PLAIN))
        path = f"/subscriptions/{made['id']}"
        again = made | {"types": ["io.relaycast.data.published"], "sink": made["sink"] + "/deeper"}
        assert (await api.ask("PUT", path, again)).json == again
        api.publish("x")
        await api.settled()
        ((target, _),) = api.sinks.sent
        assert target.sink == "http://127.0.0.1:9/sink/deeper"
        assert target.secrets == {
            "identifier": "somebody",
            "secret": "plain-secret",
            "headers": {name: HEADERS[name] for name in ("Authorization", "Cookie")},
        }
        changed = again | {"sinkcredential": PLAIN | {"secret": "other"}}
        assert (await api.ask("PUT", path, changed)).json == again
        api.publish("y")
        await api.settled()
        assert api.sinks.sent[-1][0].secrets["secret"] == "other"

    visit(work)


@pytest.mark.matrix("CE-115")
def test_a_mask_gives_no_secret_to_another_host_and_stands_for_none_that_was_never_given() -> None:
    async def work(api: Api) -> None:
        for change in ({"sink": f"http://{MASK}@127.0.0.1/"}, {"sinkcredential": PLAIN | {"secret": MASK}},
                       {"protocolsettings": {"headers": {"Cookie": MASK}}}):  # fmt: skip
            problem = await api.refused("POST", "/subscriptions", MINIMAL | change)
            assert problem["expected"] == "the secret itself"
        made = await api.create(**full(PLAIN))
        path = f"/subscriptions/{made['id']}"
        for sink in (
            f"http://{MASK}@127.0.0.1:10/sink",
            "http://127.0.0.1:10/sink",
            f"https://{MASK}@127.0.0.1:9/sink",
        ):
            problem = await api.refused("PUT", path, made | {"sink": sink})
            assert problem["expected"] == "the secret itself, because the sink leads to another host"
        headers = {"headers": made["protocolsettings"]["headers"] | {"X-Token": MASK}}
        problem = await api.refused("PUT", path, made | {"protocolsettings": headers})
        assert problem["member"] == "protocolsettings.headers.X-Token"
        assert (await api.ask("GET", path)).json == made
        bare = await api.ask("PUT", path, MINIMAL)
        assert "sinkcredential" not in bare.json

    visit(work)


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", "a\x00b"])
@pytest.mark.matrix("CE-115")
def test_a_credential_that_would_end_a_line_is_refused_unseen(value: str) -> None:
    async def work(api: Api) -> None:
        for change in ({"sinkcredential": {"credentialtype": "ACCESSTOKEN", "accesstoken": value}},
                       {"protocolsettings": {"headers": {"X-A": value}}}):  # fmt: skip
            problem = await api.refused("POST", "/subscriptions", MINIMAL | change)
            assert value not in problem["detail"]
            assert ascii(value) not in problem["detail"]

    visit(work)


@pytest.mark.parametrize("name", ["Host", "Content-Length", "content-type", "Connection", "ce-id"])
@pytest.mark.matrix("CE-115", "CE-58")
def test_headers_that_the_gateway_sets_are_refused(name: str) -> None:
    async def work(api: Api) -> None:
        change = {"protocolsettings": {"headers": {name: "x"}}}
        problem = await api.refused("POST", "/subscriptions", MINIMAL | change)
        assert problem["member"] == f"protocolsettings.headers.{name}"

    visit(work)
