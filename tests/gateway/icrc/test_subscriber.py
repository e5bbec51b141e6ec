"""The subscriber: whom it hears, what it answers, what it confirms, and what it tells about itself."""

import pytest

from gateway.icrc.notifier import FIRST, ORCHESTRATOR, PUBLISHER, SECOND_ONE, SUBSCRIBER, TICKS, Desk, refusal
from relaycast_gateway.candid import Variant, encode
from relaycast_gateway.icrc.canister import CallRefused
from relaycast_gateway.icrc.interface import CanisterRole, methods_of
from relaycast_gateway.icrc.names import HASH
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc16 import Icrc16, Tag, array, blob, map_of, nat, text


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.matrix("ICRC72-87")
def test_an_error_of_a_handler_goes_no_further_in_one_shot_calls(desk: Desk) -> None:
    desk.subscribe()
    desk.failing.add(2)
    answers = desk.first.send(desk.first.notification(1), desk.first.notification(2, 1), desk.first.notification(3, 2))
    desk.subnet.run(1)
    assert [(it.value, it.refusal) for it in answers] == [(None, None)]
    assert desk.ids == [1, 3]
    assert desk.subscriber.last_error == "event 2 of com.example.ticks: RuntimeError: no place for 2"
    assert desk.first.confirmed == [1, 2, 3]


@pytest.mark.matrix("ICRC72-88")
def test_a_trusted_call_answers_with_the_value_of_the_handler_or_its_error(desk: Desk) -> None:
    desk.subscribe(is_trusted=True)
    desk.answers[1] = text("seen")
    desk.failing.add(2)
    (first,) = desk.came(desk.first.send(desk.first.notification(1), trusted=True))
    (second,) = desk.came(desk.first.send(desk.first.notification(2, 1), trusted=True))
    assert first == Variant("Ok", Variant("Text", "seen"))
    assert second == Variant("Err", "event 2 of com.example.ticks: RuntimeError: no place for 2")
    assert desk.first.confirmed == []


@pytest.mark.matrix("ICRC72-88")
def test_an_event_whose_handler_failed_in_a_trusted_call_is_handed_over_again(desk: Desk) -> None:
    desk.subscribe(is_trusted=True)
    desk.failing.add(2)
    calls = [desk.first.notification(1), desk.first.notification(2, 1), desk.first.notification(3, 2)]
    (answer,) = desk.came(desk.first.send(*calls, trusted=True))
    assert (answer.tag, desk.ids) == ("Err", [1])
    desk.failing.clear()
    (answer,) = desk.came(desk.first.send(*calls, trusted=True))
    assert (answer, desk.ids) == (Variant("Ok", None), [1, 2, 3])


@pytest.mark.matrix("ICRC72-105")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, None),  # no handler gave a value: Ok(null)
        ({1: nat(7)}, Variant("Array", [Variant("Nat", 7)])),  # one of two did
        ({1: nat(7), 2: text("x")}, Variant("Array", [Variant("Nat", 7), Variant("Text", "x")])),
        # outside of ICRC-3: its image
        (
            {2: Icrc16(Tag.NAT8, 5)},
            Variant(
                "Array",
                [
                    Variant("Text", "icrc72:tagged"),
                    Variant(
                        "Array",
                        [
                            Variant("Text", "Array"),
                            Variant("Array", [Variant("Array", [Variant("Text", "Nat8"), Variant("Nat", 5)])]),
                        ],
                    ),
                ],
            ),
        ),
    ],
)
def test_the_answer_of_a_trusted_call_is_a_value_of_icrc3(
    desk: Desk, values: dict[int, Icrc16], expected: Variant | None
) -> None:
    desk.subscribe(is_trusted=True)
    desk.answers |= values
    calls = [desk.first.notification(1), desk.first.notification(2, 1)]
    (answer,) = desk.came(desk.first.send(*calls, trusted=True))
    assert answer == Variant("Ok", expected)
    method = methods_of(CanisterRole.SUBSCRIBER)["icrc72_handle_notification_trusted"]
    assert method.decode_results(method.encode_results([answer])) == [answer]


@pytest.mark.matrix("ICRC72-105")
@pytest.mark.parametrize(
    ("types", "reply", "read"),
    [
        ("(variant { Ok : variant { Nat : nat } })", Variant("Ok", Variant("Nat", 5)), Variant("Nat", 5)),  # Ok(value)
        ("(variant { Ok : opt variant { Nat : nat } })", Variant("Ok", None), None),  # Ok(null)
        ("(variant { Ok; Err : text })", Variant("Ok"), None),  # a bare Ok
    ],
)
def test_each_form_of_ok_is_read(types: str, reply: Variant, read: object) -> None:
    method = methods_of(CanisterRole.SUBSCRIBER)["icrc72_handle_notification_trusted"]
    assert method.decode_results(encode(types, [reply])) == [Variant("Ok", read)]


