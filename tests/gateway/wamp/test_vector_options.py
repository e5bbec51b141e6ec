"""The messages of the protocol's vectors that have a name there and no bytes: options, right and wrong ones."""

import json
import re
from typing import Any

import pytest

from gateway.wamp.served_router import ServedRouter, play
from relaycast_gateway.wamp import deserialize, serialize
from relaycast_gateway.wamp.client.client import WampClient
from relaycast_gateway.wamp.client.values import SessionEnded
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, WampError
from relaycast_gateway.wamp.serializers import SERIALIZER_NAMES
from shared_vectors import shared

RIGHT: dict[str, list[Any]] = {
    "acknowledge": [True, False],
    "exclude_me": [True, False],
    "exclude": [[], [12345, 2**53]],
    "exclude_authid": [[], ["alice", "bob"]],
    "exclude_authrole": [["admin"]],
    "eligible": [[], [12345]],
    "eligible_authid": [[], ["alice"]],
    "eligible_authrole": [["user"]],
    "retain": [True, False],
    "retained": [True, False],
    "get_retained": [True, False],
    "match": ["exact", "prefix", "wildcard"],
    "transaction_hash": ["0x1234"],
    "forward_for": [[], [{"session": 1, "authid": "r", "authrole": "router"}]],
    "enc_algo": ["cryptobox"],
    "enc_serializer": ["cbor"],
    "publisher": [1234],
    "publisher_authid": ["alice"],
    "publisher_authrole": ["admin"],
    "topic": ["com.app.topic"],
    "x_acknowledged_delivery": [True],
}
"""Values that are right, one list for each option that has a vector."""

WRONG = {
    "type string": "wrong",
    "type int": 123,
    "item type string": ["wrong"],
    "item type int": [123],
    "value": "wrong",
}

NOT_LOOKED_AT = {
    "enc_algo": "a payload that is passed through is the clients' own matter",
}
"""Wrong values that the router does not refuse, and why."""


def vectors(message: str) -> list[tuple[str, str]]:
    """Return each option of a message with what the vector says of it."""
    every = json.loads(shared("vectors/wamp/messages.json").read_text())["messages"]
    says = [each["says"] for each in every if not each["bytes"]["json"] and each["message"] == message]
    found = [re.fullmatch(rf"{message}\.\w+\.(\w+) (.*)", each) for each in says]
    return [(each[1], each[2]) for each in found if each is not None]


def wrong_value(said: str) -> Any:
    return WRONG[said.partition("invalid ")[2]]


@pytest.mark.matrix("WAMP-60")
def test_every_vector_without_bytes_is_used_here() -> None:
    counts = {message: len(vectors(message)) for message in ("EVENT", "PUBLISH", "SUBSCRIBE")}
    assert counts == {"EVENT": 21, "PUBLISH": 35, "SUBSCRIBE": 11}
    assert {option for message in counts for option, _ in vectors(message)} == RIGHT.keys()


async def ask(client: WampClient, message: str, option: str, value: Any) -> None:
    if message == "PUBLISH":
        await client.publish("com.app.topic", ["payload"], **{"acknowledge": True, option: value})
    else:
        await client.subscribe("com.app.topic", print, **{option: value})


@pytest.mark.matrix("WAMP-60")
@pytest.mark.parametrize("serializer", SERIALIZER_NAMES)
@pytest.mark.parametrize("message", ["PUBLISH", "SUBSCRIBE"])
def test_the_router_takes_right_options_and_refuses_wrong_ones(message: str, serializer: str) -> None:
    async def scene(it: ServedRouter) -> None:
        client = await it.client("rawsocket", serializer)
        for option, said in vectors(message):
            if "invalid" not in said:
                for value in RIGHT[option]:
                    await ask(client, message, option, value)
            elif option in NOT_LOOKED_AT:
                await ask(client, message, option, wrong_value(said))
            elif said.endswith("invalid value"):
                with pytest.raises(WampError) as refused:
                    await ask(client, message, option, wrong_value(said))
                assert refused.value.uri == INVALID_ARGUMENT, (option, said)
            elif option != "acknowledge":  # the client sends nothing but a boolean: see test_option_types
                with pytest.raises(SessionEnded, match=f"protocol_violation: {message}: {option}: expected"):
                    await ask(client, message, option, wrong_value(said))
                client = await it.client("rawsocket", serializer)

    play(scene)


@pytest.mark.matrix("WAMP-60")
@pytest.mark.parametrize("serializer", SERIALIZER_NAMES)
def test_details_of_events_are_read_and_written(serializer: str) -> None:
    for option, said in vectors("EVENT"):
        for value in RIGHT[option] if "invalid" not in said else [wrong_value(said)]:
            event = [36, 5512315355, 4429313566, {option: value}, ["Hello"]]
            assert deserialize(serialize(event, serializer), serializer) == event
