"""Values of any type of a text, drawn: what ``decode`` gives at the type."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from gateway.candid.candid_shapes import PRIMITIVES, principals
from relaycast_gateway.candid import CandidTypes, FuncReference, Present, Variant
from relaycast_gateway.candid.type_graph import (
    NAT8,
    FuncType,
    Label,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    has_null,
)
from relaycast_gateway.candid.type_graph import (
    PRIMITIVES as CODES,
)

_LEAVES: Mapping[int, st.SearchStrategy[Any]] = {
    CODES[shape.text]: shape.values for shape in PRIMITIVES if shape.text in CODES
}


class DrawnValues:
    """A strategy for each type of a graph; of a recursive type, too, since cases that hold nothing more come first."""

    def __init__(self, types: CandidTypes) -> None:
        self._nodes = types.nodes
        self._known: dict[int, st.SearchStrategy[Any]] = {}

    def of(self, of: int) -> st.SearchStrategy[Any]:
        """Return the strategy for values of a type."""
        if of < 0:
            return _LEAVES[of]
        if of not in self._known:
            self._known[of] = st.deferred(lambda: self._composite(of))
        return self._known[of]

    def list_of(self, types: tuple[int, ...]) -> st.SearchStrategy[list[Any]]:
        """Return the strategy for values of a list of types."""
        return st.tuples(*map(self.of, types)).map(list)

    def _composite(self, of: int) -> st.SearchStrategy[Any]:
        match self._nodes[of]:
            case OptType(inner):
                held = self.of(inner)
                return st.none() | (held.map(Present) if has_null(self._nodes, inner) else held)
            case VecType(inner):
                return st.binary(max_size=40) if inner == NAT8 else st.lists(self.of(inner), max_size=2)
            case RecordType(labels):
                return st.fixed_dictionaries({label.name: self.of(label.of) for label in labels})
            case VariantType(labels):
                return st.one_of([self._case(label) for label in sorted(labels, key=lambda label: label.of >= 0)])
            case FuncType():
                return st.builds(FuncReference, principals, st.text(max_size=5))
            case ServiceType():
                return principals
        raise AssertionError(of)

    def _case(self, label: Label) -> st.SearchStrategy[Variant]:
        return self.of(label.of).map(lambda value: Variant(label.name, value))