@pytest.mark.matrix("ICRC72-89")
def test_a_notification_of_a_stranger_is_refused(desk: Desk) -> None:
    desk.subscribe()
    for trusted in (False, True):
        answers = desk.stranger.send(desk.stranger.notification(1), trusted=trusted)
        desk.subnet.run(1)
        assert answers[0].refusal is not None
        assert "no broadcaster that the orchestrator names" in answers[0].refusal
    assert desk.ids == []
    assert desk.stat("icrc72:subscriber:stats:notifications:refused") == 2


@pytest.mark.matrix("ICRC72-89")
def test_the_orchestrator_sends_system_messages_only(desk: Desk) -> None:
    desk.subscribe()
    with pytest.raises(CallRefused, match="no broadcaster"):
        desk.subnet.ask(ORCHESTRATOR, SUBSCRIBER, "icrc72_handle_notification", [desk.first.notification(1)])
    assert desk.ids == []


@pytest.mark.matrix("ICRC72-89")
def test_a_broadcaster_that_is_new_is_heard_when_it_comes_back(desk: Desk) -> None:
    desk.subscribe()
    desk.orchestrator.add_broadcaster(desk.stranger.principal)
    desk.subnet.run(2)
    refused = desk.stranger.send(desk.stranger.notification(1))
    desk.subnet.run(2)
    taken = desk.stranger.send(desk.stranger.notification(1))
    desk.subnet.run(1)
    assert refused[0].refusal is not None
    assert taken[0].refusal is None
    assert desk.ids == [1]


@pytest.mark.matrix("ICRC72-89")
def test_a_subscriber_that_was_given_its_broadcasters_asks_nobody() -> None:
    desk = Desk(knows=[FIRST])
    desk.subscribe()
    desk.second.send(desk.second.notification(1))
    desk.first.send(desk.first.notification(2))
    desk.subnet.run(5)
    desk.second.send(desk.second.notification(3))
    desk.subnet.run(1)
    assert desk.ids == [2]


@pytest.mark.matrix("ICRC72-28")
@pytest.mark.matrix("ICRC72-27")
def test_a_handler_is_told_who_notified_and_who_published(desk: Desk) -> None:
    desk.subscribe()
    desk.first.send(desk.first.notification(1))
    desk.came(desk.second.send(desk.second.notification(2, 1), trusted=True))
    assert [(it.broadcaster, it.source) for it in desk.handed] == [(FIRST, PUBLISHER), (SECOND_ONE, PUBLISHER)]


@pytest.mark.matrix("ICRC72-22")
@pytest.mark.parametrize("trusted", [False, True])
def test_data_that_was_tampered_with_is_detected(desk: Desk, trusted: bool) -> None:
    desk.subscribe()
    honest, forged = map_of({"price": nat(5)}), map_of({"price": nat(6)})
    headers = ((HASH, blob(eventdata_hash(honest))),)
    good = desk.first.notification(1, data=honest, headers=headers)
    bad = desk.first.notification(2, data=forged, headers=headers)
    added = desk.first.notification(3, data=forged, headers=(*headers, (HASH, blob(eventdata_hash(forged)))))
    answers = [desk.came(desk.first.send(each, trusted=trusted))[0] for each in (good, bad, added)]
    assert desk.ids == [1]
    assert desk.stat("icrc72:subscriber:stats:tampered") == 2
    assert desk.first.confirmed == ([] if trusted else [good["id"]])
    if trusted:
        assert answers[1:] == [
            Variant("Err", f"event {it} of com.example.ticks: its data does not have the hash that it names")
            for it in (2, 3)
        ]


@pytest.mark.matrix("ICRC72-22")
def test_a_hash_that_is_no_blob_counts_as_wrong(desk: Desk) -> None:
    desk.subscribe()
    desk.first.send(desk.first.notification(1, headers=((HASH, text("x")),)))
    desk.subnet.run(1)
    assert desk.ids == []


