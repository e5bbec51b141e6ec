"""The statements of WAMP's text on event history that calls of ``get_events`` decide, by its sections, over the wire.

One router is served for all rows. Ann, an admin, asks over a WebSocket in JSON, Uwe, a user, over a RawSocket in
MessagePack. Rows without a name are Uwe's.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.served_canisters import ADMIN_TOKEN, USER_TOKEN
from relaycast.serve.in_process import ServedNetwork, serving
from relaycast.serve.network import living
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.matching.topics import TopicPattern
from relaycast_gateway.rfc3339 import parse_time
from relaycast_gateway.wamp.authentication import WampUser
from relaycast_gateway.wamp.authorization import PermissionRule, everything
from relaycast_gateway.wamp.client.client import WampClient
from relaycast_gateway.wamp.client.values import CallReply
from relaycast_gateway.wamp.errors import (
    HISTORY_UNAVAILABLE,
    INVALID_ARGUMENT,
    INVALID_URI,
    NO_SUCH_SUBSCRIPTION,
    NOT_AUTHORIZED,
    WampError,
)
from relaycast_gateway.wamp.messages import ResultMessage
from relaycast_gateway.wamp.router_config import ADMIN, USER, RouterConfig, RouterLimits
from relaycast_gateway.wamp.serializers import serializer_named

GET_EVENTS = "wamp.subscription.get_events"
LOG, AUTH, BASKET, CHECKOUT = (f"com.mycompany.log{it}" for it in ("", ".auth", ".basket", ".checkout"))
HIDDEN, CLOSED, UNKEPT = "com.hidden", "com.closed", "com.unkept"
PUBLISHED = {"1": AUTH, "2": BASKET, "3": BASKET, "4": BASKET, "5": CHECKOUT}
RESTRICTED: dict[str, dict[str, Any]] = {
    "a": {},
    "b": {"eligible_authrole": ["admin"]},
    "c": {"eligible_authid": ["ann"]},
    "d": {"exclude_authrole": ["user"]},
    "e": {"exclude_authid": ["uwe"]},
    "f": {"eligible_authrole": ["user"], "eligible_authid": ["ann", "uwe"]},
    "g": {"eligible_authrole": ["user", "admin"], "exclude_authid": ["uwe"]},
    "h": {"eligible_authid": ["ann", "uwe"], "exclude_authrole": ["admin"]},
    "i": {"eligible_authid": []},
    "j": {"exclude": [1]},
    "k": {"eligible": []},
    "l": {"exclude_me": True},
}
"""Publications to ``HIDDEN`` by their options; Ann sees abcdegl of them later, Uwe afhl."""


def config() -> RouterConfig:
    users = [WampUser.of_token("ann", ADMIN, ADMIN_TOKEN), WampUser.of_token("uwe", USER, USER_TOKEN)]
    found = RouterConfig.default(users).with_history(TopicPattern.written(it) for it in (f"{LOG}.", HIDDEN, CLOSED))
    user = everything(USER, PermissionRule(TopicPattern(CLOSED), frozenset({"publish"})))
    return replace(found, realms=(replace(found.realms[0], roles=(everything(ADMIN), user)),))


@contextmanager
def routed(settings: RouterConfig, folder: Path | None = None) -> Iterator[ServedNetwork]:
    gateway = Gateway.open(folder, wamp=settings)
    with serving(living("oracle", "manual"), gateway=gateway, rawsocket_port=0) as chains:
        yield chains


async def as_ann(chains: ServedNetwork) -> WampClient:
    return await WampClient.connect(chains.wamp_url, serializer="json", authid="ann", ticket=ADMIN_TOKEN)


async def as_uwe(chains: ServedNetwork) -> WampClient:
    url = chains.rawsocket_url.replace("tcp:", "rs:")
    return await WampClient.connect(url, serializer="msgpack", authid="uwe", ticket=USER_TOKEN)


class History:
    """The histories of a router as Ann and Uwe read them."""

    def __init__(self, runner: asyncio.Runner, clients: dict[str, WampClient]) -> None:
        self._runner, self._clients = runner, clients
        self.subscriptions: dict[str, int] = {}
        self.ids: dict[str, int] = {}
        for number, topic in PUBLISHED.items():
            self.ids[number] = self._run(clients["ann"].publish(topic, [number], {"unit": None}))
        for letter, options in RESTRICTED.items():
            self.ids[letter] = self._run(clients["ann"].publish(HIDDEN, [letter], **options))
        self._run(clients["ann"].publish(CLOSED, ["x"]))
        for name, topic, match in (
            ("auth", AUTH, "exact"), ("basket", BASKET, "exact"), ("log", f"{LOG}.", "prefix"),
            ("wild", "com.mycompany..checkout", "wildcard"), ("hidden", HIDDEN, "exact"), ("unkept", UNKEPT, "exact"),
            ("closed", CLOSED, "exact"),
        ):  # fmt: skip
            asker = clients["ann" if name == "closed" else "uwe"]
            self.subscriptions[name] = self._run(asker.subscribe(topic, lambda _: None, match=match))

    @property
    def roles(self) -> Any:
        """The roles that WELCOME names."""
        return self._clients["uwe"].details["roles"]

    def _run(self, work: Awaitable[Any]) -> Any:
        async def bounded() -> Any:
            return await asyncio.wait_for(work, 30)

        return self._runner.run(bounded())

    def call(self, *args: Any, who: str = "uwe", **kwargs: Any) -> Any:
        """Ask for the events of a subscription, named or by id."""
        given = [self.subscriptions.get(it, it) if isinstance(it, str) else it for it in args]
        return self._run(self._clients[who].call(GET_EVENTS, *given, **kwargs))

    def read(self, subscription: str, **kwargs: Any) -> str:
        """Return which publications are in an answer, in its order."""
        return "".join(it["args"][0] for it in self.call(subscription, **kwargs).args)

    def at(self, which: str, name: str, **more: Any) -> str:
        """Return the publications of the log that a condition at publication 3, or its time, leaves."""
        place = self.time("3") if name == "time" else self.ids["3"]
        return self.read("log", **{f"{which}_{name}": place}, **more)

    def time(self, number: str) -> str:
        return str(self.event(number)["timestamp"])

    def event(self, number: str) -> Any:
        (found,) = self.call("log", from_publication=self.ids[number], limit=1).args
        return found

    def error(self, *args: Any, **kwargs: Any) -> str:
        """Return the URI with which a call is refused."""
        with pytest.raises(WampError) as refused:
            self.call(*args, **kwargs)
        assert refused.value.arguments, "an error says in words what is wrong"
        return refused.value.uri

    def told(self, subscription: str, *names: str, **kwargs: Any) -> list[Any]:
        """Return what is said of an answer."""
        found = self.call(subscription, **kwargs).kwargs
        return [found[name] for name in names]


@pytest.fixture(scope="module")
def history() -> Iterator[History]:
    with routed(config()) as chains, asyncio.Runner() as runner:
        clients = {"ann": runner.run(as_ann(chains)), "uwe": runner.run(as_uwe(chains))}
        yield History(runner, clients)
        for client in clients.values():
            runner.run(client.leave())


def announced(it: History) -> object:
    return it.roles["broker"]["features"]["event_history"]


def paged(it: History, **kwargs: Any) -> str:
    """Read page by page."""
    which = "before_publication" if kwargs.get("reverse") else "after_publication"
    found, query = "", {"limit": 2, **kwargs}
    while True:
        answer = it.call("log", **query)
        found += "".join(each["args"][0] for each in answer.args)
        if not answer.kwargs["more"]:
            return found
        query[which] = answer.args[-1]["publication"]


def record(it: History) -> tuple[list[str], object, object, bool]:
    found = it.event("1")
    is_time = parse_time(found["timestamp"]) > 0
    return sorted(found), found["args"], found["kwargs"], is_time and found["publication"] == it.ids["1"]


Row = tuple[str, str, Callable[[History], object], object]
MALFORMED = [
    *("2026-01-31T12:00:00", "2026-01-31", "2026-13-01T00:00:00Z", "2026-01-31T24:00:00Z", "2016-12-31T23:59:61Z"),
    *("2026-01-31 12:00:00Z", "2026-02-30T12:00:00Z", "", 1_770_000_000, None),
]
BOUNDS = ("from", "after", "before", "until")


def condition(which: str, name: str, expected: str, backwards: str) -> list[Row]:
    kind = f"{which}_{name}"
    return [
        (kind, "of all events", lambda it: it.at(which, name), expected),
        (kind, "backwards", lambda it: it.at(which, name, reverse=True, limit=2), backwards),
    ]


def invalid(argument: str, values: Sequence[Any], uri: str = INVALID_ARGUMENT) -> list[Row]:
    return [
        (argument, f"not {value!r}", lambda it, value=value: it.error("log", **{argument: value}), uri)  # type: ignore[misc]
        for value in values
    ]


ROWS: list[Row] = [
    ("announcement", "the feature is announced", announced, True),
    ("announcement", "by a broker and dealer", lambda it: sorted(it.roles), ["broker", "dealer"]),
    ("example", "history of subscription 1", lambda it: it.read("auth"), "1"),
    ("example", "history of subscription 2", lambda it: it.read("basket"), "234"),
    ("example", "history of subscription 3", lambda it: it.read("log"), "12345"),
    ("Arguments", "one positional argument", lambda it: it.error(), INVALID_ARGUMENT),
    ("Arguments", "and no second", lambda it: it.error("log", 10), INVALID_ARGUMENT),
    *[("Arguments", f"no id is {value!r}", lambda it, value=value: it.error(value), INVALID_ARGUMENT)
      for value in ("x", 0, 1.5, True, None)],
    ("Arguments", "an unknown id", lambda it: it.error(4_711), NO_SUCH_SUBSCRIPTION),
    ("Arguments", "a subscription without history", lambda it: it.error("unkept"), HISTORY_UNAVAILABLE),
    ("ArgumentsKw", "an unknown option", lambda it: it.error("log", limt=1), INVALID_ARGUMENT),
    ("reverse", "in reverse order", lambda it: it.read("log", reverse=True), "54321"),
    ("reverse", "by default not", lambda it: it.read("log", reverse=False), "12345"),
    *invalid("reverse", (1, "true", None)),
    ("limit", "at most so many", lambda it: it.read("log", limit=2), "12"),
    ("limit", "of the traversal", lambda it: it.read("log", limit=2, reverse=True), "54"),
    ("limit", "more than there are", lambda it: it.read("log", limit=1_000), "12345"),
    *invalid("limit", (0, -1, "x", 1.5, True, None)),
    *condition("from", "time", "345", "54"),
    *condition("after", "time", "45", "54"),
    *condition("before", "time", "12", "21"),
    *condition("until", "time", "123", "32"),
    *[row for which in BOUNDS for row in invalid(f"{which}_time", MALFORMED)],
    *[("from_time", f"{value} is a time", lambda it, value=value: it.read("log", from_time=value), "12345")
      for value in ("2016-12-31T23:59:60Z", "2000-01-01t00:00:00.1234567890123z", "2000-01-01T00:00:00+23:59")],
    ("topic", "of a prefix", lambda it: it.read("log", topic=BASKET), "234"),
    ("topic", "of a wildcard", lambda it: (it.read("wild"), it.read("wild", topic=CHECKOUT)), ("5", "5")),
    ("topic", "the same of an exact one", lambda it: it.read("auth", topic=AUTH), "1"),
    ("topic", "another of an exact one", lambda it: it.read("auth", topic=BASKET), ""),
    *invalid("topic", (5, None)),
    *invalid("topic", ("no uri", "com..a", ""), INVALID_URI),
    *condition("from", "publication", "345", "54"),
    *condition("after", "publication", "45", "54"),
    *condition("before", "publication", "12", "21"),
    *condition("until", "publication", "123", "32"),
    *[row for which in BOUNDS for row in invalid(f"{which}_publication", (0, -1, (1 << 53) + 1, True, "5", 4_711))],
    ("AND", "conditions hold together",
     lambda it: it.read("log", topic=BASKET, after_time=it.time("1"), before_publication=it.ids["4"], limit=9), "23"),
    ("AND", "none need be left", lambda it: it.read("log", topic=AUTH, after_time=it.time("1")), ""),
    ("result", "an Event with its timestamp", record,
     (["args", "details", "kwargs", "publication", "subscription", "timestamp"], ["1"], {"unit": None}, True)),
    ("result", "details name the topic", lambda it: it.event("5")["details"], {"topic": CHECKOUT}),
    ("result", "no payload by name, no kwargs", lambda it: "kwargs" in it.call("hidden", limit=1).args[0], False),
    ("result", "the subscription asked for",
     lambda it: {each["subscription"] for each in it.call("log").args} == {it.subscriptions["log"]}, True),
    ("result", "an empty array", lambda it: it.read("auth", before_publication=it.ids["1"]), ""),
    ("result", "count and more", lambda it: it.told("log", "count", "more", limit=4), [4, True]),
    ("result", "all counted", lambda it: it.told("log", "count", "more"), [5, False]),
    ("pagination", "onwards", paged, "12345"),
    ("pagination", "backwards", lambda it: paged(it, reverse=True), "54321"),
    ("security", "no right to subscribe", lambda it: it.error("closed"), NOT_AUTHORIZED),
    ("security", "with the right", lambda it: it.read("closed", who="ann"), "x"),
    ("black-white-listing", "for an admin", lambda it: it.read("hidden", who="ann"), "abcdegl"),
    ("black-white-listing", "for a user", lambda it: it.read("hidden"), "afhl"),
    ("black-white-listing", "backwards", lambda it: it.read("hidden", reverse=True), "lhfa"),
    ("black-white-listing", "hidden events are not counted",
     lambda it: it.told("hidden", "count", "more", limit=4), [4, False]),
    ("black-white-listing", "nor in a limit", lambda it: it.read("hidden", limit=2), "af"),
    *[("black-white-listing", f"a hidden event is no anchor of {which}",
       lambda it, which=which: it.error("hidden", **{f"{which}_publication": it.ids["c"]}), INVALID_ARGUMENT)
      for which in BOUNDS],
    ("black-white-listing", "one that is seen is", lambda it: it.read("hidden", who="ann",
                                                                     after_publication=it.ids["c"]), "degl"),
    ("black-white-listing", "lists of sessions are not saved",
     lambda it: it.error("hidden", who="ann", from_publication=it.ids["j"]), INVALID_ARGUMENT),
]  # fmt: skip


@pytest.mark.matrix(
    "WAMP-01", "WAMP-13", "WAMP-14", "WAMP-15", "WAMP-16", "WAMP-17", "WAMP-18", "WAMP-19", "WAMP-20", "WAMP-21",
    "WAMP-22", "WAMP-23", "WAMP-24", "WAMP-25", "WAMP-26", "WAMP-27", "WAMP-28", "WAMP-29", "WAMP-30", "WAMP-32",
    "WAMP-34", "WAMP-35", "WAMP-36", "WAMP-38", "WAMP-39", "WAMP-46", "WAMP-49", "WAMP-50", "WAMP-51", "WAMP-52",
    "WAMP-53", "WAMP-54", "WAMP-55", "WAMP-58", "WAMP-71",
)  # fmt: skip
@pytest.mark.parametrize(("section", "statement", "call", "expected"), ROWS, ids=[f"{it[0]}: {it[1]}" for it in ROWS])
def test_the_router_does_as_the_text_says(
    history: History, section: str, statement: str, call: Callable[[History], object], expected: object
) -> None:
    assert call(history) == expected, f"{section}: {statement}"


@pytest.mark.matrix("WAMP-40")
@pytest.mark.parametrize(("join", "serializer"), [(as_ann, "json"), (as_uwe, "msgpack")])
def test_a_result_beyond_the_bytes_of_one_comes_in_pages_or_in_parts(
    join: Callable[[ServedNetwork], Awaitable[WampClient]], serializer: str
) -> None:
    most = 20_000
    settings = replace(config(), limits=RouterLimits(most_history_bytes=most))

    async def work(chains: ServedNetwork) -> None:
        async with await join(chains) as client:
            for number in range(100):
                await client.publish(BASKET, [number, "x" * 1_000])
            subscription = await client.subscribe(BASKET, lambda _: None)
            pages, query = list[CallReply](), dict[str, Any]()
            while not pages or pages[-1].kwargs["more"]:
                pages.append(await client.call(GET_EVENTS, subscription, **query))
                query = {"after_publication": pages[-1].kwargs["last_publication"]}
            parts: list[CallReply] = []
            last = await client.call(GET_EVENTS, subscription, on_progress=parts.append)
        assert (last.kwargs["count"], last.kwargs["more"]) == (100, False)
        for found in (pages, [*parts, last]):
            assert [event["args"][0] for it in found for event in list[Any](it.args)] == list(range(100))
            assert 5 < len(found) < 10
            answers = [ResultMessage(1, {}, list(it.args), dict(it.kwargs)) for it in found]
            assert all(len(serializer_named(serializer).encode(it)) <= most for it in answers)

    with routed(settings) as chains:
        asyncio.run(asyncio.wait_for(work(chains), 60))


@pytest.mark.matrix("WAMP-53", "WAMP-59")
def test_what_was_hidden_stays_hidden_after_a_restart(tmp_path: Path) -> None:
    hidden: list[int] = []
    for times in (1, 2):
        with routed(config(), tmp_path / "feed") as chains, asyncio.Runner() as runner:
            clients = {"ann": runner.run(as_ann(chains)), "uwe": runner.run(as_uwe(chains))}
            history = History(runner, clients)
            hidden.append(history.ids["c"])
            assert history.read("hidden", who="ann") == "abcdegl" * times
            assert history.read("hidden") == "afhl" * times
            assert history.read("hidden", who="ann", after_publication=hidden[0]) == ("abcdegl" * times)[3:]
            for it in hidden:
                assert history.error("hidden", after_publication=it) == INVALID_ARGUMENT
            for client in clients.values():
                runner.run(client.leave())
