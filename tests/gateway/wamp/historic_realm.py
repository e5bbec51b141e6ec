"""A realm with history, subscriptions and all that clients may ask about them."""

from collections.abc import Sequence
from typing import Any

from gateway.wamp.dealt_sessions import Dealt, DealtClient
from relaycast_gateway.clock import SECOND
from relaycast_gateway.log import EventLog, Retention
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Visibility
from relaycast_gateway.wamp.authorization import PermissionRule
from relaycast_gateway.wamp.broker import Broker
from relaycast_gateway.wamp.event_details import headers_of
from relaycast_gateway.wamp.history import EventHistory, HistoryRule, HistoryRules
from relaycast_gateway.wamp.messages import (
    ErrorMessage,
    ResultMessage,
    SubscribedMessage,
    SubscribeMessage,
    UnsubscribedMessage,
    UnsubscribeMessage,
)
from relaycast_gateway.wamp.meta.get_events import GET_EVENTS, AnswerForm, GetEvents
from relaycast_gateway.wamp.meta.subscription_meta import SubscriptionMeta
from relaycast_gateway.wamp.payload import data_of

SERIALIZERS = ["json", "msgpack", "cbor"]

KEPT = "com.shop."
"""The prefix of the topics that have a history."""


class HistoricRealm(Dealt):
    """Keeps topics under ``com.shop.`` in a log in memory, and what ``rules`` allow the role ``user``."""

    def __init__(
        self, *rules: PermissionRule, form: AnswerForm | None = None, retention: Retention | None = None
    ) -> None:
        super().__init__(*rules)
        self.log = EventLog.open(clock=self.clock, retention=retention)
        kept = HistoryRules([HistoryRule(TopicPattern(KEPT, Match.PREFIX))])
        self.broker = Broker(
            self.name, log=self.log, rules=kept, roles=self.roles, clock=self.clock, tell_meta=self.tell
        )
        self.handlers[SubscribeMessage] = self.broker.subscribe
        self.handlers[UnsubscribeMessage] = self.broker.unsubscribe
        form = form or AnswerForm()
        history = EventHistory(self.log, kept, digits=form.digits, first_seq_of_run=1)
        subscriptions = self.broker.subscriptions
        SubscriptionMeta(subscriptions, self.roles).offer(self.dealer)
        GetEvents(history, log=self.log, rules=kept, subscriptions=subscriptions, roles=self.roles, form=form).offer(
            self.dealer
        )

    def __enter__(self) -> "HistoricRealm":
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()

    @property
    def kept_id(self) -> int:
        """The id of the subscription that the history has made."""
        found = self.broker.subscriptions.lookup(TopicPattern(KEPT, Match.PREFIX))
        assert found is not None
        return found.id

    def publish(
        self,
        topic: str,
        *args: Any,
        visibility: Visibility = EVERYBODY,
        publisher: dict[str, object] | None = None,
        **kwargs: Any,
    ) -> EventRecord:
        """Append an event, as the broker does."""
        return self.publish_many(topic, [(list(args) or None, kwargs or None)], visibility, publisher)[0]

    def publish_many(
        self,
        topic: str,
        payloads: Sequence[tuple[list[Any] | None, dict[str, Any] | None]],
        visibility: Visibility = EVERYBODY,
        publisher: dict[str, object] | None = None,
    ) -> list[EventRecord]:
        drafts = []
        for args, kwargs in payloads:
            data, headers = data_of(args, kwargs)
            headers += headers_of(publisher or {}, {})
            draft = EventDraft(topic, data, b"\x01", self.clock.now_ns(), headers=headers, visibility=visibility)
            drafts.append(draft)
        records = self.log.append(*drafts)
        self.clock.set(self.clock.now_ns() + SECOND)
        return records


def subscribe(client: DealtClient, topic: str, **options: Any) -> int:
    """Subscribe and return the subscription's id."""
    client.say(SubscribeMessage(1, options, topic))
    return client.next(SubscribedMessage).subscription


def unsubscribe(client: DealtClient, subscription: int) -> None:
    client.say(UnsubscribeMessage(1, subscription))
    client.next(UnsubscribedMessage)


def events(client: DealtClient, *args: Any, **kwargs: Any) -> ResultMessage:
    """Return a history that comes at once."""
    answer = client.ask(GET_EVENTS, *args, **kwargs)
    assert isinstance(answer, ResultMessage), answer
    return answer


def refusal(client: DealtClient, uri: str, *args: Any, **kwargs: Any) -> str:
    """Return the URI with which a question is refused."""
    answer = client.ask(uri, *args, **kwargs)
    assert isinstance(answer, ErrorMessage), answer
    assert answer.args, "an error says in words what is wrong"
    return answer.error


def arguments(result: ResultMessage) -> list[Any]:
    """Return the positional arguments of a result."""
    assert isinstance(result.args, list)
    return result.args


def numbers(result: ResultMessage) -> list[Any]:
    """Return the first argument of each event."""
    return [event["args"][0] for event in arguments(result)]
