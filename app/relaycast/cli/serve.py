"""``relaycast serve``: the chains of a scenario live, and real clients connect to them."""

import asyncio
import signal
import time
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.refusal import BadInput
from relaycast.terminal import counted

if TYPE_CHECKING:
    import ssl

    from relaycast.serve.server import Server
    from relaycast_gateway.gateway import Gateway

PORT = 9_944
"""Where a Substrate node listens."""

MOST_FINALITY = 256
"""Number of newest blocks whose states can be proven from; it includes all that are not final."""

Host = Annotated[str, Parameter(name="--host", help="address to listen on; others than loopback need --token-file")]
Port = Annotated[int, Parameter(name="--port", help="port to listen on, 0 for any free one")]
BlockTime = Annotated[
    str, Parameter(name="--block-time", help="time between blocks: 6s, 500ms; manual, or instant; else the scenario's")
]
Finality = Annotated[
    int | None,
    Parameter(name="--finality", help="blocks on top of a block that make it final, 0 for at once; by default 2"),
]
Keep = Annotated[
    str,
    Parameter(
        name="--keep", help="newest blocks of each chain that are kept with their states, or all; by default 4096"
    ),
]
TokenFile = Annotated[
    str | None,
    Parameter(
        name="--token-file",
        help="file with bearer tokens, one on a line, behind it name=NAME, role=user where it is no admin's, and "
        "principal=TEXT for canisters: every request needs one",
    ),
]
AllowHost = Annotated[
    list[str] | None, Parameter(name="--allow-host", help="a name that clients reach this server by, beside localhost")
]
AllowOrigin = Annotated[
    list[str] | None, Parameter(name="--allow-origin", help="a web page that may connect, such as https://example.org")
]
BehindProxy = Annotated[bool, Parameter(name="--behind-proxy", help="a proxy in front of this server speaks TLS")]
TlsCert = Annotated[str | None, Parameter(name="--tls-cert", help="certificate in PEM, to speak TLS here")]
TlsKey = Annotated[str | None, Parameter(name="--tls-key", help="the key of the certificate")]
Face = Annotated[
    str,
    Parameter(
        name="--face", help="what is offered: node, cloudevents, wamp, icrc, with commas between; or all (default)"
    ),
]
Data = Annotated[
    str | None,
    Parameter(
        name="--data",
        help="folder that keeps chains, events, subscriptions and deliveries: the next start goes on from there",
    ),
]
AcceptLoss = Annotated[
    bool,
    Parameter(
        name="--accept-loss",
        help="continue at the end of the journal of --data even if its event log has later blocks or was lost",
    ),
]
History = Annotated[
    list[str] | None,
    Parameter(
        name="--history",
        help="a topic whose WAMP publications are kept as events; com.example. with a dot at the end for all below it, "
        "com..price for any component; may be given several times",
    ),
]
RouterFile = Annotated[
    str | None,
    Parameter(name="--wamp", help="a TOML file with the WAMP router's realms, roles, users, history and limits"),
]
RawSocketPort = Annotated[
    int | None, Parameter(name="--rawsocket-port", help="port for WAMP over RawSocket, 0 for any free one; else none")
]
AllowSink = Annotated[
    list[str] | None,
    Parameter(
        name="--allow-sink",
        help="HOST, HOST:PORT or a network: events may go there although it is this machine or a private address",
    ),
]
Dialect = Annotated[
    Literal["all", "legacy", "new"],
    Parameter(
        name="--dialect",
        help="JSON-RPC methods: those of the legacy interface, of the new one (chainHead_v1, archive_v1, ...), or all",
    ),
]
RateLimit = Annotated[
    int | None,
    Parameter(name="--rate-limit", help="requests a second of each token, else of each address; by default 20000"),
]


