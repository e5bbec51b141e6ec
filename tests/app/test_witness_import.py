"""``relaycast import rpc``: nodes that lie, prune, limit or hang up end in one line, or are waited for."""

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSCloseCode, web

from command_line import Command, Refused
from relaycast import node_client
from relaycast.genesis import witness_fetch
from relaycast.genesis.state_export import read_state
from relaycast.genesis.witness_keys import Wanted, wanted_by
from relaycast.node_client import NodeClient, NodeRefused, TooBig
from relaycast.refusal import BadInput
from relaycast.serve.in_process import ServedNetwork, serve
from relaycast.serve.network import living
from relaycast_node.chain_clock import ChainClock
from witness_scenes import fetched, kept, refused_import

PROOF = "state_getReadProof"


@pytest.fixture(scope="module")
def live() -> ChainClock:
    network = living("oracle", "manual").clock
    network.new_block(4)
    return network


def changed(nodes: Callable[[list[str]], object], method: str = PROOF) -> Callable[[str, Any], Any]:
    """Return a lie about the nodes of a proof."""
    return lambda asked, answer: {**answer, "proof": nodes(answer["proof"])} if asked == method else answer


def flipped(node: str) -> str:
    return f"{node[:-1]}{int(node[-1], 16) ^ 1:x}"


LIES = {
    "a changed node": (changed(lambda nodes: [flipped(nodes[0]), *nodes[1:]]), "a proof without node 0x"),
    "a lost node": (changed(lambda nodes: nodes[1:]), "a proof without node 0x"),
    "no nodes": (changed(lambda _: []), "a proof without node 0x"),
    "a further node": (changed(lambda nodes: [*nodes, "0x00"]), "got a node with the hash 0x"),
    "no hex": (changed(lambda nodes: ["0xzz", *nodes]), "proof[0]: got '0xzz'"),
    "no list": (changed(lambda _: "0x"), "expected an object with a list of nodes as proof"),
    "no answer": (lambda asked, answer: None if asked == PROOF else answer, "got null"),
    "a lost node below": (changed(lambda _: [], "state_getChildReadProof"), "state_getChildReadProof: got"),
    "another header": (
        lambda asked, answer: {**answer, "number": "0x1"} if asked == "chain_getHeader" else answer,
        "a header with the hash 0x",
    ),
    "no header": (lambda asked, answer: None if asked == "chain_getHeader" else answer, "no block"),
    "half a header": (lambda asked, answer: {"number": "0x1"} if asked == "chain_getHeader" else answer, "got no '"),
    "no hash": (lambda asked, answer: "0x00" if asked == "chain_getBlockHash" else answer, "no block 4"),
    "no block": (lambda asked, answer: None if asked == "chain_getBlockHash" else answer, "no block 4"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_node_that_lies_is_refused_in_one_line(live: ChainClock, lie: str) -> None:
    assert LIES[lie][1] in refused_import(live, LIES[lie][0])


def _refusing(method: str, code: int, message: str) -> Callable[[str, Any], Any]:
    def lie(asked: str, answer: Any) -> Any:
        if asked == method:
            raise NodeRefused(asked, code, message)
        return answer

    return lie


def test_a_node_that_discarded_the_state_is_refused_by_that(live: ChainClock) -> None:
    line = refused_import(live, _refusing(PROOF, 4003, "Client error: UnknownBlock: State already discarded for 0x12"))
    assert "got the state of block 4 discarded" in line
    assert "one of its newest 256 blocks, or a node that keeps all states" in line


def test_a_node_without_read_proofs_is_refused_by_that(live: ChainClock) -> None:
    assert "no method state_getReadProof" in refused_import(live, _refusing(PROOF, -32_601, "Method not found"))


def test_a_node_that_refuses_otherwise_is_quoted(live: ChainClock) -> None:
    assert "the error -1 'out of luck' for state_getReadProof" in refused_import(
        live, _refusing(PROOF, -1, "out of luck")
    )


@pytest.mark.parametrize("error", [NodeRefused(PROOF, -32_008, "Response is too big"), TooBig(PROOF, "status 413")])
def test_an_answer_that_is_too_big_is_asked_for_in_parts(live: ChainClock, error: NodeRefused) -> None:
    turns = iter(range(3))

    def lie(asked: str, answer: Any) -> Any:
        if asked == PROOF and next(turns, None) is not None:
            raise error
        return answer

    assert fetched(live, lie=lie).witness == fetched(live).witness


def test_one_key_whose_proof_is_too_big_is_asked_for_once(live: ChainClock) -> None:
    asked_for: list[str] = []

    def lie(asked: str, answer: Any) -> Any:
        if asked == PROOF:
            asked_for.append(asked)
            raise TooBig(asked, "a message too big (close code 1009)")
        return answer

    with pytest.raises(BadInput, match="got a message too big \\(close code 1009\\) for state_getReadProof, expected"):
        fetched(live, Wanted(frozenset({b"one"})), lie=lie)
    assert len(asked_for) == 1


def test_the_same_state_gives_the_same_file_whatever_is_asked_at_a_time(
    live: ChainClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fetched(live).encode()
    monkeypatch.setattr(witness_fetch, "KEYS_AT_A_TIME", 3)
    assert fetched(live).encode() == whole


def test_wanted_keys_prefixes_and_children_are_known(live: ChainClock) -> None:
    wanted = wanted_by([2000, 3000], keys=[b"anything"])
    found = fetched(live, wanted)
    for key in wanted.keys:
        found.top.gaps.check(key)
    for prefix in wanted.prefixes:
        found.top.gaps.check_prefix(prefix)
    assert not found.top.gaps.lone
    assert set(found.children) == {info.storage_key for info in wanted.children if info.storage_key in found.children}
    assert not found.children[b"pubsub\xd0\x07\x00\x00"].gaps


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"witness": 2}, "at .witness: got 2"),
        ({"nodes": None}, "at .nodes: got null"),
        ({"nodes": ["0x00"]}, "at .nodes: got a node with the hash 0x"),
        ({"stateRoot": "0x"}, "at .stateRoot"),
        ({"hash": 1}, "at .hash"),
        ({"chain": 1}, "at .chain"),
        ({"number": -1}, "at .number"),
        ({"stateVersion": 7}, "at .stateVersion"),
    ],
)
def test_a_file_that_is_no_witness_is_refused_by_its_place(
    live: ChainClock, tmp_path: Path, change: dict[str, object], told: str
) -> None:
    content = json.loads(gzip.decompress(fetched(live).encode()))
    (tmp_path / "w.json").write_text(json.dumps({**content, **change}))
    with pytest.raises(BadInput) as refused:
        read_state(str(tmp_path / "w.json"))
    assert told in str(refused.value)


