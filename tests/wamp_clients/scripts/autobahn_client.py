"""autobahn-python as a client: does one item after the other, and prints what came of each as a line of JSON."""

import asyncio
import json
import sys
import traceback

from autobahn.asyncio.rawsocket import WampRawSocketClientFactory
from autobahn.asyncio.wamp import ApplicationSession
from autobahn.asyncio.websocket import WampWebSocketClientFactory
from autobahn.wamp.auth import compute_wcs, derive_key
from autobahn.wamp.exception import ApplicationError
from autobahn.wamp.serializer import CBORSerializer, JsonSerializer, MsgPackSerializer
from autobahn.wamp.types import (
    CallOptions,
    CallResult,
    ComponentConfig,
    PublishOptions,
    RegisterOptions,
    SubscribeOptions,
)

SERIALIZERS = {"json": JsonSerializer, "msgpack": MsgPackSerializer, "cbor": CBORSerializer}
GET_EVENTS = "wamp.subscription.get_events"
GIVEN = json.loads(sys.argv[1])
PREFIX = GIVEN["prefix"]


class Client(ApplicationSession):
    def __init__(self, joined, method="anonymous", authid=None, secret=None):
        super().__init__(ComponentConfig(GIVEN["realm"]))
        self.joined, self.method, self.name, self.secret = joined, method, authid, secret

    def onConnect(self):
        self.join(GIVEN["realm"], [self.method], self.name)

    def onChallenge(self, challenge):
        if challenge.method == "ticket":
            return self.secret
        key = self.secret.encode()
        if "salt" in challenge.extra:
            key = derive_key(key, challenge.extra["salt"], challenge.extra["iterations"], challenge.extra["keylen"])
        return compute_wcs(key, challenge.extra["challenge"]).decode()

    def onWelcome(self, welcome):
        self.roles = welcome.roles

    def onJoin(self, details):
        self.details = details
        self.joined.set_result(self)

    def onLeave(self, details):
        if not self.joined.done():
            self.joined.set_exception(RuntimeError(f"{details.reason}: {details.message}"))
        self.disconnect()

    def onDisconnect(self):
        pass

    def onUserError(self, fail, msg):
        pass


async def connected(*who):
    loop = asyncio.get_running_loop()
    joined = loop.create_future()
    serializer = SERIALIZERS[GIVEN["serializer"]]()
    if GIVEN["transport"] == "websocket":
        factory = WampWebSocketClientFactory(lambda: Client(joined, *who), url=GIVEN["url"], serializers=[serializer])
        port = factory.port
    else:
        factory = WampRawSocketClientFactory(lambda: Client(joined, *who), serializer=serializer)
        port = int(GIVEN["url"].rpartition(":")[2])
    await loop.create_connection(factory, "127.0.0.1", port)
    return await asyncio.wait_for(joined, 20)


