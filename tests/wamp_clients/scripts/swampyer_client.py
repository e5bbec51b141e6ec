"""swampyer as a client: does one item after the other, and prints what came of each as a line of JSON.

Its ``call`` returns the first positional result only, so results are read from the message that it waits for. It drops
all parts of a progressive result but one, so many events are read in pages.
"""

import json
import sys
import time
import traceback

import swampyer
from swampyer.messages import CALL, WAMP_RESULT

GET_EVENTS = "wamp.subscription.get_events"
GIVEN = json.loads(sys.argv[1])
PREFIX = GIVEN["prefix"]
SETTINGS = {
    "url": GIVEN["url"],
    "realm": GIVEN["realm"],
    "serializers": [GIVEN["serializer"]],
    "auto_reconnect": False,
    "loop_timeout": 1,
    "timeout": 60,
}


def connected():
    client = swampyer.WAMPClient(**SETTINGS)
    client.start()
    deadline = time.monotonic() + 20
    while client.session_id is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return client


def plain(value):
    """Return a value as JSON can carry it."""
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def call(client, procedure, *args, **kwargs):
    """Return the whole RESULT of a call, or its ERROR's URI as an exception."""
    message = client.send_and_await_response(CALL(options={}, procedure=procedure, args=args, kwargs=kwargs))
    if message != WAMP_RESULT:
        raise RuntimeError(message.error, message.args)
    return message


def history(client, uri, match="exact", **kwargs):
    subscription = call(client, "wamp.subscription.lookup", uri, {"match": match}).args[0]
    return call(client, GET_EVENTS, subscription, **kwargs)


def join(client):
    details = client.peer.details
    features = details["roles"]["broker"]["features"]
    return {
        "event_history": features.get("event_history"),
        "authrole": details["authrole"],
        "authmethod": details["authmethod"],
    }


def ticket(_):
    authid, secret = GIVEN["ticket"]
    client = swampyer.WAMPClientTicket(username=authid, password=secret, **SETTINGS)
    client.start()
    deadline = time.monotonic() + 20
    while client.session_id is None and time.monotonic() < deadline:
        time.sleep(0.01)
    details = client.peer.details
    client.disconnect()
    return {"authid": details["authid"], "authrole": details["authrole"]}


def live(client):
    events, subscriptions = [], {}
    patterns = {"exact": PREFIX + "live.one", "prefix": PREFIX + "live", "wildcard": PREFIX + ".one"}
    for match, pattern in patterns.items():

        def handler(event, *args, match=match, **kwargs):
            events.append(
                {
                    "match": match,
                    "publication": event.publish_id,
                    "subscription": event.subscription_id,
                    "topic": event.details.get("topic"),
                    "args": plain(args),
                    "kwargs": plain(kwargs),
                }
            )

        subscriptions[match] = client.subscribe(pattern, handler, {"match": match}).subscription_id
    options = {"acknowledge": True, "exclude_me": False}
    binary = "\0AP+A" if GIVEN["serializer"] == "json" else b"\x00\xff\x80"
    published = client.publish(PREFIX + "live.one", options, [7, "x", binary], {"price": 12.5}).publication_id
    client.publish(PREFIX + "live.end", options)
    deadline = time.monotonic() + 5
    while len(events) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    first = [event for event in events if event["publication"] == published]
    records = {match: plain(history(client, patterns[match], match).args) for match in patterns}
    return {"published": published, "subscriptions": subscriptions, "events": first, "records": records}


def rpc(client):
    client.register(PREFIX + "add", lambda _, a, b: a + b)
    other = connected()
    try:
        call(other, PREFIX + "nothing")
        missing = None
    except RuntimeError as error:
        missing = error.args[0]
    total = call(other, PREFIX + "add", 2, 3).args[0]
    other.disconnect()
    return {"add": total, "missing": missing}


def publish(client, topic, *args):
    client.publish(topic, {"acknowledge": True}, list(args))


def counts(client):
    found = []
    for count, name in enumerate(["none", "one", "two"]):
        topic = PREFIX + name
        client.subscribe(topic)
        for number in range(count):
            publish(client, topic, number)
        result = history(client, topic)
        found.append({"args": [event["args"] for event in result.args], "kwargs": result.kwargs})
    return found


def pages(client):
    topic = PREFIX + "hundred"
    subscription = client.subscribe(topic).subscription_id
    for number in range(100):
        publish(client, topic, number)
    forwards, backwards, anchor = [], [], {}
    while True:
        result = call(client, GET_EVENTS, subscription, limit=7, **anchor)
        forwards += [event["args"][0] for event in result.args]
        if not result.kwargs["more"]:
            break
        anchor = {"after_publication": result.args[-1]["publication"]}
    anchor = {}
    while True:
        result = call(client, GET_EVENTS, subscription, limit=7, reverse=True, **anchor)
        backwards += [event["args"][0] for event in result.args]
        if not result.kwargs["more"]:
            break
        anchor = {"before_publication": result.args[-1]["publication"]}
    return {"forwards": forwards, "backwards": backwards}


def arguments(client):
    topic = PREFIX + "hundred"
    events = history(client, topic).args
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
    return [event["args"][0] for event in history(client, topic, **kwargs).args]


def many(client):
    subscription = call(client, "wamp.subscription.lookup", GIVEN["many"]).args[0]
    parts, total, anchor = 0, 0, {}
    while True:
        result = call(client, GET_EVENTS, subscription, **anchor)
        parts, total = parts + 1, total + len(result.args)
        if not result.kwargs["more"]:
            return {"parts": parts, "total": total, "kwargs": result.kwargs}
        anchor = {"after_publication": result.args[-1]["publication"]}


def main():
    client = connected()
    for name in GIVEN["items"]:
        try:
            value = {"value": plain(globals()[name](client))}
        except Exception:
            value = {"error": traceback.format_exc()}
        print(json.dumps({"item": name, **value}), flush=True)
    client.disconnect()


if __name__ == "__main__":
    main()
