"""A subscriber, an orchestrator that knows it, and broadcasters that a test drives by hand."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from relaycast_gateway.candid import Principal, Variant
from relaycast_gateway.icrc.canister import Answer, Canister, Handler, Promise, Wire
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import REPLAY, REPLAY_END_ID, REPLAY_ID
from relaycast_gateway.icrc.orchestrator.orchestrator import Orchestrator
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.subnet import Subnet
from relaycast_gateway.icrc.subscriber import EventSubscriber
from relaycast_gateway.icrc.subscriber.intake import EventGap, IntakeLimits
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent
from relaycast_gateway.icrc.subscriber.replay_progress import ReplayProgress
from relaycast_gateway.icrc.variants import pairs_of, variant_of
from relaycast_gateway.icrc16 import Icrc16, boolean, nat
from relaycast_gateway.record import Headers

ORCHESTRATOR, PUBLISHER, SUBSCRIBER = b"\x0a\x01", b"\x0b\x01", b"\x0c\x01"
FIRST, SECOND_ONE, STRANGER = b"\x0d\x01", b"\x0d\x02", b"\x0e\x01"
TICKS = "com.example.ticks"
PATIENCE = IntakeLimits().patience_seconds


class Notifier(Canister):
    """A broadcaster whose notifications a test makes up; it notes what is confirmed."""

    role = CanisterRole.BROADCASTER

    def __init__(self, principal: bytes, wire: Wire) -> None:
        super().__init__(principal, wire)
        self.confirmed: list[int] = []
        self.confirm_calls = 0
        self._next_id = 1

    def handlers(self) -> Mapping[str, Handler]:
        return dict.fromkeys(self.interface, lambda _caller, _argument: None) | {
            "icrc72_confirm_messages": self._confirm
        }

    def notification(
        self,
        event_id: int,
        prev_id: int | None = None,
        *,
        data: Icrc16 | None = None,
        headers: Headers = (),
        namespace: str = TICKS,
        filter: str | None = None,  # noqa: A002 - the text's word
        source: bytes = PUBLISHER,
        notification_id: int | None = None,
    ) -> dict[str, Any]:
        """Return a notification with the next id."""
        if notification_id is None:
            notification_id, self._next_id = self._next_id, self._next_id + 1
        return {
            "id": notification_id,
            "eventId": event_id,
            "prevEventId": prev_id,
            "timestamp": self.wire.now_ns(),
            "namespace": namespace,
            "data": variant_of(nat(event_id) if data is None else data),
            "headers": pairs_of(headers),
            "source": Principal(source),
            "filter": filter,
        }

    def send(self, *notifications: dict[str, Any], trusted: bool = False) -> list[Answer]:
        """Call the subscriber; the list gets the answer when it is there."""
        answers: list[Answer] = []
        method = "icrc72_handle_notification_trusted" if trusted else "icrc72_handle_notification"
        self.call(SUBSCRIBER, method, list(notifications), answers.append)
        return answers

    def _confirm(self, _caller: bytes, argument: object) -> object:
        self.confirm_calls += 1
        self.confirmed += cast("list[int]", argument)
        return Variant("allAccepted")


class Desk:
    """The canisters of a test."""

    def __init__(self, *, limits: IntakeLimits | None = None, knows: Sequence[bytes] | None = None) -> None:
        self.subnet = Subnet()
        self.orchestrator = Orchestrator(ORCHESTRATOR, self.subnet, broadcasters=[FIRST, SECOND_ONE])
        self.first, self.second, self.stranger = (
            Notifier(principal, self.subnet) for principal in (FIRST, SECOND_ONE, STRANGER)
        )
        for canister in (self.orchestrator, self.first, self.second, self.stranger):
            self.subnet.add(canister)
        for namespace in (TICKS, "com.example.tocks"):
            config: dict[str, Any] = {"namespace": namespace, "config": [], "memo": None}
            self.subnet.ask(PUBLISHER, ORCHESTRATOR, "icrc72_register_publication", [config])
        self.store = IcrcStore.open()
        self.gaps: list[EventGap] = []
        self.ended: list[ReplayProgress] = []
        self.handed: list[NotifiedEvent] = []
        self.failing: set[int] = set()
        """Events whose handler raises."""

        self.answers: dict[int, Icrc16] = {}
        self._limits = limits
        self._knows = knows
        self.subscriber = self.start()

    def start(self) -> EventSubscriber:
        """Put a new subscriber with the same store in the place of the old one."""
        if hasattr(self, "subscriber"):
            self.subscriber.close()
        self.subscriber = EventSubscriber(
            SUBSCRIBER,
            self.subnet,
            ORCHESTRATOR,
            broadcasters=self._knows,
            limits=self._limits,
            store=self.store,
            gap_found=self.gaps.append,
            replay_ended=self.ended.append,
        )
        self.subnet.add(self.subscriber)
        return self.subscriber

    def subscribe(self, namespace: str = TICKS, **options: Any) -> object:
        """Subscribe, and return the id."""
        return settled(
            self.subnet, self.subscriber.subscribe(namespace, options.pop("handler", self.handle), **options)
        )

    def handle(self, event: NotifiedEvent) -> Icrc16 | None:
        if event.event_id in self.failing:
            raise RuntimeError(f"no place for {event.event_id}")
        self.handed.append(event)
        return self.answers.get(event.event_id)

    @property
    def ids(self) -> list[int]:
        """The events that were handed over, in order."""
        return [event.event_id for event in self.handed]

    def came(self, answers: list[Answer]) -> list[Any]:
        """Run, and return the values that came."""
        self.subnet.run(1)
        assert all(answer.refusal is None for answer in answers), answers
        return [answer.value for answer in answers]

    def stat(self, name: str) -> Any:
        """Return one of the subscriber's statistics, as it answers."""
        pairs = self.subnet.ask(STRANGER, SUBSCRIBER, "icrc72_get_subscriber_stats")
        return {pair[0]: pair[1].value for pair in cast("list[dict[int, Any]]", pairs)}[name]


def chain(desk: Desk, *ids: int, before: int | None = None, headers: Headers = ()) -> list[dict[str, Any]]:
    """Return notifications of events of which each names the one before it."""
    return [
        desk.first.notification(each, prev, headers=headers)
        for prev, each in zip([before, *ids[:-1]], ids, strict=True)
    ]


def send(desk: Desk, notifications: Sequence[dict[str, Any]]) -> None:
    """Send notifications one by one, and let a second pass."""
    for each in notifications:
        desk.first.send(each)
    desk.subnet.run(1)


def replay_headers(replay_id: int, end_id: int | None = None) -> Headers:
    """Return the headers that a replay puts behind those of an event."""
    end = () if end_id is None else ((REPLAY_END_ID, nat(end_id)),)
    return ((REPLAY, boolean(True)), (REPLAY_ID, nat(replay_id)), *end)


def settled(subnet: Subnet, promise: Promise[Answer], *, seconds: float = 5.0) -> object:
    """Run until a promise is there, and return its value; an ``AssertionError`` for a refusal."""
    answers: list[Answer] = []
    promise.then(answers.append)
    subnet.run(seconds)
    assert answers, "no answer"
    assert answers[0].refusal is None, answers[0].refusal
    return answers[0].value


def refusal(subnet: Subnet, promise: Promise[Answer]) -> str:
    """Run until a promise is there, and return why it was refused."""
    answers: list[Answer] = []
    promise.then(answers.append)
    subnet.run(5)
    assert answers
    assert answers[0].refusal is not None
    return answers[0].refusal
