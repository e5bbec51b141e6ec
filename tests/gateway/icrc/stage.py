"""A whole system of ICRC-72 on one subnet with virtual time: a log, an orchestrator, broadcasters, and subscribers.

Principals are short: ``b"publisher"``. Each method says what it does to whom; what comes out is in the subscribers.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.clock import SECOND, VirtualClock
from relaycast_gateway.icrc.broadcaster import Broadcaster, BroadcasterContext, BroadcastPolicy
from relaycast_gateway.icrc.canister import Canister, Handler, Wire
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.orchestrator import Orchestrator
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.subnet import Latency, Subnet
from relaycast_gateway.icrc.variants import headers_of, pairs_of, variant_of
from relaycast_gateway.icrc16 import Icrc16, nat
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.record import Headers

START_NS = 1_700_000_000 * SECOND
ORCHESTRATOR = b"orchestrator"
PUBLISHER = b"publisher"
NAMESPACE = "com.example.prices"


class RecordingSubscriber(Canister):
    """Keeps all notifications, with caller and method; confirms each one while ``confirms`` holds."""

    role = CanisterRole.SUBSCRIBER

    def __init__(self, principal: bytes, wire: Wire) -> None:
        super().__init__(principal, wire)
        self.calls: list[tuple[bytes, str, list[dict[str, Any]]]] = []
        self.confirms = True
        self.trusted_reply: object = Variant("Ok", None)
        self.confirmations: list[object] = []
        self.on_call: Callable[[Sequence[dict[str, Any]]], None] = lambda _messages: None

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "icrc72_handle_notification": lambda caller, messages: self._take(caller, "one-shot", messages),
            "icrc72_handle_notification_trusted": lambda caller, messages: self._take(caller, "trusted", messages),
            "icrc72_get_subscriber_stats": lambda _caller, _argument: [],
        }

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All notifications in the order in which they came, repeated ones too."""
        return [each for _, _, messages in self.calls for each in messages]

    @property
    def event_ids(self) -> list[int]:
        return [each["eventId"] for each in self.messages]

    def confirm(self, *ids: int, broadcaster: bytes | None = None) -> None:
        """Confirm notifications, to the broadcaster that called last by default."""
        to = self.calls[-1][0] if broadcaster is None else broadcaster
        self.call(to, "icrc72_confirm_messages", list(ids), lambda answer: self.confirmations.append(answer.value))

    def _take(self, caller: bytes, method: str, messages: Any) -> object:
        self.calls.append((caller, method, list(messages)))
        self.on_call(messages)
        if method == "trusted":
            return self.trusted_reply
        if self.confirms:
            self.call(caller, "icrc72_confirm_messages", [each["id"] for each in messages])
        return None


