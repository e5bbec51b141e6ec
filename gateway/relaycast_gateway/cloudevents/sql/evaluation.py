"""Trees as closures over the attributes of an event.

Law: a closure returns a ``str``, ``int`` or ``bool`` and nothing derived from these, or raises ``SqlEvaluationError``.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from relaycast_gateway.cloudevents.event import canonical_text
from relaycast_gateway.cloudevents.sql.casts import CASTS, SqlType, primitive, to_integer
from relaycast_gateway.cloudevents.sql.errors import SqlErrorKind, SqlEvaluationError, SqlValue
from relaycast_gateway.cloudevents.sql.functions import function
from relaycast_gateway.cloudevents.sql.like import matcher
from relaycast_gateway.cloudevents.sql.operators import ARITHMETIC, ORDERS, in_range
from relaycast_gateway.cloudevents.sql.parser import LOGIC, parse
from relaycast_gateway.cloudevents.sql.syntax import (
    SqlAttribute,
    SqlCall,
    SqlExists,
    SqlIn,
    SqlLike,
    SqlLiteral,
    SqlMinus,
    SqlNode,
    SqlNot,
    SqlOperation,
)

EventAttributes = Mapping[str, object]
SqlEvaluator = Callable[[EventAttributes], Any]

NEVER_AN_ATTRIBUTE = "data"
ALWAYS_THERE = frozenset({"specversion", "id", "source", "type"})
"""The attributes that every event has: ``EXISTS`` is true for them."""


def evaluate_sql(text: str | bool | int, event: EventAttributes) -> SqlValue:
    """Return the value of an expression for an event, given as its attributes by name.

    ``text`` may be a literal that a reader of JSON or YAML has already made of the text (``true``, ``-10``).
    Raises ``SqlParseError``, or ``SqlEvaluationError`` whose ``value`` holds the result that evaluation went on with.
    """
    value: SqlValue = compile_sql(str(text))(event)
    return value


@lru_cache(maxsize=256)
def compile_sql(text: str) -> SqlEvaluator:
    """Return the evaluator of an expression; ``SqlParseError`` where it is none."""
    node = parse(text)
    zero = (_type_of(node) or bool)()
    if isinstance(node, SqlCall):  # its own errors bring a value of their own
        return _call(node, zero)
    return _with_value(_compiled(node), zero)


def sql_predicate(text: str) -> Callable[[EventAttributes], bool]:
    """Return whether an expression is true for an event: false for any other value, and with an error."""
    evaluate = _compiled(parse(text))

    def holds(event: EventAttributes) -> bool:
        try:
            return evaluate(event) is True
        except SqlEvaluationError:
            return False

    return holds


def _with_value(evaluate: SqlEvaluator, zero: SqlValue) -> SqlEvaluator:
    """Return an evaluator whose errors go on with ``zero``."""

    def guarded(event: EventAttributes) -> Any:
        try:
            return evaluate(event)
        except SqlEvaluationError as error:
            raise SqlEvaluationError(error.kind, error.reason, zero) from None

    return guarded


def _type_of(node: SqlNode) -> SqlType | None:
    """Return the type of a result, ``None`` where only the event tells."""
    match node:
        case SqlLiteral(value):
            return type(value)
        case SqlAttribute():
            return None
        case SqlMinus():
            return int
        case SqlOperation(_, rest):
            return int if rest[0][0] in ARITHMETIC else bool
        case SqlCall(name, arguments):
            found = function(name, len(arguments))
            return bool if found is None else found.returns
    return bool


def _compiled(node: SqlNode) -> SqlEvaluator:  # noqa: PLR0911 - one for each form
    match node:
        case SqlLiteral(value):
            return _constant(value)
        case SqlAttribute(name):
            return _attribute(name)
        case SqlExists(name):
            return _exists(name)
        case SqlNot(operand):
            of_not = _cast_to(bool, operand)
            return lambda event: not of_not(event)
        case SqlMinus(operand):
            of_minus = _cast_to(int, operand)
            return lambda event: in_range(-of_minus(event))
        case SqlLike(operand, pattern):
            text, matches = _cast_to(str, operand), matcher(pattern)
            return lambda event: matches(text(event))
        case SqlIn(operand, elements):
            return _in(operand, elements)
        case SqlCall():
            return _call(node, None)
    assert isinstance(node, SqlOperation), node
    operators = {operator for operator, _ in node.rest}
    if operators <= LOGIC:
        return _logic(node)
    return _arithmetic(node) if operators <= ARITHMETIC.keys() else _comparison(node)


def _cast_to(target: SqlType, node: SqlNode) -> SqlEvaluator:
    """Return the evaluator of a node with its result cast."""
    if isinstance(node, SqlAttribute) and target is str:
        return _attribute(node.name, canonical_text)
    evaluate, cast = _compiled(node), CASTS[target]
    return evaluate if _type_of(node) is target else lambda event: cast(evaluate(event))


def _attribute(name: str, read: Callable[[object], SqlValue] = primitive) -> SqlEvaluator:
    """Return the evaluator of an attribute; ``read`` makes a value of what is no text."""
    reason = f"the event has no attribute {name}"

    def attribute(event: EventAttributes) -> Any:
        value = event.get(name)
        if value.__class__ is str:
            return value
        if value is None:
            raise SqlEvaluationError("missingAttribute", reason, False)
        return read(value)

    return _failing("missingAttribute", "data are no attribute") if name == NEVER_AN_ATTRIBUTE else attribute


def _exists(name: str) -> SqlEvaluator:
    if name in ALWAYS_THERE:
        return _constant(True)
    if name == NEVER_AN_ATTRIBUTE:
        return _constant(False)
    return lambda event: event.get(name) is not None


def _constant(value: SqlValue) -> SqlEvaluator:
    return lambda _event: value


def _failing(kind: SqlErrorKind, reason: str) -> SqlEvaluator:
    def failing(_event: EventAttributes) -> Any:
        raise SqlEvaluationError(kind, reason, False)

    return failing


def _logic(node: SqlOperation) -> SqlEvaluator:
    first = _cast_to(bool, node.first)
    rest = tuple((operator, _cast_to(bool, operand)) for operator, operand in node.rest)
    operators = {operator for operator, _ in rest}
    if operators in ({"AND"}, {"OR"}):
        ends_with = operators == {"OR"}
        operands = (first, *(operand for _, operand in rest))

        def one_kind(event: EventAttributes) -> Any:
            for operand in operands:
                if operand(event) is ends_with:
                    return ends_with
            return not ends_with

        return one_kind

    def mixed(event: EventAttributes) -> Any:
        value = first(event)
        for operator, operand in rest:
            if operator == "XOR":
                value = value is not operand(event)
            elif value is (operator == "AND"):
                value = operand(event)
        return value

    return mixed


def _comparison(node: SqlOperation) -> SqlEvaluator:
    first = _compiled(node.first)
    rest = tuple((_COMPARE[operator], _compiled(operand)) for operator, operand in node.rest)
    if len(rest) == 1:
        ((compare, second),) = rest
        return lambda event: compare(first(event), second(event))

    def chain(event: EventAttributes) -> Any:
        value = first(event)
        for compare, operand in rest:
            value = compare(value, operand(event))
        return value

    return chain


def _equal(x: SqlValue, y: SqlValue) -> bool:
    if x.__class__ is not y.__class__:
        x = CASTS[y.__class__](x)
    return x == y


def _ordered(order: Callable[[int, int], bool]) -> Callable[[SqlValue, SqlValue], bool]:
    return lambda x, y: order(to_integer(x), to_integer(y))


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": _equal,
    "!=": lambda x, y: not _equal(x, y),
    "<>": lambda x, y: not _equal(x, y),
    **{operator: _ordered(order) for operator, order in ORDERS.items()},
}


def _arithmetic(node: SqlOperation) -> SqlEvaluator:
    first = _compiled(node.first)
    rest = tuple((ARITHMETIC[operator], _compiled(operand)) for operator, operand in node.rest)

    def arithmetic(event: EventAttributes) -> Any:
        value = first(event)
        for operator, operand in rest:
            right = operand(event)
            value = operator(to_integer(value), to_integer(right))
        return value

    return arithmetic


def _in(operand: SqlNode, elements: tuple[SqlNode, ...]) -> SqlEvaluator:
    left = _compiled(operand)
    if all(isinstance(element, SqlLiteral) for element in elements):
        values = [element.value for element in elements if isinstance(element, SqlLiteral)]
        sets = {target: _cast_until_error(values, target) for target in CASTS}

        def in_literals(event: EventAttributes) -> Any:
            value = left(event)
            found, error = sets[value.__class__]
            if value in found:
                return True
            if error is not None:
                raise SqlEvaluationError(error.kind, error.reason, False)
            return False

        return in_literals
    evaluators = tuple(map(_compiled, elements))

    def in_expressions(event: EventAttributes) -> Any:
        value = left(event)
        cast = CASTS[value.__class__]
        return any(value == cast(element(event)) for element in evaluators)

    return in_expressions


def _cast_until_error(values: list[SqlValue], target: SqlType) -> tuple[frozenset[SqlValue], SqlEvaluationError | None]:
    """Return the values that are compared before a cast fails, and how it fails."""
    found: list[SqlValue] = []
    for value in values:
        try:
            found.append(CASTS[target](value))
        except SqlEvaluationError as error:
            return frozenset(found), error
    return frozenset(found), None


def _call(node: SqlCall, zero: SqlValue | None) -> SqlEvaluator:
    """Return the evaluator of a call; errors of its arguments go on with ``zero`` where one is given."""
    called = function(node.name, len(node.arguments))
    if called is None:
        return _failing("missingFunction", f"there is no function {node.name} of {len(node.arguments)} arguments")
    arguments = []
    for place, argument in enumerate(node.arguments):
        target = called.parameter(place)
        evaluate = _compiled(argument) if target is None else _cast_to(target, argument)
        arguments.append(evaluate if zero is None else _with_value(evaluate, zero))
    run, given = called.run, tuple(arguments)
    return lambda event: run(*[argument(event) for argument in given])
