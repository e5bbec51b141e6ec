"""The server: one application on one port, and the clock of the chains beside it, in one event loop."""

import asyncio
import errno
import socket as sockets
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from relaycast.refusal import BadInput, shown
from relaycast.serve.access import Access, is_loopback
from relaycast.serve.application import Application
from relaycast.serve.faces import Faces
from relaycast.serve.live_feed import KeyNames, LiveFeed
from relaycast.serve.refused_blocks import RefusedBlocks
from relaycast.serve.request_log import REQUEST_LOG
from relaycast.serve.request_rates import RequestRates
from relaycast.serve.usage import (
    ServedAt,
    UsageLine,
    chain_lines,
    icrc_lines,
    page_line,
    subscription_lines,
    wamp_lines,
)
from relaycast.version import __version__
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.listener import ConnectionGate, Listener
from relaycast_node.rpc.chain_protocols import ClockFace
from relaycast_node.rpc.node_face import NodeFace

if TYPE_CHECKING:
    from relaycast_gateway.wamp.rawsocket import RawSocketServer

CLOSING_SECONDS = 2.0
"""How long requests that are under way have when the server stops."""

KEEP_ALIVE_SECONDS = 75.0
"""Time for the next request on a connection, longer than proxies keep one; the gate limits the first."""

MOST_PORT = 65_535

CERTIFICATE, PRIVATE_KEY = b"CERTIFICATE-----", b"PRIVATE KEY-----"
"""Ends of the first lines of PEM, of every kind of certificate and key."""


class Server:
    """Serves ``clock`` on one address; ``start`` and ``stop`` belong to one event loop."""

    def __init__(
        self,
        clock: ClockFace,
        *,
        title: str,
        key_names: KeyNames,
        access: Access,
        gateway: Gateway | None = None,
        faces: Faces | None = None,
        rates: RequestRates | None = None,
        dialect: str = "all",
        gate: ConnectionGate | None = None,
    ) -> None:
        has_router = gateway is not None and gateway.router is not None
        has_canisters = gateway is not None and gateway.icrc is not None
        self.faces = faces or Faces(cloudevents=gateway is not None, wamp=has_router, icrc=has_canisters)
        self.clock = clock
        self.access = access
        self.node = NodeFace(clock, version=__version__, dialect=dialect)
        self._dialect = dialect
        self.gateway = gateway
        self.rates = RequestRates() if rates is None else rates
        self.feed = LiveFeed(
            clock, title=title, key_names=key_names, gateway=gateway, faces=self.faces, dialect=dialect
        )
        connections = None if gateway is None else gateway.connections
        self.gate = gate or (ConnectionGate() if connections is None else connections.gate)
        node = self.node if self.faces.node else None
        self.application = Application(
            node, self.feed, access, gateway, self.faces, rates=self.rates, admit=self.gate.admit
        )
        self.host, self.port, self.is_secure = "", 0, False
        self.rawsocket_port: int | None = None
        self._rawsocket: RawSocketServer | None = None
        self._runner: web.AppRunner | None = None
        self._listener: Listener | None = None
        self._ticking: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Host and port, as they stand in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, scheme: str, para_id: int | None = None) -> str:
        """Return the URL of a chain: ``ws`` or ``http``."""
        path = "" if para_id is None else f"/para/{para_id}"
        return f"{scheme}{'s' if self.is_secure else ''}://{self.address}{path}"

    def lines(self) -> list[UsageLine]:
        """Return each URL with a line that shows how to use it."""
        names = {para_id: chain.name for para_id, chain in sorted(self.clock.parachains.items())}
        place = ServedAt(self.address, has_tokens=bool(self.access.tokens), is_secure=self.is_secure)
        relay = self.clock.relay.name
        lines = chain_lines(place, relay, names, dialect=self._dialect) if self.faces.node else []
        if self.gateway is not None and self.faces.cloudevents:
            lines += subscription_lines(place, self.gateway.allowed_sinks)
        if self.gateway is not None and self.gateway.router is not None:
            lines += wamp_lines(place, self.gateway.router.config.realms[0], self.rawsocket_port)
        if self.gateway is not None and self.gateway.icrc is not None:
            lines += icrc_lines(place, self.gateway.chain_prefix, self.gateway.allowed_sinks)
        return [*lines, page_line(place)]

    async def start(
        self, host: str, port: int, *, tls: ssl.SSLContext | None = None, rawsocket_port: int | None = None
    ) -> None:
        """Listen and let the clock run; raises ``BadInput`` where nobody can listen."""
        runner = web.AppRunner(
            self.application.make(),
            access_log=None,
            logger=REQUEST_LOG,
            shutdown_timeout=CLOSING_SECONDS,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            handle_signals=False,
            auto_decompress=False,  # a small body may expand to gigabytes
        )
        await runner.setup()
        assert runner.server is not None
        listener = Listener(self.gate, runner.server, tls)
        try:
            await listener.start(host, port)
        except OSError as error:
            await runner.cleanup()
            raise _cannot_listen(error, host, "--port", port) from None
        except OverflowError:
            await runner.cleanup()
            raise _bad_port("--port", port) from None
        self._runner, self._listener = runner, listener
        self.host, self.port, self.is_secure = host, listener.port, tls is not None
        if self.gateway is not None:
            await self.gateway.start()
            if rawsocket_port is not None:
                await self._start_rawsocket(self.gateway, rawsocket_port, tls)
        self.clock.facts.connect(RefusedBlocks().on_fact)
        self._ticking = asyncio.create_task(self.clock.run())

    async def _start_rawsocket(self, gateway: Gateway, port: int, tls: ssl.SSLContext | None) -> None:
        from relaycast_gateway.wamp.rawsocket import RawSocketServer  # noqa: PLC0415 - only where it is asked for

        assert gateway.connections is not None
        server = RawSocketServer(gateway.connections)
        try:
            await server.start(self.host, port, tls)
        except OSError as error:
            raise _cannot_listen(error, self.host, "--rawsocket-port", port) from None
        self._rawsocket, self.rawsocket_port = server, server.port

    async def wait(self) -> None:
        """Return when the clock ends; it only does so by an error, which is raised."""
        assert self._ticking is not None
        await asyncio.shield(self._ticking)

    async def stop(self) -> None:
        """Stop the clock, end all connections, close the port; deliveries end or are kept for the next start.

        All of it is done even if a step fails; the failure is raised at the end. That of the clock is raised only by
        ``wait``.
        """
        async with AsyncExitStack() as closing:  # the last callback comes first
            if self.gateway is not None:
                closing.push_async_callback(self.gateway.stop)
            if self._runner is not None:
                closing.push_async_callback(self._runner.cleanup)
            if self._rawsocket is not None:
                closing.push_async_callback(self._rawsocket.stop)
            if self.gateway is not None and self.gateway.router is not None:
                closing.push_async_callback(self.gateway.router.stop)  # its sessions end before their connections do
            if self._listener is not None:
                closing.callback(self._listener.close)
            if self._ticking is not None:
                self._ticking.cancel()
                await asyncio.wait({self._ticking})


