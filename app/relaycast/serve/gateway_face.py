"""The gateway as a face of the server: opened as a user asked for it, and told what the chains do."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from relaycast.refusal import BadInput, shown
from relaycast.serve.access import Access
from relaycast.serve.icrc_caller import principal_of_caller
from relaycast.serve.kept_chains import journal_in
from relaycast.serve.network import LivingNetwork
from relaycast.version import __version__
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.log import UnusableLog
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_ledger.exceptions import WorkFolderInUse

if TYPE_CHECKING:
    from relaycast_gateway.icrc_face import IcrcSettings
    from relaycast_gateway.wamp.router_config import RouterConfig

NS_AN_EVENT = 1_000
"""A log gets at most one event in this time, on average since 1970."""


def router_config(file: str | None, history: Iterable[str], access: Access) -> "RouterConfig":
    """Return how the WAMP router is set up: by a TOML file, else by default; raises ``BadInput``.

    The topics of ``history`` are kept in the first realm. The bearers of tokens are its users.
    """
    from relaycast_gateway.wamp.authentication import WampUser  # noqa: PLC0415 - only where the face is offered
    from relaycast_gateway.wamp.router_config import ADMIN, USER, RouterConfig  # noqa: PLC0415

    users = [
        WampUser.of_token(caller.name, ADMIN if caller.is_admin else USER, token.decode(), principal_of_caller(caller))
        for token, caller in access.callers.items()
    ]
    patterns = [_history_pattern(text) for text in history]
    if file is None:
        return RouterConfig.default(users).with_history(patterns)

    from relaycast_gateway.wamp.config_table import InvalidRouterConfig  # noqa: PLC0415 - only for a file
    from relaycast_gateway.wamp.router_file import read_router_config  # noqa: PLC0415

    try:
        config = read_router_config(file)
    except InvalidRouterConfig as error:
        place = f": {error.place}" if error.place else ""
        raise BadInput(f"--wamp {file}{place}", error.got, error.expected, error.hint) from None
    return (config.with_users(users) if users else config).with_history(patterns)


def icrc_settings() -> "IcrcSettings":
    """Return how the canisters are set up."""
    from relaycast_gateway.icrc_face import IcrcSettings  # noqa: PLC0415 - only where the face is offered

    return IcrcSettings()


def _history_pattern(text: str) -> TopicPattern:
    try:
        return TopicPattern.written(text)
    except ValueError:
        expected = "a topic such as com.example.feed, com.example. or com..price"
        raise BadInput("--history", shown(text), expected) from None


def open_gateway(
    network: LivingNetwork,
    data: str | None,
    allow_sink: Iterable[str],
    wamp: "RouterConfig | None" = None,
    icrc: "IcrcSettings | None" = None,
    access: Access | None = None,
    *,
    accept_loss: bool = False,
) -> Gateway:
    """Open a gateway that hears what ``network`` tells; raises ``BadInput``.

    Its files stand in the folder ``data``; without one all is in memory. With ``wamp`` it has a WAMP router, with
    ``icrc`` the canisters of ICRC-72. ``access`` has the tokens with principals. With ``accept_loss`` a lost event log
    starts anew after all numbers that the lost one can have used.
    """
    if data == "":
        raise BadInput("--data", "an empty text", "a folder")
    if accept_loss and data is None:
        raise BadInput("--accept-loss", "no --data", "--data with the folder of the chains")
    allowed = tuple(allow_sink)
    for entry in allowed:
        try:
            SinkGuard((entry,))
        except ValueError:
            expected = "HOST, HOST:PORT or a network such as 10.1.0.0/16"
            raise BadInput("--allow-sink", shown(entry), expected) from None
    callers = () if access is None else access.callers.values()
    is_lost = accept_loss and data is not None and journal_in(data).exists()
    first_seq = time.time_ns() // NS_AN_EVENT if is_lost else 1
    try:
        gateway = Gateway.open(
            data,
            allow_sink=allowed,
            wamp=wamp,
            icrc=icrc,
            version=__version__,
            first_seq=first_seq,
            principals={it.name: principal_of_caller(it) for it in callers},
        )
    except UnusableLog as error:
        place = "" if error.place == data else f": {error.place}"
        raise BadInput(f"--data {data}{place}", error.got, error.expected) from None
    except WorkFolderInUse:
        raise BadInput("--data", f"{data}, which another server uses", "a folder of its own for each server") from None
    follow(gateway, network)
    return gateway


def follow(gateway: Gateway, network: LivingNetwork) -> None:
    """Connect a gateway to the facts of ``network``; facts of a failed tick never reach it."""
    clock = network.clock
    feed = gateway.follow(clock.chains, network.title, key_names=network.key_names, by_tick=True)
    clock.taken_back.connect(lambda _: feed.take_back())
    clock.ticks.connect(lambda _: feed.tick_passed())