def plain(value):
    """Return a value as JSON can carry it."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


async def history(session, uri, match="exact", **kwargs):
    subscription = await session.call("wamp.subscription.lookup", uri, {"match": match})
    return await session.call(GET_EVENTS, subscription, **kwargs)


async def join(session):
    features = session.roles["broker"]
    details = session.details
    return {"event_history": features.event_history, "authrole": details.authrole, "authmethod": details.authmethod}


async def ticket(_):
    session = await connected("ticket", *GIVEN["ticket"])
    details = session.details
    session.leave()
    return {"authid": details.authid, "authrole": details.authrole}


async def wampcra(_):
    session = await connected("wampcra", *GIVEN["wampcra"])
    details = session.details
    session.leave()
    return {"authid": details.authid, "authrole": details.authrole}


async def live(session):
    events, subscriptions = [], {}
    patterns = {"exact": PREFIX + "live.one", "prefix": PREFIX + "live", "wildcard": PREFIX + ".one"}
    for match, pattern in patterns.items():

        def handler(*args, details, match=match, **kwargs):
            events.append(
                {
                    "match": match,
                    "publication": details.publication,
                    "subscription": details.subscription.id,
                    "topic": details.topic,
                    "args": plain(args),
                    "kwargs": plain(kwargs),
                }
            )

        subscribed = await session.subscribe(handler, pattern, SubscribeOptions(match=match, details=True))
        subscriptions[match] = subscribed.id
    options = PublishOptions(acknowledge=True, exclude_me=False)
    published = await session.publish(PREFIX + "live.one", 7, "x", b"\x00\xff\x80", price=12.5, options=options)
    await session.publish(PREFIX + "live.end", options=options)
    for _ in range(200):
        if len(events) >= 4:
            break
        await asyncio.sleep(0.01)
    first = [event for event in events if event["publication"] == published.id]
    records = {match: plain((await history(session, patterns[match], match)).results) for match in patterns}
    return {"published": published.id, "subscriptions": subscriptions, "events": first, "records": records}


async def rpc(session):
    def add(a, b):
        return a + b

    def refuse():
        raise ApplicationError(PREFIX + "error.refused", 1, why="no")

    def steps(count, details=None):
        for step in range(count):
            details.progress(step)
        return "done"

    await session.register(add, PREFIX + "add")
    await session.register(refuse, PREFIX + "refuse")
    await session.register(steps, PREFIX + "steps", RegisterOptions(details_arg="details"))
    other = await connected()
    parts = []
    result = await other.call(PREFIX + "steps", 3, options=CallOptions(on_progress=parts.append))
    try:
        await other.call(PREFIX + "refuse")
        error = None
    except ApplicationError as refused:
        error = [refused.error, list(refused.args), refused.kwargs]
    try:
        await other.call(PREFIX + "nothing")
        missing = None
    except ApplicationError as refused:
        missing = refused.error
    total = await other.call(PREFIX + "add", 2, 3)
    other.leave()
    return {"add": total, "refused": error, "missing": missing, "parts": parts, "result": result}


async def counts(session):
    found = []
    for count, name in enumerate(["none", "one", "two"]):
        topic = PREFIX + name
        await session.subscribe(lambda *_, **__: None, topic)
        for number in range(count):
            await session.publish(topic, number, options=PublishOptions(acknowledge=True))
        result = await history(session, topic)
        assert isinstance(result, CallResult), result
        found.append({"args": [event["args"] for event in result.results], "kwargs": result.kwresults})
    return found


async def hundred(session):
    topic = PREFIX + "hundred"
    subscribed = await session.subscribe(lambda *_, **__: None, topic)
    for number in range(100):
        await session.publish(topic, number, options=PublishOptions(acknowledge=True))
    return topic, subscribed.id


async def pages(session):
    _, subscription = await hundred(session)
    forwards, backwards, anchor = [], [], {}
    while True:
        result = await session.call(GET_EVENTS, subscription, limit=7, **anchor)
        forwards += [event["args"][0] for event in result.results]
        if not result.kwresults["more"]:
            break
        anchor = {"after_publication": result.results[-1]["publication"]}
    anchor = {}
    while True:
        result = await session.call(GET_EVENTS, subscription, limit=7, reverse=True, **anchor)
        backwards += [event["args"][0] for event in result.results]
        if not result.kwresults["more"]:
            break
        anchor = {"before_publication": result.results[-1]["publication"]}
    return {"forwards": forwards, "backwards": backwards}


async def arguments(session):
    topic = PREFIX + "hundred"
    events = (await history(session, topic)).results
    kwargs = {
        "reverse": True,
        "limit": 5,
        "from_time": events[10]["timestamp"],
        "after_time": events[5]["timestamp"],
        "before_time": events[99]["timestamp"],
        "until_time": events[98]["timestamp"],
        "topic": topic,
        "from_publication": events[20]["publication"],
        "after_publication": events[19]["publication"],
        "before_publication": events[91]["publication"],
        "until_publication": events[95]["publication"],
    }
    return [event["args"][0] for event in (await history(session, topic, **kwargs)).results]


async def many(session):
    parts, total = 0, 0

    def on_progress(*events, **_):
        nonlocal parts, total
        parts, total = parts + 1, total + len(events)

    subscription = await session.call("wamp.subscription.lookup", GIVEN["many"])
    result = await session.call(GET_EVENTS, subscription, options=CallOptions(on_progress=on_progress))
    rest = [] if isinstance(result, CallResult) and not result.results else result.results
    return {"parts": parts, "total": total + len(rest), "kwargs": result.kwresults}


async def main():
    session = await connected()
    for name in GIVEN["items"]:
        try:
            value = {"value": plain(await asyncio.wait_for(globals()[name](session), GIVEN.get("seconds", 120)))}
        except Exception:
            value = {"error": traceback.format_exc()}
        print(json.dumps({"item": name, **value}), flush=True)
    session.leave()
    await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main())
