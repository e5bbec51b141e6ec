"""Dialects: the order in which filters are asked, names, and dialects that a plug-in adds."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gateway.cloudevents.filter_events import EVENT, OTHER, TYPE
from relaycast_gateway.cloudevents import compile_filter
from relaycast_gateway.cloudevents.dialects import DIALECT_BASE, DialectBook
from relaycast_gateway.cloudevents.invalid_member import InvalidMember


class Asked:
    """A dialect that notes when it is asked: ``{"asked": {"name": ..., "holds": ...}}``."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.book = DialectBook()
        self.book.add("asked", self.dialect)

    def dialect(self, content: Any, member: str) -> Callable[[Mapping[str, object]], bool]:
        if not isinstance(content, dict) or set(content) != {"name", "holds"}:
            raise InvalidMember(member, str(content), "a name and a verdict")

        def ask(attributes: Mapping[str, object]) -> bool:
            self.names.append(content["name"])
            return bool(content["holds"])

        return ask

    def run(self, given_filter: Any) -> tuple[bool, str]:
        """Return the verdict, and who was asked in which order."""
        self.names.clear()
        return compile_filter(given_filter, dialects=self.book)(EVENT), "".join(self.names)


def asked(name: str, verdict: bool) -> dict[str, Any]:
    return {"asked": {"name": name, "holds": verdict}}


@pytest.mark.matrix("CE-42", "CE-46", "CE-47")
def test_filters_are_asked_in_the_order_listed_until_the_result_is_certain() -> None:
    run = Asked().run
    no, yes = asked("n", False), asked("y", True)
    assert run({"any": [no, yes, asked("z", True)]}) == (True, "ny")
    assert run({"any": [asked("a", False), asked("b", False), asked("c", False)]}) == (False, "abc")
    assert run({"all": [asked("c", True), asked("b", True), asked("a", True)]}) == (True, "cba")
    assert run({"all": [yes, no, asked("z", True)]}) == (False, "yn")
    assert run([yes, {"not": asked("m", False)}, no, asked("z", True)]) == (False, "ymn")
    assert run({"any": [{"all": [yes, no]}, {"not": no}, asked("z", True)]}) == (True, "ynn")


def test_a_dialect_is_compiled_once_and_evaluated_each_time() -> None:
    one = Asked()
    predicate = compile_filter({"all": [asked("a", True), asked("b", True)]}, dialects=one.book)
    assert one.names == []
    assert [predicate(EVENT), predicate({})] == [True, True]
    assert one.names == ["a", "b", "a", "b"]


@pytest.mark.matrix("CE-20")
@pytest.mark.parametrize("name", ["exact", "all", "sql", f"{DIALECT_BASE}exact", "./exact"])
def test_a_dialect_of_a_known_name_is_refused(name: str) -> None:
    book = DialectBook()
    with pytest.raises(ValueError, match=r"expected a new name for a dialect, got '.*', which the book has"):
        book.add(name, lambda content, member: lambda attributes: False)
    assert compile_filter(TYPE, dialects=book)(EVENT)


def test_books_are_independent_of_each_other() -> None:
    one = Asked()
    assert one.book.names() == ["exact", "prefix", "suffix", "all", "any", "not", "sql", "asked"]
    with pytest.raises(InvalidMember):
        compile_filter(asked("a", True))
    with pytest.raises(ValueError, match="got 'asked', which the book has"):
        one.book.add("asked", one.dialect)


@pytest.mark.parametrize("name", ["", "two words", "exäct", "a\n"])
def test_a_dialect_has_a_uri_reference_as_its_name(name: str) -> None:
    with pytest.raises(ValueError, match="expected a URI reference as a dialect's name"):
        DialectBook().add(name, lambda content, member: lambda attributes: True)


@pytest.mark.matrix("CE-57")
def test_a_dialect_may_be_named_by_its_absolute_uri() -> None:
    whole = {f"{DIALECT_BASE}all": [{f"{DIALECT_BASE}exact": {"type": "com.github.push.created"}}, {"./not": OTHER}]}
    assert compile_filter(whole)(EVENT) is True
    book = DialectBook()
    book.add("https://example.com/dialects/never", lambda content, member: lambda attributes: False)
    assert compile_filter({"https://example.com/dialects/never": 1}, dialects=book)(EVENT) is False
    with pytest.raises(InvalidMember, match=r'got the dialect "https://example.com/exact", expected one of exact, '):
        compile_filter({"https://example.com/exact": {"type": "x"}})
