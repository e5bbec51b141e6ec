"""Messages as bytes of each serializer, and what every test of serializers runs with."""

import json
from collections.abc import Callable
from typing import Any

import cbor2
import msgspec
import pytest

from relaycast_gateway.wamp.serializers import SERIALIZER_NAMES

each_serializer = pytest.mark.parametrize("name", SERIALIZER_NAMES)

PUBLISH = b"\x85\x10\x01\xa0\x61a"
"""``PUBLISH`` in CBOR, up to its arguments."""


def json_of(elements: Any) -> bytes:
    return json.dumps(elements).encode()


ENCODE: dict[str, Callable[[Any], bytes]] = {
    "json": json_of,
    "msgpack": msgspec.msgpack.encode,
    "cbor": cbor2.dumps,
}
