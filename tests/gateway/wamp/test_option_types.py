"""Options and details: a known name has its type or the session ends, and an unknown name is ignored."""

from itertools import count
from typing import Any

import cbor2
import pytest

from gateway.wamp.dealt_sessions import in_loop
from gateway.wamp.historic_realm import SERIALIZERS, HistoricRealm
from gateway.wamp.memory_link import ROLES, MemoryLink
from gateway.wamp.message_bytes import PUBLISH
from relaycast_gateway.wamp import WampProtocolError, deserialize
from relaycast_gateway.wamp.errors import PROTOCOL_VIOLATION
from relaycast_gateway.wamp.messages import (
    AbortMessage,
    CallMessage,
    CancelMessage,
    ErrorMessage,
    GoodbyeMessage,
    HelloMessage,
    PublishMessage,
    RegisterMessage,
    SubscribeMessage,
    WampMessage,
    YieldMessage,
)
from relaycast_gateway.wamp.option_types import BOOLEAN, IDS, OBJECT, OBJECTS, OPTION_TYPES, TEXT, TEXTS, WHOLE
from relaycast_gateway.wamp.serializers import serializer_named
from relaycast_gateway.wamp.session import Session

WRONG: dict[Any, list[Any]] = {
    BOOLEAN: ["yes", 1, 0, [], {}, 1.0, None],
    TEXT: [1, True, [], {}, b"a", None],
    WHOLE: ["1", True, 1.5, [], None],
    TEXTS: ["a", [1], [None], {}, 1, None],
    IDS: [1, ["1"], [0], [1 << 54], [True], {}, None],
    OBJECT: ["a", [], 1, True],
    OBJECTS: [{}, ["a"], "a", 1, None],
}
numbers = count(1)


def message(kind: type[WampMessage], options: dict[str, Any]) -> WampMessage:
    makers: dict[type[WampMessage], Any] = {
        HelloMessage: lambda: HelloMessage("shop", {"roles": ROLES, **options}),
        AbortMessage: lambda: AbortMessage(options, "a.b"),
        GoodbyeMessage: lambda: GoodbyeMessage(options, "a.b"),
        PublishMessage: lambda: PublishMessage(1, options, "com.shop.a"),
        SubscribeMessage: lambda: SubscribeMessage(1, options, "com.shop.a"),
        RegisterMessage: lambda: RegisterMessage(1, options, "com.shop.a"),
        CallMessage: lambda: CallMessage(1, options, "com.shop.a"),
        CancelMessage: lambda: CancelMessage(1, options),
        YieldMessage: lambda: YieldMessage(1, options),
        ErrorMessage: lambda: ErrorMessage(68, 1, options, "a.b"),
    }
    found: WampMessage = makers[kind]()
    return found


def answers(realm: HistoricRealm, kind: type[WampMessage], options: dict[str, Any], serializer: str) -> list[Any]:
    """Return what a session is told after a message with these options."""
    coder = serializer_named(serializer)
    if kind is HelloMessage:
        link = MemoryLink(serializer)
        session = Session(
            next(numbers), link, coder, realm_named=lambda _: realm, on_end=lambda _: None, clock=realm.clock
        )
    else:
        client = realm.client(serializer=serializer)
        session, link = client.session, client.link
    session.receive(coder.encode(message(kind, options)))
    return link.sent


@pytest.mark.parametrize("serializer", SERIALIZERS)
@pytest.mark.parametrize("kind", OPTION_TYPES, ids=lambda kind: kind.__name__)
@in_loop
async def test_an_option_of_another_type_ends_the_session_with_its_name(
    kind: type[WampMessage], serializer: str
) -> None:
    with HistoricRealm() as realm:
        for name, wanted in OPTION_TYPES[kind].items():
            for value in WRONG[wanted]:
                if value is None and kind is HelloMessage:
                    continue
                aborted = answers(realm, kind, {name: value}, serializer)[-1]
                assert isinstance(aborted, AbortMessage), (name, value, aborted)
                assert aborted.reason == PROTOCOL_VIOLATION
                assert f"{name}: expected {wanted.says}, got " in aborted.details["message"]


@pytest.mark.parametrize("kind", [it for it in OPTION_TYPES if it is not AbortMessage], ids=lambda kind: kind.__name__)
@in_loop
async def test_options_of_unknown_names_are_ignored(kind: type[WampMessage]) -> None:
    told: list[list[type]] = []
    for options in ({"_x": 1, "future": [None], "acknowledged": "yes"}, {}):
        with HistoricRealm() as realm:
            told.append([type(it) for it in answers(realm, kind, options, "json")])
    assert told[0] == told[1]


TAGGED = [
    (4, [-2, 12_345]),
    (5, [1, 3]),
    (30, [1, 3]),
    (35, "a.*"),
    (37, bytes(16)),
    (100, 5),
    (258, [1, 2]),
    (260, bytes(4)),
    (1_004, "2026-01-01"),
    (43_000, [1.0, 2.0]),
    (65_000, "anything"),
    (28, []),
]


@pytest.mark.parametrize(("tag", "content"), TAGGED)
def test_a_tag_of_cbor_that_wamp_does_not_have_is_refused_by_its_number(tag: int, content: Any) -> None:
    for value in (content, [content]):
        data = PUBLISH + b"\x81" + cbor2.dumps(cbor2.CBORTag(tag, value))
        with pytest.raises(WampProtocolError, match=f"got CBOR tag {tag}"):
            deserialize(data, "cbor")
