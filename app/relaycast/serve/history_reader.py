"""Reads the history of a topic from a router, page by page, for the command line: its problems become one line.

Law: every event comes once, in order, while others are published: each page begins at the last event of the one
before, by its publication. A live event only wakes the reader, which then asks for the next page.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from relaycast.refusal import SENTENCE_CHARACTERS, BadInput, short, shown
from relaycast.serve.access import name_of_token
from relaycast.tls_mistakes import tls_mistake
from relaycast_gateway.matching.topics import Match, TopicPattern, is_topic
from relaycast_gateway.rfc3339 import EXPECTED, parse_time
from relaycast_gateway.wamp.client.client import PATIENCE_SECONDS, WampClient
from relaycast_gateway.wamp.client.values import JoinRefused
from relaycast_gateway.wamp.errors import (
    AUTHENTICATION_FAILED,
    AUTHORIZATION_FAILED,
    NO_MATCHING_AUTH_METHOD,
    NO_SUCH_REALM,
    NOT_AUTHORIZED,
    WampError,
    WampProtocolError,
)
from relaycast_gateway.wamp.messages import MOST_ID
from relaycast_gateway.wamp_routes import WAMP_PATH

PAGE_EVENTS = 1_000
SECONDS = 30

QUIET_SECONDS = 60.0
"""After this long without a live event, the router is checked."""

FIRST_WAIT, LONGEST_WAIT = 0.25, 15.0
"""Seconds before a lost connection is made again; twice as long after each further try, up to the longest."""

SCHEMES = ("ws", "wss", "tcp", "rs", "tcps", "rss")

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AskedHistory:
    """Which events are asked for: ``conditions`` are arguments of ``wamp.subscription.get_events``."""

    what: int | TopicPattern
    conditions: Mapping[str, Any] = field(default_factory=dict)
    limit: int | None = None
    is_reverse: bool = False

    @property
    def place(self) -> str:
        """What a refusal calls the history."""
        return f"history {self.what}"


def asked_history(
    what: str,
    match: str | None,
    bounds: Mapping[str, Sequence[str] | None],
    *,
    topic: str | None,
    limit: int | None,
    is_reverse: bool,
) -> AskedHistory:
    """Return what a user asked for; raises ``BadInput``. ``bounds`` are times and publications, by option."""
    if limit is not None and limit < 1:
        raise BadInput("--limit", str(limit), "1 or more")
    if topic is not None and not is_topic(topic):
        raise BadInput("--topic", shown(topic), "a topic such as com.example.feed")
    conditions: dict[str, Any] = {} if topic is None else {"topic": topic}
    for option, given in bounds.items():
        for text in given or ():
            name, value = _bound(option, text)
            if name in conditions:
                raise BadInput(f"--{option}", f"{shown(text)} beside another one", "one time and one publication")
            conditions[name] = value
    return AskedHistory(_what(what, match), conditions, limit, is_reverse)


@dataclass(slots=True)
class FollowedHistory:
    """The position in a followed history, over any number of connections.

    ``limit`` applies to the events kept before the start, and is ``None`` afterwards.
    """

    conditions: Mapping[str, Any]
    limit: int | None
    last: int = 0
    """The last printed publication, 0 before the first."""

    def took(self, event: Event) -> Event:
        """Advance past ``event``, and return it."""
        self.last = event["publication"]
        self.conditions = _going_on(self.conditions, self.last, is_reverse=False)
        return event

    def forget(self) -> None:
        """Continue with the oldest kept event: the last printed one is older."""
        self.last = 0
        self.conditions = {name: it for name, it in self.conditions.items() if not name.endswith("_publication")}


class RouterLost(BadInput):
    """The router cannot be reached, or the connection is lost."""


class NotKept(BadInput):
    """The router refuses an argument, such as a publication that it no longer keeps."""


async def kept(asked: AskedHistory, url: str, realm: str, token_file: str | None) -> AsyncGenerator[tuple[Event, str]]:
    """Yield the events that are kept, each with its topic; raises ``BadInput``."""
    async with HistoryReader.joined(url, realm, token_file) as reader:
        await reader.find(asked)
        async for event in reader.events():
            yield event, reader.topic_of(event)


async def followed(
    asked: AskedHistory, url: str, realm: str, token_file: str | None, tell: Callable[[str], None]
) -> AsyncGenerator[tuple[Event, str]]:
    """Yield events like ``HistoryReader.followed``, and reconnect without limit when the connection is lost.

    ``tell`` gets one line for each loss. Raises ``BadInput`` if the first connection fails, and for all other refusals
    of the router.
    """
    at, wait, is_known, is_told = FollowedHistory(asked.conditions, asked.limit), FIRST_WAIT, False, False
    while True:
        try:
            async with HistoryReader.joined(url, realm, token_file) as reader:
                await reader.find(asked)
                asked = replace(asked, what=reader.pattern)  # ids of subscriptions end with the router
                wait, is_known, is_told = FIRST_WAIT, True, False
                try:
                    async for event in reader.followed(at):
                        yield event, reader.topic_of(event)
                except NotKept:
                    if not at.last:
                        raise
                    tell(f"{url}: publication {at.last} is no longer kept; continuing with the oldest kept one")
                    at.forget()
                    continue
        except RouterLost as error:
            if not is_known:
                raise
            if not is_told:
                tell(f"{url}: {error.got}; connecting again until Ctrl-C")
            is_told = True
        await asyncio.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT)


class HistoryReader:
    """A session with a router; ``HistoryReader.joined`` opens one, and ``find`` says what it reads."""

    def __init__(self, client: WampClient, url: str) -> None:
        self._client = client
        self._url = url
        self._asked = AskedHistory(1)
        self._pattern = TopicPattern("")
        self._subscription = 0
        self._woken = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def joined(
        cls, url: str, realm: str, token_file: str | None = None, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> AsyncIterator["HistoryReader"]:
        """Join ``realm`` until the block ends; every problem with the router is a ``BadInput``."""
        address = _address(url)
        authid, ticket = (None, None) if token_file is None else _credentials(token_file)
        try:
            async with asyncio.timeout(SECONDS):
                client = await WampClient.connect(
                    address,
                    realm,
                    serializer="msgpack",
                    authid=authid,
                    ticket=ticket,
                    patience_seconds=patience_seconds,
                )
        except JoinRefused as error:
            raise _not_joined(error, url, realm, has_token=ticket is not None) from None
        except (OSError, TimeoutError, WampProtocolError) as error:
            raise _no_router(url, error) from None
        try:
            yield cls(client, url)
        except (ConnectionError, TimeoutError) as error:
            raise _no_router(url, error) from None
        finally:
            await client.leave()

    async def find(self, asked: AskedHistory) -> None:
        """Find the subscription whose history is asked for; a topic without one is subscribed to."""
        self._asked = asked
        if isinstance(asked.what, int):
            found = await self._call("wamp.subscription.get", asked.what)
            self._subscription = asked.what
            self._pattern = TopicPattern(found["uri"], Match(found["match"]))
            return
        self._pattern = asked.what
        options = {"match": str(asked.what.match)}
        self._subscription = await self._call("wamp.subscription.lookup", asked.what.uri, options) or 0
        if not self._subscription:
            self._subscription = await self._subscribe()

    @property
    def pattern(self) -> TopicPattern:
        """The topics of the history."""
        return self._pattern

    def topic_of(self, event: Event) -> str:
        """Return the topic that an event was published to."""
        return str(event.get("details", {}).get("topic", self._pattern.uri))

    async def events(self) -> AsyncGenerator[Event]:
        """Yield the events that are kept, page by page."""
        async for event in self._pages(self._asked.conditions, self._asked.limit, is_reverse=self._asked.is_reverse):
            yield event

    async def followed(self, at: FollowedHistory) -> AsyncGenerator[Event]:
        """Yield the events that are kept, the newest of them where there is a limit, and then each new one."""
        self._subscription = await self._subscribe()
        if at.limit is not None:
            newest = [it async for it in self._pages(at.conditions, at.limit, is_reverse=True)]
            at.limit = None
            for event in reversed(newest):
                yield at.took(event)
        while True:
            async for event in self._pages(at.conditions, None, is_reverse=False):
                yield at.took(event)
            await self._news()

    async def _pages(
        self, conditions: Mapping[str, Any], limit: int | None, *, is_reverse: bool
    ) -> AsyncGenerator[Event]:
        left = limit
        more = True
        while more and left != 0:
            count = PAGE_EVENTS if left is None else min(left, PAGE_EVENTS)
            asked = {**conditions, "limit": count} | ({"reverse": True} if is_reverse else {})
            page, more = await self._page(asked)
            for event in page:
                yield event
            if not page:
                return
            left = None if left is None else left - len(page)
            conditions = _going_on(conditions, page[-1]["publication"], is_reverse=is_reverse)

    async def _page(self, arguments: Mapping[str, Any]) -> tuple[list[Event], bool]:
        reply = await self._reply("wamp.subscription.get_events", self._subscription, **arguments)
        if not all(map(_is_event, reply.args)):
            raise BadInput(f"--url {self._url}", "events of another form", "a router of relaycast")
        return list(reply.args), bool(reply.kwargs.get("more"))

    async def _subscribe(self) -> int:
        try:
            async with asyncio.timeout(SECONDS):
                return await self._client.subscribe(
                    self._pattern.uri, lambda _: self._woken.set(), match=str(self._pattern.match)
                )
        except WampError as error:
            raise _refused(error, self._asked.place) from None

    async def _news(self) -> None:
        """Return once an event is published; raises ``ConnectionError`` if the router is gone.

        Also returns after ``QUIET_SECONDS``: a dead router then fails to answer the next request.
        """
        woken = asyncio.create_task(self._woken.wait())
        gone = asyncio.create_task(self._client.until_ended())
        await asyncio.wait({woken, gone}, timeout=QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        woken.cancel()
        gone.cancel()
        if gone.done():
            raise gone.result()
        self._woken.clear()

    async def _call(self, procedure: str, *arguments: Any) -> Any:
        return (await self._reply(procedure, *arguments)).args[0]

    async def _reply(self, procedure: str, *arguments: Any, **named: Any) -> Any:
        try:
            async with asyncio.timeout(SECONDS):
                return await self._client.call(procedure, *arguments, **named)
        except WampError as error:
            raise _refused(error, self._asked.place) from None
        except TimeoutError as error:
            raise _no_router(self._url, error) from None


def _is_event(told: object) -> bool:
    return isinstance(told, dict) and isinstance(told.get("publication"), int) and "timestamp" in told


def _going_on(conditions: Mapping[str, Any], last: int, *, is_reverse: bool) -> dict[str, Any]:
    """Return the conditions of the page behind the event ``last``, which is a closer bound than the one before."""
    closer, wider = "after_publication", "from_publication"
    if is_reverse:
        closer, wider = "before_publication", "until_publication"
    return {name: value for name, value in conditions.items() if name != wider} | {closer: last}


def _what(text: str, match: str | None) -> int | TopicPattern:
    if text.isascii() and text.isdecimal() and match is None:
        if not 1 <= int(text) <= MOST_ID:
            raise BadInput("subscription", shown(text), "a number from 1 to 2^53")
        return int(text)
    try:
        return TopicPattern.written(text, None if match is None else Match(match))
    except ValueError:
        expected = "a topic such as com.example.feed, com.example. or com..price, or the id of a subscription"
        raise BadInput("topic", shown(text), expected) from None


def _bound(option: str, text: str) -> tuple[str, Any]:
    """Return the argument that a bound stands for: a publication is a number, a time is text."""
    if text.isascii() and text.isdecimal():
        if not 1 <= int(text) <= MOST_ID:
            raise BadInput(f"--{option}", shown(text), "the id of a publication, from 1 to 2^53")
        return f"{option}_publication", int(text)
    try:
        parse_time(text)
    except ValueError:
        raise BadInput(f"--{option}", shown(text), f"{EXPECTED}, or the id of a publication") from None
    return f"{option}_time", text


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise BadInput("--url", shown(url), "a router, such as ws://127.0.0.1:9944/wamp or tcp://127.0.0.1:8081")
    if parts.scheme in {"ws", "wss"} and parts.path in {"", "/"}:
        return parts._replace(path=WAMP_PATH).geturl()  # as the server's address is printed
    return url


def _credentials(file: str) -> tuple[str, str]:
    """Return the name and the token on the first line of a file like the server's."""
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except OSError as error:
        raise BadInput(f"--token-file {file}", (error.strerror or "an error").lower(), "a file with a token") from None
    except UnicodeDecodeError:
        raise BadInput(f"--token-file {file}", "bytes that are no text", "a token") from None
    first = next((line.split() for line in lines if line.strip() and not line.startswith("#")), [""])
    token, *labels = first
    if not token or not token.isascii() or not token.isprintable():
        raise BadInput(f"--token-file {file}", "no token", "a token on its first line")
    names = [label.removeprefix("name=") for label in labels if label.startswith("name=")]
    return names[0] if names else name_of_token(token.encode()), token


