"""A protocol beyond the six of the text."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.cloudevents.served_gateway import Api, served, visit
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.protocol_plugin import ProtocolPlugin, add_protocol
from relaycast_gateway.cloudevents.protocol_settings import ProtocolSetting
from relaycast_gateway.delivery.sender import Accepted, SendOutcome, Target
from relaycast_gateway.delivery.sink_guard import SinkGuard
from relaycast_gateway.delivery.wire_message import WireMessage
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.log import UnusableLog

SENT: list[tuple[Target, WireMessage]] = []


class PigeonSender:
    """Sends by notes in a list."""

    def __init__(self, target: Target, _guard: SinkGuard) -> None:
        self._target = target

    async def send(self, message: WireMessage) -> SendOutcome:
        SENT.append((self._target, message))
        return Accepted()

    async def close(self) -> None:
        """Nothing is held."""


def colour(member: str, value: object) -> object:
    if value not in {"white", "grey"}:
        raise InvalidMember(member, repr(value), "white or grey")
    return value


PIGEON = ProtocolPlugin(
    "PIGEON",
    {"pigeon": 1149},
    "pigeon://loft.example.com/north",
    f"{__name__}:PigeonSender",
    {"colour": ProtocolSetting("String", "of the bird", colour, "grey", choices=("white", "grey"))},
)


@pytest.mark.matrix("CE-28")
def test_a_protocol_is_plugged_in_and_taken_back() -> None:
    async def work(api: Api) -> None:
        sink: dict[str, Any] = {"protocol": "PIGEON", "sink": "pigeon://127.0.0.1/north"}
        assert (await api.refused("POST", "/subscriptions", sink))["member"] == "protocol"
        remove = add_protocol(PIGEON)
        try:
            made = await api.create(**sink)
            assert made["protocolsettings"] == {"colour": "grey"}
            wrong = await api.refused("POST", "/subscriptions", sink | {"protocolsettings": {"colour": "red"}})
            assert wrong["member"] == "protocolsettings.colour"
            assert "PIGEON" in (await api.ask("GET", "/services")).json["protocols"]
            document = (await api.ask("GET", "/openapi.json")).json
            assert "PIGEON" in document["components"]["schemas"]["Subscription"]["properties"]["protocol"]["enum"]
            api.publish("x")
            await api.settled()
            ((target, message),) = SENT
            assert target.sink == "pigeon://127.0.0.1:1149/north"
            assert message.body == b'"x"'
        finally:
            remove()
        assert (await api.refused("POST", "/subscriptions", sink))["member"] == "protocol"

    visit(work, senders=None)


def test_a_stored_subscription_whose_protocol_is_gone_is_named(tmp_path: Path) -> None:
    async def run() -> str:
        remove = add_protocol(PIGEON)
        try:
            async with served(folder=tmp_path) as api:
                return str((await api.create(protocol="PIGEON", sink="pigeon://127.0.0.1/north"))["id"])
        finally:
            remove()

    name = asyncio.run(run())
    with pytest.raises(UnusableLog, match=f"subscription {name}: "):
        Gateway.open(tmp_path)


def test_names_and_schemes_are_used_once() -> None:
    with pytest.raises(ValueError, match="protocol HTTP: got a name in use"):
        add_protocol(ProtocolPlugin("HTTP", {}, "", "a:b"))
    with pytest.raises(ValueError, match="protocol X: got the scheme http, which is in use"):
        add_protocol(ProtocolPlugin("X", {"http": 80}, "", "a:b"))
