"""The WAMP router as a face of the server: who is let in, what is kept, and what other faces see of it."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import aiohttp
import pytest

import relaycast as rc
from app.browser_tab import PHONE, opened
from command_line import Command, Refused
from peers import missing
from relaycast.serve.access import access_for
from relaycast.serve.gateway_face import router_config
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast.serve.usage import ServedAt, wamp_lines
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.wamp.client.client import WampClient
from relaycast_gateway.wamp.client.values import JoinRefused
from relaycast_gateway.wamp.errors import WampError
from relaycast_gateway.wamp.router_config import RealmConfig

TOPIC = "com.example.price"
GET_EVENTS = "wamp.subscription.get_events"
CHAIN_TOPIC = "io.relaycast.data.published.p2000"
ADMIN_TOKEN, USER_TOKEN = "an-admins-token-of-some-length", "a-users-token-of-some-length"


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


def text_at(url: str, **headers: str) -> str:
    with urlopen(Request(url, headers=headers), timeout=60) as response:
        return str(response.read().decode())


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    file = tmp_path / "tokens"
    file.write_text(f"{ADMIN_TOKEN} name=ann\n{USER_TOKEN} name=uwe role=user\n")
    file.chmod(0o600)
    return str(file)


@contextmanager
def guarded(token_file: str) -> Iterator[ServedNetwork]:
    """Serve with tokens."""
    access = access_for((), (), token_file)
    network = living("oracle", "manual")
    gateway = Gateway.open(wamp=router_config(None, ["com.example."], access))
    gateway.follow(network.clock.chains, network.title, key_names=network.key_names)
    with serving(network, gateway=gateway, access=access) as chains:
        yield chains


def as_admin(url: str) -> Any:
    return WampClient.connect(url, "relaycast", authid="ann", ticket=ADMIN_TOKEN)


def as_user(url: str) -> Any:
    return WampClient.connect(url, "relaycast", authid="uwe", ticket=USER_TOKEN)


@pytest.mark.matrix("X-08")
def test_the_path_takes_no_token_and_checks_host_and_origin(token_file: str) -> None:
    async def statuses(chains: ServedNetwork) -> list[int | str]:
        found: list[int | str] = []
        async with aiohttp.ClientSession() as client:
            for headers in ({}, {"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}):
                try:
                    async with client.ws_connect(chains.wamp_url, headers=headers, protocols=["wamp.2.json"]) as socket:
                        found.append(socket.protocol or "none")
                except aiohttp.WSServerHandshakeError as error:
                    found.append(error.status)
            async with client.get(f"{chains.http_url}/subscriptions") as response:
                found.append(response.status)
        return found

    with guarded(token_file) as chains:
        assert asyncio.run(statuses(chains)) == ["wamp.2.json", 403, 403, 403, 401]


@pytest.mark.matrix("X-08")
def test_a_session_has_the_role_of_its_token_and_no_other(token_file: str) -> None:
    async def work(url: str) -> None:
        for authid, ticket in ((None, None), ("ann", USER_TOKEN), ("eve", ADMIN_TOKEN)):
            with pytest.raises(JoinRefused):
                await WampClient.connect(url, authid=authid, ticket=ticket)
        async with await as_admin(url) as admin, await as_user(url) as user:
            for client in (admin, user):
                with pytest.raises(WampError, match="not_authorized"):
                    await client.publish(CHAIN_TOPIC, [1])
            await admin.publish(TOPIC, ["secret"], eligible_authrole=["admin"])
            await user.publish(TOPIC, ["open"])
            seen = []
            for client in (admin, user):
                reply = await client.call(GET_EVENTS, await client.subscribe(TOPIC, lambda _: None))
                seen.append([event["args"] for event in reply.args])
            assert seen == [[["secret"], ["open"]], [["open"]]]
            with pytest.raises(WampError, match="not_authorized"):
                await user.call("wamp.session.kill", admin.session)

    with guarded(token_file) as chains:
        asyncio.run(work(chains.wamp_url))


@pytest.mark.matrix("X-08")
def test_figures_of_the_router_are_for_admins(token_file: str) -> None:
    with guarded(token_file) as chains:

        async def work() -> None:
            async with await as_admin(chains.wamp_url) as admin:
                await admin.publish(TOPIC, [1])
                metrics, page = f"{chains.http_url}/metrics", chains.http_url
                tokens = [f"Bearer {token}" for token in (ADMIN_TOKEN, USER_TOKEN)]
                found = [await asyncio.to_thread(text_at, metrics, authorization=token) for token in tokens]
                assert "relaycast_wamp_sessions 1.0" in found[0]
                assert "relaycast_wamp_publications_total 1.0" in found[0]
                assert "wamp" not in found[1]
                pages = [
                    await asyncio.to_thread(text_at, page, authorization=token, accept="text/html") for token in tokens
                ]
                assert ['"wamp":{' in text for text in pages] == [True, False]

        asyncio.run(work())


def test_figures_count_what_the_router_did() -> None:
    with rc.serve("oracle", history=["com.example."]) as chains:

        async def work() -> str:
            async with (
                await WampClient.connect(chains.wamp_url) as one,
                await WampClient.connect(chains.wamp_url, serializer="cbor") as two,
            ):
                got: list[Any] = []
                await one.subscribe(TOPIC, got.append)
                await two.subscribe("com.", got.append, match="prefix")
                await one.register("com.example.add", lambda *numbers: sum(numbers))
                await one.publish(TOPIC, [1], exclude_me=False)
                await until(lambda: len(got) == 2)
                return await asyncio.to_thread(text_at, f"{chains.http_url}/metrics")

        text = asyncio.run(work())
        for name, value in (
            ("sessions", 2), ("subscriptions", 4), ("publications_total", 1), ("events_sent_total", 2),
            ("sessions_dropped_total", 0),
        ):  # fmt: skip
            assert f"relaycast_wamp_{name} {value}.0\n" in text, name
        registrations = re.search(r"^relaycast_wamp_registrations (\d+)", text, re.MULTILINE)
        assert registrations is not None
        assert int(registrations[1]) > 1


def test_sessions_end_with_goodbye_before_the_server_does() -> None:
    async def joined(url: str, opened: "asyncio.Event", ended: "list[Any]") -> None:
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(url, protocols=["wamp.2.json"]) as socket,
        ):
            await socket.send_json([1, "relaycast", {"roles": {"subscriber": {}}}])
            welcome = await socket.receive_json(timeout=30)
            assert welcome[0] == 2
            opened.set()
            ended.append(await socket.receive_json(timeout=30))
            await socket.send_json([6, {}, "wamp.close.goodbye_and_out"])
            ended.append((await socket.receive(timeout=30)).type)

    async def work() -> list[Any]:
        opened, ended = asyncio.Event(), list[Any]()
        serving_now = rc.serve("oracle")
        chains = await asyncio.to_thread(serving_now.__enter__)
        client = asyncio.create_task(joined(chains.wamp_url, opened, ended))
        await opened.wait()
        await asyncio.to_thread(serving_now.__exit__, None, None, None)
        await client
        return ended

    goodbye: Any
    goodbye, closed = asyncio.run(work())
    assert (goodbye[0], goodbye[2]) == (6, "wamp.close.system_shutdown")
    assert closed in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING}


@pytest.mark.matrix("WAMP-04")
def test_a_history_in_a_folder_is_there_after_a_restart(tmp_path: Path) -> None:
    async def publish(url: str) -> list[Any]:
        async with await WampClient.connect(url) as client:
            return [await client.publish(TOPIC, [at]) for at in range(10)]

    async def read(url: str) -> list[Any]:
        async with await WampClient.connect(url) as client:
            reply = await client.call(GET_EVENTS, await client.subscribe(TOPIC, lambda _: None))
        return [(event["publication"], event["args"]) for event in list[Any](reply.args)]

    folder = tmp_path / "feed"
    with rc.serve("oracle", history=[TOPIC], data=folder) as chains:
        sent = asyncio.run(publish(chains.wamp_url))
    with rc.serve("oracle", history=[TOPIC], data=folder) as chains:
        assert asyncio.run(read(chains.wamp_url)) == [(publication, [at]) for at, publication in enumerate(sent)]


ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@contextmanager
def ready(*arguments: str) -> Iterator[list[str]]:
    """Run the verb; yield the lines of its ready screen, then stop it as supervisors do."""
    command = [sys.executable, "-m", "relaycast", "serve", "oracle", "--port", "0", "--block-time", "500ms", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while (line := process.stdout.readline()) and not line.startswith("ready"):
            lines.append(line)
        try:
            yield lines
        finally:
            process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "stopped\n", "")


def told(words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run ``relaycast`` as a process: which certificates it trusts is settled when it starts."""
    command = [sys.executable, "-m", "relaycast", *words.split()]
    return subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT | environment, timeout=60, check=False
    )


