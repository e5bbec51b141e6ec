"""Trees as closures over the attributes of an event.

Law: a closure returns a ``str``, ``int`` or ``bool`` and nothing derived from these, or raises ``SqlEvaluationError``.
A failed cast raises, which is enough for a filter. The value of the expression then comes from a second set of
closures, whose failed casts return the default of their type; the first error is kept.
Source: CloudEvents SQL 1.0, "Errors" and "Type casting".
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from relaycast_gateway.cloudevents.event import canonical_text
from relaycast_gateway.cloudevents.sql.casts import CASTS, SqlType, primitive
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
Casts = Mapping[SqlType, Callable[[SqlValue], Any]]
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
    strict = _whole(node, CASTS)

    def evaluate(event: EventAttributes) -> Any:
        try:
            return strict(event)
        except SqlEvaluationError as error:
            if error.kind != "cast":
                raise
        errors: list[SqlEvaluationError] = []
        try:
            value = _whole(node, {target: _going_on(target, errors) for target in CASTS})(event)
        except SqlEvaluationError as error:
            errors.append(error)
            value = error.value
        raise SqlEvaluationError(errors[0].kind, errors[0].reason, value)

    return evaluate


def _whole(node: SqlNode, casts: Casts) -> SqlEvaluator:
    """Return the evaluator of a whole expression: an error yields the zero value of its type."""
    zero = (_type_of(node) or bool)()
    if isinstance(node, SqlCall):  # its own errors bring a value of their own
        return _call(node, zero, casts)
    return _with_value(_compiled(node, casts), zero)


def _going_on(target: SqlType, errors: list[SqlEvaluationError]) -> Callable[[SqlValue], SqlValue]:
    """Return a cast that notes its error and returns the default of its type."""
    strict = CASTS[target]

    def cast(value: SqlValue) -> SqlValue:
        try:
            return strict(value)
        except SqlEvaluationError as error:
            errors.append(error)
            return error.value

    return cast


def sql_predicate(text: str) -> Callable[[EventAttributes], bool]:
    """Return whether an expression is true for an event: false for any other value, and with an error."""
    evaluate = _compiled(parse(text), CASTS)

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


def _compiled(node: SqlNode, casts: Casts) -> SqlEvaluator:  # noqa: PLR0911 - one for each form
    match node:
        case SqlLiteral(value):
            return _constant(value)
        case SqlAttribute(name):
            return _attribute(name)
        case SqlExists(name):
            return _exists(name)
        case SqlNot(operand):
            of_not = _cast_to(bool, operand, casts)
            return lambda event: not of_not(event)
        case SqlMinus(operand):
            of_minus = _cast_to(int, operand, casts)
            return lambda event: in_range(-of_minus(event))
        case SqlLike(operand, pattern):
            text, matches = _cast_to(str, operand, casts), matcher(pattern)
            return lambda event: matches(text(event))
        case SqlIn(operand, elements):
            return _in(operand, elements, casts)
        case SqlCall():
            return _call(node, None, casts)
    assert isinstance(node, SqlOperation), node
    operators = {operator for operator, _ in node.rest}
    if operators <= LOGIC:
        return _logic(node, casts)
    return _arithmetic(node, casts) if operators <= ARITHMETIC.keys() else _comparison(node, casts)


def _cast_to(target: SqlType, node: SqlNode, casts: Casts) -> SqlEvaluator:
    """Return the evaluator of a node with its result cast."""
    if isinstance(node, SqlAttribute) and target is str:
        return _attribute(node.name, canonical_text)
    evaluate, cast = _compiled(node, casts), casts[target]
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


def _logic(node: SqlOperation, casts: Casts) -> SqlEvaluator:
    first = _cast_to(bool, node.first, casts)
    rest = tuple((operator, _cast_to(bool, operand, casts)) for operator, operand in node.rest)
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


def _comparison(node: SqlOperation, casts: Casts) -> SqlEvaluator:
    first = _compiled(node.first, casts)
    rest = tuple((_compare(operator, casts), _compiled(operand, casts)) for operator, operand in node.rest)
    if len(rest) == 1:
        ((compare, second),) = rest
        return lambda event: compare(first(event), second(event))

    def chain(event: EventAttributes) -> Any:
        value = first(event)
        for compare, operand in rest:
            value = compare(value, operand(event))
        return value

    return chain


def _compare(operator: str, casts: Casts) -> Callable[[Any, Any], bool]:
    """Return a comparison: ``=`` casts the left to the type of the right, an order casts both to integers."""
    order, to_int = ORDERS.get(operator), casts[int]
    if order is not None:
        return lambda x, y: order(to_int(x), to_int(y))

    def equal(x: SqlValue, y: SqlValue) -> bool:
        if x.__class__ is not y.__class__:
            x = casts[y.__class__](x)
        return x == y

    return equal if operator == "=" else lambda x, y: not equal(x, y)


def _arithmetic(node: SqlOperation, casts: Casts) -> SqlEvaluator:
    first, to_int = _compiled(node.first, casts), casts[int]
    rest = tuple((ARITHMETIC[operator], _compiled(operand, casts)) for operator, operand in node.rest)

    def arithmetic(event: EventAttributes) -> Any:
        value = first(event)
        for operator, operand in rest:
            right = operand(event)
            value = operator(to_int(value), to_int(right))
        return value

    return arithmetic


def _in(operand: SqlNode, elements: tuple[SqlNode, ...], casts: Casts) -> SqlEvaluator:
    left = _compiled(operand, casts)
    if casts is CASTS and all(isinstance(element, SqlLiteral) for element in elements):
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
    evaluators = tuple(_compiled(element, casts) for element in elements)

    def in_expressions(event: EventAttributes) -> Any:
        value = left(event)
        cast = casts[value.__class__]
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


def _call(node: SqlCall, zero: SqlValue | None, casts: Casts) -> SqlEvaluator:
    """Return the evaluator of a call; errors of its arguments go on with ``zero`` where one is given."""
    called = function(node.name, len(node.arguments))
    if called is None:
        return _failing("missingFunction", f"there is no function {node.name} of {len(node.arguments)} arguments")
    arguments = []
    for place, argument in enumerate(node.arguments):
        target = called.parameter(place)
        evaluate = _compiled(argument, casts) if target is None else _cast_to(target, argument, casts)
        arguments.append(evaluate if zero is None else _with_value(evaluate, zero))
    is_cast = called.run is CASTS[called.returns]
    run, given = casts[called.returns] if is_cast else called.run, tuple(arguments)
    return lambda event: run(*[argument(event) for argument in given])
