"""What a router with event history has to get right, as checks over the wire.

A check works on a topic of its own, so that the checks do not disturb one another.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any

from wamp_load import RefusedCall, Wire
from wamp_routers import REALM, TOPICS, USERS, RunningRouter, pattern_of

Check = Callable[[RunningRouter], bool]

GET_EVENTS = "wamp.subscription.get_events"
EVENTS = 10
SECONDS_TO_LEAVE = 0.1
"""After which a router has noticed that clients are gone."""

_numbers = count()
_open: list[Wire] = []


def joined(router: RunningRouter, authid: str | None = None) -> Wire:
    user = (authid, USERS[authid][0]) if authid else None
    _open.append(Wire(router.rawsocket_port, "msgpack").join(REALM, user=user))
    return _open[-1]


def verdict(check: Check, router: RunningRouter) -> str:
    """Return ``yes``, or ``no`` with what was refused; all clients of the check have left afterwards."""
    try:
        return "yes" if check(router) else "no"
    except (RefusedCall, ConnectionError, TypeError, KeyError, IndexError) as error:
        return f"no: {str(error.args[0] if error.args else error)[:60]}"
    finally:
        while _open:
            _open.pop().close()
        time.sleep(SECONDS_TO_LEAVE)


class Scene:
    """A topic with ten events, its prefix subscription with a live subscriber, and a caller."""

    def __init__(self, router: RunningRouter, options: Sequence[Mapping[str, Any]] = ({},) * EVENTS) -> None:
        self.router = router
        self.topic = f"{TOPICS}check{next(_numbers)}"
        self.caller, self.subscriber = joined(router), joined(router)
        self.subscription = self._history()
        publisher = joined(router)
        self.publications = [publisher.publish(self.topic, number, options=it) for number, it in enumerate(options)]
        self.publisher = publisher

    def _history(self) -> int:
        """Return the subscription whose history is configured; crossbar has one for that pattern only."""
        return self.subscriber.subscribe(pattern_of(self.router), "prefix")

    def events(self, caller: Wire | None = None, **kwargs: Any) -> list[dict[str, Any]]:
        """Return the events of this scene, in the order in which the router gave them."""
        events, _ = (caller or self.caller).call(GET_EVENTS, self.subscription, **kwargs)
        listed = events[0] if len(events) == 1 and isinstance(events[0], list) else events
        return [event for event in listed if event.get("topic", event.get("details", {}).get("topic")) == self.topic]

    def numbers(self, caller: Wire | None = None, **kwargs: Any) -> list[int]:
        return [event["args"][0] for event in self.events(caller, **kwargs)]


def timestamp(event: Mapping[str, Any]) -> str:
    """Return when an event occurred; crossbar says it in nanoseconds."""
    if "timestamp" in event:
        return str(event["timestamp"])
    return datetime.fromtimestamp(event["time_ns"] / 1e9, UTC).isoformat()


def in_order(router: RunningRouter) -> bool:
    scene = Scene(router)
    return scene.numbers(limit=100_000) == list(range(EVENTS))


def by_argument(name: str, router: RunningRouter) -> bool:
    """Give one argument and compare with what the text says it selects of the last ten events."""
    scene = Scene(router)
    everything = list(range(EVENTS))
    if name == "reverse":
        return scene.numbers(reverse=True, limit=EVENTS) == everything[::-1]
    if name == "limit":
        page = scene.caller.call(GET_EVENTS, scene.subscription, limit=3)[0]
        return len(page[0] if len(page) == 1 and isinstance(page[0], list) else page) == 3
    if name == "topic":
        return scene.numbers(topic=scene.topic) == everything
    expected: dict[str, list[int]] = {
        "from": everything[4:],
        "after": everything[5:],
        "before": everything[:4],
        "until": everything[:5],
    }
    kind, _, what = name.partition("_")
    if what == "publication":
        value: Any = scene.publications[4]
    else:
        value = next(timestamp(event) for event in scene.events(limit=100_000) if event["args"][0] == 4)
    given: dict[str, Any] = {name: value}
    return scene.numbers(**given) == expected[kind]


def all_together(router: RunningRouter) -> bool:
    scene = Scene(router)
    times = list(map(timestamp, scene.events(limit=100_000)))
    publications = scene.publications
    kwargs: dict[str, Any] = {
        "from_time": times[0], "after_time": times[1], "before_time": times[9], "until_time": times[8],
        "from_publication": publications[2], "after_publication": publications[2],
        "before_publication": publications[8], "until_publication": publications[7],
    }  # fmt: skip
    return scene.numbers(topic=scene.topic, reverse=True, limit=3, **kwargs) == [7, 6, 5]


def one_entry(router: RunningRouter) -> bool:
    scene = Scene(router, ())
    others = [joined(router) for _ in range(2)]
    for other in others:
        other.subscribe(pattern_of(router), "prefix")
    scene.publisher.publish(scene.topic, 0)
    return scene.numbers(limit=1_000) == [0]


def without_subscriber(router: RunningRouter) -> bool:
    scene = Scene(router, ())
    scene.subscriber.close()
    time.sleep(SECONDS_TO_LEAVE)
    scene.publisher.publish(scene.topic, 0)
    return scene.numbers(limit=100_000) == [0]


def hidden(options: Mapping[str, Any], router: RunningRouter) -> bool:
    """Tell whether uma does not see what was published for ada, and ada does."""
    eligible = joined(router, "ada")
    eligible.subscribe(pattern_of(router), "prefix")
    scene = Scene(router, (options,))
    sees = {authid: set(scene.numbers(joined(router, authid), limit=100_000)) for authid in USERS}
    return sees == {"ada": {0}, "uma": set()}


def not_stored(name: str, router: RunningRouter) -> bool:
    scene = Scene(router, ())
    listed = [scene.subscriber.session] if name == "eligible" else [12_345]
    scene.publisher.publish(scene.topic, 0, options={name: listed})
    return scene.numbers(limit=100_000) == []


def record_shape(router: RunningRouter) -> bool:
    event = Scene(router).events(limit=100_000)[-1]
    shape = {"timestamp": str, "subscription": int, "publication": int, "details": dict, "args": list}
    return all(isinstance(event.get(name), kind) for name, kind in shape.items()) and event.keys() <= {*shape, "kwargs"}


def no_publisher(router: RunningRouter) -> bool:
    """Tell whether nobody learns who published what was not disclosed."""
    event = Scene(router).events(limit=100_000)[-1]
    return not {"session_id", "authid", "authrole", "publisher"} & {*event, *event.get("details", {})}


def same_ids(router: RunningRouter) -> bool:
    scene = Scene(router)
    return {event["publication"] for event in scene.events(limit=100_000)} == set(scene.publications)


def counts(router: RunningRouter) -> bool:
    """Tell whether the store is no subscriber: two sessions are counted as two."""
    scene = Scene(router)
    other = joined(router)
    other.subscribe(pattern_of(router), "prefix")
    before = scene.caller.call("wamp.subscription.count_subscribers", scene.subscription)[0][0]
    listed = scene.caller.call("wamp.subscription.list_subscribers", scene.subscription)[0][0]
    return bool(before == len(listed) and {scene.subscriber.session, other.session} <= set(listed))


def pages(router: RunningRouter) -> bool:
    """Tell whether pages of three make up the whole, while more is published."""
    scene = Scene(router)
    found: list[int] = []
    anchor: dict[str, Any] = {}
    while len(found) < EVENTS:
        events = scene.events(topic=scene.topic, limit=3, **anchor)
        found += [event["args"][0] for event in events]
        anchor = {"after_publication": events[-1]["publication"]}
        scene.publisher.publish(scene.topic, EVENTS)
    return found[:EVENTS] == list(range(EVENTS))


def refused(uri: str, args: Sequence[Any], kwargs: Mapping[str, Any], router: RunningRouter) -> bool:
    scene = Scene(router, ())
    try:
        scene.caller.call(GET_EVENTS, *(args or [scene.subscription]), **kwargs)
    except RefusedCall as error:
        return bool(error.args[0] == uri)
    return False


def announced(router: RunningRouter) -> bool:
    features = joined(router).welcome["roles"]["broker"].get("features", {})
    return features.get("event_history") is True


ARGUMENTS = (
    "reverse", "limit", "from_time", "after_time", "before_time", "until_time", "topic",
    "from_publication", "after_publication", "before_publication", "until_publication",
)  # fmt: skip
INVALID = "wamp.error.invalid_argument"

CHECKS: Mapping[str, Check] = {
    "WELCOME announces event_history": announced,
    "events come in the order of occurrence": in_order,
    **{f"argument {name}": partial(by_argument, name) for name in ARGUMENTS},
    "all eleven arguments together": all_together,
    "pages neither skip nor repeat while events arrive": pages,
    "an event has the fields of the text": record_shape,
    "ids are those of PUBLISHED": same_ids,
    "one entry per event with three subscribers": one_entry,
    "stored with no live subscriber": without_subscriber,
    "eligible_authrole is hidden from other roles": partial(hidden, {"eligible_authrole": ["admin"]}),
    "eligible_authid is hidden from others": partial(hidden, {"eligible_authid": ["ada"]}),
    "exclude_authrole is hidden from that role": partial(hidden, {"exclude_authrole": ["user"]}),
    "exclude_authid is hidden from that one": partial(hidden, {"exclude_authid": ["uma"]}),
    "not stored with exclude, a list of sessions": partial(not_stored, "exclude"),
    "not stored with eligible, a list of sessions": partial(not_stored, "eligible"),
    "publisher is not told unless disclosed": no_publisher,
    "meta API counts sessions, not the store": counts,
    "limit 0 is refused as invalid_argument": partial(refused, INVALID, (), {"limit": 0}),
    "unknown argument is refused as invalid_argument": partial(refused, INVALID, (), {"untill_time": "x"}),
    "unknown subscription: no_such_subscription": partial(refused, "wamp.error.no_such_subscription", (12_345,), {}),
}
