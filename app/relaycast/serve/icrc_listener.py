"""A subscriber for the command line: served on a port of this machine, registered at a server, one line an event.

Law: what this process subscribed to is stopped when it ends. What the subscription had before is replaced: a listener
with the principal of an earlier one takes its subscription over.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from relaycast.refusal import BadInput, one_line, shown
from relaycast.serve.server_connection import ServerConnection
from relaycast.tls_mistakes import tls_mistake
from relaycast_gateway.candid import Present, Principal, Variant
from relaycast_gateway.icrc.candypath.compiled import candy_path
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.http.canister_host import CanisterHost, NoCanisterServer
from relaycast_gateway.icrc.names import EVENT_TIMESTAMP
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.subscriber import EventSubscriber
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import Icrc16, to_json
from relaycast_gateway.matching.namespaces import NamespacePattern
from relaycast_gateway.principal import client_principal, principal_text
from relaycast_gateway.rfc3339 import format_time

STOPPING_SECONDS = 5.0
"""For the server to hear that a subscription is stopped."""

CHECK_SECONDS = 2.0
"""Interval between checks that the server still has the subscription."""

CONFIRMING_SECONDS = 0.2
"""For the last confirmations: they go out a moment after the events."""


@dataclass(frozen=True, slots=True)
class Listening:
    """What is listened to."""

    namespace: str
    filter: str | None = None
    skip: Skip | None = None
    replay: tuple[int, int | None] | None = None


def listening(namespace: str, filter_: str | None, skip: str | None, replay: str | None) -> Listening:
    """Return what a user asked for; raises ``BadInput``."""
    try:
        NamespacePattern(namespace)
    except ValueError as error:
        raise BadInput("NAMESPACE", shown(namespace), "a namespace or a pattern", one_line(str(error))) from None
    if filter_ is not None:
        try:
            candy_path(filter_)
        except ValueError as error:
            raise BadInput("--filter", shown(filter_), f"a CandyPath ({one_line(str(error))})") from None
    return Listening(
        namespace, filter_, None if skip is None else _skip(skip), None if replay is None else _range(replay)
    )


def _skip(given: str) -> Skip:
    mod, comma, offset = given.partition(",")
    if not mod.isdecimal() or len(mod) > 18 or int(mod) < 1 or (comma and not offset.isdecimal()) or len(offset) > 18:
        raise BadInput("--skip", shown(given), "M or M,O: one event of M, that with the number O modulo M")
    return Skip(int(mod), int(offset) if comma else 0)


def _range(given: str) -> tuple[int, int | None]:
    start, dots, end = given.partition("..")
    if not start.isdecimal() or (dots and end and not end.isdecimal()) or len(given) > 80:
        raise BadInput("--replay", shown(given), "FROM or FROM..TO: ids of events, from the first to before the second")
    if dots and end and int(end) <= int(start):
        raise BadInput("--replay", shown(given), "an end after the beginning")
    return int(start), int(end) if dots and end else None


def shown_event(event: NotifiedEvent) -> dict[str, Any]:
    """Return an event as JSON."""
    occurred = event.header(EVENT_TIMESTAMP)
    found: dict[str, Any] = {
        "namespace": event.namespace,
        "id": event.text_id,
        "number": event.event_id,
        "previous": event.prev_id,
        "source": principal_text(event.source),
        "notification": event.notification_id,
        "notified": format_time(event.timestamp_ns),
        "data": to_json(event.data),
        "headers": {name: to_json(value) for name, value in event.headers},
    }
    if isinstance(occurred, Icrc16) and isinstance(occurred.content, int):
        found["time"] = format_time(occurred.content)
    if event.replay_id is not None:
        found["replay"] = event.replay_id
    return found


@asynccontextmanager
async def listener(
    url: str, asked: Listening, print_line: Callable[[str], None], *, caller: bytes | None, token: str | None, port: int
) -> AsyncIterator[tuple[str, "asyncio.Task[None]"]]:
    """Subscribe, and print a line for each event until the block ends; yields what is listened to and where.

    Also yields a task that ends when the server no longer has the subscription. Raises ``BadInput``.
    """
    url = ServerConnection(url).url
    own = caller
    if own is None and token is None:
        own = client_principal("icrc listeners", secrets.token_hex(16))
    try:
        async with CanisterHost.connected(url, principal=own, token=token, port=port) as host:
            listens = _Listener(host, asked, print_line)
            number = await listens.begin()
            forgotten = asyncio.create_task(listens.until_forgotten(number))
            try:
                yield f"subscription {number} of {principal_text(host.principal)} at {host.url}", forgotten
            finally:
                if not forgotten.done():
                    forgotten.cancel()
                    await listens.end(number)
    except NoCanisterServer as error:
        if error.status == 401:
            raise BadInput("--token-file", "no token that the server knows", "a file with one") from None
        mistake = None if error.status else await asyncio.to_thread(tls_mistake, url, error, f"--url {url}")
        raise mistake or BadInput(f"--url {url}", error.got, "a server of relaycast with --face icrc") from None
    except OSError as error:
        raise BadInput("--port", f"{port}: {(error.strerror or 'no such port').lower()}", "a free port, or 0") from None


class _Listener:
    def __init__(self, host: CanisterHost, asked: Listening, print_line: Callable[[str], None]) -> None:
        self._host = host
        self._asked = asked
        self._print_line = print_line
        self._subscriber = EventSubscriber(host.principal, host.wire, host.orchestrator, broadcasters=host.broadcasters)
        host.add(self._subscriber)

    async def begin(self) -> int:
        """Register, or take an earlier subscription over, and ask for the replay; return the subscription's id."""
        asked, config, settled = self._asked, self._host.config, self._host.settled
        try:
            number = await settled(
                self._subscriber.subscribe(
                    asked.namespace, self._note, filter=asked.filter, skip=asked.skip, config=config
                )
            )
        except CallRefused as refused:
            got = f"a refusal ({one_line(str(refused))})"
            raise BadInput(f"NAMESPACE {asked.namespace}", got, "a subscription") from None
        skip = None if asked.skip is None else {0: asked.skip.mod, 1: asked.skip.offset}
        await self._update(
            number, newConfig=pairs_of(config), newFilter=asked.filter or "", newSkip=Present(skip), newStopped=False
        )
        if asked.replay is not None:
            start, end = asked.replay
            try:
                await settled(self._subscriber.request_replay(asked.namespace, start, end))
            except CallRefused as refused:
                await self.end(number)
                got = f"a refusal ({one_line(str(refused))})"
                raise BadInput("--replay", got, "a range that can be replayed") from None
        return int(number)

    async def until_forgotten(self, number: int) -> None:
        """Return once the server reports no such subscription, as after a start without its data."""
        host = self._host
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            with suppress(CallRefused):
                (found,) = await host.call(host.principal, host.orchestrator, "icrc72_get_subscription", [number])
                if found is None or found["subscriber"] != Principal(host.principal):  # numbers begin again, too
                    return

    async def end(self, number: int) -> None:
        """Stop the subscription, as far as the server can be reached."""
        await asyncio.sleep(CONFIRMING_SECONDS)
        with suppress(CallRefused, TimeoutError, BadInput):  # one that the server does not have is stopped
            async with asyncio.timeout(STOPPING_SECONDS):
                await self._update(number, newStopped=True)

    def _note(self, event: NotifiedEvent) -> None:
        self._print_line(json.dumps(shown_event(event), ensure_ascii=True))

    async def _update(self, number: int, **members: object) -> None:
        change = {"subscription": Variant("id", number), **dict.fromkeys(_UPDATE), **members}
        results = await self._host.call(
            self._host.principal, self._host.orchestrator, "icrc72_update_subscription", [change]
        )
        result = results[0] if results else None
        if result is None or result.tag != "Ok":
            raise BadInput(f"subscription {number}", f"a refusal ({one_line(str(result))})", "to set it up")


_UPDATE = ("subscriptionId", "newConfig", "config", "newFilter", "newSkip", "newStopped", "memo")