def uses_of(lines: list[str]) -> list[str]:
    return [found[1] for line in lines if (found := re.search(r"WAMP.*: relaycast (history .*)$", line))]


def test_the_ready_screen_shows_how_to_read_a_history(relaycast: Command) -> None:
    with ready("--rawsocket-port", "0") as lines:
        uses = uses_of(lines)
        assert [use.split("--url ")[1].split(":")[0] for use in uses] == ["ws", "tcp"]
        for use in uses:
            while (shown := relaycast(*use.split()).out) == "no events\n":  # nothing is published in the first block
                pass
            assert "io.relaycast.data.published.p2000" in shown


@pytest.mark.parametrize(
    ("anonymous_role", "has_tokens", "expected"),
    [
        ("guest", False, ""),
        ("guest", True, " --token-file FILE"),
        (None, True, " --token-file FILE"),
        (None, False, " --token-file FILE"),  # the users of a router file alone may join
    ],
)
def test_the_command_names_a_token_file_where_somebody_needs_one(
    anonymous_role: str | None, has_tokens: bool, expected: str
) -> None:
    realm = RealmConfig("relaycast", anonymous_role=anonymous_role)
    lines = wamp_lines(ServedAt("127.0.0.1:9944", has_tokens=has_tokens), realm, 8081)
    urls = ["ws://127.0.0.1:9944/wamp", "tcp://127.0.0.1:8081"]
    command = "relaycast history io.relaycast.data.published. --limit 10 --reverse --url"
    assert [line.use for line in lines] == [f"{command} {url}{expected}" for url in urls]


