"""Who receives which event: by subscription, by lists of a publication, by options of plug-ins."""

from typing import Any

import pytest

from gateway.wamp.broker_peers import Town, in_town
from relaycast_gateway.wamp.publication_options import Reception


@pytest.mark.matrix("WAMP-63")
@pytest.mark.parametrize("topic", ["com.shop.price", "kept.price"])
def test_events_go_to_exact_prefix_and_wildcard_subscriptions(topic: str) -> None:
    async def visit(town: Town) -> None:
        reader, writer, other = town.session(), town.session(), town.session()
        first = topic.rpartition(".")[0]
        ids = [
            reader.subscribe(topic),
            reader.subscribe(first, match="prefix"),
            reader.subscribe(f"{first}.", match="prefix"),
            reader.subscribe(".".join(["", *topic.split(".")[1:]]), match="wildcard"),
        ]
        other.subscribe(f"{topic}s")
        other.subscribe("", match="wildcard")
        writer.publish(topic, ["x"], {"a": 1}, acknowledge=True)
        await town.settle()
        (pub_id,) = writer.published
        assert [(it.subscription, it.publication, it.args, it.kwargs) for it in reader.events] == [
            (each, pub_id, ["x"], {"a": 1}) for each in ids
        ]
        assert [it.details for it in reader.events] == [{}, *[{"topic": topic}] * 3]
        assert not other.events

    in_town(visit)


@pytest.mark.matrix("WAMP-63")
def test_a_publisher_receives_its_own_event_only_without_exclude_me() -> None:
    async def visit(town: Town) -> None:
        only = town.session()
        only.subscribe("a.b")
        only.publish("a.b", [1])
        only.publish("a.b", [2], exclude_me=True)
        only.publish("a.b", [3], exclude_me=False)
        assert [it.args for it in only.events] == [[3]]

    in_town(visit)


@pytest.mark.parametrize("topic", ["a.b", "kept.b"])
@pytest.mark.parametrize(
    ("options", "receivers"),
    [
        ({}, "ABC"),
        ({"exclude": [1]}, "BC"),
        ({"exclude": []}, "ABC"),
        ({"eligible": [1, 3, 99]}, "AC"),
        ({"eligible": []}, ""),
        ({"exclude_authid": ["ann"]}, "BC"),
        ({"exclude_authid": []}, "ABC"),
        ({"eligible_authid": ["ann", "bob"]}, "AB"),
        ({"eligible_authid": []}, ""),
        ({"exclude_authrole": ["user"]}, "C"),
        ({"eligible_authrole": ["admin"]}, "C"),
        ({"eligible_authrole": ["user"], "exclude_authid": ["ann"]}, "B"),
        ({"eligible": [1, 2], "eligible_authrole": ["admin"]}, ""),  # each list that is given must hold
        ({"eligible": [1, 2], "exclude": [2]}, "A"),
    ],
)
@pytest.mark.matrix("WAMP-63")
def test_lists_choose_the_receivers(topic: str, options: dict[str, Any], receivers: str) -> None:
    async def visit(town: Town) -> None:
        sessions = {"A": town.session("ann"), "B": town.session("bob"), "C": town.session("cleo", "admin")}
        assert [it.identity.session for it in sessions.values()] == [1, 2, 3]
        for session in sessions.values():
            session.subscribe(topic)
        town.session().publish(topic, ["x"], **options)
        await town.settle()
        assert "".join(name for name, it in sessions.items() if it.events) == receivers

    in_town(visit)


@pytest.mark.parametrize(
    ("options", "stored"),
    [
        pytest.param({"exclude": [1]}, False, marks=pytest.mark.matrix("WAMP-54")),
        pytest.param({"exclude": []}, False, marks=pytest.mark.matrix("WAMP-54")),  # a list is a list
        pytest.param({"eligible": [2]}, False, marks=pytest.mark.matrix("WAMP-55")),
        pytest.param({"eligible": []}, False, marks=pytest.mark.matrix("WAMP-55")),
        pytest.param({"x_region": "north"}, False, marks=pytest.mark.matrix("WAMP-56")),
        pytest.param({"exclude_me": True}, True, marks=pytest.mark.matrix("WAMP-58")),
        ({"exclude_me": False}, True),
        ({"eligible_authrole": ["admin"], "exclude_authid": ["ann"]}, True),
    ],
)
def test_what_sessions_may_receive_is_not_stored_if_it_ends_with_them(options: dict[str, Any], stored: bool) -> None:
    async def visit(town: Town) -> None:
        writer = town.session()
        writer.publish("kept.a", ["x"], acknowledge=True, **options)
        await town.settle()
        assert len(writer.published) == 1
        assert town.log.last_seq == (1 if stored else 0)

    in_town(visit, ephemeral={"x_region": _of_region})


def _of_region(value: Any) -> Reception:
    if value not in ("north", "south"):
        raise ValueError(f"expected north or south, got {value}")
    return lambda identity: (identity.session % 2 == 0) == (value == "north")


@pytest.mark.matrix("WAMP-56")
def test_an_option_of_a_plug_in_chooses_receivers() -> None:
    async def visit(town: Town) -> None:
        first, second, writer = (town.session() for _ in range(3))
        for session in (first, second):
            session.subscribe("kept.a")
        writer.publish("kept.a", ["x"], x_region="north")
        writer.publish("kept.a", ["x"], x_region="west", acknowledge=True)
        assert (len(first.events), len(second.events)) == (0, 1)
        assert writer.errors == ["wamp.error.invalid_argument"]

    in_town(visit, ephemeral={"x_region": _of_region})


def test_who_cannot_be_sent_an_event_keeps_nobody_from_it() -> None:
    async def visit(town: Town) -> None:
        reader, picky = town.session(), town.session(serializer="cbor")
        for session in (picky, reader):
            session.subscribe("a.b")
        town.serializers["cbor"].encode = _fail  # type: ignore[method-assign]
        town.session().publish("a.b", [1], acknowledge=True)
        assert (len(reader.events), len(picky.events)) == (1, 0)

    in_town(visit)


def _fail(message: object) -> bytes:
    raise OverflowError("no form for it")