def test_a_witness_file_is_read_as_it_was_written(live: ChainClock, tmp_path: Path) -> None:
    found = fetched(live)
    state = read_state(kept(found, tmp_path))
    assert state.witness == found.witness
    assert state.state_root() == live.relay.best.header.state_root


@pytest.fixture(scope="module")
def served() -> Iterator[ServedNetwork]:
    with serve("oracle", block_time="manual") as chains:
        chains.new_block(4)
        yield chains


@pytest.mark.parametrize("scheme", ["http_url", "url"])
def test_a_fork_is_imported_and_run(served: ServedNetwork, relaycast: Command, scheme: str) -> None:
    told = relaycast("import", "rpc", getattr(served, scheme), "--out", "f.witness.json.gz", "--at", "4", "--json").json
    assert told["name"] == "oracle relay at block 4"
    assert "entries" not in told
    state = relaycast("import", "state", "f.witness.json.gz", "--json").json
    assert state["entries"] == told["values"] - told["children"]
    run = relaycast("run", "oracle", "--genesis", "f.witness.json.gz", "--blocks", "3", "--json").json
    assert run["relaychain"]["genesis_root"] == told["state_root"]


def test_keys_accounts_and_parachains_are_added(served: ServedNetwork, relaycast: Command) -> None:
    alice = "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
    options = ["--para-id", "7", "--key", "0x1234", "--keys", "0x5678", "--account", alice]
    shown = relaycast("import", "rpc", served.http_url, "--out", "g.witness.json.gz", *options).out
    assert "state_root  0x" in shown
    assert "file        g.witness.json.gz" in shown


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--out", "f.json"], "ends in .witness.json.gz"),
        (["--out", "f.witness.json.gz", "--at", "1e3"], "--at"),
        (["--out", "f.witness.json.gz", "--at", "0x12"], "--at"),
        (["--out", "f.witness.json.gz", "--at", "99"], "no block 99"),
        (["--out", "f.witness.json.gz", "--key", "12"], "--key"),
        (["--out", "f.witness.json.gz", "--account", "Alice"], "--account"),
        (["--out", "f.witness.json.gz", "--para-id", "-1"], "--para-id"),
        (["--out", "f.witness.json.gz", "--scenario", "orakel"], "oracle"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_writes_nothing(
    served: ServedNetwork, refused: Refused, options: list[str], told: str
) -> None:
    assert told in refused("import", "rpc", served.http_url, *options)


@pytest.mark.parametrize(
    "url", ["ftp://node", "http://127.0.0.1:9", "ws://127.0.0.1:9", "http://...", "http://[", "ws://["]
)
def test_a_node_that_is_not_there_is_refused_at_once(refused: Refused, url: str) -> None:
    assert refused("import", "rpc", url, "--out", "f.witness.json.gz")


class Weather:
    """A node in front of which it storms: ``storms`` of one kind come before each answer."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.kind = ""
        self.left = 0

    async def post(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        if self.left:
            self.left -= 1
            statuses = {"429": 429, "503": 503, "date": 503, "413": 413}
            if self.kind in statuses:
                later = formatdate(time.time() + 900, usegmt=True)
                after = {"429": {"Retry-After": "1"}, "date": {"Retry-After": later}}.get(self.kind, {})
                return web.Response(status=statuses[self.kind], headers=after)
            if self.kind == "large":
                return web.Response(text="a" * 5_000)
            if self.kind == "lost":
                assert request.transport is not None
                request.transport.close()
                return web.Response()
            code = {"rate": -32_999, "words": [-1]}[self.kind]
            error = {"code": code, "message": "Too many requests"}
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "error": error})
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": body["method"]})

    async def socket(self, request: web.Request) -> web.StreamResponse:
        if self.left and self.kind in {"429", "503", "date"}:
            return await self.post(request)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            body = json.loads(message.data)
            if self.left:
                self.left -= 1
                if self.kind == "1009":
                    await socket.close(code=WSCloseCode.MESSAGE_TOO_BIG)
                elif self.kind == "large":
                    await socket.send_str("a" * 5_000)
                    await socket.receive()
                break
            await socket.send_json({"jsonrpc": "2.0", "method": "told", "params": {}})
            await socket.send_json({"jsonrpc": "2.0", "id": body["id"], "result": body["method"]})
        await socket.close()
        return socket


@pytest.fixture(scope="module")
def weather() -> Iterator[Weather]:
    begun: Future[tuple[int, Callable[[], object]]] = Future()
    found = Weather("")

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/", found.post)
        app.router.add_get("/", found.socket)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        begun.set_result((runner.addresses[0][1], lambda: loop.call_soon_threadsafe(ended.set)))
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    port, end = begun.result(30)
    found.target = f"127.0.0.1:{port}"
    yield found
    end()
    thread.join()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(node_client, "LONGEST_WAIT", 0.002)


def asked(url: str, times: int) -> tuple[list[object], list[str]]:
    """Ask a node a few times, and return its answers and what was told of waiting."""
    told: list[str] = []

    async def ask() -> list[object]:
        async with NodeClient(url, told.append) as node:
            return [await node.ask(f"method{number}") for number in range(times)]

    return asyncio.run(ask()), told


@pytest.mark.parametrize("kind", ["429", "503", "lost", "rate", "words", "closed"])
def test_a_busy_node_is_waited_for_and_a_lost_connection_made_again(weather: Weather, kind: str) -> None:
    weather.kind, weather.left = kind, 3
    scheme = "ws" if kind == "closed" else "http"
    answers, told = asked(f"{scheme}://{weather.target}/", 3)
    assert answers == ["method0", "method1", "method2"]
    assert len(told) == 3
    assert all("asking again in 0.00" in line for line in told)


@pytest.mark.parametrize("kind", ["429", "lost", "closed"])
def test_a_node_is_not_waited_for_without_end(weather: Weather, kind: str) -> None:
    weather.kind, weather.left = kind, 1_000
    with pytest.raises(BadInput, match="for method0, 9 times in a row, expected a node that answers JSON-RPC"):
        asked(f"{'ws' if kind == 'closed' else 'http'}://{weather.target}/", 1)
    weather.left = 0


@pytest.mark.parametrize(
    ("scheme", "kind", "told"),
    [
        ("ws", "1009", "a message too big (close code 1009) for method0"),
        ("ws", "large", "an answer of more than 4,000 bytes for method0"),
        ("http", "large", "an answer of more than 4,000 bytes for method0"),
        ("http", "413", "status 413 for method0"),
    ],
)
def test_a_message_that_is_too_big_is_refused_once_and_says_so(
    weather: Weather, monkeypatch: pytest.MonkeyPatch, scheme: str, kind: str, told: str
) -> None:
    monkeypatch.setattr(node_client, "MOST_ANSWER_BYTES", 4_000)
    weather.kind, weather.left = kind, 1_000
    with pytest.raises(NodeRefused) as refused:
        asked(f"{scheme}://{weather.target}/", 1)
    assert refused.value.is_too_big
    assert str(refused.value) == told
    assert weather.left == 999
    weather.left = 0


@pytest.mark.parametrize(("scheme", "kind"), [("ws", "1009"), ("ws", "large"), ("http", "large"), ("http", "413")])
def test_a_node_goes_on_answering_after_a_message_that_was_too_big(
    weather: Weather, monkeypatch: pytest.MonkeyPatch, scheme: str, kind: str
) -> None:
    monkeypatch.setattr(node_client, "MOST_ANSWER_BYTES", 4_000)
    weather.kind, weather.left = kind, 1

    async def ask() -> object:
        async with NodeClient(f"{scheme}://{weather.target}/") as node:
            with pytest.raises(NodeRefused):
                await node.ask("first")
            return await node.ask("second")

    assert asyncio.run(ask()) == "second"


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize(("kind", "seconds"), [("429", 1.0), ("date", 30.0)])
def test_a_busy_node_is_left_alone_as_long_as_it_says(
    weather: Weather, monkeypatch: pytest.MonkeyPatch, scheme: str, kind: str, seconds: float
) -> None:
    monkeypatch.setattr(node_client, "LONGEST_WAIT", 30.0)
    weather.kind, weather.left = kind, 1
    waited: list[float] = []

    async def sleep(wait: float) -> None:
        waited.append(wait)

    async def ask() -> object:
        async with NodeClient(f"{scheme}://{weather.target}/", sleep=sleep) as node:
            return await node.ask("method")

    assert asyncio.run(ask()) == "method"
    assert waited == [seconds]