def test_the_live_page_names_a_token_file_where_nobody_is_anonymous(tmp_path: Path) -> None:
    (tmp_path / "router.toml").write_text('[[realms]]\nname = "shop"\n')
    with rc.serve("oracle", wamp=tmp_path / "router.toml") as chains:
        assert f"--url {chains.wamp_url} --realm shop --token-file FILE" in text_at(chains.http_url, accept="text/html")


def test_one_face_alone_speaks_tls_on_both_ports(relaycast: Command, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        missing("no openssl here")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    made += " -addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", *made.split(), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    options = f"--face wamp --rawsocket-port 0 --tls-cert {certificate} --tls-key {key}"
    with ready(*options.split()) as lines:
        assert len(lines) == 3, "more than two addresses and the page"
        for use in uses_of(lines):
            ended = told(use.replace("data.published.", ""), SSL_CERT_FILE=str(certificate))
            assert (ended.returncode, ended.stderr) == (0, "")
            refused = relaycast(*use.split())
            assert (refused.code, refused.err.count("\n")) == (2, 1)
            assert "got a certificate that this machine does not trust" in refused.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--history", "a b"], "--history: got 'a b', expected a topic such as com.example.feed"),
        (["--rawsocket-port", "65536"], "--rawsocket-port: got 65536, expected a number from 0 (any free port)"),
        (["--wamp", "missing.toml"], "--wamp missing.toml: got no such file or directory, expected a TOML file"),
        (["--face", "node", "--history", "a"], "--history: got --face node, expected wamp among the faces"),
        (["--face", "node", "--wamp", "a"], "--wamp: got --face node, expected wamp among the faces"),
        (
            ["--face", "node,cloudevents", "--rawsocket-port", "0"],
            "--rawsocket-port: got --face node,cloudevents, expected wamp among the faces",
        ),
        (
            ["--face", "wamp", "--allow-sink", "a"],
            "--allow-sink: got --face wamp, expected cloudevents or icrc among",
        ),
    ],
)
def test_what_cannot_be_served_is_one_line(refused: Refused, arguments: list[str], line: str) -> None:
    assert refused("serve", "oracle", *arguments).startswith(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[realms]]\n", "--wamp router.toml: realms[0].name: got nothing, expected the name of a realm"),
        ("[[realms]]\nname = 'a'\nhistroy = []\n", "--wamp router.toml: realms[0].histroy: got an unknown name"),
        ("x = [", "--wamp router.toml: got a mistake: "),
    ],
)
def test_a_mistake_in_the_routers_file_is_one_line(refused: Refused, tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "router.toml").write_text(text)
    assert refused("serve", "oracle", "--wamp", "router.toml").startswith(line)