class Stage:
    """The system; ``run`` lets time pass. In memory, in the files of ``folder``, or on another face's ``log``."""

    def __init__(
        self,
        *,
        broadcasters: int = 1,
        folder: Path | None = None,
        policy: BroadcastPolicy | None = None,
        retention: Retention | None = None,
        latency: Latency = lambda _from, _to: 0,
        orchestrator: Mapping[str, Any] | None = None,
        log: EventLog | None = None,
    ) -> None:
        self.subnet = Subnet(now_ns=START_NS, latency=latency)
        self.folder = folder
        self.policy = policy or BroadcastPolicy()
        self.principals = [b"broadcaster %d" % number for number in range(1, broadcasters + 1)]
        self.subscribers: dict[bytes, RecordingSubscriber] = {}
        self._orchestrator_options = dict(orchestrator or {})
        self._has_own_log = log is None
        self.log = log or EventLog.open(
            None if folder is None else folder / "log", clock=_SubnetClock(self.subnet), retention=retention
        )
        self._next_id = 0
        self._build()

    def _build(self) -> None:
        self.store = IcrcStore.open(None if self.folder is None else self.folder / "icrc")
        self.orchestrator = Orchestrator(
            ORCHESTRATOR,
            self.subnet,
            broadcasters=self.principals,
            store=self.store,
            last_seq=lambda: self.log.last_seq,
            **self._orchestrator_options,
        )
        self.context = BroadcasterContext(self.log, self.orchestrator, self.policy)
        self.broadcasters = [Broadcaster(it, self.subnet, self.context) for it in self.principals]
        for canister in (self.orchestrator, *self.broadcasters):
            self.subnet.add(canister)
        for broadcaster in self.broadcasters:
            broadcaster.start()

    @property
    def broadcaster(self) -> Broadcaster:
        """The first one."""
        return self.broadcasters[0]

    @property
    def now_ns(self) -> int:
        return self.subnet.now_ns()

    def run(self, seconds: float = 0.0) -> None:
        self.subnet.run(seconds)

    def restart(self) -> None:
        """End orchestrator and broadcasters and start them again from the files; what was not flushed is lost."""
        assert self.folder is not None, "without files nothing is left"
        for broadcaster in self.broadcasters:
            broadcaster.close()
        self.store._noted.clear()
        self.store._before_flush.clear()
        self.store.close()
        self._build()

    def close(self) -> None:
        for broadcaster in self.broadcasters:
            broadcaster.close()
        self.store.close()
        if self._has_own_log:
            self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def register(
        self, *namespaces: str, publisher: bytes = PUBLISHER, config: Mapping[str, Icrc16] | None = None
    ) -> list[int]:
        """Register publications, and return their ids."""
        items = [
            {"namespace": each, "config": pairs_of((config or {}).items()), "memo": None}
            for each in namespaces or (NAMESPACE,)
        ]
        return _oks(self.subnet.ask(publisher, ORCHESTRATOR, "icrc72_register_publication", items))

    def subscribe(
        self,
        subscriber: bytes,
        namespace: str = NAMESPACE,
        *,
        config: Mapping[str, Icrc16] | None = None,
        filter: str | None = None,  # noqa: A002 - its name in the text
        skip: tuple[int, int | None] | None = None,
        stopped: bool | None = None,
    ) -> int:
        """Register a subscription of a recording subscriber, made where there is none, and return its id."""
        self.subscriber(subscriber)
        item = {
            "namespace": namespace,
            "config": pairs_of((config or {}).items()),
            "filter": filter,
            "skip": None if skip is None else {0: skip[0], 1: skip[1]},
            "stopped": stopped,
            "memo": None,
        }
        return int(_oks(self.subnet.ask(subscriber, ORCHESTRATOR, "icrc72_register_subscription", [item]))[0])

    def update(self, subscriber: bytes, subscription_id: int, **changes: Any) -> None:
        """Change a subscription: ``newStopped=False``, ``newFilter``, ..."""
        fields = ("newConfig", "config", "newFilter", "newSkip", "newStopped", "memo", "subscription")
        item = {**dict.fromkeys(fields), "subscriptionId": subscription_id, **changes}
        _oks(self.subnet.ask(subscriber, ORCHESTRATOR, "icrc72_update_subscription", [item]))

    def configure(self, publication_id: int, config: Mapping[str, Icrc16], *, publisher: bytes = PUBLISHER) -> None:
        """Change the configuration of a publication."""
        fields = ("publication", "namespace", "memo")
        item = {**dict.fromkeys(fields), "publicationId": publication_id, "config": pairs_of(config.items())}
        _oks(self.subnet.ask(publisher, ORCHESTRATOR, "icrc72_update_publication", [item]))

    def subscriber(self, principal: bytes) -> RecordingSubscriber:
        """Return a recording subscriber, made where there is none."""
        if principal not in self.subscribers:
            self.subscribers[principal] = RecordingSubscriber(principal, self.subnet)
            self.subnet.add(self.subscribers[principal])
        return self.subscribers[principal]

    def event(
        self,
        event_id: int | None = None,
        data: Icrc16 | None = None,
        *,
        namespace: str = NAMESPACE,
        prev_id: int | None = None,
        timestamp: int | None = None,
        source: bytes | None = None,
        headers: Headers = (),
    ) -> dict[str, Any]:
        """Return an ``Event``: with the next id, and its id as data, by default."""
        if event_id is None:
            event_id = self._next_id = self._next_id + 1
        return {
            "id": event_id,
            "prev_id": prev_id,
            "prevId": None,
            "timestamp": self.now_ns if timestamp is None else timestamp,
            "namespace": namespace,
            "source": None if source is None else Principal(source),
            "data": variant_of(nat(event_id) if data is None else data),
            "headers": pairs_of(headers) if headers else None,
        }

    def publish(
        self, *events: dict[str, Any], publisher: bytes = PUBLISHER, broadcaster: int = 0, settles: bool = True
    ) -> list[Any]:
        """Publish and return the results; let what is due happen too where ``settles`` holds."""
        results = self.subnet.ask(publisher, self.principals[broadcaster], "icrc72_publish", list(events))
        if settles:
            self.run()
        assert isinstance(results, list)
        return results

    def stats(self, broadcaster: int = 0) -> dict[str, Any]:
        """Return a broadcaster's statistics by their keys, without what they share."""
        pairs = self.subnet.ask(b"anyone", self.principals[broadcaster], "icrc72_get_broadcaster_stats")
        return {key.removeprefix("icrc72:broadcaster:stats:"): value.content for key, value in headers_of(pairs)}


class _SubnetClock(VirtualClock):
    """Tells the log the subnet's time."""

    def __init__(self, subnet: Subnet) -> None:
        super().__init__()
        self._subnet = subnet

    def now_ns(self) -> int:
        return self._subnet.now_ns()


def header(message: Mapping[str, Any], name: str) -> Any:
    """Return the content of a notification's last header of a name, ``None`` without one."""
    found = [value.content for key, value in headers_of(message["headers"]) if key == name]
    return found[-1] if found else None


def _oks(results: object) -> list[Any]:
    assert isinstance(results, list)
    assert all(result.tag == "Ok" for result in results), results
    return [result.value for result in results]
