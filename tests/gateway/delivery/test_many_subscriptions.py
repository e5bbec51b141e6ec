"""What many subscriptions cost, and the bounds of everything that is held in memory."""

import asyncio

import pytest

from delivery_scene import Scene, accept
from relaycast_gateway.clock import settle
from relaycast_gateway.delivery.lane import LEAST_BUFFER
from relaycast_gateway.delivery.limits import DeliveryLimits
from relaycast_gateway.delivery.recent_records import RecentRecords
from relaycast_gateway.delivery.sender import Accepted, Gone, Refused
from relaycast_gateway.icrc16 import nat
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.record import EventDraft, EventRecord


def test_subscriptions_that_are_up_to_date_share_one_read_of_the_log() -> None:
    async def main() -> None:
        scene = Scene()
        asked = 0

        def selects(record: EventRecord) -> bool:
            nonlocal asked
            asked += 1
            return False

        orders = [scene.order(f"s{n}", selects=selects) for n in range(500)]
        async with scene.running(*orders) as deliveries:
            scene.log.reads.clear()
            for _ in range(3):
                scene.log.append()
                await settle()
            assert scene.log.reads == [1, 1, 1]
            assert asked == 1_500
            assert {state.cursor for state in deliveries.states()} == {3}

    asyncio.run(main())


def test_a_subscription_of_the_past_gets_nothing_of_memory_that_retention_dropped() -> None:
    with EventLog.open(retention=Retention(count=10)) as log:
        recent = RecentRecords(log, 0)
        for number in range(100):
            log.append(EventDraft("com.a", nat(number), b"", 0))
            recent.next_page()
        for after in (0, 50, 90):
            assert [it.seq for it in recent.read(after, 1_000)] == list(range(91, 101))
        assert [it.seq for it in recent.read(95, 2)] == [96, 97]


def test_a_subscription_is_not_asked_about_namespaces_that_it_does_not_name() -> None:
    async def main() -> None:
        scene = Scene()
        asked: list[int] = []

        def selects(record: EventRecord) -> bool:
            asked.append(record.seq)
            return True

        order = scene.order(selects=selects, namespaces=frozenset({"key.expired"}))
        scene.log.append(3)
        scene.log.append(1, namespace="key.expired")
        async with scene.running(order) as deliveries:
            scene.log.append(5)
            scene.log.append(1, namespace="key.expired")
            scene.log.append(5)
            await scene.clock.advance(1)
            assert deliveries.state("sub").cursor == 15
        assert asked == scene.sink().seqs == [4, 10]

    asyncio.run(main())


def test_an_idle_subscription_has_no_task_and_no_line_to_write() -> None:
    async def main() -> None:
        scene = Scene()
        orders = [scene.order(f"s{n}", namespaces=frozenset({f"n{n}"})) for n in range(2_000)]
        before = len(asyncio.all_tasks())
        async with scene.running(*orders):
            await scene.clock.advance(1)
            assert len(asyncio.all_tasks()) - before <= 2
            scene.changes.clear()
            scene.log.append(50)
            await scene.clock.advance(1)
            assert scene.changes == []

    asyncio.run(main())


def test_subscriptions_that_were_idle_go_on_at_the_head_after_a_kill() -> None:
    async def main() -> None:
        scene = Scene()
        orders = [scene.order(f"s{n}", sink=f"k{n}", namespaces=frozenset({f"n{n}"})) for n in range(3)]
        async with scene.killed(*orders):
            scene.log.append(40)
            scene.log.append(1, namespace="n1")
            scene.log.append(9)
            await scene.clock.advance(1)
        scene.log.purge(before=51)
        async with scene.running(*orders[:2]) as deliveries:
            scene.log.append(1, namespace="n2")
            scene.log.append(1, namespace="n0")
            await scene.clock.advance(1)
            assert [state.skipped for state in deliveries.states()] == [0, 0]
            deliveries.add(orders[2], 0)  # comes late, and has missed nothing
            await scene.clock.advance(1)
            assert deliveries.state("s2").skipped == 0
        assert [scene.sink(f"k{n}").seqs for n in range(3)] == [[52], [41], [51]]

    asyncio.run(main())


