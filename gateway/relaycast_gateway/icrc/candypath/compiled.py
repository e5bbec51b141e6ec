"""Filters as functions of a tree.

Law: a compiled filter depends on the tree alone and never raises.
"""

from collections.abc import Callable
from typing import cast

from relaycast_gateway.icrc.candypath.comparisons import (
    NEGATIVE,
    OF_TEXTS,
    RELATIONS,
    Relation,
    holds,
    unwrapped,
)
from relaycast_gateway.icrc.candypath.parser import parse
from relaycast_gateway.icrc.candypath.search import OutOfLooks, Search
from relaycast_gateway.icrc.candypath.steps import plain_value
from relaycast_gateway.icrc.candypath.syntax import Condition, Literal, Name, Path, PathComparison
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Tag

TreePredicate = Callable[[Icrc16], bool]


def candy_path(text: str) -> TreePredicate:
    """Return the filter that ``text`` says; ``CandyPathError`` names the character at which it says none.

    >>> from relaycast_gateway.icrc16 import from_json
    >>> cheap = candy_path("books[author.name ~= John].pages < 300 & open == true")
    >>> cheap(from_json({"open": True, "books": [{"author": {"name": "John Doe"}, "pages": 250}]}))
    True
    """
    said = parse(text)
    if isinstance(said, Path):
        return _presence(said)
    if not all(each.is_plain for alternative in said for each in alternative):
        return _searching(said)
    return _any_of([_all_of([_comparison(each) for each in alternative]) for alternative in said])


def _all_of(tests: list[TreePredicate]) -> TreePredicate:
    """Return whether all hold; written out for two, the most usual number, as a loop takes longer."""
    if len(tests) > 2:
        return lambda tree: all(test(tree) for test in tests)
    first, last = tests[0], tests[-1]
    return first if len(tests) == 1 else lambda tree: first(tree) and last(tree)


def _any_of(tests: list[TreePredicate]) -> TreePredicate:
    if len(tests) > 2:
        return lambda tree: any(test(tree) for test in tests)
    first, last = tests[0], tests[-1]
    return first if len(tests) == 1 else lambda tree: first(tree) or last(tree)


def _searching(condition: Condition) -> TreePredicate:
    def select(tree: Icrc16) -> bool:
        try:
            return Search(tree).satisfies(condition, tree)
        except OutOfLooks:
            return False

    return select


def _presence(path: Path) -> TreePredicate:
    def select(tree: Icrc16) -> bool:
        try:
            found = Search(tree).values(path, tree)
        except OutOfLooks:
            return False
        return any(unwrapped(value) not in (NOTHING, Icrc16(Tag.BOOL, False)) for value in found)

    return select


def _comparison(comparison: PathComparison) -> TreePredicate:
    """Return a comparison whose paths lead to one value: outside brackets ``@`` and ``$`` are the same."""
    operator, target = comparison.operator, comparison.target
    steps = cast("tuple[Name, ...]", comparison.path.steps)
    if isinstance(target, Path):
        others = cast("tuple[Name, ...]", target.steps)
        return lambda tree: holds(operator, (plain_value(tree, steps),), (plain_value(tree, others),))
    if len(target) > 1:
        return _any_of([_comparison(comparison._replace(target=(each,))) for each in target])
    if target[0].is_null:
        return lambda tree: holds(operator, (plain_value(tree, steps),), target)
    if len(steps) == 1:
        return _of_an_entry(steps, operator, target[0])
    compare = _with_literal(operator, target[0])
    return lambda tree: compare(plain_value(tree, steps))


def _with_literal(operator: str, literal: Literal) -> TreePredicate:
    """Return the comparison of a value with a literal, quick for texts and whole numbers."""
    relation, positive, whole = _quick(operator, literal)
    text, targets = literal.text, (literal,)

    def select(found: Icrc16) -> bool:
        content = found[1]
        if content.__class__ is str:
            return relation(content, text) is positive
        if whole is not None and content.__class__ is int:
            return relation(content, whole) is positive
        return absent if found is NOTHING else holds(operator, (found,), targets)

    absent = holds(operator, (NOTHING,), targets)
    return select


def _of_an_entry(steps: tuple[Name, ...], operator: str, literal: Literal) -> TreePredicate:
    """Return the same of the entry of a Map, as most filters look at one: without a call for the step."""
    relation, positive, whole = _quick(operator, literal)
    text, targets, name = literal.text, (literal,), steps[0].name

    def select(tree: Icrc16) -> bool:
        tag, content = tree
        if tag is not Tag.MAP:
            return holds(operator, (plain_value(tree, steps),), targets)
        for key, found in content:
            if key == name:
                content = found[1]
                if content.__class__ is str:
                    return relation(content, text) is positive
                if whole is not None and content.__class__ is int:
                    return relation(content, whole) is positive
                return holds(operator, (found,), targets)
        return absent

    absent = holds(operator, (NOTHING,), targets)
    return select


def _quick(operator: str, literal: Literal) -> tuple[Relation, bool, int | None]:
    """Return the relation of an operator, what it must give, and the whole number to compare with, if any.

    A content of class ``str`` is that of a Text, one of class ``int`` that of a whole number.
    """
    negative = operator in NEGATIVE or operator == "!="
    return RELATIONS[operator], not negative, None if operator in OF_TEXTS else literal.whole
