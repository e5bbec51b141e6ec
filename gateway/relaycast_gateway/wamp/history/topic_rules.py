"""The topics of the log as one realm sees them, and the rule that decides about each."""

import numpy as np
from numpy.typing import NDArray

from relaycast_gateway.log import EventLog
from relaycast_gateway.wamp.history.rules import HistoryRules

REALM_END = ":"
"""Stands in the log behind the realm of a topic, for all realms but that of the chains."""

NO_RULE = -1


class TopicRules:
    """For each topic of ``log``, by number, its name in the realm and the place of its rule.

    ``realm_prefix`` is what the realm's topics begin with in the log, ``REALM:``. The realm without a prefix has the
    topics without ``:``.
    """

    def __init__(self, log: EventLog, rules: HistoryRules, realm_prefix: str) -> None:
        self._log = log
        self._rules = rules
        self._prefix = realm_prefix
        self._places = {id(rule): place for place, rule in enumerate(rules.rules)}
        self._places_by_topic = np.empty(256, np.int32)
        self.names: list[str | None] = []
        """By number; ``None`` for a topic without a history here."""

    @property
    def places(self) -> NDArray[np.int32]:
        """The place of each topic's rule in ``HistoryRules.rules``, or ``NO_RULE``."""
        return self._places_by_topic[: len(self.names)]

    def refresh(self) -> None:
        """Take up topics that the log has learnt since."""
        topics = self._log.topics
        for number in range(len(self.names), len(topics)):
            name = self._own(topics[number])
            rule = None if name is None else self._rules.rule_for(name)
            place = self._places[id(rule)] if rule is not None and rule.is_kept else NO_RULE
            if number == len(self._places_by_topic):
                self._places_by_topic = np.concatenate([self._places_by_topic] * 2)
            self._places_by_topic[number] = place
            self.names.append(None if place == NO_RULE else name)

    def number(self, name: str) -> int | None:
        """Return the number of a topic with a history; ``None`` where it has none, or no event yet."""
        number = self._log.topic_number(self._prefix + name)
        return None if number is None or number >= len(self.names) or self.names[number] is None else number

    def _own(self, topic: str) -> str | None:
        """Return what clients of the realm call a topic of the log; ``None`` for one of another realm."""
        if self._prefix:
            return topic[len(self._prefix) :] if topic.startswith(self._prefix) else None
        return None if REALM_END in topic else topic
