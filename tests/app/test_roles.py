"""Who may do what: tokens with names and roles, subscriptions of their own, Host and Origin."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

import relaycast as rc
from app.browser import visited
from app.test_subscribe_verb import wait_for
from app.webhook import webhook
from command_line import Command, Refused
from gateway.cloudevents.served_gateway import MINIMAL, Api, problem_in, served, visit
from relaycast.refusal import BadInput
from relaycast.serve.access import Access, access_for, read_tokens
from relaycast.serve.faces import Faces
from relaycast.serve.in_process import ServedNetwork
from relaycast.serve.server import Server
from relaycast_gateway.cloudevents.caller import Caller
from relaycast_gateway.cloudevents.operations import OPERATIONS
from relaycast_gateway.delivery.sender import Refused as RefusedBySink
from relaycast_gateway.gateway import Gateway
from small_chain import SmallChain, SmallLive

ADMIN, ALICE, BOB = "admin-token-of-some-length", "alice-token-of-some-length", "bob-token-of-some-length"
LINES = f"# who\n{ADMIN}\n{ALICE} name=alice role=user\n  {BOB}   role=user name=bob\n"


@pytest.fixture
def access(tmp_path: Path) -> Access:
    file = tmp_path / "tokens"
    file.write_text(LINES)
    file.chmod(0o600)
    return access_for((), (), str(file))


def test_a_line_may_name_its_bearer_and_the_role(access: Access) -> None:
    admin = access.caller(f"Bearer {ADMIN}")
    assert admin is not None
    assert admin.is_admin
    assert admin.name.startswith("token-")
    assert access.caller(f"Bearer {ALICE}") == Caller("alice")
    assert access.caller(f"Bearer {BOB}") == Caller("bob")
    assert access.caller("Bearer nothing") is None
    assert access.caller(None) is None
    assert all(token not in repr(access) for token in (ADMIN, ALICE, BOB))


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        ("role=boss", "token 1: role: got 'boss', expected admin or user"),
        ("role=usr", "token 1: role: got 'usr', expected admin or user (did you mean user?)"),
        ("name=", "token 1: name: got '', expected 1 to 64 printable ASCII characters"),
        ("alice", "token 1: got text behind the token, expected name=NAME, role=admin or role=user, principal=TEXT"),
        ("owner=alice", "token 1: got text behind the token"),
        ("principal=alice", "token 1: principal: got 'alice', expected the text of a principal, such as aaaaa-aa"),
        ("principal=2vxsx-fae", "token 1: principal: got '2vxsx-fae', expected the text of a principal"),
    ],
)
def test_a_line_that_cannot_be_meant_is_refused(labels: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{ADMIN} {labels}\n")
    file.chmod(0o600)
    with pytest.raises(BadInput) as refused:
        read_tokens(str(file))
    assert f"--token-file {file}: {line}" in str(refused.value)
    assert ADMIN not in str(refused.value)
    file.write_text(f"{ADMIN}\n{ADMIN} role=user\n")
    with pytest.raises(BadInput, match="token 2: got a token that stands above"):
        read_tokens(str(file))


@pytest.mark.matrix("X-08", "CE-93")
def test_each_path_by_each_role(access: Access) -> None:
    async def work(api: Api) -> None:
        admin, alice, bob = (replace(api, token=token) for token in (ADMIN, ALICE, BOB))
        api.sinks.answer = lambda _target, _message: RefusedBySink("no")
        hers = await alice.create()
        api.publish("x")
        await api.settled()
        for path, operations in OPERATIONS.items():
            place = path.replace("{id}", hers["id"])
            for method in operations:
                body = MINIMAL if method in {"POST", "PUT"} and "redeliver" not in path else None
                for token in ("", "wrong-token-of-some-length"):
                    stranger = await replace(api, token=token).ask(method, place, body)
                    assert problem_in(stranger)["status"] == 401
                    assert stranger.headers["WWW-Authenticate"].endswith("Bearer")
                if "{id}" in path:
                    assert (await bob.refused(method, place, body, status=403))["type"].endswith("forbidden")
                if method != "DELETE":
                    for caller in (alice, admin):
                        assert (await caller.ask(method, place, body)).status in {200, 201}
        assert (await bob.ask("GET", "/subscriptions")).json == []
        assert len((await alice.ask("GET", "/subscriptions")).json) == 2
        assert len((await admin.ask("GET", "/subscriptions")).json) == 3
        assert (await bob.ask("GET", "/deadletters")).json == []
        path = f"/subscriptions/{hers['id']}"
        assert (await admin.ask("PUT", path, MINIMAL | {"types": ["a"]})).status == 200
        assert (await alice.ask("GET", path)).json["types"] == ["a"]
        assert (await admin.ask("DELETE", path)).status == 200
        for place in ("/", "/live", "/healthz", "/readyz", "/nothing"):
            assert (await api.ask("GET", place)).status == 401

    visit(work, access)


@pytest.mark.matrix("X-08")
def test_figures_and_the_event_stream_show_a_user_what_is_its_own(access: Access) -> None:
    async def work(api: Api) -> None:
        admin, alice, bob = (replace(api, token=token) for token in (ADMIN, ALICE, BOB))
        hers = (await alice.create(sink="http://127.0.0.1:9/of-alice"))["id"]
        his = (await bob.create(sink="http://127.0.0.1:9/of-bob"))["id"]
        for caller, seen, hidden in [(alice, {hers}, {his}), (bob, {his}, {hers}), (admin, {hers, his}, set())]:
            figures = (await caller.ask("GET", "/metrics")).data.decode()
            page = (await caller.ask("GET", "/", Accept="text/html")).data.decode()
            url = api.server.url("http") + "/live"
            headers = {"Authorization": f"Bearer {caller.token}"}
            async with api.client.get(url, headers=headers) as response:
                await response.content.readline()
                stream = (await response.content.readline()).decode()
                assert len(json.loads(stream.removeprefix("data: "))["subscriptions"]["rows"]) == len(seen)
                api.publish("x")
                await api.settled()
                await api.clock.advance(1)
                while b"event: subscriptions" not in await response.content.readline():
                    pass
                news = (await response.content.readline()).decode()
            for text in (figures, page, stream, news):
                assert all(name in text for name in seen)
                assert not any(name in text for name in hidden)

    visit(work, access)


@pytest.mark.matrix("X-08")
def test_host_and_origin_are_checked_and_pages_that_are_let_in_may_change_and_delete() -> None:
    async def work(api: Api) -> None:
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            for path in ("/subscriptions", "/metrics", "/deadletters", "/openapi.json"):
                await api.refused("GET", path, status=403, **headers)
            await api.refused("POST", "/subscriptions", MINIMAL, status=403, **headers)
        origin = "http://localhost:3000"
        preflight = await api.ask("OPTIONS", "/subscriptions/x", Origin=origin, Access_Control_Request_Method="PUT")
        assert preflight.status == 204
        assert preflight.headers["Access-Control-Allow-Methods"] == "GET, POST, PUT, DELETE"
        assert "if-match" in preflight.headers["Access-Control-Allow-Headers"]
        made = await api.ask("POST", "/subscriptions", MINIMAL, Origin=origin)
        assert made.headers["Access-Control-Allow-Origin"] == origin
        assert "etag" in made.headers["Access-Control-Expose-Headers"]
        wrong = await api.ask("POST", "/subscriptions", {}, Origin=origin)
        assert wrong.headers["Access-Control-Allow-Origin"] == origin

    visit(work)


def test_the_live_page_shows_markup_as_text(tmp_path: Path) -> None:
    markup = "<img src=x onerror=alert(1)>"

    async def run() -> str:
        access = Access(tokens=(), origins=frozenset())
        async with served(access) as api:
            api.sinks.answer = lambda _target, _message: RefusedBySink(markup)
            for at in range(3):
                await api.create(sink=f"http://user:secret@127.0.0.1:9/{at}?a=1", config={"data": markup})
            api.publish(markup, markup)
            await api.settled()
            shown, console = await asyncio.to_thread(visited, api.server.url("http"), tmp_path)
            assert console == []
            return shown

    shown = asyncio.run(run())
    assert "3 subscriptions. Events: 0 delivered, 0 pending, 0 retries, 6 dead letters." in shown
    assert "<img" not in shown.partition("<body")[2].partition('id="first"')[0]
    assert "secret" not in shown
    assert "http://***@127.0.0.1:9/2?a=1" in shown


def test_a_server_offers_the_faces_that_were_asked_for() -> None:
    async def run() -> None:
        chain = SmallChain({})
        gateway = Gateway.open()
        server = Server(
            SmallLive(chain),
            title="t",
            key_names=dict,
            access=Access(),
            gateway=gateway,
            faces=Faces(node=False, wamp=False),
        )
        await server.start("127.0.0.1", 0)
        url = server.url("http")
        assert [line.url for line in server.lines()] == [f"{url}/subscriptions", f"{url}/"]
        async with aiohttp.ClientSession() as client:
            for method, path, status in [("POST", "/", 405), ("GET", "/", 406), ("GET", "/para/1", 404)]:
                async with client.request(method, url + path) as response:
                    assert response.status == status
            async with client.get(f"{url}/subscriptions") as response:
                assert await response.json() == []
            async with client.get(url, headers={"accept": "text/html"}) as response:
                page = await response.text()
        assert "const canBuild = false;" in page
        assert "ws://" not in page
        await server.stop()

    asyncio.run(run())


@pytest.mark.matrix("CE-03", "CE-88")
def test_a_served_network_keeps_its_subscriptions_for_the_next_start(tmp_path: Path, relaycast: Command) -> None:
    def subscribe(chains: ServedNetwork, *arguments: str) -> str:
        ended = relaycast("subscribe", *arguments, "--url", chains.http_url)
        assert ended.code == 0, ended.err
        return ended.out.strip()

    with webhook() as (sink, came):
        with rc.serve("oracle", data=tmp_path / "kept", allow_sink=["127.0.0.1"]) as chains:
            name = subscribe(chains, "add", "--sink", sink, "--type", "io.relaycast.block.imported")
            chains.new_block(1)
            wait_for(lambda: len(came) >= 2)
        before = {it.headers["ce-id"] for it in came}
        with rc.serve("oracle", data=tmp_path / "kept", allow_sink=["127.0.0.1"]) as chains:
            assert subscribe(chains, "list").startswith(name)
            chains.new_block(1)
            wait_for(lambda: len({it.headers["ce-id"] for it in came}) >= 2 * len(before))
        sequences = [it.headers["ce-sequence"] for it in came]
        assert sequences == sorted(sequences)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--face", "nodes"], "--face: got 'nodes', expected all, or some of node, cloudevents, wamp, icrc (did you"),
        (["--allow-sink", "a b"], "--allow-sink: got 'a b', expected HOST, HOST:PORT or a network such as 10.1.0.0/16"),
        (["--allow-sink", "10.0.0.0/99"], "--allow-sink: got '10.0.0.0/99', expected HOST"),
    ],
)
def test_a_face_that_cannot_be_opened_is_one_line(refused: Refused, arguments: list[str], line: str) -> None:
    assert refused("serve", "oracle", *arguments).startswith(line)


@pytest.mark.parametrize(
    "content", [b"this is no database, but long enough to be read as one" * 100, b"SQLite format 3\x00"]
)
def test_a_data_folder_of_something_else_is_one_line(refused: Refused, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "kept").mkdir()
    for name in ("events.sqlite", "deliveries.sqlite", "subscriptions.sqlite"):
        (tmp_path / "kept" / name).write_bytes(content)
        line = refused("serve", "oracle", "--data", "kept")
        assert line.startswith("--data kept: kept")
        (tmp_path / "kept" / name).unlink()
    (tmp_path / "file").write_text("x")
    assert refused("serve", "oracle", "--data", "file").startswith("--data file: ")
