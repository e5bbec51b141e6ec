"""``rc.serve(...)``: a server in a thread of this process, for tests and notebooks.

>>> with serve("oracle") as chains:
...     chains.new_block(), chains.call("chain_getHeader")["number"]
(1, '0x1')
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Any, TypeVar

import msgspec

from relaycast.refusal import BadInput
from relaycast.serve.access import Access
from relaycast.serve.faces import Faces
from relaycast.serve.gateway_face import icrc_settings, open_gateway, router_config
from relaycast.serve.kept_chains import keeping
from relaycast.serve.network import LivingNetwork, living
from relaycast.serve.server import Server
from relaycast_gateway.gateway import Gateway
from relaycast_node.rpc.rpc_error import RpcError
from relaycast_node.rpc.session import RpcSession

T = TypeVar("T")


class ServedNetwork:
    """Chains that are served: their URLs, and a hand on the clock."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop

    @property
    def url(self) -> str:
        """The relay chain as a WebSocket."""
        return self._server.url("ws")

    @property
    def http_url(self) -> str:
        """The relay chain by POST; in a browser the live page."""
        return self._server.url("http")

    @property
    def wamp_url(self) -> str:
        """The WAMP router as a WebSocket."""
        return f"{self._server.url('ws')}/wamp"

    @property
    def rawsocket_url(self) -> str:
        """The WAMP router as a RawSocket; ``ValueError`` where none is served."""
        if self._server.rawsocket_port is None:
            raise ValueError("there is no RawSocket: give rawsocket_port")
        return f"tcp://{self._server.address.rpartition(':')[0]}:{self._server.rawsocket_port}"

    @property
    def parachains(self) -> list[int]:
        """The ids of the parachains."""
        return sorted(self._server.clock.parachains)

    def parachain_url(self, para_id: int) -> str:
        """Return the URL of a parachain as a WebSocket; ``ValueError`` where there is none."""
        if para_id not in self._server.clock.parachains:
            raise ValueError(f"there is no parachain {para_id}, only {', '.join(map(str, self.parachains))}")
        return self._server.url("ws", para_id)

    def new_block(self, count: int = 1) -> int:
        """Build relay blocks, and parachain blocks with them; return the relay chain's new height."""
        self.call("dev_newBlock", count)
        return int(self._in_loop(lambda: self._server.clock.relay.best.header.number))

    def call(self, method: str, *params: Any, para_id: int | None = None) -> Any:
        """Call a method of the relay chain, or of a parachain, and return its result; raises ``RpcError``."""
        rpc = self._server.node.relay if para_id is None else self._server.node.parachain(para_id)
        if rpc is None:
            raise ValueError(f"there is no parachain {para_id}, only {', '.join(map(str, self.parachains))}")
        request = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = msgspec.json.decode(self._await(rpc.answer(request, RpcSession(subscribes=False))) or b"{}")
        if "error" in answer:
            error = answer["error"]
            raise RpcError(error["code"], error["message"], error.get("data"))
        return answer["result"]

    def _in_loop(self, work: Callable[[], T]) -> T:
        async def run() -> T:
            return work()

        return self._await(run())

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def __repr__(self) -> str:
        return f"<ServedNetwork at {self.url}>"


@contextmanager
def serve(
    scenario: str | PathLike[str] = "oracle",
    *,
    block_time: str = "manual",
    keep: str = "",
    host: str = "127.0.0.1",
    port: int = 0,
    data: str | PathLike[str] | None = None,
    accept_loss: bool = False,
    allow_sink: Iterable[str] = (),
    history: Iterable[str] = (),
    wamp: str | PathLike[str] | None = None,
    rawsocket_port: int | None = None,
) -> Iterator[ServedNetwork]:
    """Serve a preset or a scenario file until the block ends; ``port`` 0 takes a free one.

    ``block_time`` is ``6s``, ``500ms``, ``manual`` (``new_block`` builds) or ``instant``. ``keep`` is how many blocks
    each chain keeps, or ``all``. ``data`` is a folder that keeps chains, events and subscriptions for the next start;
    with ``accept_loss`` they continue at the end of its journal even if its event log has later blocks or was lost.
    ``allow_sink`` names hosts of this machine or its network that events may be
    sent to. ``history`` are topics whose WAMP publications are kept, ``wamp`` is the router's TOML file, and
    ``rawsocket_port`` opens a RawSocket. ``ValueError`` for what cannot be served.
    """
    try:
        config = router_config(None if wamp is None else fspath(wamp), history, Access())
        network = living(fspath(scenario), block_time, keep=keep)
        folder = None if data is None else fspath(data)
        gateway = open_gateway(network, folder, allow_sink, config, icrc_settings(), accept_loss=accept_loss)
    except BadInput as error:
        raise ValueError(str(error)) from None
    with serving(
        network,
        host=host,
        port=port,
        gateway=gateway,
        rawsocket_port=rawsocket_port,
        data=folder,
        accept_loss=accept_loss,
    ) as served:
        yield served


@contextmanager
def serving(
    network: LivingNetwork,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    gateway: Gateway | None = None,
    rawsocket_port: int | None = None,
    access: Access | None = None,
    faces: Faces | None = None,
    data: str | None = None,
    accept_loss: bool = False,
) -> Iterator[ServedNetwork]:
    """Serve a network that lives already, until the block ends; its chains go on where those in ``data`` were."""
    server = Server(
        network.clock,
        title=network.title,
        key_names=network.key_names,
        access=access or Access(),
        gateway=gateway,
        faces=faces,
    )
    try:
        with keeping(network, data, gateway, accept_loss=accept_loss), _in_a_thread() as loop:
            try:
                asyncio.run_coroutine_threadsafe(server.start(host, port, rawsocket_port=rawsocket_port), loop).result()
                yield ServedNetwork(server, loop)
            finally:
                asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    except BadInput as error:
        raise ValueError(str(error)) from None


@contextmanager
def _in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Give an event loop that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(loop,), name="relaycast serve", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
