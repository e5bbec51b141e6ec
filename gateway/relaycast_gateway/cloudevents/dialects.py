"""Filter dialects: the six of the text, CloudEvents SQL, and those that a plug-in adds.

A dialect's name is a URI reference. It is resolved against ``DIALECT_BASE``: ``exact`` and
``https://cloudevents.io/subscriptions/dialects/exact`` are one dialect. Names are unique in a book.

A filter is written as one Python expression over the attributes ``a``, with names for every text and number that the
subscriber chose. What a subscriber wrote is never part of the code.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin

from relaycast_gateway.cloudevents.event import canonical_text
from relaycast_gateway.cloudevents.invalid_member import InvalidMember
from relaycast_gateway.cloudevents.sql.errors import SqlParseError
from relaycast_gateway.cloudevents.sql.evaluation import NEVER_AN_ATTRIBUTE, sql_predicate

AttributesPredicate = Callable[[Mapping[str, object]], bool]

FilterDialect = Callable[[Any, str], AttributesPredicate]
"""A plug-in: given what stands under the dialect's name and the path of that member, returns the predicate.

It raises ``InvalidMember`` for what it does not understand.
"""

DIALECT_BASE = "https://cloudevents.io/subscriptions/dialects/"
DEEPEST = 32
"""Filters inside one another, the outermost counted."""

MOST_FILTERS = 256
"""Filters in one subscription, all levels together."""

_NAME = re.compile(r"[a-z0-9]+")
_URI_REFERENCE = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+")
_SHOWN = 80


class FilterCode:
    """The Python expression of a filter while it is written."""

    def __init__(self, dialects: "DialectBook", multi_attribute: bool) -> None:
        self.names: dict[str, object] = {"equals": _equals, "starts": _starts, "ends": _ends}
        self.multi_attribute = multi_attribute
        self._dialects = dialects
        self._filters = 0
        self._depth = 0

    def named(self, value: object) -> str:
        """Return a name that stands for ``value`` in the expression."""
        name = f"v{len(self.names)}"
        self.names[name] = value
        return name

    def filter(self, given: object, member: str) -> str:
        """Return the expression of a filter object; ``InvalidMember`` names what is wrong in it."""
        if not isinstance(given, Mapping):
            raise InvalidMember(member, shown(given), "an object with one dialect, such as {'exact': {...}}")
        if len(given) != 1:
            raise InvalidMember(member, _cut(", ".join(map(str, given))) or "{}", "one dialect")
        ((name, value),) = given.items()
        writer = self._dialects.find(name)
        if writer is None:
            raise InvalidMember(member, f"the dialect {shown(name)}", f"one of {', '.join(self._dialects.names())}")
        self._filters += 1
        if self._filters > MOST_FILTERS:
            raise InvalidMember(
                member, f"more than {MOST_FILTERS} filters", f"at most {MOST_FILTERS} in a subscription"
            )
        if self._depth == DEEPEST:
            raise InvalidMember(member, f"a filter {DEEPEST + 1} deep", f"at most {DEEPEST} inside one another")
        self._depth += 1
        written = writer(self, value, f"{member}.{name}")
        self._depth -= 1
        return written

    def compiled(self, expression: str) -> AttributesPredicate:
        """Return the predicate of a finished expression."""
        predicate: AttributesPredicate = eval(f"lambda a: {expression}", self.names)  # noqa: S307 - our own names alone
        return predicate


FilterWriter = Callable[[FilterCode, Any, str], str]


class DialectBook:
    """The dialects that subscriptions may use: from the start the seven that are built in."""

    def __init__(self) -> None:
        self._writers: dict[str, FilterWriter] = {}
        for name, writer in _BUILT_IN.items():
            self._add(name, writer)

    def add(self, name: str, dialect: FilterDialect) -> None:
        """Add a dialect; ``ValueError`` where the name is taken or no URI reference."""
        self._add(name, lambda code, given, member: f"{code.named(dialect(given, member))}(a)")

    def find(self, name: object) -> FilterWriter | None:
        """Return the dialect of that name."""
        return self._writers.get(_resolved(name)) if isinstance(name, str) and _URI_REFERENCE.fullmatch(name) else None

    def names(self) -> list[str]:
        """Return the names, without the base, in the order in which they were added."""
        return [uri.removeprefix(DIALECT_BASE) for uri in self._writers]

    def _add(self, name: str, writer: FilterWriter) -> None:
        if not _URI_REFERENCE.fullmatch(name):
            raise ValueError(f"expected a URI reference as a dialect's name, got {name!r}")
        if _resolved(name) in self._writers:
            raise ValueError(f"expected a new name for a dialect, got {name!r}, which the book has")
        self._writers[_resolved(name)] = writer


def shown(value: object) -> str:
    """Return a value of JSON for an error: an array or an object by its kind alone, a long text cut."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    return _cut(json.dumps(value, default=repr, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _resolved(name: str) -> str:
    try:
        return urljoin(DIALECT_BASE, name)
    except ValueError:  # a port or a host in brackets that is none
        return name