@pytest.mark.matrix("ICRC72-91")
@pytest.mark.matrix("ICRC72-104")
def test_statistics_equal_what_happened(desk: Desk) -> None:
    desk.subscribe()
    desk.failing.add(4)
    start_ns = desk.subnet.now_ns()
    for number in range(1, 11):
        desk.first.send(desk.first.notification(number, number - 1 or None))
    desk.first.send(desk.first.notification(3, 2), desk.first.notification(12, 11))
    desk.subnet.run(5)
    started = desk.subnet.now_ns() - start_ns
    name = "icrc72:subscriber:stats:"
    expected = {"subscriptions": 1, "notifications": 12, "events": 10, "errors": 1, "duplicates": 1, "gaps": 1}
    assert {key: desk.stat(name + key) for key in expected} == expected
    assert desk.stat(f"{name}confirmations") == len(desk.first.confirmed) == 11
    assert desk.stat(f"{name}resources:held") == 1
    assert desk.stat(f"{name}resources:runs") == 1
    assert desk.stat(f"{name}errorRate") == pytest.approx(1 / 11)
    assert desk.stat(f"{name}eventsPerSecond") == pytest.approx(10 / (started / 1e9 + 5))


def test_confirmations_go_out_in_batches(desk: Desk) -> None:
    desk.subscribe()
    for number in range(1, 601):
        desk.first.send(desk.first.notification(number, number - 1 or None))
    desk.subnet.run(5)
    assert desk.first.confirmed == list(range(1, 601))
    assert desk.first.confirm_calls == 3


def test_confirmations_wait_for_a_broadcaster_that_is_down(desk: Desk) -> None:
    desk.subscribe()
    desk.first.send(desk.first.notification(1))
    desk.subnet.run(0.01)
    desk.subnet.stop(FIRST)
    desk.subnet.run(2)
    desk.subnet.restart(FIRST)
    desk.subnet.run(5)
    assert desk.first.confirmed == [1]


def test_the_first_subscription_that_an_event_fits_has_its_handler_called(desk: Desk) -> None:
    by_name: dict[str, list[int]] = {"all": [], "dear": [], "tocks": []}

    def noting(name: str) -> object:
        return lambda event: by_name[name].append(event.event_id)

    desk.subscribe(handler=noting("all"))
    desk.subscribe("*.example.ticks", handler=noting("dear"), filter="price > 5")
    desk.subscribe("com.example.tocks", handler=noting("tocks"))
    desk.first.send(
        desk.first.notification(1),
        desk.first.notification(2, filter="price > 5"),
        desk.first.notification(3, namespace="com.example.tocks"),
    )
    desk.subnet.run(1)
    assert by_name == {"all": [1], "dear": [2], "tocks": [3]}


def test_an_event_that_no_subscription_takes_is_not_confirmed(desk: Desk) -> None:
    desk.subscribe()
    answers = desk.first.send(desk.first.notification(1, namespace="com.example.tocks"))
    desk.subnet.run(1)
    assert answers[0].refusal is None
    assert desk.first.confirmed == []
    assert desk.subscriber.last_error is not None
    assert "com.example.tocks is no namespace that" in desk.subscriber.last_error


def test_a_subscription_that_is_refused_says_why_and_takes_nothing(desk: Desk) -> None:
    promise = desk.subscriber.subscribe("com.example.ticks", desk.handle, filter="price >")
    assert refusal(desk.subnet, promise).startswith("ImproperConfig: ")
    promise = desk.subscriber.subscribe("com.example.nobody", desk.handle)
    assert refusal(desk.subnet, promise) == "PublicationNotFound"
    desk.first.send(desk.first.notification(1))
    desk.subnet.run(1)
    assert desk.ids == []


def test_a_subscription_registers_what_it_asks_for_and_has_its_id_again(desk: Desk) -> None:
    first = desk.subscribe(filter="price > 5", skip=Skip(5, 2), is_stopped=True, memo=b"mine")
    kept = desk.orchestrator.registry.subscriptions[int(str(first))]
    assert (kept.namespace, kept.filter, kept.skip, kept.is_stopped) == (TICKS, "price > 5", Skip(5, 2), True)
    desk.start()
    assert desk.subscribe(filter="price > 5", skip=Skip(5, 2), is_stopped=True, memo=b"mine") == first


def test_data_that_nests_too_deep_is_refused(desk: Desk) -> None:
    desk.subscribe()
    deep = nat(1)
    for _ in range(63):
        deep = array(deep)
    notification = desk.first.notification(1, data=deep)
    notification["data"] = Variant("Array", [notification["data"]])
    answers = desk.first.send(notification)
    desk.subnet.run(1)
    assert answers[0].refusal == "expected values at most 64 deep"


def test_a_request_for_a_replay_without_replays_is_refused(desk: Desk) -> None:
    desk.subscribe()
    assert refusal(desk.subnet, desk.subscriber.request_replay(TICKS, 1))
