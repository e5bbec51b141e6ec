"""The tree of an expression."""

from dataclasses import dataclass

from relaycast_gateway.cloudevents.sql.errors import SqlValue


@dataclass(frozen=True, slots=True)
class SqlLiteral:
    """A value that stands in the expression."""

    value: SqlValue


@dataclass(frozen=True, slots=True)
class SqlAttribute:
    """The value of a context attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class SqlExists:
    """Whether the event has a context attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class SqlNot:
    """``NOT operand``."""

    operand: "SqlNode"


@dataclass(frozen=True, slots=True)
class SqlMinus:
    """``-operand``."""

    operand: "SqlNode"


@dataclass(frozen=True, slots=True)
class SqlLike:
    """``operand LIKE pattern``."""

    operand: "SqlNode"
    pattern: str


@dataclass(frozen=True, slots=True)
class SqlIn:
    """``operand IN (elements)``."""

    operand: "SqlNode"
    elements: tuple["SqlNode", ...]


@dataclass(frozen=True, slots=True)
class SqlOperation:
    """Operators of one precedence, from left to right: ``first``, then each operator with its right operand."""

    first: "SqlNode"
    rest: tuple[tuple[str, "SqlNode"], ...]


@dataclass(frozen=True, slots=True)
class SqlCall:
    """A function with its arguments; ``name`` is in upper case."""

    name: str
    arguments: tuple["SqlNode", ...]


SqlNode = SqlLiteral | SqlAttribute | SqlExists | SqlNot | SqlMinus | SqlLike | SqlIn | SqlOperation | SqlCall


def height(node: SqlNode) -> int:
    """Return how many nodes stand on the longest way from ``node`` to a leaf, both counted."""
    level, count = [node], 0
    while level:
        level = [operand for each in level for operand in _operands(each)]
        count += 1
    return count


def _operands(node: SqlNode) -> tuple[SqlNode, ...]:
    match node:
        case SqlNot(operand) | SqlMinus(operand) | SqlLike(operand, _):
            return (operand,)
        case SqlIn(operand, elements):
            return (operand, *elements)
        case SqlOperation(first, rest):
            return (first, *(operand for _, operand in rest))
        case SqlCall(_, arguments):
            return arguments
    return ()