def test_a_rawsocket_port_in_use_is_one_line() -> None:
    with rc.serve("oracle", rawsocket_port=0) as chains:
        port = int(chains.rawsocket_url.rpartition(":")[2])
        with (
            pytest.raises(ValueError, match=f"--rawsocket-port: got {port}, which is in use"),
            rc.serve("oracle", rawsocket_port=port),
        ):
            pass


def test_a_face_that_is_not_asked_for_is_not_there() -> None:
    network = living("oracle", "manual")
    with serving(network) as chains:
        with pytest.raises(Exception, match="404"):
            text_at(chains.wamp_url.replace("ws://", "http://"))
        with pytest.raises(ValueError, match="there is no RawSocket"):
            _ = chains.rawsocket_url


def test_the_live_page_shows_the_router_as_it_works(tmp_path: Path) -> None:
    (tmp_path / "router.toml").write_text(
        '[[realms]]\nname = "shop"\nanonymous_role = "guest"\n'
        '[[realms.roles]]\nname = "guest"\n'
        '[[realms.roles.permissions]]\nuri = ""\nmatch = "prefix"\nallow = ["publish", "subscribe", "call"]\n'
        '[[realms.history]]\nuri = "com.example."\nmatch = "prefix"\ncount = 5\n'
    )

    async def look(chains: ServedNetwork) -> None:
        shown = 'document.getElementById("wamp").innerText'
        async with (
            opened(chains.http_url, tmp_path, size=PHONE, is_dark=True) as tab,
            await WampClient.connect(chains.wamp_url, "shop") as client,
        ):
            await client.subscribe("com.example.other", lambda _: None)
            for price in range(3):
                await client.publish(TOPIC, [price], eligible_authrole=["nobody"])
            await tab.until(f'{shown}.includes("3 publications since the start")')
            row = '[...document.querySelectorAll("#topics tbody tr")].map(it => it.innerText).join()'
            assert "com.example.\t" in (await tab.evaluate(row)).replace("\n", "")
            assert "prefix\tshop\t3" in await tab.evaluate(row)
            for price in range(4):
                await client.publish(TOPIC, [price])
            await tab.until(f'{row}.includes("prefix\\tshop\\t5")')
            text = await tab.evaluate(shown)
            assert "1 session: guest 1." in text
            assert await tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            assert tab.console == []

    with rc.serve("oracle", wamp=tmp_path / "router.toml") as chains:
        chains.new_block(2)
        asyncio.run(look(chains))