def _comparison(call: str, method: str) -> FilterWriter:
    """Return the writer of ``exact``, ``prefix`` or ``suffix``: ``x`` is the attribute, a text nearly always.

    ``removeprefix`` and ``removesuffix`` take one plain argument and return the same text where nothing is removed:
    together with the comparison they take half the time of ``startswith`` and ``endswith``. ``text`` is never empty.
    """

    def write(code: FilterCode, given: Any, member: str) -> str:
        attributes = _attributes(code, given, member)
        written = []
        for name, value in attributes.items():
            key, text = code.named(name), code.named(value)
            fast = method.format(text=text)
            written.append(f"({fast} if (x := a.get({key})).__class__ is str else {call}(x, {text}))")
        return f"({' and '.join(written)})"

    return write


def _attributes(code: FilterCode, given: Any, member: str) -> Mapping[str, str]:
    expected = "an object of attributes and texts" if code.multi_attribute else "one attribute and its text"
    if not isinstance(given, Mapping):
        raise InvalidMember(member, shown(given), expected)
    if not given or (len(given) > 1 and not code.multi_attribute):
        raise InvalidMember(member, f"{len(given)} attributes", expected)
    for name, value in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name == NEVER_AN_ATTRIBUTE:
            raise InvalidMember(member, shown(name), "an attribute's name, of lower-case letters and digits, not data")
        if not isinstance(value, str) or not value:
            raise InvalidMember(f"{member}.{name}", shown(value), "a text that is not empty")
    return given


def _nested(operator: str) -> FilterWriter:
    """Return the writer of ``all`` or ``any``: Python stops where the result is certain."""

    def write(code: FilterCode, given: Any, member: str) -> str:
        if not isinstance(given, list | tuple) or not given:
            got = "[]" if isinstance(given, list | tuple) else shown(given)
            raise InvalidMember(member, got, "an array of at least one filter")
        written = [code.filter(each, f"{member}[{place}]") for place, each in enumerate(given)]
        return f"({operator.join(written)})"

    return write


def _not(code: FilterCode, given: Any, member: str) -> str:
    return f"(not {code.filter(given, member)})"


def _sql(code: FilterCode, given: Any, member: str) -> str:
    if not isinstance(given, str):
        raise InvalidMember(member, shown(given), "an expression of CloudEvents SQL")
    try:
        return f"{code.named(sql_predicate(given))}(a)"
    except SqlParseError as error:
        raise InvalidMember(member, f"{error.got} at character {error.at}", error.expected) from None


def _equals(value: object, text: str) -> bool:
    return value is not None and canonical_text(value) == text


def _starts(value: object, text: str) -> bool:
    return value is not None and canonical_text(value).startswith(text)


def _ends(value: object, text: str) -> bool:
    return value is not None and canonical_text(value).endswith(text)


_BUILT_IN: Mapping[str, FilterWriter] = {
    "exact": _comparison("equals", "x == {text}"),
    "prefix": _comparison("starts", "x.removeprefix({text}) != x"),
    "suffix": _comparison("ends", "x.removesuffix({text}) != x"),
    "all": _nested(" and "),
    "any": _nested(" or "),
    "not": _not,
    "sql": _sql,
}