def serve(
    scenario: Annotated[str, Parameter(help="the name of a preset, or a scenario file")] = "oracle",
    /,
    *,
    host: Host = "127.0.0.1",
    port: Port = PORT,
    block_time: BlockTime = "",
    finality: Finality = None,
    keep: Keep = "",
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    behind_proxy: BehindProxy = False,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    face: Face = "",
    data: Data = None,
    accept_loss: AcceptLoss = False,
    allow_sink: AllowSink = None,
    rate_limit: RateLimit = None,
    dialect: Dialect = "all",
    history: History = None,
    wamp: RouterFile = None,
    rawsocket_port: RawSocketPort = None,
) -> ExitCode:
    """Serve the chains of a scenario: polkadot.js, PAPI and the Python clients connect as to a Substrate node.

    The relay chain is at /, each parachain at /para/ID, as WebSocket and by POST; in a browser / is a live page. Only
    this machine is let in unless a token file is given. Ctrl-C stops the server.

    What the chains tell is pushed to your systems as CloudEvents: see relaycast subscribe, /subscriptions, /services.
    WAMP clients find it under topics at /wamp, with its history: see relaycast history. Canisters of ICRC-72 notify
    subscribers of it, and take publications, at /icrc: see relaycast icrc.

    Example: relaycast serve oracle --block-time 500ms

    Example: relaycast serve oracle --data feed --allow-sink localhost:8080

    Example: relaycast serve oracle --history com.example. --rawsocket-port 8081

    Example: relaycast serve scenario.toml --port 9000 --block-time manual
    """
    from relaycast.serve.access import access_for  # noqa: PLC0415
    from relaycast.serve.faces import Faces  # noqa: PLC0415
    from relaycast.serve.gateway_face import icrc_settings, open_gateway, router_config  # noqa: PLC0415
    from relaycast.serve.kept_chains import keeping  # noqa: PLC0415
    from relaycast.serve.network import living  # noqa: PLC0415
    from relaycast.serve.request_log import limited_log  # noqa: PLC0415
    from relaycast.serve.request_rates import REQUESTS_A_SECOND, RequestRates  # noqa: PLC0415
    from relaycast.serve.server import Server, ensure_closed, tls_of  # noqa: PLC0415

    _ensure_numbers(port, rawsocket_port, rate_limit, finality)
    access = access_for(allow_host or (), allow_origin or (), token_file)
    tls = tls_of(tls_cert, tls_key)
    ensure_closed(host, has_tokens=bool(access.tokens), is_secure=behind_proxy or tls is not None)
    faces = Faces.named(face)
    faces.ensure_used("--allow-sink", allow_sink, faces.cloudevents or faces.icrc, "cloudevents or icrc")
    for option, given in (("--history", history), ("--wamp", wamp), ("--rawsocket-port", rawsocket_port)):
        faces.ensure_used(option, given, faces.wamp, "wamp")
    config = router_config(wamp, history or (), access) if faces.wamp else None
    network = living(scenario, block_time, finality=finality, keep=keep)
    canisters = icrc_settings() if faces.icrc else None
    gateway = None
    if faces.has_gateway or data is not None:
        gateway = open_gateway(network, data, allow_sink or (), config, canisters, access, accept_loss=accept_loss)
    server = Server(
        network.clock,
        title=network.title,
        key_names=network.key_names,
        access=access,
        gateway=gateway if faces.has_gateway else None,
        faces=faces,
        rates=RequestRates(REQUESTS_A_SECOND if rate_limit is None else rate_limit),
        dialect=dialect,
    )
    with limited_log(), keeping(network, data, gateway, progress=_Again(), accept_loss=accept_loss):
        _tell_kept(network.clock.relay.best.number, gateway if data else None)
        asyncio.run(_run(server, host, port, rawsocket_port, tls))
    print("stopped", flush=True)
    return ExitCode.FINE


def _ensure_numbers(port: int, rawsocket_port: int | None, rate_limit: int | None, finality: int | None) -> None:
    from relaycast.serve.server import ensure_port  # noqa: PLC0415

    for option, number in (("--port", port), ("--rawsocket-port", rawsocket_port or 0)):
        ensure_port(option, number)
    if rate_limit is not None and rate_limit < 1:
        raise BadInput("--rate-limit", str(rate_limit), "at least 1")
    if finality is not None and not 0 <= finality <= MOST_FINALITY:
        raise BadInput("--finality", str(finality), f"a number of blocks from 0 to {MOST_FINALITY}")


async def _run(
    server: "Server", host: str, port: int, rawsocket_port: int | None, tls: "ssl.SSLContext | None"
) -> None:
    from relaycast.gc_policy import OBJECTS_OF_A_SERVER, collect_seldom  # noqa: PLC0415
    from relaycast_gateway.listener import raise_file_limit  # noqa: PLC0415
    from relaycast_trie.engine import load_aside  # noqa: PLC0415

    raise_file_limit()
    load_aside()
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    try:
        await server.start(host, port, tls=tls, rawsocket_port=rawsocket_port)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, asked.set)
        collect_seldom(OBJECTS_OF_A_SERVER)
        _tell(server)
        waiting = {asyncio.create_task(asked.wait()), asyncio.create_task(server.wait())}
        done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        for task in done:
            task.result()
    finally:
        await server.stop()


class _Again:
    """Says once a second how far the chains are that are built again; nothing where that takes less."""

    def __init__(self) -> None:
        self._due = time.monotonic() + 1.0

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + 1.0
            print(f"building kept blocks again: {done:,} of {total:,}", flush=True)


def _tell_kept(number: int, gateway: "Gateway | None") -> None:
    if gateway is None:
        return
    kept = counted(len(gateway.book), "subscription")
    events = gateway.log.last_seq + 1 - gateway.log.history_start
    print(f"kept: {counted(events, 'event')} and {kept}; the chains go on at relay block {number:,}")


def _tell(server: "Server") -> None:
    from relaycast_node.block_time import block_time_text  # noqa: PLC0415

    lines = server.lines()
    width = max(len(line.url) for line in lines)
    for line in lines:
        print(f"{line.url:<{width}}  {line.what}: {line.use}")
    known = server.clock.chains.relay_chain.state.top
    if known.gaps:
        keys = counted(len(known.values), "known key")
        print(f"relay chain: a witness with {keys}, on plain tries; what it does not show is an error by name")
    pace = block_time_text(server.clock.block_time)
    when = {"manual": "blocks on demand (dev_newBlock)", "instant": "a block for each extrinsic"}
    parachains = counted(len(server.clock.parachains), "parachain")
    print(f"ready: a relay chain and {parachains}, {when.get(pace, f'a block every {pace}')}; Ctrl-C stops", flush=True)