def test_attempts_in_flight_and_records_in_memory_have_bounds_that_can_be_read() -> None:
    async def main() -> None:
        scene = Scene(limits=DeliveryLimits(in_flight=7))
        scene.log.append(1_000)
        orders = [scene.order(f"s{n}", sink=f"k{n}", window=4) for n in range(10)]
        for n in range(10):
            scene.sink(f"k{n}").answer_seconds = 1
        async with scene.running(*orders) as deliveries:
            await scene.clock.advance(0.5)
            gauges = deliveries.gauges
            assert (gauges.in_flight, gauges.in_flight_high, gauges.subscriptions) == (7, 7, 10)
            assert gauges.waiting_for_a_slot == 9
            await scene.clock.advance(30)
            assert sum(sink.at_once for sink in scene.sinks.values()) == 7
            served = [len(sink.acknowledged) for sink in scene.sinks.values()]
            assert sum(served) == 7 * 30
            assert min(served) > 10  # each has its turn
            gauges = deliveries.gauges
            assert gauges.buffered <= gauges.buffered_high <= 10 * LEAST_BUFFER
            for n in range(10):
                deliveries.remove(f"s{n}")
            assert deliveries.gauges.buffered == 0
            await scene.clock.advance(5)
            assert deliveries.gauges.in_flight == 0

    asyncio.run(main())


def test_a_sink_that_never_answers_holds_back_no_other() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink("stuck", lambda seq, attempt: None)
        async with scene.running(scene.order("a", sink="stuck", timeout_seconds=900), scene.order("b", sink="fine")):
            scene.log.append(3_000)
            await scene.clock.advance(5)
            assert scene.sink("fine").acknowledged == list(range(1, 3_001))
            assert scene.sink("stuck").seqs == [1]

    asyncio.run(main())


def test_states_tell_of_change_in_groups() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink("gone", lambda seq, attempt: Gone("HTTP 410"))
        async with scene.running(scene.order("a"), scene.order("b", sink="gone")) as deliveries:
            scene.log.append(100)
            await scene.clock.advance(1)
            assert [state.status for state in deliveries.states()] == ["active", "stopped"]
        assert {"a", "b"} == set().union(*scene.changes)
        assert len(scene.changes) < 20

    asyncio.run(main())


def test_ids_are_added_once_and_unknown_ones_are_errors() -> None:
    async def main() -> None:
        scene = Scene()
        async with scene.running(scene.order("a")) as deliveries:
            with pytest.raises(ValueError, match="a is being delivered already"):
                deliveries.add(scene.order("a"), 0)
            for call in (deliveries.remove, deliveries.state, deliveries.dead_letters, deliveries.redeliver):
                with pytest.raises(KeyError):
                    call("b")
            with pytest.raises(KeyError):
                deliveries.replace(scene.order("b"))

    asyncio.run(main())


def test_what_the_store_knows_of_subscriptions_that_are_no_more_can_be_dropped() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink(plan=lambda seq, attempt: Refused("HTTP 404"))
        async with scene.running(scene.order("a"), scene.order("b")):
            scene.log.append(3)
            await scene.clock.advance(1)
        async with scene.running(scene.order("a")) as deliveries:
            assert deliveries.forget_others() == ["b"]
            assert scene.store.ids() == ["a"]
            assert scene.store.dead_letters("b") == []
            assert len(deliveries.dead_letters("a")) == 3

    asyncio.run(main())


def test_a_store_that_is_ahead_of_its_log_is_refused() -> None:
    async def main() -> None:
        scene = Scene()
        async with scene.running(scene.order()):
            scene.log.append(5)
            await scene.clock.advance(1)
        scene.log.records.clear()
        scene.log.last_seq = 2
        with pytest.raises(ValueError, match="deliveries up to event 5, and a log that ends at event 2"):
            scene.deliveries()

    asyncio.run(main())


class Paced:
    """A sender that has one turn every two seconds."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.next_ns = 0

    async def send(self, message: object) -> Accepted:
        self.scene.sink().attempts.append((self.scene.clock.now_ns() / 1e9 - 1_700_000_000, 0))
        return Accepted()

    def take_turn(self) -> float:
        wait = (self.next_ns - self.scene.clock.now_ns()) / 1e9
        if wait <= 0:
            self.next_ns = self.scene.clock.now_ns() + 2_000_000_000
        return max(wait, 0)

    def turn_ended(self) -> None:
        """Nothing to note: there is no grant."""

    async def close(self) -> None:
        self.scene.sink().closed += 1


def test_a_rate_that_a_receiver_set_is_kept() -> None:
    async def main() -> None:
        scene = Scene()
        scene.sink(plan=accept)
        deliveries = scene.deliveries()
        deliveries._senders._sender_of = lambda _: Paced(scene)
        deliveries.add(scene.order(window=8), 0)
        await deliveries.start()
        scene.log.append(20)
        await scene.clock.advance(9)
        await deliveries.stop()
        times = scene.sink().times
        assert times == [0, 2, 4, 6, 8]

    asyncio.run(main())
