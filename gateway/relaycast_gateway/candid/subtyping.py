"""When a value of one type may be read at another: the rules for references to functions and services.

A function is a subtype if it takes at least what the other takes and returns at most what the other returns. Any type
is a subtype of an ``opt``. Source: Candid specification, "Upgrading and Subtyping".
"""

from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.type_graph import (
    DEEPEST,
    EMPTY,
    INT,
    NAT,
    PRINCIPAL,
    RESERVED,
    FuncType,
    Node,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    has_null,
)

Nodes = tuple[Node, ...]
_MOST_PAIRS = 20_000


class Subtyping:
    """Whether types of one graph are subtypes of types of another.

    INVARIANT: a pair that is being compared counts as true, and no rule goes on after a comparison that failed. So a
    pair that was compared need not be compared again.
    """

    def __init__(self, left: Nodes, right: Nodes) -> None:
        self._graphs = (left, right)
        self._holds: dict[tuple[int, int, bool], bool] = {}

    def holds(self, left: int, right: int) -> bool:
        """Tell whether ``left`` is a subtype of ``right``."""
        before = len(self._holds)
        found = False
        try:
            found = self._is(left, right, False, 0)
        finally:
            while not found and len(self._holds) > before:
                self._holds.popitem()
        if not found:
            self._holds[left, right, False] = False
        return found

    def _is(self, left: int, right: int, turned: bool, depth: int) -> bool:  # noqa: PLR0911 - one for each form
        """Compare a type of the first graph with one of the second, or ``turned`` the other way round."""
        nodes, others = self._graphs[turned], self._graphs[not turned]
        if left < 0 or right < 0:
            simple = right == RESERVED or left in {EMPTY, right} or (left == NAT and right == INT)
            service = right == PRINCIPAL and left >= 0 and isinstance(nodes[left], ServiceType)
            return simple or service or (right >= 0 and isinstance(others[right], OptType))
        key = (left, right, turned)
        if key in self._holds:
            return self._holds[key]
        if depth > DEEPEST or len(self._holds) >= _MOST_PAIRS:
            raise CandidError(f"types to compare nest more than {DEEPEST} deep, or are too many")
        self._holds[key] = True
        depth += 1
        match nodes[left], others[right]:
            case _, OptType():
                return True
            case VecType(of), VecType(other):
                return self._is(of, other, turned, depth)
            case RecordType(labels), RecordType(wanted):
                given = {label.number: label.of for label in labels}
                return all(
                    self._is(given[label.number], label.of, turned, depth)
                    if label.number in given
                    else has_null(others, label.of)
                    for label in wanted
                )
            case VariantType(labels), VariantType(known):
                cases = {label.number: label.of for label in known}
                return all(
                    label.number in cases and self._is(label.of, cases[label.number], turned, depth) for label in labels
                )
            case FuncType() as func, FuncType() as other:
                return (
                    func.annotations == other.annotations
                    and self._lists(other.arguments, func.arguments, not turned, depth)
                    and self._lists(func.results, other.results, turned, depth)
                )
            case ServiceType(methods), ServiceType(asked):
                offered = dict(methods)
                return all(name in offered and self._is(offered[name], of, turned, depth) for name, of in asked)
        return False

    def _lists(self, left: tuple[int, ...], right: tuple[int, ...], turned: bool, depth: int) -> bool:
        others = self._graphs[not turned]
        shared = zip(left, right, strict=False)
        return all(self._is(of, other, turned, depth) for of, other in shared) and all(
            has_null(others, of) for of in right[len(left) :]
        )
