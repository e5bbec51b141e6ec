"""The publisher: ids, chains by partition, epochs, and events that are sent until they are acknowledged."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.icrc.notifier import FIRST, ORCHESTRATOR, PUBLISHER, SECOND_ONE, STRANGER, TICKS, refusal, settled
from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.canister import Answer, CallRefused, Canister, Handler, Promise
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import EPOCH_CLOSED, HASH, UNORDERED
from relaycast_gateway.icrc.orchestrator.orchestrator import Orchestrator
from relaycast_gateway.icrc.publisher import EventPublisher
from relaycast_gateway.icrc.publisher.close_out import last_ids_of
from relaycast_gateway.icrc.publisher.outgoing import AcceptedEvent
from relaycast_gateway.icrc.subnet import Subnet
from relaycast_gateway.icrc.value_hash import eventdata_hash
from relaycast_gateway.icrc.variants import headers_of, icrc16_of
from relaycast_gateway.icrc16 import Icrc16, Tag, boolean, nat, text
from searches import examples

OK: Variant = Variant("Ok", [])
BUSY = Variant("Err", Variant("Busy"))


class Taker(Canister):
    """A broadcaster that answers as a test says; what it takes is in ``events``, each call in ``calls``."""

    role = CanisterRole.BROADCASTER

    def __init__(self, principal: bytes, subnet: Subnet) -> None:
        super().__init__(principal, subnet)
        self.events: list[dict[str, Any]] = []
        self.calls: list[list[dict[str, Any]]] = []
        self.answer: Callable[[int], Variant | None] = lambda _event_id: OK
        self.most = 1_000

    def handlers(self) -> Mapping[str, Handler]:
        return dict.fromkeys(self.interface, lambda _caller, _argument: None) | {"icrc72_publish": self._publish}

    def _publish(self, _caller: bytes, argument: object) -> object:
        events = cast("list[dict[str, Any]]", argument)
        self.calls.append([dict(event) for event in events])
        results: list[Variant | None] = []
        for event in events:
            if len(results) == self.most:
                results.append(Variant("Err", Variant("GenericBatchError", f"expected at most {self.most} events")))
                break
            results.append(self.answer(event["id"]))
            if results[-1] == OK and event["id"] not in self.ids:
                self.events.append(dict(event))
        return results

    @property
    def ids(self) -> list[int]:
        return [event["id"] for event in self.events]

    @property
    def links(self) -> list[tuple[int, int | None]]:
        return [(event["id"], event["prev_id"]) for event in self.events]


class Press:
    """A publisher, an orchestrator and two broadcasters."""

    def __init__(self, *, broadcasters: tuple[bytes, ...] = (FIRST, SECOND_ONE), **options: Any) -> None:
        self.subnet = Subnet()
        self.orchestrator = Orchestrator(ORCHESTRATOR, self.subnet, broadcasters=broadcasters)
        self.takers = [Taker(principal, self.subnet) for principal in broadcasters]
        self.options = options
        for canister in (self.orchestrator, *self.takers):
            self.subnet.add(canister)
        self.publisher = self.start()

    def start(self) -> EventPublisher:
        self.publisher = EventPublisher(PUBLISHER, self.subnet, ORCHESTRATOR, dice=Random(1), **self.options)
        self.subnet.add(self.publisher)
        return self.publisher

    def register(self, **options: Any) -> object:
        return settled(self.subnet, self.publisher.register(TICKS, **options), seconds=1)

    def publish(self, count: int) -> list[Promise[Answer]]:
        return [self.publisher.publish(TICKS, nat(number)) for number in range(count)]


@pytest.fixture
def press() -> Press:
    press = Press()
    press.register()
    return press


def test_ids_increase_and_each_broadcaster_gets_its_partition(press: Press) -> None:
    promises = press.publish(5)
    assert settled(press.subnet, promises[-1]) == AcceptedEvent(5, [])
    even, odd = press.takers
    assert even.links == [(2, None), (4, 2)]
    assert odd.links == [(1, None), (3, 1), (5, 3)]


@pytest.mark.matrix("ICRC72-08")
@settings(max_examples=examples(30))
@given(st.integers(1, 4), st.integers(1, 60), st.integers(0, 2**32), st.sampled_from([1, 10**6, 1 << 200]))
def test_each_partition_is_one_unbroken_chain(takers: int, count: int, seed: int, first_id: int) -> None:
    press = Press(broadcasters=tuple(bytes([13, it]) for it in range(takers)), first_id=first_id)
    press.register()
    random = Random(seed)
    for _ in range(count):
        press.publisher.publish(TICKS, nat(random.randrange(9)))
        if random.random() < 0.2:
            press.subnet.run(1)
    press.subnet.run(5)
    assert sorted(it for taker in press.takers for it in taker.ids) == [first_id + it for it in range(count)]
    for place, taker in enumerate(press.takers):
        assert {it % takers for it in taker.ids} <= {place}
        assert taker.links == list(zip(taker.ids, [None, *taker.ids[:-1]], strict=False))


def test_an_event_has_the_time_and_headers_that_were_given_and_its_hash_if_asked_for() -> None:
    press = Press(broadcasters=(FIRST,))
    press.register(has_hashes=True)
    data = text("x")
    press.publisher.publish(TICKS, data, headers=(("origin", text("y")),), timestamp_ns=5)
    press.publisher.publish(TICKS, nat(1))
    press.subnet.run(1)
    first, second = press.takers[0].events
    assert first["timestamp"] == 5
    assert second["timestamp"] == press.subnet.now_ns() - 10**9
    assert headers_of(first["headers"]) == (
        ("origin", text("y")),
        (HASH, Icrc16(Tag.BLOB, eventdata_hash(data))),
    )
    assert icrc16_of(first["data"]) == data


@pytest.mark.matrix("ICRC72-06")
def test_an_unordered_publication_names_no_previous_event() -> None:
    press = Press()
    press.register(is_ordered=False)
    press.publish(6)
    press.subnet.run(1)
    assert [link for taker in press.takers for _, link in taker.links] == [None] * 6
    assert (UNORDERED, boolean(True)) in press.orchestrator.registry.publications[TICKS].config


def test_events_are_sent_in_batches_one_call_at_a_time() -> None:
    press = Press(broadcasters=(FIRST,))
    press.register()
    press.publish(150)
    press.subnet.run(5)
    assert [len(call) for call in press.takers[0].calls] == [64, 64, 22]
    assert press.takers[0].ids == list(range(1, 151))


def test_busy_events_are_sent_again_with_the_same_id_and_content() -> None:
    press = Press(broadcasters=(FIRST,))
    press.register()
    (taker,) = press.takers
    busy = {2, 3}
    taker.answer = lambda event_id: BUSY if event_id in busy and len(taker.calls) < 4 else OK
    promises = press.publish(4)
    assert settled(press.subnet, promises[3], seconds=1) == AcceptedEvent(4, [])
    assert settled(press.subnet, promises[1], seconds=60) == AcceptedEvent(2, [])
    assert [[event["id"] for event in call] for call in taker.calls] == [[1, 2, 3, 4], [2, 3], [2, 3], [2, 3]]
    assert taker.calls[1] == taker.calls[0][1:3]
    assert press.publisher.waiting == 0
    assert press.publisher.retries == 3


def test_a_broadcaster_that_is_down_gets_its_events_when_it_is_back(press: Press) -> None:
    press.subnet.stop(FIRST)
    promises = press.publish(10)
    press.subnet.run(30)
    even, odd = press.takers
    assert (even.ids, odd.ids) == ([], [1, 3, 5, 7, 9])
    press.subnet.restart(FIRST)
    settled(press.subnet, promises[9], seconds=60)
    assert even.links == [(2, None), (4, 2), (6, 4), (8, 6), (10, 8)]


def test_results_that_are_missing_are_asked_for_again(press: Press) -> None:
    even, _ = press.takers
    even.answer = lambda event_id: OK if len(even.calls) > 1 or event_id == 2 else None
    settled(press.subnet, press.publish(6)[5], seconds=60)
    assert even.ids == [2, 4, 6]


def test_a_batch_that_is_too_long_is_halved() -> None:
    press = Press(broadcasters=(FIRST,))
    press.register()
    (taker,) = press.takers
    taker.most = 10
    press.publish(100)
    press.subnet.run(60)
    assert taker.ids == list(range(1, 101))
    assert max(len(call) for call in taker.calls[3:]) <= 10


def test_an_event_that_is_refused_tells_why_and_is_no_part_of_the_chain() -> None:
    press = Press(broadcasters=(FIRST,))
    press.register()
    (taker,) = press.takers
    errors = {
        2: Variant("ImproperId", "another event"),
        3: Variant("Unauthorized"),
        4: Variant("GenericBatchError", "no events today"),
    }
    taker.answer = lambda event_id: Variant("Err", errors[event_id]) if event_id in errors else OK
    said = []
    for number in range(5):
        promise = press.publisher.publish(TICKS, nat(number))
        said.append(refusal(press.subnet, promise) if number + 1 in errors else settled(press.subnet, promise))
    assert said == [
        AcceptedEvent(1, []),
        "ImproperId: another event",
        "Unauthorized",
        "GenericBatchError: no events today",
        AcceptedEvent(5, []),
    ]
    assert taker.links == [(1, None), (5, 1)]


@pytest.mark.matrix("ICRC72-10")
def test_a_close_out_carries_the_last_id_of_each_partition_and_links_the_epochs(press: Press) -> None:
    press.publish(4)
    closed = press.publisher.close_epoch(TICKS)
    press.publish(4)
    press.publisher.close_epoch(TICKS)
    assert settled(press.subnet, closed) == AcceptedEvent(5, [])
    even, odd = press.takers
    assert even.links == [(2, None), (4, 2), (6, 5), (8, 6), (10, 8)]
    assert odd.links == [(1, None), (3, 1), (5, 3), (7, 5), (9, 7)]
    closing = [
        (event["id"], last_ids_of(headers_of(event["headers"]), icrc16_of(event["data"])), event["headers"][0][1])
        for event in (*odd.events, *even.events)
        if event["headers"]
    ]
    assert closing == [(5, [4, 3], Variant("Nat", 0)), (10, [8, 9], Variant("Nat", 1))]
    assert odd.events[2]["headers"][0][0] == EPOCH_CLOSED


@pytest.mark.matrix("ICRC72-10")
def test_a_close_out_of_partitions_without_events_leaves_them_out(press: Press) -> None:
    press.publisher.close_epoch(TICKS)
    press.subnet.run(1)
    (event,) = press.takers[1].events
    nothing = Variant("Option", None)
    assert event["data"] == Variant(
        "Map", [{0: "epoch", 1: Variant("Nat", 0)}, {0: "last_ids", 1: Variant("Array", [nothing, nothing])}]
    )


@pytest.mark.matrix("ICRC72-10")
def test_no_event_of_the_next_epoch_is_sent_before_the_close_out_is_taken(press: Press) -> None:
    even, odd = press.takers
    press.subnet.stop(FIRST)
    press.publish(2)
    press.publisher.close_epoch(TICKS)
    press.publish(2)
    press.subnet.run(20)
    assert (even.ids, odd.ids) == ([], [1])
    press.subnet.restart(FIRST)
    odd.answer = lambda event_id: BUSY if event_id == 3 else OK
    press.subnet.run(60)
    assert (even.ids, odd.ids) == ([2], [1])
    odd.answer = lambda _event_id: OK
    press.subnet.run(60)
    assert (even.ids, odd.ids) == ([2, 4], [1, 3, 5])


def test_a_close_out_that_is_refused_leaves_the_epoch_open(press: Press) -> None:
    _, odd = press.takers
    odd.answer = lambda event_id: Variant("Err", Variant("Unauthorized")) if event_id == 3 else OK
    press.publish(2)
    assert refusal(press.subnet, press.publisher.close_epoch(TICKS)) == "Unauthorized"
    press.publish(2)
    press.subnet.run(1)
    assert [taker.links for taker in press.takers] == [[(2, None), (4, 2)], [(1, None), (5, 1)]]


def test_a_restart_sends_what_was_not_acknowledged_and_nothing_twice(press: Press) -> None:
    even, odd = press.takers
    press.publish(4)
    press.subnet.run(1)
    press.subnet.stop(FIRST)
    press.publish(4)
    press.publisher.close_epoch(TICKS)
    press.publish(2)
    press.subnet.run(1)
    dump = press.publisher.dump()
    press.publisher.close()
    press.start().load(dump)
    assert press.publisher.dump() == dump
    press.publish(2)
    press.subnet.restart(FIRST)
    press.subnet.run(120)
    assert even.links == [(2, None), (4, 2), (6, 4), (8, 6), (10, 9), (12, 10)]
    assert odd.links == [(1, None), (3, 1), (5, 3), (7, 5), (9, 7), (11, 9), (13, 11)]
    assert press.publisher.waiting == 0


def test_a_publication_that_is_refused_says_why(press: Press) -> None:
    assert refusal(press.subnet, press.publisher.register("icrc72:mine")).split(":")[0] in (
        "UnauthorizedPublisher",
        "ImproperConfig",
        "GenericError",
    )
    with pytest.raises(ValueError, match="'icrc72:mine', expected one that is registered"):
        press.publisher.publish("icrc72:mine", nat(1))


def test_the_number_of_waiting_events_is_bounded() -> None:
    press = Press(most_waiting=10)
    press.register()
    press.publish(10)
    with pytest.raises(ValueError, match="expected at most 10 that are not acknowledged"):
        press.publish(1)
    press.subnet.run(1)
    press.publish(1)


def test_given_broadcasters_are_the_partitions() -> None:
    press = Press()
    press.publisher = EventPublisher(PUBLISHER, press.subnet, ORCHESTRATOR, broadcasters=[SECOND_ONE])
    press.subnet.add(press.publisher)
    press.register()
    press.publish(3)
    press.subnet.run(1)
    assert [taker.ids for taker in press.takers] == [[], [1, 2, 3]]


def test_system_messages_come_from_the_orchestrator_and_broadcasters_alone(press: Press) -> None:
    for caller in (ORCHESTRATOR, FIRST):
        assert press.subnet.ask(caller, PUBLISHER, "icrc72_handle_notification", []) is None
    with pytest.raises(CallRefused, match="neither the orchestrator nor a broadcaster"):
        press.subnet.ask(STRANGER, PUBLISHER, "icrc72_handle_notification", [])
