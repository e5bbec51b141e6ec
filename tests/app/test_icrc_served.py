"""Canisters as a face of the server: who calls as whom, what is notified where, what is kept and shown."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import relaycast as rc
from app.browser import visited
from app.served_canisters import (
    ADMIN_TOKEN,
    ALICE,
    BOB,
    CANDID,
    FEED,
    OWN,
    OWN_TOKEN,
    PUBLISHED,
    REFUSED,
    USER_TOKEN,
    argument_for,
    as_,
    ask,
    bearer,
    call,
    event,
    guarded,
    hosted,
    registration,
    subscription,
    until,
)
from gateway.icrc.http_stage import NotingSubscriber
from relaycast.refusal import BadInput
from relaycast.serve.faces import Faces
from relaycast.serve.gateway_face import icrc_settings
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast_gateway.candid import Principal, Variant, parse_values
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.http.canister_host import CanisterHost, NoCanisterServer
from relaycast_gateway.icrc.interface import CanisterRole, every_method, methods_of
from relaycast_gateway.icrc_face import ARCHIVIST, BROADCASTER, ORCHESTRATOR
from relaycast_gateway.principal import principal_of, principal_of_name, principal_text


@pytest.fixture(scope="module")
def oracle() -> Iterator[ServedNetwork]:
    with rc.serve("oracle", allow_sink=["127.0.0.1"]) as chains:
        yield chains


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    file = tmp_path / "tokens"
    own = f"{OWN_TOKEN} principal={principal_text(OWN)} role=user"
    file.write_text(f"{ADMIN_TOKEN} name=ann\n{USER_TOKEN} name=uwe role=user\n{own}\n")
    file.chmod(0o600)
    return str(file)


def test_what_is_published_over_http_notifies_a_subscriber_in_another_process_who_confirms(
    oracle: ServedNetwork,
) -> None:
    url, namespace = oracle.http_url, "com.example.confirmed"
    assert call(url, ORCHESTRATOR, "icrc72_register_publication", [registration(namespace)], **as_(ALICE))[0] == 200

    async def work(host: CanisterHost, subscriber: NotingSubscriber) -> None:
        asked = [subscription(namespace, host.url)]
        (result,) = await host.call(BOB, host.orchestrator, "icrc72_register_subscription", asked)
        assert result.tag == "Ok"
        sent = [event(number, namespace) for number in (1, 2, 3)]
        status, results = await asyncio.to_thread(call, url, BROADCASTER, "icrc72_publish", sent, **as_(ALICE))
        assert (status, [result.tag for result in results]) == (200, ["Ok"] * 3)
        ids = [number for result in results for number in result.value]
        assert len(set(ids)) == 3
        await until(lambda: sum(len(argument) for _, argument in subscriber.noted) >= 3)
        got = [it for _, argument in subscriber.noted for it in argument]
        assert {caller for caller, _ in subscriber.noted} == {BROADCASTER}
        assert [(it["eventId"], it["id"], it["data"]) for it in got] == [
            (number, notification, Variant("Nat", number)) for number, notification in zip((1, 2, 3), ids, strict=True)
        ]
        assert {it["source"] for it in got} == {Principal(ALICE)}
        assert await host.call(BOB, host.broadcasters[0], "icrc72_confirm_messages", ids) == Variant("allAccepted")
        again = await host.call(BOB, host.broadcasters[0], "icrc72_confirm_messages", ids[:1])
        assert again.tag == "itemized"

    hosted(url, work)


def test_what_chains_tell_is_a_publication_from_the_start_and_notifies(oracle: ServedNetwork) -> None:
    async def work(host: CanisterHost, subscriber: NotingSubscriber) -> None:
        asked = [subscription(PUBLISHED, host.url)]
        assert (await host.call(BOB, host.orchestrator, "icrc72_register_subscription", asked))[0].tag == "Ok"
        await asyncio.to_thread(oracle.new_block, 2)
        await until(lambda: subscriber.noted)
        (first, *_) = subscriber.noted[0][1]
        assert first["namespace"] == PUBLISHED
        assert first["data"].tag == "Map"
        update = {"subscription": Variant("namespace", PUBLISHED), "newStopped": True}
        update |= dict.fromkeys(("subscriptionId", "newConfig", "config", "newFilter", "newSkip", "memo"))
        assert (await host.call(BOB, host.orchestrator, "icrc72_update_subscription", [update]))[0].tag == "Ok"

    hosted(oracle.http_url, work)


def test_a_subscriber_may_only_be_called_where_the_server_may_call() -> None:
    with rc.serve("oracle") as chains:

        async def work(host: CanisterHost, _: NotingSubscriber) -> None:
            asked = [subscription(PUBLISHED, host.url)]
            (result,) = await host.call(BOB, host.orchestrator, "icrc72_register_subscription", asked)
            assert result.value.tag == "ImproperConfig"
            assert "--allow-sink 127.0.0.1" in result.value.value

        hosted(chains.http_url, work)


def test_nobody_speaks_for_a_canister_or_a_chain(oracle: ServedNetwork) -> None:
    gateway = oracle._server.gateway
    assert gateway is not None
    assert gateway.icrc is not None
    chain = gateway.icrc.orchestrator.registry.publications[PUBLISHED].owner
    for claimed in (chain, ORCHESTRATOR, BROADCASTER):
        status, problem = call(oracle.http_url, BROADCASTER, "icrc72_publish", [event(1, PUBLISHED)], **as_(claimed))
        assert (status, problem["type"]) == (403, "urn:relaycast:problem:forbidden")


@pytest.mark.matrix("ICRC72-95")
def test_every_method_of_the_interfaces_answers_over_http(oracle: ServedNetwork) -> None:
    served = {
        ORCHESTRATOR: CanisterRole.ORCHESTRATOR,
        BROADCASTER: CanisterRole.BROADCASTER,
        ARCHIVIST: CanisterRole.PUBLISHER,
    }
    for callee, role in served.items():
        methods = methods_of(role)
        status, _, body = ask(f"{oracle.http_url}/icrc/{principal_text(callee)}/candid")
        assert status == 200
        assert all(f"  {name} : " in body.decode() for name in methods)
        for name, method in methods.items():
            values = parse_values(argument_for(method), method.arguments)
            status, result = call(oracle.http_url, callee, name, values[0] if values else None, **as_(ALICE))
            if name in REFUSED:
                assert (status, result["type"]) == (422, "urn:relaycast:problem:refused")
            else:
                assert status == 200, (name, result)


@pytest.mark.matrix("ICRC72-94")
def test_the_anonymous_principal_is_refused_on_every_update_of_the_server(oracle: ServedNetwork) -> None:
    gateway = oracle._server.gateway
    assert gateway is not None
    assert gateway.icrc is not None
    before = gateway.icrc.store.dump()
    for callee, role in ((ORCHESTRATOR, CanisterRole.ORCHESTRATOR), (BROADCASTER, CanisterRole.BROADCASTER)):
        for name, method in methods_of(role).items():
            if method.is_query:
                continue
            for headers in ({}, {"Icrc_Caller": "2vxsx-fae"}):
                status, problem = call(oracle.http_url, callee, name, [], **headers)
                assert (status, problem["type"]) == (403, "urn:relaycast:problem:forbidden")
    assert gateway.icrc.store.dump() == before


@pytest.mark.matrix("X-08")
def test_a_token_fixes_the_principal_and_nobody_comes_without_one(token_file: str) -> None:
    with guarded(token_file) as chains:
        url, orchestrator = chains.http_url, principal_text(ORCHESTRATOR)
        paths = [("GET", "/icrc"), ("GET", f"/icrc/{orchestrator}/candid")]
        paths += [("POST", f"/icrc/{orchestrator}/{name}") for name in methods_of(CanisterRole.ORCHESTRATOR)]
        for method, path in paths:
            for headers in ({}, bearer("a-wrong-token-of-some-length"), as_(ALICE)):
                status, sent, body = ask(url + path, method, b"" if method == "POST" else None, **headers)
                assert (status, json.loads(body)["status"]) == (401, 401)
                assert sent["WWW-Authenticate"].endswith("Bearer")
        principals = {ADMIN_TOKEN: principal_of_name("ann"), USER_TOKEN: principal_of_name("uwe"), OWN_TOKEN: OWN}
        for number, (token, principal) in enumerate(principals.items()):
            listed = json.loads(ask(f"{url}/icrc", **bearer(token))[2])
            assert principal_of(listed["caller"]) == principal
            namespace = f"com.example.of{number}"
            asked = (url, ORCHESTRATOR, "icrc72_register_publication", [registration(namespace)])
            assert call(*asked, **bearer(token), **as_(BOB))[0] == 403
            assert call(*asked, **bearer(token), **as_(principal))[0] == 200
            assert call(*asked, **bearer(token))[0] == 200
            owner = chains._server.gateway.icrc.orchestrator.registry.publications[namespace].owner  # type: ignore[union-attr]
            assert owner == principal


@pytest.mark.matrix("X-08")
@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}])
def test_host_and_origin_are_checked_on_every_path(oracle: ServedNetwork, headers: dict[str, str]) -> None:
    for path in ("/icrc", f"/icrc/{principal_text(ORCHESTRATOR)}/candid"):
        status, sent, body = ask(oracle.http_url + path, **headers)
        assert (status, sent["Content-Type"]) == (403, "application/problem+json")
        assert next(iter(headers)) in json.loads(body)["detail"]
    argument = [registration("com.example.evil")]
    assert call(oracle.http_url, ORCHESTRATOR, "icrc72_register_publication", argument, **headers, **as_(BOB))[0] == 403


@pytest.mark.matrix("X-08", "ICRC72-107")
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-www-form-urlencoded"])
def test_a_page_cannot_post_what_needs_no_preflight(oracle: ServedNetwork, kind: str) -> None:
    argument = [registration("com.example.posted")]
    headers = {"Content_Type": kind, "Origin": "http://localhost:3000", **as_(BOB)}
    assert call(oracle.http_url, ORCHESTRATOR, "icrc72_register_publication", argument, **headers)[0] == 415
    if kind != "application/json":
        for path in ("/", "/subscriptions"):
            assert ask(oracle.http_url + path, "POST", b"{}", Content_Type=kind)[0] == 415
    status, sent, _ = ask(
        f"{oracle.http_url}/icrc",
        "OPTIONS",
        Origin="http://localhost:3000",
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="icrc-caller",
    )
    assert status == 204
    assert "icrc-caller" in sent["Access-Control-Allow-Headers"]


@pytest.mark.matrix("X-08")
def test_figures_of_the_canisters_are_for_admins(token_file: str) -> None:
    with guarded(token_file) as chains:
        chains.new_block(2)
        url = chains.http_url
        argument = [registration()]
        assert call(url, ORCHESTRATOR, "icrc72_register_publication", argument, **bearer(USER_TOKEN))[0] == 200
        assert call(url, BROADCASTER, "icrc72_publish", [event(1)], **bearer(USER_TOKEN))[0] == 200
        found = [ask(f"{url}/metrics", **bearer(token))[2].decode() for token in (ADMIN_TOKEN, USER_TOKEN)]
        events = len(chains._server.gateway.log.read(limit=10_000))  # type: ignore[union-attr]
        publications = len(chains._server.gateway.icrc.orchestrator.registry.publications)  # type: ignore[union-attr]
        for line in (
            f"relaycast_icrc_events_total {float(events)}",
            f"relaycast_icrc_publications {float(publications)}",
        ):
            assert line in found[0]
        assert "relaycast_icrc" not in found[1]
        pages = [ask(url, Accept="text/html", **bearer(token))[2].decode() for token in (ADMIN_TOKEN, USER_TOKEN)]
        assert ['"icrc":{' in page for page in pages] == [True, False]


@pytest.mark.matrix("ICRC72-107")
def test_markup_in_namespaces_data_and_headers_is_text_on_the_live_page(tmp_path: Path) -> None:
    markup = "<img/src=x/onerror=alert(1)>"
    namespace = f"com.{markup}"
    with rc.serve("oracle") as chains:
        url = chains.http_url
        status, (result,) = call(
            url, ORCHESTRATOR, "icrc72_register_publication", [registration(namespace)], **as_(ALICE)
        )
        assert (status, result.tag) == (200, "Ok")
        sent = event(1, namespace, Variant("Text", markup)) | {"headers": [{0: markup, 1: Variant("Text", markup)}]}
        status, (result,) = call(url, BROADCASTER, "icrc72_publish", [sent], **as_(ALICE))
        assert (status, result.tag) == (200, "Ok")
        raw = ask(url, Accept="text/html")[2].decode()
        assert markup not in raw
        shown, console = visited(url, tmp_path)
    assert console == []
    assert "<img" not in shown.partition("<body")[2].partition('id="first"')[0]
    assert "com.&lt;img/src=x/onerror=alert(1)&gt;" in shown


def test_registrations_are_there_after_a_restart(tmp_path: Path) -> None:
    for is_first in (True, False):
        with rc.serve("oracle", data=tmp_path / "kept") as chains:
            url = chains.http_url
            if is_first:
                status, (made,) = call(url, ORCHESTRATOR, "icrc72_register_publication", [registration()], **as_(ALICE))
                assert (status, made.tag) == (200, "Ok")
                number = made.value
            status, (result,) = call(url, BROADCASTER, "icrc72_publish", [event(1)], **as_(ALICE))
            assert (status, result) == (200, Variant("Ok", []))
            (again,) = call(url, ORCHESTRATOR, "icrc72_register_publication", [registration()], **as_(ALICE))[1]
            assert again.value == number
            assert len([it for it in chains._server.gateway.log.read() if it.namespace == FEED]) == 1  # type: ignore[union-attr]
    assert (tmp_path / "kept" / "icrc.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", [b"this is no database, but long enough" * 100, b"SQLite format 3\x00"])
def test_a_damaged_file_of_canisters_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "icrc.sqlite").write_bytes(content)
    with pytest.raises(ValueError, match=r"icrc\.sqlite") as refused, rc.serve("oracle", data=tmp_path):
        pass
    assert "\n" not in str(refused.value)
    assert (tmp_path / "icrc.sqlite").read_bytes() == content


def test_the_list_names_the_canisters_of_the_server(oracle: ServedNetwork) -> None:
    listed = json.loads(ask(f"{oracle.http_url}/icrc")[2])
    assert listed["caller"] == "2vxsx-fae"
    assert listed["orchestrator"]["principal"] == principal_text(ORCHESTRATOR)
    assert [it["principal"] for it in listed["broadcasters"]] == [principal_text(BROADCASTER)]
    assert listed["archivist"]["principal"] == principal_text(ARCHIVIST)
    for it in (listed["orchestrator"], *listed["broadcasters"], listed["archivist"]):
        assert ask(f"{it['url']}/candid")[0] == 200
        assert {each["name"] for each in it["methods"]} == set(methods_of(CanisterRole(it["role"])))


def test_the_faces_are_named_and_all_is_all() -> None:
    assert Faces.named("all") == Faces.named("") == Faces()
    assert Faces.named("icrc") == Faces(node=False, cloudevents=False, wamp=False)
    with pytest.raises(BadInput, match="expected all, or some of node, cloudevents, wamp, icrc"):
        Faces.named("icrc,al")


def test_a_server_of_canisters_alone_offers_nothing_else() -> None:
    network = living("oracle", "manual")
    gateway = Gateway.open(icrc=icrc_settings(), allow_sink=["127.0.0.1"])
    with serving(network, gateway=gateway, faces=Faces.named("icrc")) as chains:
        url = chains.http_url
        statuses = [ask(url + path)[0] for path in ("/icrc", "/metrics", "/subscriptions", "/wamp", "/para/2000")]
        assert statuses == [200, 200, 404, 404, 404]
        (line, _) = chains._server.lines()
        assert (line.url, line.use) == (f"{url}/icrc", f"relaycast icrc listen {PUBLISHED} --url {url}")


def test_a_host_reaches_its_server_alone_and_is_reached_by_this_machine_alone(oracle: ServedNetwork) -> None:
    async def work(host: CanisterHost, subscriber: NotingSubscriber) -> None:
        path = f"{host.url}/icrc/{principal_text(BOB)}/icrc72_handle_notification"
        body = every_method()["icrc72_handle_notification"].encode_argument([])
        for headers, expected in (
            ({}, 200),
            ({"Host": "evil.example"}, 403),
            ({"Host": "localhost.evil.example:1"}, 403),
            ({"Origin": "http://localhost"}, 403),
        ):
            sent = {"Content_Type": CANDID, **as_(ALICE), **headers}
            assert (await asyncio.to_thread(ask, path, "POST", body, **sent))[0] == expected
        assert len(subscriber.noted) == 1
        for path in ("/nothing", "/icrc/x/y/z"):
            status, _, answer = await asyncio.to_thread(ask, host.url + path)
            assert (status, json.loads(answer)["status"]) == (404, 404)
        host.wire.remember(ALICE, "http://127.0.0.1:1")
        with pytest.raises(CallRefused, match="loopback"):
            await host.call(BOB, ALICE, "icrc72_get_subscriber_stats")

    hosted(oracle.http_url, work)
    with pytest.raises(ValueError, match="can be reached by others"):
        hosted(oracle.http_url, work, host="0.0.0.0")
    with pytest.raises(NoCanisterServer, match="cannot connect"):
        hosted("http://127.0.0.1:1", work)
    with pytest.raises(ValueError, match="expected a URL"):
        hosted("ws://127.0.0.1:1", work)


def test_a_host_with_a_token_has_its_principal(token_file: str) -> None:
    with guarded(token_file) as chains:

        async def work(host: CanisterHost, subscriber: NotingSubscriber) -> None:
            assert host.principal == OWN
            asked = [subscription(PUBLISHED, host.url)]
            assert (await host.call(OWN, host.orchestrator, "icrc72_register_subscription", asked))[0].tag == "Ok"
            await asyncio.to_thread(chains.new_block, 2)
            await until(lambda: subscriber.noted)

        hosted(chains.http_url, work, caller=OWN, token=OWN_TOKEN)
        with pytest.raises(NoCanisterServer, match="401"):
            hosted(chains.http_url, work, token="a-wrong-token-of-some-length")


def test_the_face_loads_nothing_that_a_start_can_do_without() -> None:
    heavy = ("pandas", "pyarrow", "prometheus_client", "jinja2", "cbor2")
    modules = "relaycast_gateway.icrc_face, relaycast_gateway.icrc_routes"
    program = f"import {modules}, sys; print([it for it in {heavy} if it in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "[]\n"
