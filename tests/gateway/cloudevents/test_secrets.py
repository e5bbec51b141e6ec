"""Secrets go to the sink and nowhere else; a mask that comes back keeps them."""

import json
import logging
from typing import Any

import pytest

from gateway.cloudevents.served_gateway import MINIMAL, Api, visit
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.masks import masked, unmasked
from relaycast_gateway.delivery.secret_names import MASK
from relaycast_gateway.delivery.sender import Refused
from relaycast_gateway.delivery.sink_address import parse_sink

SECRETS = {"user-part", "pass-part", "header-secret", "cookie-secret", "plain-secret", "access-secret", "query-secret"}
SINK = "http://user-part:pass-part@127.0.0.1:9/sink?room=1&access_token=query-secret"
SHOWN_SINK = f"http://{MASK}@127.0.0.1:9/sink?room=1&access_token={MASK}"
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
        api.sinks.answer = lambda target, _message: Refused(f"refused by {target}")
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
        assert made["sink"] == SHOWN_SINK
        assert made["protocolsettings"]["headers"] == {"Authorization": MASK, "Cookie": MASK, "X-Tenant": "open"}
        assert made["sinkcredential"]["credentialtype"] == credential["credentialtype"]
        (sent,) = api.sinks.sent
        target = sent[0]
        assert target.sink == "http://127.0.0.1:9/sink?room=1&access_token=query-secret"
        assert target.settings["headers"] == {"X-Tenant": "open"}
        assert target.secrets["headers"] == {name: HEADERS[name] for name in ("Authorization", "Cookie")}
        assert "secret" not in repr(target)

    visit(work)


@pytest.mark.matrix("CE-115")
def test_a_mask_that_comes_back_keeps_the_secret() -> None:
    async def work(api: Api) -> None:
        made = await api.create(**full(PLAIN))
        path = f"/subscriptions/{made['id']}"
        deeper = made["sink"].replace("/sink", "/sink/deeper")
        again = made | {"types": ["io.relaycast.data.published"], "sink": deeper}
        assert (await api.ask("PUT", path, again)).json == again
        api.publish("x")
        await api.settled()
        ((target, _),) = api.sinks.sent
        assert target.sink == "http://127.0.0.1:9/sink/deeper?room=1&access_token=query-secret"
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
            f"http://127.0.0.1:10/sink?access_token={MASK}",
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


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("key=a", "key=***"),
        ("sig=a&se=2&sp=r", "sig=***&se=2&sp=r"),  # a shared access signature
        ("API_KEY=a;pwd=b", "API_KEY=***;pwd=***"),
        ("x-functions-key=a", "x-functions-key=***"),
        ("X-Amz-Signature=a&X-Amz-Date=b", "X-Amz-Signature=***&X-Amz-Date=b"),
        ("t%6Fken=a%26b", "t%6Fken=***"),  # the name may be encoded
        ("token=a&token=b=c", "token=***&token=***"),
        ("token=", "token="),  # nothing to hide
        ("token", "token"),
        ("monkey=a&signal=b&coder=c", "monkey=a&signal=b&coder=c"),
        ("", ""),
        ("&&", "&&"),
    ],
)
@pytest.mark.matrix("CE-115")
def test_secrets_in_a_query_are_masked_by_the_names_of_their_parameters(query: str, shown: str) -> None:
    sink = f"HTTP://127.0.0.1:9/sink?{query}"
    made = {"sink": sink, "protocolsettings": {}}
    answer = masked(made)
    assert answer["sink"].partition("?")[2] == shown
    again = unmasked(answer, made)["sink"]
    assert again.partition("?")[2] == query
    assert parse_sink(again) == parse_sink(sink)
    assert parse_sink(sink).masked == f"http://127.0.0.1:9/sink?{shown}"


@pytest.mark.matrix("CE-115")
def test_each_masked_parameter_stands_for_its_own_secret() -> None:
    old = {"sink": "https://h/?token=a&room=1&token=b"}
    for given, expected in [
        ("https://h/?token=***&token=new", "https://h/?token=a&token=new"),
        ("https://h/?token=new&token=***", "https://h/?token=new&token=b"),
        ("https://h/other?token=***&token=***&room=***", "https://h/other?token=a&token=b&room=***"),
    ]:
        assert unmasked({"sink": given}, old) == {"sink": expected}
    for given, expected in [
        ("https://h/?key=***", "the secret itself"),
        ("https://h/?token=***&token=***&token=***", "the secret itself"),
        ("https://other/?token=***", "the secret itself, because the sink leads to another host"),
    ]:
        with pytest.raises(InvalidMember) as refused:
            unmasked({"sink": given}, old)
        assert refused.value.expected == expected


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