def _not_joined(error: JoinRefused, url: str, realm: str, *, has_token: bool) -> BadInput:
    if error.reason == NO_SUCH_REALM:
        return BadInput("--realm", shown(realm), "a realm of the router")
    if error.reason in {AUTHENTICATION_FAILED, AUTHORIZATION_FAILED, NO_MATCHING_AUTH_METHOD, NOT_AUTHORIZED}:
        got = "a token that the router refuses" if has_token else "no token"
        return BadInput(
            "--token-file", got, "a file with a token of the server's, behind it name=NAME where it has one"
        )
    return RouterLost(f"--url {url}", short(str(error), SENTENCE_CHARACTERS), "a router that takes this session")


def _refused(error: WampError, place: str) -> BadInput:
    match error.uri:
        case "wamp.error.not_authorized":
            return BadInput(place, "no permission", "--token-file with a token whose role may subscribe to it")
        case "wamp.error.history_unavailable":
            return BadInput(place, "a topic that is not kept", "one that serve --history or its configuration keeps")
        case "wamp.error.no_such_subscription":
            return BadInput(place, "an id that the router does not know", "a subscription's id, or a topic")
        case "wamp.error.invalid_argument":
            return NotKept(place, _said(error), "arguments that the router takes")
    return BadInput(place, _said(error), "a history that the router has")


def _said(error: WampError) -> str:
    return short(" ".join(map(str, error.arguments)) or error.uri, SENTENCE_CHARACTERS)


def _no_router(url: str, error: Exception) -> RouterLost:
    mistake = tls_mistake(url, error, f"--url {url}")
    if mistake is not None:
        return RouterLost(mistake.place, mistake.got, mistake.expected)
    cause = error.__cause__ or error
    number = getattr(cause, "errno", None)
    said = os.strerror(number).lower() if isinstance(number, int) and number > 0 else str(cause)
    said = said.removeprefix(f"{_address(url)}: ") or "no answer"
    return RouterLost(f"--url {url}", said, "a router that runs: relaycast serve")
