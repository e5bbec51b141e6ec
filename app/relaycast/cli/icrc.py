"""``relaycast icrc``: call the canisters of a running server, and listen to events as a subscriber of ICRC-72."""

import asyncio
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.refusal import BadInput, nearest, plain, shown

if TYPE_CHECKING:
    from relaycast.serve.icrc_listener import Listening

SERVER = "http://127.0.0.1:9944"
ROLES = ("orchestrator", "broadcaster", "subscriber", "publisher")

Url = Annotated[str, Parameter(name="--url", help="the server, as its ready screen prints it")]
As = Annotated[
    str | None,
    Parameter(name="--as", help="who calls, where the server has no tokens: the text of a principal, or a name"),
]
TokenFile = Annotated[
    str | None, Parameter(name="--token-file", help="a file whose first line begins with your token for the server")
]
Canister = Annotated[
    str | None,
    Parameter(
        name="--canister",
        help="who is called: the text of a principal, orchestrator, broadcaster or archivist; else whose method it is",
    ),
]
Words = Annotated[
    str,
    Parameter(name="METHOD", help="the name of a method, and its argument in Candid; the server may come first"),
]
Namespace = Annotated[
    str, Parameter(name="NAMESPACE", help="a namespace such as com.example.feed, or a pattern such as com.example.*")
]
Filter = Annotated[
    str | None, Parameter(name="--filter", help='a CandyPath that selects events by their data, such as "$.ttl == 10"')
]
Skip = Annotated[str | None, Parameter(name="--skip", help="M or M,O: one event of M, that with the number O modulo M")]
Replay = Annotated[
    str | None, Parameter(name="--replay", help="FROM or FROM..TO: first the events with these ids, without TO itself")
]
Port = Annotated[int, Parameter(name="--port", help="port of this machine to be notified at, 0 for any free one")]
Role = Annotated[str, Parameter(name="ROLE", help="orchestrator, broadcaster, subscriber or publisher")]

app = App(name="icrc", help="Call the ICRC-72 canisters of a running server, and listen to their events.")


@app.command
def call(
    *words: Words,
    canister: Canister = None,
    as_: As = None,
    url: Url = SERVER,
    token_file: TokenFile = None,
) -> ExitCode:
    """Call a method of a canister and print its result as Candid text.

    Example: relaycast icrc call icrc72_get_publications '(record {})'

    Example: relaycast icrc call icrc72_get_broadcaster_stats
    """
    from relaycast.serve.icrc_client import IcrcClient, arguments_of, caller_named, method_named  # noqa: PLC0415

    given = list(words)
    if given and given[0].startswith(("http://", "https://")):
        url = given.pop(0)
    if not given:
        raise BadInput("METHOD", "none", "the name of a method, such as icrc72_get_publications")
    if len(given) > 2:
        raise BadInput("icrc call", f"{shown(given[2])} too", "one argument in Candid, in quotes")
    _ensure_one_caller(as_, token_file)
    method = method_named(given[0])
    values = arguments_of(method, given[1] if len(given) == 2 else "()")
    caller = None if as_ is None else caller_named("--as", as_)
    print(plain(IcrcClient(url, token_file, caller).call(method, values, canister)))
    return ExitCode.FINE


@app.command
def listen(
    namespace: Namespace,
    /,
    *,
    filter: Filter = None,  # noqa: A002 - the name of the option
    skip: Skip = None,
    replay: Replay = None,
    as_: As = None,
    port: Port = 0,
    url: Url = SERVER,
    token_file: TokenFile = None,
) -> ExitCode:
    """Subscribe to a namespace and print each event as one line of JSON, until Ctrl-C stops the subscription.

    The server calls back on this machine: start it with --allow-sink 127.0.0.1. Events that come between two runs with
    the same --as are not repeated: --replay asks for them. When the server restarts with its --data, it continues after
    the last event; without --data it subscribes again.

    Example: relaycast icrc listen io.relaycast.data.published --filter "$.publisher == 2000"

    Example: relaycast icrc listen com.example.* --skip 10 --as alice
    """
    from relaycast.serve.icrc_client import caller_named  # noqa: PLC0415
    from relaycast.serve.icrc_listener import listening  # noqa: PLC0415
    from relaycast.serve.server import ensure_port  # noqa: PLC0415
    from relaycast.serve.server_connection import token_in_file  # noqa: PLC0415

    ensure_port("--port", port)
    _ensure_one_caller(as_, token_file)
    asked = listening(namespace, filter, skip, replay)
    caller = None if as_ is None else caller_named("--as", as_)
    token = None if token_file is None else token_in_file(token_file)
    asyncio.run(_listen(asked, url.rstrip("/").removesuffix("/icrc"), caller, token, port))
    return ExitCode.FINE


@app.command
def did(role: Role = "orchestrator", /) -> ExitCode:
    """Print the interface of a role in Candid: its types and methods.

    Example: relaycast icrc did broadcaster
    """
    from relaycast_gateway.icrc.interface import CanisterRole, interface_text  # noqa: PLC0415

    if role not in ROLES:
        raise BadInput("ROLE", shown(role), f"one of {', '.join(ROLES)}", nearest(role, list(ROLES)))
    print(interface_text(CanisterRole(role)), end="")
    return ExitCode.FINE


def _ensure_one_caller(as_: str | None, token_file: str | None) -> None:
    if as_ is not None and token_file is not None:
        raise BadInput("--as", f"{shown(as_)} beside --token-file", "one of them: a token says who calls")


async def _listen(asked: "Listening", url: str, caller: bytes | None, token: str | None, port: int) -> None:
    from relaycast.serve.icrc_listener import listener  # noqa: PLC0415

    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    broken: list[BrokenPipeError] = []

    def print_line(line: str) -> None:
        try:
            print(line, flush=True)
        except BrokenPipeError as error:
            broken.append(error)
            stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    ended = asyncio.create_task(stopped.wait())
    try:
        while not stopped.is_set():
            async with listener(url, asked, print_line, caller=caller, token=token, port=port) as (said, forgotten):
                print(f"listening: {said}; Ctrl-C stops", file=sys.stderr, flush=True)
                await asyncio.wait({ended, forgotten}, return_when=asyncio.FIRST_COMPLETED)
            if not stopped.is_set():
                print("relaycast: the server no longer has the subscription: subscribing again", file=sys.stderr)
                asked = replace(asked, replay=None)
    finally:
        ended.cancel()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    if broken:
        raise broken[0]
