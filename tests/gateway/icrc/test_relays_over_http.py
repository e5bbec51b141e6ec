"""Relays between broadcasters of two servers: each call is Candid over HTTP."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pytest

from gateway.icrc.http_stage import ALICE, CallSite, NotingSubscriber, call_site, principal
from gateway.icrc.stage import NAMESPACE, header
from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.broadcaster import Broadcaster, BroadcasterContext
from relaycast_gateway.icrc.broadcaster.relaying import relay_of
from relaycast_gateway.icrc.interface import every_method
from relaycast_gateway.icrc.names import EVENT_TIMESTAMP, RELAY_RECEIVED, RELAY_SENT
from relaycast_gateway.icrc.orchestrator import Orchestrator
from relaycast_gateway.icrc.variants import headers_of, pairs_of
from relaycast_gateway.icrc16 import nat, text
from relaycast_gateway.log import EventLog

ORCHESTRATOR, FIRST, SECOND = principal("orchestrator"), principal("first"), principal("second")


def place(subscriber: bytes, broadcasters: Sequence[bytes], _served: object) -> bytes:
    return broadcasters[subscriber != principal("near")]


class TwoServers:
    """The first has the orchestrator and a broadcaster, the second one a broadcaster; subscribers are elsewhere."""

    def __init__(self, first: CallSite, second: CallSite, subscribers: CallSite, log: EventLog) -> None:
        self.first, self.second, self.subscribers, self.log = first, second, subscribers, log
        orchestrator = Orchestrator(
            ORCHESTRATOR, first.wire, broadcasters=[FIRST, SECOND], last_seq=lambda: log.last_seq, place=place
        )
        first.wire.add(orchestrator)
        context = BroadcasterContext(log, orchestrator)
        self.broadcasters = [Broadcaster(FIRST, first.wire, context), Broadcaster(SECOND, second.wire, context)]
        first.wire.remember(SECOND, second.url)
        for site, broadcaster in zip((first, second), self.broadcasters, strict=True):
            site.wire.add(broadcaster)
            for name in ("near", "far"):
                site.wire.remember(principal(name), subscribers.url)
            broadcaster.start()

    async def answer(self, site: CallSite, callee: bytes, method: str, argument: object, caller: bytes = ALICE) -> Any:
        answer = await site.call(callee, method, argument, caller=caller)
        assert answer.status == 200, answer
        return every_method()[method].decode_results(answer.data)[0]

    async def register(self) -> None:
        publication: dict[str, object] = {"namespace": NAMESPACE, "config": [], "memo": None}
        subscription = publication | dict.fromkeys(("filter", "skip", "stopped"))
        for caller, what, asked in (
            (ALICE, "publication", publication),
            (principal("near"), "subscription", subscription),
            (principal("far"), "subscription", subscription),
        ):
            method = f"icrc72_register_{what}"
            (result,) = await self.answer(self.first, ORCHESTRATOR, method, [asked], caller)
            assert result.tag == "Ok"

    async def publish(self, *numbers: int) -> list[Any]:
        blank = dict.fromkeys(("prevId", "source"))
        events = [
            blank
            | {"id": number, "prev_id": number - 1, "timestamp": 5, "namespace": NAMESPACE}
            | {"data": Variant("Nat", number), "headers": pairs_of([("color", text("red"))])}
            for number in numbers
        ]
        return cast("list[Any]", await self.answer(self.first, FIRST, "icrc72_publish", events))

    def got(self, name: str) -> list[tuple[bytes, dict[str, Any]]]:
        canister = self.subscribers.wire.canister(principal(name))
        assert isinstance(canister, NotingSubscriber)
        return [(caller, it) for caller, argument in canister.noted for it in argument]

    async def arrived(self, name: str, count: int) -> list[tuple[bytes, dict[str, Any]]]:
        async with asyncio.timeout(60):
            while len(self.got(name)) < count:
                await asyncio.sleep(0.005)
        return self.got(name)


def between_two_servers(work: Callable[[TwoServers], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        with EventLog.open() as log:
            async with call_site() as first, call_site() as second, call_site("near", "far") as subscribers:
                made = TwoServers(first, second, subscribers, log)
                await made.register()
                await work(made)
                for broadcaster in made.broadcasters:
                    broadcaster.close()

    asyncio.run(run())


@pytest.mark.matrix("ICRC72-12", "ICRC72-25", "ICRC72-80", "ICRC72-99")
def test_relayed_events_keep_ids_headers_source_and_order_between_servers() -> None:
    async def work(it: TwoServers) -> None:
        for numbers in ((1, 2), (3,), (4, 5)):
            assert {result.tag for result in await it.publish(*numbers)} == {"Ok"}
        near, far = await it.arrived("near", 5), await it.arrived("far", 5)
        for caller, messages in ((FIRST, near), (SECOND, far)):
            assert {each for each, _ in messages} == {caller}
            assert [(each["eventId"], each["prevEventId"]) for _, each in messages] == [(n, n - 1) for n in range(1, 6)]
            ids = [each["id"] for _, each in messages]
            assert ids == sorted(set(ids))
            assert {each["source"] for _, each in messages} == {Principal(ALICE)}
            assert {header(each, EVENT_TIMESTAMP) for _, each in messages} == {5}
            assert {headers_of(each["headers"])[0] for _, each in messages} == {("color", text("red"))}
        assert {each["id"] for _, each in near} & {each["id"] for _, each in far}  # each has a sequence of its own
        for _, each in far:
            assert 5 < header(each, RELAY_SENT) <= header(each, RELAY_RECEIVED)
        for _, each in near:
            assert header(each, RELAY_SENT) is header(each, RELAY_RECEIVED) is None

    between_two_servers(work)


@pytest.mark.matrix("ICRC72-80", "ICRC72-25")
def test_a_server_takes_relays_of_the_broadcaster_that_took_the_event_alone_and_once() -> None:
    async def work(it: TwoServers) -> None:
        await it.publish(1)
        await it.arrived("far", 1)
        (record,) = it.log.read()
        relay = relay_of(record, 9)

        async def relayed(caller: bytes, **changes: object) -> Any:
            argument = [relay | changes]
            (result,) = await it.answer(it.second, SECOND, "icrc72_publish_relay", argument, caller)
            return result

        assert await relayed(ALICE) == Variant("Err", Variant("Unauthorized"))
        twice = [*relay["headers"], *pairs_of([(RELAY_RECEIVED, nat(9))])]
        assert (await relayed(FIRST, headers=twice)).value.value["message"] == "an event is relayed once"
        assert "expected icrc72:relay:sent" in (await relayed(FIRST, headers=None)).value.value["message"]
        assert (await relayed(FIRST, id=7)).value == Variant("ImproperId", f"{NAMESPACE} has no event with the id 7")
        assert (await relayed(FIRST, data=Variant("Nat", 9))).value.tag == "ImproperId"
        assert await relayed(FIRST) == Variant("Ok", [])  # it came before
        await it.publish(2)
        assert [each["eventId"] for _, each in await it.arrived("far", 2)] == [1, 2]

    between_two_servers(work)
