"""Topics and the patterns that select them: exact, by prefix, by components with gaps.

Law: a topic is a WAMP URI, components between dots. ``prefix`` compares texts, so ``com.my`` selects ``com.myapp``.
``wildcard`` has as many components as the topics that it selects, and an empty one stands for any.
Source: WAMP specification, "URIs" and "Pattern-based Subscriptions".
"""

import re
from dataclasses import dataclass
from enum import StrEnum

LONGEST_TOPIC = 1_024
"""Characters: as long as a namespace of the log may be."""

_COMPONENTS = r"[^\s.#]+(?:\.[^\s.#]+)*"
_TOPIC = re.compile(_COMPONENTS)
_PREFIX = re.compile(rf"(?:{_COMPONENTS}\.?)?")
_WILDCARD = re.compile(r"(?:[^\s.#]*)(?:\.[^\s.#]*)*")


class Match(StrEnum):
    """How a pattern is compared with topics."""

    EXACT = "exact"
    PREFIX = "prefix"
    WILDCARD = "wildcard"


def is_topic(text: str) -> bool:
    """Return whether ``text`` is a URI without empty components (the loose rule: no space, no ``#``)."""
    return 0 < len(text) <= LONGEST_TOPIC and _TOPIC.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Topics that are meant together."""

    uri: str
    match: Match = Match.EXACT

    @property
    def is_valid(self) -> bool:
        """Whether ``uri`` has the form that ``match`` asks for."""
        form = {Match.EXACT: _TOPIC, Match.PREFIX: _PREFIX, Match.WILDCARD: _WILDCARD}[self.match]
        return len(self.uri) <= LONGEST_TOPIC and form.fullmatch(self.uri) is not None

    def matches(self, topic: str) -> bool:
        """Return whether ``topic`` is one of them."""
        if self.match is Match.EXACT:
            return topic == self.uri
        if self.match is Match.PREFIX:
            return topic.startswith(self.uri)
        mine, its = self.uri.split("."), topic.split(".")
        return len(mine) == len(its) and all(part in ("", other) for part, other in zip(mine, its, strict=True))

    @classmethod
    def written(cls, text: str, match: Match | None = None) -> "TopicPattern":
        """Return the pattern that a user wrote: a dot at the end is a prefix, an empty component a wildcard.

        ``match`` counts where it is given. ``ValueError`` for a text that is no such pattern.

        >>> [str(TopicPattern.written(text)) for text in ("com.feed", "com.", "com..price")]
        ['com.feed', 'com. (prefix)', 'com..price (wildcard)']
        """
        if match is None:
            *others, last = text.split(".")
            has_gap = "" in others
            match = Match.WILDCARD if has_gap else Match.PREFIX if last == "" and text else Match.EXACT
        pattern = cls(text, match)
        if not pattern.is_valid:
            raise ValueError(f"expected a topic such as com.example.feed, got {text!r}")
        return pattern

    def __str__(self) -> str:
        return self.uri if self.match is Match.EXACT else f"{self.uri} ({self.match})"
