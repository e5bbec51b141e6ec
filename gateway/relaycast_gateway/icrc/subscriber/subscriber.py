"""The subscriber canister: it registers subscriptions and hands the events of their namespaces to handlers.

Law: only broadcasters that the orchestrator names are heard. A one-shot notification returns nothing, whatever the
handler does; its events are confirmed when they were handed over. A trusted one answers for all its events together,
and its answer confirms; an event whose handler fails there is handed over again when it is notified again.
Source: ICRC-72, "Subscriber Canister".
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from relaycast_gateway.clock import SECOND
from relaycast_gateway.icrc.canister import Answer, CallRefused, Canister, Handler, Promise, Wire
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import TRUSTED
from relaycast_gateway.icrc.registered import registered_id
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc.store import IcrcStore
from relaycast_gateway.icrc.subscriber.backlog import HandingOutcome, Settled
from relaycast_gateway.icrc.subscriber.confirming import Confirming
from relaycast_gateway.icrc.subscriber.intake import EventHandler, EventIntake, GapFound, IntakeLimits, NoHandler
from relaycast_gateway.icrc.subscriber.known_broadcasters import KnownBroadcasters
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent, notified_event
from relaycast_gateway.icrc.subscriber.replay_progress import HeardReplays, ReplayEnded, ReplayProgress
from relaycast_gateway.icrc.subscriber.trusted_call import TrustedCall
from relaycast_gateway.icrc.system_messages import SUBSCRIBER_ADD, SUBSCRIBER_REMOVE, items_of, system_namespace
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import Icrc16, Tag, boolean, nat
from relaycast_gateway.matching.namespaces import NamespacePattern
from relaycast_gateway.principal import principal_text
from relaycast_gateway.record import Headers

STATS = "icrc72:subscriber:stats:"


@dataclass(slots=True)
class _Subscription:
    pattern: NamespacePattern
    handler: EventHandler
    filter: str | None
    skip: Skip | None
    id: int | None = None

    @property
    def selects_all(self) -> bool:
        return self.filter is None and (self.skip is None or self.skip.mod == 1)


class EventSubscriber(Canister):
    """A subscriber with its own principal; ``subscribe`` again after a restart, with the same ``store``."""

    role = CanisterRole.SUBSCRIBER

    def __init__(
        self,
        principal: bytes,
        wire: Wire,
        orchestrator: bytes,
        *,
        broadcasters: Collection[bytes] | None = None,
        limits: IntakeLimits | None = None,
        store: IcrcStore | None = None,
        gap_found: GapFound = lambda _gap: None,
        replay_ended: ReplayEnded = lambda _progress: None,
    ) -> None:
        super().__init__(principal, wire)
        self.orchestrator = orchestrator
        self._started_ns = wire.passed_ns()
        self._system = system_namespace(self.role, principal)
        self._subscriptions: list[_Subscription] = []
        self._known = KnownBroadcasters(wire, self._ask, broadcasters)
        self._confirming = Confirming(self.call, wire)
        self._replays = HeardReplays(replay_ended)
        self._notifications = 0
        self._refused = 0
        self._intake = EventIntake(
            wire,
            hand=self._hand,
            selects_all=self._selects_all,
            gap_found=gap_found,
            limits=limits or IntakeLimits(),
            store=store,
            table=f"subscriber {principal.hex()}",
        )

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "icrc72_handle_notification": self._handle,
            "icrc72_handle_notification_trusted": self._handle_trusted,
            "icrc72_get_subscriber_stats": lambda _caller, _argument: pairs_of(self.statistics().items()),
        }

    def subscribe(
        self,
        namespace: str,
        handler: EventHandler,
        *,
        filter: str | None = None,  # noqa: A002 - the text's word
        skip: Skip | None = None,
        is_stopped: bool = False,
        is_trusted: bool = False,
        config: Headers = (),
        memo: bytes | None = None,
    ) -> Promise[Answer]:
        """Register a subscription to a namespace or pattern; the promised answer has its id, or why it was refused.

        A namespace that is subscribed to already has its id and keeps what the orchestrator has; ``handler`` takes
        its events from now on. An event that several subscriptions select goes to the first one's handler.
        """
        self._subscriptions = [it for it in self._subscriptions if it.pattern.text != namespace]
        entry = _Subscription(NamespacePattern(namespace), handler, filter, skip)
        self._subscriptions.append(entry)
        registration = {
            "namespace": namespace,
            "config": pairs_of((*config, (TRUSTED, boolean(True))) if is_trusted else config),
            "filter": filter,
            "skip": None if skip is None else {0: skip.mod, 1: skip.offset},
            "stopped": is_stopped,
            "memo": memo,
        }
        promise: Promise[Answer] = Promise()

        def answered(answer: Answer) -> None:
            result = registered_id(answer)
            entry.id = cast("int | None", result.value)
            if result.refusal is not None and entry in self._subscriptions:
                self._subscriptions.remove(entry)
            promise.settle(result)

        self._known.refresh(lambda: self._ask("icrc72_register_subscription", [registration], answered))
        return promise

    def set_stopped(self, namespace: str, *, is_stopped: bool) -> Promise[Answer]:
        """Stop a subscription, or start it again: what was published meanwhile does not come and is not missed.

        ``ValueError`` for a namespace that is not subscribed to.
        """
        entry = next((it for it in self._subscriptions if it.pattern.text == namespace and it.id is not None), None)
        if entry is None:
            raise ValueError(f"namespace: got {namespace!r}, expected one that is subscribed to")
        nothing = dict.fromkeys(("subscription", "newConfig", "config", "newFilter", "newSkip", "memo"))
        update = {**nothing, "subscriptionId": entry.id, "newStopped": is_stopped}
        promise: Promise[Answer] = Promise()

        def answered(answer: Answer) -> None:
            result = registered_id(answer)
            if result.refusal is None and not is_stopped:
                self._intake.begin_again(entry.pattern)
                self._intake.finish()
            promise.settle(result)

        self._ask("icrc72_update_subscription", [update], answered)
        return promise

    def request_replay(
        self, namespace: str, start: int, end: int | None = None, *, config: Headers = (), memo: bytes | None = None
    ) -> Promise[Answer]:
        """Have the events from ``start`` on, before ``end``, sent again; the promised answer has the replay's id."""
        registration = {"namespace": namespace, "range": {0: start, 1: end}, "config": pairs_of(config), "memo": memo}
        promise: Promise[Answer] = Promise()
        self._ask("icrc77_register_replay", [registration], lambda answer: promise.settle(registered_id(answer)))
        return promise

    @property
    def replays(self) -> Mapping[int, ReplayProgress]:
        """The replays that this subscriber heard of, by id."""
        return self._replays.replays

    @property
    def last_error(self) -> str | None:
        """What went wrong last: an error of a handler, or an event that was not taken."""
        return self._intake.last_error

    def statistics(self) -> dict[str, Icrc16]:
        """Return counts since the start of this object, rates, and what it holds in memory."""
        counts, seconds = self._intake.counts, max((self.wire.passed_ns() - self._started_ns) / SECOND, 1e-9)
        events, errors = counts["events"], counts["errors"]
        naturals = {
            "subscriptions": len(self._subscriptions),
            "notifications": self._notifications,
            "notifications:refused": self._refused,
            "confirmations": self._confirming.confirmed,
            "cyclesPaid": 0,
            "events": events,
            "errors": errors,
            "duplicates": counts["duplicates"],
            "gaps": counts["gaps"],
            "tampered": counts["tampered"],
            "resources:held": self._intake.held,
            "resources:runs": self._intake.runs,
        }
        rates = {"eventsPerSecond": events / seconds, "errorRate": errors / max(1, events + errors)}
        return {
            **{STATS + name: nat(count) for name, count in naturals.items()},
            **{STATS + name: Icrc16(Tag.FLOAT, rate) for name, rate in rates.items()},
            "icrc76:subscriber:stats:requests": nat(len(self.replays)),
            "icrc77:subscriber:stats:requests": nat(len(self.replays)),
        }

    def close(self) -> None:
        """End this object: what it holds back or has not confirmed is notified again."""
        self._intake.close()
        self._confirming.close()

    def _handle(self, caller: bytes, argument: object) -> None:
        for event in self._accepted(caller, argument):
            self._intake.take(event, self._noting(event, partial(self._confirm, event)), is_trusted=False)
        self._intake.finish()

    def _handle_trusted(self, caller: bytes, argument: object) -> object:
        call = TrustedCall()
        for event in self._accepted(caller, argument):
            outcome = self._intake.take(event, self._noting(event, call.expect()), is_trusted=True)
            if outcome is not None and outcome.error is not None:
                break
        self._intake.finish()
        return call.reply()

    def _noting(self, event: NotifiedEvent, settled: Settled) -> Settled:
        """Return ``settled``, with the replay that the event belongs to told before."""

        def both(outcome: HandingOutcome) -> None:
            if outcome.is_final:
                self._replays.note_event(event)
            settled(outcome)

        return both

    def _confirm(self, event: NotifiedEvent, outcome: HandingOutcome) -> None:
        if outcome.is_final:
            self._confirming.add(event.broadcaster, event.notification_id)

    def _accepted(self, caller: bytes, argument: object) -> list[NotifiedEvent]:
        """Return the events of a call, without system messages, which are taken up here."""
        is_known = caller != self.orchestrator and self._known.has(caller)
        notifications = cast("list[dict[str, Any]]", argument)
        try:
            events = [notified_event(each, caller) for each in notifications]
        except ValueError as error:
            raise CallRefused(str(error)) from None
        if not is_known and (caller != self.orchestrator or any(it.namespace != self._system for it in events)):
            self._refused += len(events)
            raise CallRefused(f"{principal_text(caller)} is no broadcaster that the orchestrator names")
        self._notifications += len(events)
        for event in events:
            if event.namespace == self._system:
                self._hear(event)
        return [event for event in events if event.namespace != self._system]

    def _hear(self, message: NotifiedEvent) -> None:
        try:
            items = list(items_of(message.data))
        except ValueError as error:
            self._intake.last_error = str(error)
            return
        for item in items:
            if item.key in (SUBSCRIBER_ADD, SUBSCRIBER_REMOVE):
                self._replays.note_item(item)

    def _hand(self, event: NotifiedEvent) -> Icrc16 | None:
        found = [it for it in self._subscriptions if it.pattern.matches(event.namespace)]
        if not found:
            raise NoHandler(f"{event.namespace} is no namespace that {self} subscribes to")
        return next((it for it in found if it.filter == event.filter), found[0]).handler(event)

    def _selects_all(self, namespace: str) -> bool:
        return any(it.selects_all for it in self._subscriptions if it.pattern.matches(namespace))

    def _ask(self, method: str, argument: object, answered: Any) -> None:
        self.call(self.orchestrator, method, argument, answered)
