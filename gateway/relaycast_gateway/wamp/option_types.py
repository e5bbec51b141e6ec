"""The types of the options and details that clients send, by message.

Law: a known option with a value of the wrong type is a protocol violation; unknown names are ignored. The user of an
option checks the meaning of its value. Source: WAMP specification, "Basic Profile" and "Advanced Profile".
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from relaycast_gateway.wamp.errors import WampProtocolError
from relaycast_gateway.wamp.messages import (
    MOST_ID,
    PAYLOAD_OPTIONS,
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

LONGEST_SHOWN = 60
"""Characters of a wrong value that an error repeats."""


class OptionType(NamedTuple):
    """The expected type of a value, and its check."""

    says: str
    fits: Callable[[Any], bool]


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 < value <= MOST_ID


BOOLEAN = OptionType("true or false", lambda value: type(value) is bool)
TEXT = OptionType("a text", lambda value: type(value) is str)
WHOLE = OptionType("a whole number", lambda value: type(value) is int)
TEXTS = OptionType("a list of texts", lambda value: type(value) is list and all(type(it) is str for it in value))
IDS = OptionType("a list of session ids", lambda value: type(value) is list and all(map(_is_id, value)))
OBJECT = OptionType("an object", lambda value: type(value) is dict)
OBJECTS = OptionType("a list of objects", lambda value: type(value) is list and all(type(it) is dict for it in value))

_PAYLOAD = dict.fromkeys(PAYLOAD_OPTIONS, TEXT)
_PASSED = {**_PAYLOAD, "forward_for": OBJECTS}

OPTION_TYPES: Mapping[type[WampMessage], Mapping[str, OptionType]] = {
    HelloMessage: {
        "roles": OBJECT,
        "agent": TEXT,
        "authid": TEXT,
        "authrole": TEXT,
        "authmethods": TEXTS,
        "authextra": OBJECT,
    },
    AbortMessage: {"message": TEXT},
    GoodbyeMessage: {"message": TEXT, "resumable": BOOLEAN},
    PublishMessage: {
        **dict.fromkeys(("acknowledge", "exclude_me", "disclose_me", "retain"), BOOLEAN),
        **dict.fromkeys(("exclude", "eligible"), IDS),
        **dict.fromkeys(("exclude_authid", "exclude_authrole", "eligible_authid", "eligible_authrole"), TEXTS),
        "transaction_hash": TEXT,
        **_PASSED,
    },
    SubscribeMessage: {"match": TEXT, "get_retained": BOOLEAN, "forward_for": OBJECTS},
    RegisterMessage: {
        "match": TEXT,
        "invoke": TEXT,
        "concurrency": WHOLE,
        "disclose_caller": BOOLEAN,
        "force_reregister": BOOLEAN,
        "forward_for": OBJECTS,
    },
    CallMessage: {
        **dict.fromkeys(("receive_progress", "progress", "disclose_me"), BOOLEAN),
        "timeout": WHOLE,
        "transaction_hash": TEXT,
        **_PASSED,
    },
    CancelMessage: {"mode": TEXT, "forward_for": OBJECTS},
    YieldMessage: {"progress": BOOLEAN, **_PASSED},
    ErrorMessage: _PASSED,
}


def check_options(message: WampMessage) -> None:
    """Raise ``WampProtocolError`` for a value of the wrong type. In HELLO, ``null`` means that a detail is absent."""
    types = OPTION_TYPES.get(type(message))
    if types is None:
        return
    given: Mapping[str, Any] = getattr(message, "options", None) or getattr(message, "details", None) or {}
    for name, value in given.items():
        kind = types.get(name)
        if kind is None or kind.fits(value) or (value is None and type(message) is HelloMessage):
            continue
        shown = repr(value)
        if len(shown) > LONGEST_SHOWN:
            shown = f"{shown[:LONGEST_SHOWN]}..."
        word = type(message).__name__.removesuffix("Message").upper()
        raise WampProtocolError(f"{word}: {name}: expected {kind.says}, got {shown}")
