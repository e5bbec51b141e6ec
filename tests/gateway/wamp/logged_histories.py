"""Topics of a log, events of them, and what a history says that they are."""

from typing import Any

import pytest

from relaycast_gateway.icrc16 import nat
from relaycast_gateway.log import EventLog
from relaycast_gateway.matching.topics import Match, TopicPattern
from relaycast_gateway.record import EVERYBODY, EventDraft, EventRecord, Visibility
from relaycast_gateway.wamp.errors import INVALID_ARGUMENT, WampError
from relaycast_gateway.wamp.history import EventHistory, HistoryQuery, HistoryRule, HistoryRules

AUTH, BASKET, CHECKOUT = (f"com.mycompany.log.{name}" for name in ("auth", "basket", "checkout"))
LOGS = TopicPattern("com.mycompany.log", Match.PREFIX)
WILD = TopicPattern("com..log.", Match.WILDCARD)
EVERYTHING = HistoryRules([HistoryRule(TopicPattern("", Match.PREFIX))])
ADMIN_ONLY = Visibility(eligible_authrole=("admin",))


def publish(log: EventLog, *topics: str, visibility: Visibility = EVERYBODY) -> list[EventRecord]:
    return log.append(*(EventDraft(topic, nat(0), b"", 0, visibility=visibility) for topic in topics))


def seqs(
    histories: EventHistory,
    pattern: TopicPattern = LOGS,
    *,
    authid: str = "ann",
    authrole: str = "user",
    most: int = 1_000,
    **given: Any,
) -> list[int]:
    query = HistoryQuery.of([1], given)
    page = histories.page(pattern, query, authid=authid, authrole=authrole, most_events=most)
    return [record.seq for record in page.records]


def refused(histories: EventHistory, pattern: TopicPattern = LOGS, *, authrole: str = "user", **given: Any) -> str:
    with pytest.raises(WampError) as caught:
        seqs(histories, pattern, authrole=authrole, **given)
    assert caught.value.uri == INVALID_ARGUMENT
    return str(caught.value.arguments[0])
