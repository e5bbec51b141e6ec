"""Requests for replays: what is refused and why, who is told, how a replay lives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.icrc.replay_office import (
    ADMIN,
    ARCHIVE,
    FAR_HUB,
    HUB,
    NAMESPACE,
    PUBLISHER,
    READER,
    STRANGER,
    ReplayOffice,
    registration,
    replay_office,
)
from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.clock import SECOND
from relaycast_gateway.icrc import system_messages as messages
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import FILTER, MOST_REPLAYED, PRICING, SKIP
from relaycast_gateway.icrc.replay.request import PAYMENT, SUBSCRIPTION
from relaycast_gateway.icrc.replay.settings import ReplaySettings
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.system_messages import SystemItem, system_namespace
from relaycast_gateway.icrc16 import Icrc16, Property, Tag, array, blob, nat, option, text
from relaycast_gateway.principal import ANONYMOUS

ALLOWED = "icrc72:publication:subscribers:allowed:list"
DISALLOWED = "icrc72:publication:subscribers:disallowed:list"


@pytest.fixture
def office() -> Iterator[ReplayOffice]:
    with replay_office() as made:
        made.publication()
        made.subscription()
        yield made


@pytest.mark.matrix("ICRC77-01")
def test_a_batch_gets_its_results_by_position(office: ReplayOffice) -> None:
    items = [registration(), registration(namespace="com.example.unknown"), registration(start=3, end=5)]

    first, second, third = office.ask(READER, "icrc77_register_replay", items)

    assert (first.tag, third.tag) == ("Ok", "Ok")
    assert first.value != third.value
    assert second == Variant("Err", Variant("PublicationNotFound"))
    assert office.ask(READER, "icrc77_register_replay", []) == []


@pytest.mark.matrix("ICRC77-47", "ICRC77-51")
def test_a_batch_beyond_the_limit_ends_with_one_error() -> None:
    with replay_office(settings=ReplaySettings(most_a_batch=2)) as office:
        office.publication()
        office.subscription()
        results = office.ask(READER, "icrc77_register_replay", [registration()] * 3)
        assert [it.tag for it in results] == ["Ok", "Ok", "Err"]
        assert results[2].value.tag == "GenericBatchError"
        for method, item in (
            ("icrc77_cancel_replay", 1),
            ("icrc77_replay_status", {"replayId": 1, "status": Variant("running"), "stats": None}),
        ):
            results = office.ask(READER, method, [item] * 3)
            assert results[2].value.tag == "GenericBatchError", method


@pytest.mark.matrix("ICRC77-20", "ICRC77-32", "ICRC77-48", "ICRC77-51")
@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"start": 5, "end": 4}, "range: got 5 to 4"),
        ({"memo": bytes(33)}, "memo: got 33 bytes, expected at most 32"),
        ({"namespace": "com.*.prices"}, "namespace: got 'com.*.prices'"),
        ({"config": {"filter": text("a ==")}}, "filter, character 2: expected an operator"),
        ({"config": {"filter": nat(1)}}, "filter: expected Text, got Nat"),
        ({"config": {"skip": nat(0)}}, "skip: expected a divisor of at least 1, got 0"),
        ({"config": {SKIP: text("5")}}, "skip: expected Nat, Array[Nat] or Array[Nat, Nat], got Text"),
        ({"config": {"filter": text("a"), FILTER: text("b")}}, "filter and icrc72:subscription:filter differ"),
        ({"config": {SUBSCRIPTION: text("1")}}, f"{SUBSCRIPTION}: expected Nat, got Text"),
    ],
)
def test_what_is_malformed_is_named_and_nothing_begins(office: ReplayOffice, given: dict[str, Any], fault: str) -> None:
    before = office.orchestrator.store.dump()

    error = office.error(**given)

    assert error.tag == "ImproperConfig"
    assert fault in str(error.value)
    assert (office.heard, office.replays(), office.orchestrator.store.dump()) == ([], [], before)


def test_an_empty_range_is_no_fault(office: ReplayOffice) -> None:
    assert office.register(start=4, end=4).tag == "Ok"


@pytest.mark.matrix("ICRC77-23", "ICRC77-51")
def test_who_is_not_subscribed_is_refused_with_the_namespace(office: ReplayOffice) -> None:
    expected = Variant("UnauthorizedSubscriber", {"namespace": NAMESPACE})
    assert office.error(caller=STRANGER) == expected
    office.subscription(subscriber=STRANGER, namespace="com.example.*")
    assert office.register(caller=STRANGER).tag == "Ok"


@pytest.mark.matrix("ICRC77-24")
def test_the_lists_of_the_publication_permit_and_shut_out() -> None:
    with replay_office() as office:
        lists = {ALLOWED: array(blob(STRANGER), blob(READER)), DISALLOWED: array(blob(READER))}
        office.publication(lists)
        assert office.register(caller=STRANGER).tag == "Ok"  # listed, not subscribed
        assert office.error(caller=READER).tag == "UnauthorizedSubscriber"


@pytest.mark.matrix("ICRC77-27", "ICRC77-28", "ICRC77-51")
def test_unknown_publications_and_subscriptions_have_errors_of_their_own(office: ReplayOffice) -> None:
    assert office.error(namespace="com.example.other") == Variant("PublicationNotFound")
    assert office.error(config={SUBSCRIPTION: nat(77)}) == Variant("SubscriptionNotFound")
    own = office.subscription()[0].value
    assert office.register(config={SUBSCRIPTION: nat(own)}).tag == "Ok"


@pytest.mark.matrix("ICRC77-51")
def test_the_system_namespace_of_another_is_nobody_s_to_replay(office: ReplayOffice) -> None:
    namespace = system_namespace(CanisterRole.SUBSCRIBER, STRANGER)
    assert office.error(namespace=namespace) == Variant("Unauthorized")
    assert office.error(caller=STRANGER, namespace=namespace) == Variant("PublicationNotFound")


@pytest.mark.matrix("ICRC77-25", "ICRC77-51")
def test_the_publisher_that_is_capable_serves() -> None:
    with replay_office() as office:
        both = {"icrc72:publication:publishers:allowed:list": array(blob(PUBLISHER), blob(STRANGER))}
        office.publication(both, is_capable=False)
        office.subscription()
        error = office.error()
        assert error.tag == "GenericError"
        assert "icrc77:capable" in error.value["message"]
        office.publication(publisher=STRANGER)
        replay_id = office.register().value
        assert office.orchestrator.registry.replays[replay_id].publisher == STRANGER


def test_the_archivist_serves_where_no_publisher_is_capable() -> None:
    with replay_office(archivist=ARCHIVE) as office:
        office.publication(is_capable=False)
        office.subscription()
        replay_id = office.register().value
        assert office.orchestrator.registry.replays[replay_id].publisher == ARCHIVE


@pytest.mark.matrix("ICRC77-26", "ICRC77-51")
def test_a_range_beyond_the_publisher_s_limit_is_too_large() -> None:
    with replay_office(events=10) as office:
        office.publication({MOST_REPLAYED: nat(5)})
        office.subscription()
        assert office.error() == Variant("RangeTooLarge", "the range has up to 10 events, expected at most 5")
        assert office.error(start=1, end=7).tag == "RangeTooLarge"
        assert office.register(start=1, end=6).tag == "Ok"
        assert office.register(start=6).tag == "Ok"  # 6 to 10


@pytest.mark.matrix("ICRC77-33", "ICRC77-34", "ICRC77-35", "ICRC77-51")
def test_a_price_is_paid_or_the_request_is_refused() -> None:
    price = Icrc16(
        Tag.CLASS,
        (Property("perEvent", nat(3), immutable=True), Property("currency", text("icrc1:cycles"), immutable=True)),
    )
    with replay_office(events=10) as office:
        office.publication({PRICING: price})
        office.subscription()
        assert office.error(start=1, end=5).tag == "PaymentRequired"
        assert "costs 12, icrc77:payment offers 11" in str(
            office.error(start=1, end=5, config={PAYMENT: nat(11)}).value
        )
        assert office.register(start=1, end=5, config={PAYMENT: nat(12)}).tag == "Ok"
        assert office.register(start=50, end=60).tag == "Ok"  # nothing to send costs nothing


@pytest.mark.matrix("ICRC77-44")
def test_a_subscriber_has_few_replays_at_one_time_and_in_a_minute() -> None:
    settings = ReplaySettings(most_active=2, most_a_minute=3)
    with replay_office(settings=settings) as office:
        office.publication()
        office.subscription()
        office.subscription(subscriber=STRANGER)
        first, second, third = office.ask(READER, "icrc77_register_replay", [registration()] * 3)
        assert (first.tag, second.tag) == ("Ok", "Ok")
        assert "at most 2 replays at one time" in third.value.value["message"]
        assert office.register(caller=STRANGER).tag == "Ok"
        assert office.cancel(first.value).tag == "Ok"
        last = office.register()
        assert last.tag == "Ok"
        assert office.cancel(second.value).tag == "Ok"
        assert "at most 3 replays a minute" in office.error().value["message"]
        office.subnet.run(60)
        assert office.register().tag == "Ok"


def test_a_minute_of_replays_ends_after_a_minute_although_the_clock_was_set_back() -> None:
    with replay_office(settings=ReplaySettings(most_a_minute=1)) as office:
        office.publication()
        office.subscription()
        assert office.register().tag == "Ok"
        office.subnet.set_clock(-86_400 * SECOND)
        assert "at most 1 replays a minute" in office.error().value["message"]
        office.subnet.run(60)
        assert office.register().tag == "Ok"


@pytest.mark.matrix("ICRC77-05", "ICRC77-06")
def test_broadcasters_are_told_before_the_publisher(office: ReplayOffice) -> None:
    office.orchestrator.registry.homes = {PUBLISHER: FAR_HUB, READER: HUB}

    config = {"filter": option(text("v > 1")), "skip": option(array(nat(3), nat(1)))}
    replay_id = office.register(start=2, end=9, config=config).value

    asked: dict[str, Any] = {"namespace": NAMESPACE, "filter": "v > 1", "skip": Skip(3, 1)}
    assert isinstance(replay_id, int)
    assert office.heard == [
        (
            HUB,
            SystemItem(
                messages.BROADCASTER_ADD, replay_id, relay=FAR_HUB, subscriber=READER, publisher=PUBLISHER, **asked
            ),
        ),
        (HUB, SystemItem(messages.RELAYER_ADD, replay_id, NAMESPACE, relay=FAR_HUB)),
        (FAR_HUB, SystemItem(messages.RELAY_ADD, replay_id, broadcaster=HUB, publisher=PUBLISHER, **asked)),
        (PUBLISHER, SystemItem(messages.PUBLISHER_ADD, replay_id, NAMESPACE, start=2, end=9, broadcaster=FAR_HUB)),
    ]
    assert list(office.book.messages) == office.heard

    office.heard.clear()
    assert office.report(replay_id, Variant("running")).tag == "Ok"
    assert office.report(replay_id, Variant("completed", 4)).tag == "Ok"
    assert office.heard == [
        (FAR_HUB, SystemItem(messages.RELAY_REMOVE, replay_id, NAMESPACE, relay=FAR_HUB, publisher=PUBLISHER)),
        (HUB, SystemItem(messages.RELAYER_REMOVE, replay_id, NAMESPACE, relay=FAR_HUB, publisher=PUBLISHER)),
        (HUB, SystemItem(messages.BROADCASTER_REMOVE, replay_id, NAMESPACE, subscriber=READER, publisher=PUBLISHER)),
    ]


@pytest.mark.matrix("ICRC77-06")
def test_a_publisher_waits_for_a_broadcaster_that_is_down() -> None:
    with replay_office(down=(HUB,)) as office:
        office.publication()
        office.orchestrator.registry.homes = {PUBLISHER: HUB, READER: HUB}
        office.subscription()
        replay_id = office.register().value
        office.subnet.run(2)
        assert office.heard == []
        office.subnet.restart(HUB)
        office.subnet.run(10)
        assert [receiver for receiver, _ in office.heard] == [HUB, PUBLISHER]
        assert office.state(replay_id) == Variant("pending")


@pytest.mark.matrix("ICRC77-39")
def test_a_replay_fails_where_its_broadcaster_never_answers() -> None:
    with replay_office(down=(HUB,)) as office:
        office.publication()
        office.orchestrator.registry.homes = {PUBLISHER: HUB, READER: HUB}
        office.subscription()
        replay_id = office.register().value
        office.subnet.run(120)
        state = office.state(replay_id)
        assert state.tag == "errored"
        assert "cannot be reached" in str(state.value)
        assert office.heard == []


@pytest.mark.matrix("ICRC77-02", "ICRC77-40", "ICRC77-51")
def test_only_the_subscriber_cancels_and_only_once(office: ReplayOffice) -> None:
    replay_id = office.register().value
    assert isinstance(replay_id, int)
    assert office.cancel(replay_id, caller=STRANGER) == Variant("Err", Variant("Unauthorized"))
    assert office.cancel(999) == Variant("Err", Variant("NotFound"))
    office.heard.clear()
    assert office.cancel(replay_id) == Variant("Ok", replay_id)
    assert (PUBLISHER, SystemItem(messages.PUBLISHER_REMOVE, replay_id)) in office.heard
    assert office.cancel(replay_id) == Variant("Err", Variant("CannotCancel", "the replay is canceled"))
    assert office.report(replay_id, Variant("canceled", 3)).tag == "Ok"  # what its publisher sent to the broadcaster
    assert office.state(replay_id) == Variant("canceled", 0)  # of which the subscriber got nothing


@pytest.mark.matrix("ICRC77-03", "ICRC77-39")
def test_only_the_publisher_reports_and_an_ended_replay_stays_ended(office: ReplayOffice) -> None:
    replay_id = office.register().value
    assert isinstance(replay_id, int)
    assert office.state(replay_id) == Variant("pending")
    assert office.report(replay_id, Variant("running"), caller=STRANGER) == Variant("Err", Variant("Unauthorized"))
    assert office.report(999, Variant("running")) == Variant("Err", Variant("NotFound"))
    assert office.report(replay_id, Variant("pending")).tag == "Err"
    assert office.report(replay_id, Variant("running")).tag == "Ok"
    assert office.state(replay_id) == Variant("running")
    assert office.report(replay_id, Variant("errored", "the archive is damaged")).tag == "Ok"
    assert office.state(replay_id) == Variant("errored", "the archive is damaged")
    for state in (Variant("running"), Variant("completed", 1), Variant("canceled", 1), Variant("errored", "again")):
        assert office.report(replay_id, state).tag == "Err", state
    assert office.state(replay_id) == Variant("errored", "the archive is damaged")


@pytest.mark.matrix("ICRC77-04")
def test_pages_of_replays_join_to_all_of_them(office: ReplayOffice) -> None:
    office.subscription(subscriber=STRANGER)
    ids = [office.register().value for _ in range(4)] + [office.register(caller=STRANGER).value]

    found, after = [], None
    while page := office.replays(take=2, prevId=after):
        found += [it["replayId"] for it in page]
        after = page[-1]["replayId"]

    assert found == ids
    assert office.replays(take=0) == []
    assert [it["replayId"] for it in office.replays(filter=Variant("BySubscriber", Principal(STRANGER)))] == ids[4:]
    assert [it["replayId"] for it in office.replays(filter=Variant("ByPublisher", Principal(PUBLISHER)))] == ids
    assert [it["replayId"] for it in office.replays(filter=Variant("ByNamespace", "com.other"))] == []
    assert [it["replayId"] for it in office.replays(filter=Variant("ByReplayId", ids[1]))] == [ids[1]]
    brokers = {it.broadcaster for it in office.orchestrator.registry.replays.values()}
    assert sum(len(office.replays(filter=Variant("ByBroadcaster", Principal(it)))) for it in brokers) == 5
    with pytest.raises(CallRefused, match="give prevId"):
        office.replays(prev=Principal(READER))


@pytest.mark.matrix("ICRC77-04", "ICRC77-56")
def test_a_page_shows_all_of_a_replay_but_its_configuration_to_those_concerned_alone(office: ReplayOffice) -> None:
    config = {"filter": text("v > 1")}
    office.register(start=3, end=8, config=config)

    (mine,), (theirs,), (nobody_s,) = (office.replays(caller) for caller in (READER, STRANGER, ANONYMOUS))

    assert mine["config"] == [{0: "filter", 1: Variant("Text", "v > 1")}]
    assert theirs["config"] == nobody_s["config"] == []
    assert theirs == mine | {"config": []}
    assert (mine["namespace"], mine["range"], mine["status"]) == (NAMESPACE, {0: 3, 1: 8}, Variant("pending"))
    assert office.replays(PUBLISHER)[0]["config"] == mine["config"]


@pytest.mark.matrix("ICRC72-93")
def test_the_older_methods_begin_and_end_replays_too(office: ReplayOffice) -> None:
    item = {"namespace": NAMESPACE, "range": {0: 2, 1: 5}, "filter": "v > 1", "skip": "5, 2"}

    ids = office.ask(READER, "icrc77_request_messages", [item, item | {"skip": None, "filter": None}])

    first, second = (office.orchestrator.registry.replays[it] for it in ids)
    assert (first.start, first.end, first.filter, first.skip) == (2, 5, "v > 1", Skip(5, 2))
    assert (second.filter, second.skip) == (None, None)
    before = office.orchestrator.store.dump()
    with pytest.raises(CallRefused, match="PublicationNotFound"):
        office.ask(READER, "icrc77_request_messages", [item, item | {"namespace": "com.example.other"}])
    with pytest.raises(CallRefused, match="skip: got 'five', expected a text such as 5 or 5,2"):
        office.ask(READER, "icrc77_request_messages", [item | {"skip": "five"}])
    assert office.orchestrator.store.dump() == before
    assert office.ask(READER, "icrc77_cancel_messages_request", [ids[0], 999, ids[1]]) == ids


@pytest.mark.matrix("ICRC77-01")
def test_nobody_registers_anonymously(office: ReplayOffice) -> None:
    with pytest.raises(CallRefused, match="anonymous"):
        office.ask(ANONYMOUS, "icrc77_register_replay", [registration()])


def test_replays_are_the_same_after_a_restart_and_are_told_again(tmp_path: Path) -> None:
    config = {"filter": text("v > 1"), "skip": array(nat(5), nat(2))}
    with replay_office(store=IcrcStore.open(tmp_path / "icrc.sqlite")) as office:
        office.publication()
        office.subscription()
        done, going = office.register().value, office.register(start=1 << 90, end=1 << 91, config=config).value
        assert office.report(done, Variant("completed", 10)).tag == "Ok"
        before = dict(office.orchestrator.registry.replays)
        office.orchestrator.store.close()

    with replay_office(store=IcrcStore.open(tmp_path / "icrc.sqlite")) as office:
        assert office.orchestrator.registry.replays == before
        office.book.resume()
        office.subnet.run(1)
        assert {item.replay_id for _, item in office.heard} == {going}
        assert office.register().value == going + 1
        office.orchestrator.store.close()


def test_ended_replays_are_forgotten_when_there_are_many() -> None:
    with replay_office(settings=ReplaySettings(most_kept=2)) as office:
        office.publication()
        office.subscription()
        for _ in range(5):
            assert office.cancel(office.register().value).tag == "Ok"
        office.register()
        assert [it["replayId"] for it in office.replays()] == [4, 5, 6]


def test_a_replay_says_what_it_costs_nobody_else(office: ReplayOffice) -> None:
    assert office.orchestrator.principal == ADMIN
    office.register()
    assert office.log.last_seq == 10  # no event of the log
