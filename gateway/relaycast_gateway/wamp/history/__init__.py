"""Event history: what a subscription would have got, found in the one log by topic, time, place and caller."""

from relaycast_gateway.wamp.history.history import EventHistory, HistoryPage
from relaycast_gateway.wamp.history.query import HistoryQuery
from relaycast_gateway.wamp.history.rules import HistoryRule, HistoryRules

__all__ = ["EventHistory", "HistoryPage", "HistoryQuery", "HistoryRule", "HistoryRules"]
