"""What is sent over HTTP, the SDKs of CloudEvents in Python and in JavaScript understand."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from brokers.deliveries import EVENT, message, send, target
from brokers.sdk_receivers import Receiver, javascript_receiver, python_receiver
from relaycast_gateway.delivery.sender import Accepted
from relaycast_gateway.delivery.wire_message import ContentMode

pytestmark = pytest.mark.brokers

MODES: tuple[ContentMode, ...] = ("binary", "structured")


@pytest.fixture(scope="module", params=["python", "javascript"])
def receiver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    if request.param == "python":
        with python_receiver() as it:
            yield it
    else:
        with javascript_receiver(tmp_path_factory.mktemp("javascript")) as it:
            yield it


LARGE = {"text": "ë" * 32_000}

CONTENTS: dict[str, tuple[str, bytes, Any]] = {
    "json": ("application/json", b'{"key":[1,2.5,null,"\xc3\xab"]}', {"key": [1, 2.5, None, "ë"]}),
    "json with suffix": ("application/vnd.x+json", b'{"a":true}', {"a": True}),
    "text": ("text/plain", "Grüße, Welt".encode(), "Grüße, Welt"),
    "binary": ("application/octet-stream", bytes(range(256)), bytes(range(256))),
    "64 KiB": ("application/json", json.dumps(LARGE, ensure_ascii=False).encode(), LARGE),
}


@pytest.mark.matrix("CE-60", "CE-101")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("content", CONTENTS)
def test_the_sdk_reads_what_was_sent(receiver: Receiver, mode: ContentMode, content: str) -> None:
    content_type, data, expected = CONTENTS[content]
    sent = message("HTTP", mode, data, datacontenttype=content_type)
    assert send(target("HTTP", f"http://127.0.0.1:{receiver.port}/events"), sent) == [Accepted()]
    understood = receiver.take()
    as_text = isinstance(understood.data, str) and not isinstance(expected, str)  # JavaScript's leaves +json as it is
    assert (json.loads(understood.data) if as_text else understood.data) == expected
    attributes = understood.attributes
    assert {name: attributes[name] for name in ("specversion", "id", "source", "type", "subject")} == {
        name: EVENT[name] for name in ("specversion", "id", "source", "type", "subject")
    }
    assert attributes["datacontenttype"] == content_type
    assert attributes["time"].startswith("2026-01-01T00:00:00.123")
    assert str(attributes["blocknumber"]) == "7"
    assert str(attributes["zone"]).lower() == "true"
