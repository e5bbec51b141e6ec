"""autobahn-python, swampyer, autobahn-js and wampy.js use the router over all that they know."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from relaycast_gateway.rfc3339 import parse_time
from wamp_clients.clients import CLIENTS, MATRIX, done
from wamp_clients.router_process import PREFIX, REALM, RouterProcess, given, router
from wamp_load import Wire, frames, pipelined

pytestmark = pytest.mark.brokers

MANY = 100_000
MANY_TOPIC = f"{PREFIX}many"
ITEMS = ("join", "ticket", "wampcra", "live", "rpc", "counts", "pages", "arguments")
WITHOUT_WAMPCRA = {"swampyer"}
"""It proves who it is with tickets only."""

WITHOUT_PROGRESS = {"autobahn-js", "wampy"}
"""Their callees cannot be cancelled, so that the protocol lets them give no parts of a result."""

ONLY_PLAIN_CALLS = {"swampyer"}
"""Its callees give no parts of a result, and errors with their own URI only."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterProcess]:
    with router(tmp_path_factory.mktemp("router")) as it:
        yield it


Results = Mapping[str, Any]


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, running: RouterProcess) -> Results:
    """What one client did; it does all of its items once for the tests of this file."""
    name, carrier, serializer = request.param
    items = [it for it in ITEMS if it != "wampcra" or name not in WITHOUT_WAMPCRA]
    prefix = f"{name}-{carrier}-{serializer}".replace("-", "_")
    return {
        "name": name,
        "serializer": serializer,
        **done(name, carrier, running.ports, given(prefix, serializer, items)),
    }


with_each_client = pytest.mark.parametrize("results", MATRIX, ids="-".join, indirect=True, scope="module")


@with_each_client
@pytest.mark.matrix("WAMP-13", "WAMP-62", "WAMP-69")
def test_a_client_joins_and_learns_that_there_is_history(results: Results) -> None:
    assert results["join"] == {"event_history": True, "authrole": "anonymous", "authmethod": "anonymous"}


@with_each_client
@pytest.mark.matrix("WAMP-62", "WAMP-69")
def test_a_client_proves_who_it_is(results: Results) -> None:
    assert results["ticket"] == {"authid": "tina", "authrole": "user"}
    if results["name"] not in WITHOUT_WAMPCRA:
        assert results["wampcra"] == {"authid": "clara", "authrole": "user"}


def binary(results: Results) -> object:
    """Return bytes as the client shows them: those in JavaScript, and swampyer, leave JSON's form as it is."""
    as_text = results["serializer"] == "json" and results["name"] != "autobahn-python"
    return "\0AP+A" if as_text else {"hex": "00ff80"}


@with_each_client
@pytest.mark.matrix("WAMP-63", "WAMP-69")
def test_a_client_gets_the_events_of_its_patterns(results: Results) -> None:
    live = results["live"]
    events = {event["match"]: event for event in live["events"]}
    assert events.keys() == {"exact", "prefix", "wildcard"}
    assert len(live["events"]) == 3
    for match, event in events.items():
        assert event["publication"] in {live["published"], None}  # wampy.js tells no publication
        assert event["subscription"] == live["subscriptions"][match]
        assert event["args"] == [7, "x", binary(results)]
        assert event["kwargs"] == {"price": 12.5}
        if match != "exact":
            assert event["topic"].endswith(".live.one")


@with_each_client
@pytest.mark.matrix("WAMP-36", "WAMP-37", "WAMP-69")
def test_the_history_holds_what_a_client_got(results: Results) -> None:
    live = results["live"]
    for match, records in live["records"].items():
        record = records[0]
        assert record.keys() == {"timestamp", "subscription", "publication", "details", "args", "kwargs"}
        assert parse_time(record["timestamp"]) > 0
        assert record["publication"] == live["published"]
        assert record["subscription"] == live["subscriptions"][match]
        assert record["details"].keys() <= {"topic"}
        assert record["args"] == [7, "x", binary(results)]
        assert record["kwargs"] == {"price": 12.5}


@with_each_client
@pytest.mark.matrix("WAMP-64", "WAMP-69")
def test_a_client_offers_procedures_that_another_one_calls(results: Results) -> None:
    rpc = results["rpc"]
    assert rpc["add"] == 5
    assert rpc["missing"] == "wamp.error.no_such_procedure"
    if results["name"] not in ONLY_PLAIN_CALLS:
        assert rpc["parts"] == ([] if results["name"] in WITHOUT_PROGRESS else [0, 1, 2])
        assert rpc["result"] == "done"
        uri, args, kwargs = rpc["refused"]
        assert uri.endswith(".error.refused")
        assert (args, kwargs) == ([1], {"why": "no"})


@with_each_client
@pytest.mark.matrix("WAMP-38", "WAMP-39", "WAMP-69")
def test_a_history_of_no_one_and_two_events_has_one_shape(results: Results) -> None:
    for count, found in enumerate(results["counts"]):
        assert found["args"] == [[number] for number in range(count)]
        assert found["kwargs"]["count"] == count
        assert found["kwargs"]["more"] is False
        assert (found["kwargs"]["history_start"] is None) == (count == 0)


@with_each_client
@pytest.mark.matrix("WAMP-31", "WAMP-32", "WAMP-69")
def test_a_client_pages_through_a_history_in_both_directions(results: Results) -> None:
    assert results["pages"] == {"forwards": list(range(100)), "backwards": list(range(99, -1, -1))}


@with_each_client
@pytest.mark.matrix("WAMP-33", "WAMP-69")
def test_a_client_gives_all_eleven_arguments_at_once(results: Results) -> None:
    assert results["arguments"] == [90, 89, 88, 87, 86]


@pytest.fixture(scope="module")
def long_history(running: RouterProcess) -> RouterProcess:
    """The router with many events of one topic."""
    publisher = Wire(running.ports["rawsocket"], "msgpack").join(REALM)
    pipelined(publisher, frames(publisher, MANY_TOPIC, ["abc"], {}, MANY), MANY, 1_000)
    publisher.close()
    return running


@pytest.mark.matrix("WAMP-40", "WAMP-69")
@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("serializer", ["json", "msgpack", "cbor"])
def test_a_client_reads_many_events(long_history: RouterProcess, name: str, serializer: str) -> None:
    told = given("many", serializer, ["many"], many=MANY_TOPIC)
    many = done(name, "websocket", long_history.ports, told)["many"]
    assert many["total"] == MANY
    assert many["parts"] > 1
    assert many["kwargs"]["more"] is False