def ensure_closed(host: str, *, has_tokens: bool, is_secure: bool) -> None:
    """Raise ``BadInput`` where strangers could reach a server that is open to all, or read what goes over the wire."""
    if is_loopback(host):
        return
    if not has_tokens:
        raise BadInput("--host", f"{host}, which others can reach", "127.0.0.1, or a --token-file")
    if not is_secure:
        expected = "--tls-cert and --tls-key, or --behind-proxy for a proxy that speaks TLS in front"
        raise BadInput("--host", f"{host}, which others can reach", expected)


def tls_of(cert: str | None, key: str | None) -> ssl.SSLContext | None:
    """Return what TLS needs, ``None`` without a certificate; raises ``BadInput``."""
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise BadInput("--tls-cert", "one of --tls-cert and --tls-key", "both")
    _ensure_pem("--tls-cert", cert, CERTIFICATE, "a certificate in PEM", PRIVATE_KEY, "a private key")
    _ensure_pem("--tls-key", key, PRIVATE_KEY, "a private key in PEM", CERTIFICATE, "a certificate")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key, password=_no_passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadInput(f"--tls-key {key}", "the key of another certificate", f"the one of {cert}") from None
        got = f"PEM that does not parse, there or in {key}"
        raise BadInput(f"--tls-cert {cert}", got, "a certificate and its key in PEM") from None
    except _Encrypted:
        raise BadInput(f"--tls-key {key}", "an encrypted key", "one without a passphrase") from None
    return context


class _Encrypted(Exception):
    """A key that needs a passphrase."""


def _no_passphrase() -> str:
    raise _Encrypted  # else OpenSSL asks at the terminal


def _ensure_pem(option: str, file: str, mark: bytes, expected: str, other_mark: bytes, other: str) -> None:
    """Raise ``BadInput`` if a file has no PEM block with this ``mark``."""
    try:
        held = Path(file).read_bytes()
    except OSError as error:
        raise BadInput(f"{option} {file}", (error.strerror or str(error)).lower(), expected) from None
    if mark in held:
        return
    hint = "are --tls-cert and --tls-key swapped?" if other_mark in held else ""
    raise BadInput(f"{option} {file}", other if hint else "a file without one", expected, hint)


def ensure_port(option: str, port: int) -> None:
    """Raise ``BadInput`` for a number that no port has."""
    if not 0 <= port <= MOST_PORT:
        raise _bad_port(option, port)


def _bad_port(option: str, port: int) -> BadInput:
    return BadInput(option, str(port), f"a number from 0 (any free port) to {MOST_PORT}")


def _cannot_listen(error: OSError, host: str, option: str, port: int) -> BadInput:
    if isinstance(error, sockets.gaierror):
        return BadInput("--host", shown(host), "a name or an address of this machine")
    if error.errno == errno.EADDRINUSE:
        return BadInput(option, f"{port}, which is in use", "a free port, or 0 for any")
    if error.errno == errno.EADDRNOTAVAIL:
        return BadInput("--host", shown(host), "an address of this machine")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return BadInput(option, f"{port}, which this user may not open", "a port from 1024 on")
    return BadInput("--host", f"{host}:{port}: {error.strerror or error}", "an address to listen on")
