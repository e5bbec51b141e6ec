"""Calls to the canisters of a server and a subscriber of it that confirms, over HTTP in Candid."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from app.served_canisters import ALICE, BOB, FEED, as_, ask, call, event, registration, subscription
from gateway.icrc.http_stage import NotingSubscriber
from relaycast.serve.in_process import ServedNetwork
from relaycast_gateway.candid import Variant, encode
from relaycast_gateway.gateway import Gateway
from relaycast_gateway.icrc.canister import Promise
from relaycast_gateway.icrc.http.canister_host import CanisterHost
from relaycast_gateway.icrc.system_messages import SystemItem, items_of
from relaycast_gateway.icrc.variants import headers_of, icrc16_of, pairs_of
from relaycast_gateway.icrc16 import Icrc16
from relaycast_gateway.icrc_face import BROADCASTER, ORCHESTRATOR
from relaycast_gateway.principal import principal_text

Messages = list[dict[str, Any]]


class WireSubscriber(NotingSubscriber):
    """A subscriber that confirms what it gets while ``confirms`` holds, and answers late while ``holds_back`` does."""

    def __init__(self, principal: bytes, wire: Any) -> None:
        self.confirms = True
        self.holds_back = False
        self.held: list[Promise[None]] = []
        super().__init__(principal, wire)

    def _note(self, caller: bytes, argument: Any) -> Any:
        self.noted.append((caller, argument))
        if self.confirms:
            self.call(caller, "icrc72_confirm_messages", [it["id"] for it in argument])
        if not self.holds_back:
            return None
        self.held.append(Promise())
        return self.held[-1]

    @property
    def messages(self) -> Messages:
        """All notifications in the order in which they came."""
        return [it for _, argument in self.noted for it in argument]

    @property
    def events(self) -> list[int]:
        """The ids of the events among them."""
        return [it["eventId"] for it in self.messages if not it["namespace"].startswith("icrc72:")]

    def heard(self) -> list[SystemItem]:
        """Return what it was told of replays."""
        found = [it for it in self.messages if it["namespace"].startswith("icrc72:")]
        return [item for it in found for item in items_of(icrc16_of(it["data"]))]

    def has_heard(self, item: SystemItem) -> bool:
        return item in self.heard()


class Served:
    """A server as one caller sees it."""

    def __init__(self, chains: ServedNetwork) -> None:
        self.url = chains.http_url
        gateway = chains._server.gateway
        assert isinstance(gateway, Gateway)
        self.gateway = gateway

    def ask(self, caller: bytes, callee: bytes, method: str, argument: object = None) -> Any:
        """Return what a method answers; ``AssertionError`` where the call is refused."""
        status, answer = call(self.url, callee, method, argument, **as_(caller))
        assert status == 200, answer
        return answer

    def refusal(self, caller: bytes, callee: bytes, method: str, types: str, *values: object) -> tuple[int, str]:
        """Call with an argument of any types, and return status and reason."""
        path = f"{self.url}/icrc/{principal_text(callee)}/{method}"
        body = encode(types, values)
        status, _, answer = ask(path, "POST", body, Content_Type="application/candid", **as_(caller))
        return status, answer.decode(errors="replace")

    def register(
        self, namespace: str = FEED, *, config: Mapping[str, Icrc16] | None = None, caller: bytes = ALICE
    ) -> Variant:
        asked = registration(namespace) | {"config": pairs_of((config or {}).items())}
        (result,) = self.ask(caller, ORCHESTRATOR, "icrc72_register_publication", [asked])
        assert isinstance(result, Variant)
        return result

    def configure(self, namespace: str, config: Mapping[str, Icrc16], *, caller: bytes = ALICE) -> Variant:
        item = dict.fromkeys(("publicationId", "publication", "memo"))
        asked = item | {"namespace": namespace, "config": pairs_of(config.items())}
        (result,) = self.ask(caller, ORCHESTRATOR, "icrc72_update_publication", [asked])
        assert isinstance(result, Variant)
        return result

    def publish(self, *events: Mapping[str, object], caller: bytes = ALICE) -> list[Any]:
        found = self.ask(caller, BROADCASTER, "icrc72_publish", list(events))
        assert isinstance(found, list)
        return found

    def publish_many(self, namespace: str, *numbers: int) -> None:
        assert {it.tag for it in self.publish(*(event(number, namespace) for number in numbers))} <= {"Ok"}

    def subscribe(self, namespace: str, url: str, *, caller: bytes = BOB, **more: object) -> Variant:
        asked = subscription(namespace, url, **more)
        (result,) = self.ask(caller, ORCHESTRATOR, "icrc72_register_subscription", [asked])
        assert isinstance(result, Variant)
        return result

    def replay(
        self,
        namespace: str,
        start: int = 0,
        end: int | None = None,
        *,
        caller: bytes = BOB,
        config: Mapping[str, Icrc16] | None = None,
    ) -> Variant:
        asked = {
            "namespace": namespace,
            "range": {0: start, 1: end},
            "config": pairs_of((config or {}).items()),
            "memo": None,
        }
        (result,) = self.ask(caller, ORCHESTRATOR, "icrc77_register_replay", [asked])
        assert isinstance(result, Variant)
        return result

    def status(self, replay_id: int) -> tuple[Variant, dict[str, int]]:
        """Return the state of a replay, and its statistics."""
        page = {"prev": None, "prevId": None, "take": None, "filter": Variant("ByReplayId", replay_id)}
        (found,) = self.ask(BOB, ORCHESTRATOR, "icrc77_get_replays", page)
        stats = headers_of(found["stats"])
        return found["status"], {name.removeprefix("icrc77:replay:stats:"): value.content for name, value in stats}

    def broadcaster_stats(self) -> dict[str, Any]:
        found = headers_of(self.ask(BOB, BROADCASTER, "icrc72_get_broadcaster_stats"))
        return {name.removeprefix("icrc72:broadcaster:stats:"): value.content for name, value in found}


def attended(
    chains: ServedNetwork, work: Callable[[Served, CanisterHost, WireSubscriber], Awaitable[None]]
) -> WireSubscriber:
    """Serve a subscriber with the principal of ``BOB`` while ``work`` runs, and return it."""
    served = Served(chains)

    async def run() -> WireSubscriber:
        async with CanisterHost.connected(served.url, principal=BOB) as host:
            subscriber = WireSubscriber(BOB, host.wire)
            host.add(subscriber)
            await work(served, host, subscriber)
            return subscriber

    return asyncio.run(run())


async def aside(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call what waits for the server, in a thread, so that the subscriber goes on."""
    return await asyncio.to_thread(function, *arguments, **options)


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, which may ask the server."""
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.005)


def header(message: Mapping[str, Any], name: str) -> Any:
    """Return the content of a notification's last header of a name, ``None`` without one."""
    found = [value.content for key, value in headers_of(message["headers"]) if key == name]
    return found[-1] if found else None
