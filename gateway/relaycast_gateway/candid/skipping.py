"""Values that nobody asked for: passed over by their type in the message, and still checked."""

from collections.abc import Callable

from relaycast_gateway.candid.cursor import READS, SIZES, Cursor, read_func, read_principal, skip_future
from relaycast_gateway.candid.type_graph import (
    DEEPEST,
    FuncType,
    Node,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
)

Skip = Callable[[Cursor], object]


class Skips:
    """How to pass over a value of each type of a message."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = nodes
        self._known: dict[int, Skip] = {}

    def of(self, of: int) -> Skip:
        """Return how a type is skipped; the parts of a composite type are looked up when one is met."""
        if of < 0:
            return READS[of]
        found = self._known.get(of)
        if found is None:
            found = self._known[of] = self._composite(self._nodes[of])
        return found

    def _composite(self, node: Node) -> Skip:  # noqa: PLR0911 - one for each form
        match node:
            case OptType(of):
                return self._opt(of)
            case VecType(of):
                return self._vec(of)
            case RecordType(labels):
                return self._record([label.of for label in labels])
            case VariantType(labels):
                return self._variant([label.of for label in labels])
            case FuncType():
                return read_func
            case ServiceType():
                return read_principal
        return skip_future

    def _opt(self, of: int) -> Skip:
        def skip(cursor: Cursor) -> None:
            cursor.pay_skipped(1)
            if present(cursor):
                descend(cursor)
                self.of(of)(cursor)
                cursor.depth -= 1

        return skip

    def _vec(self, of: int) -> Skip:
        size = SIZES.get(of)

        def skip(cursor: Cursor) -> None:
            count = cursor.count()
            if size is not None:
                if count * size > len(cursor.data) - cursor.pos:
                    raise cursor.refused(f"a vec of {count} elements goes beyond the end of the message")
                cursor.pos += count * size
                cursor.pay_skipped(1)
                return
            cursor.pay_skipped(count + 1)
            descend(cursor)
            element = self.of(of)
            for _ in range(count):
                element(cursor)
            cursor.depth -= 1

        return skip

    def _record(self, types: list[int]) -> Skip:
        def skip(cursor: Cursor) -> None:
            cursor.pay_skipped(len(types) + 1)
            descend(cursor)
            for of in types:
                self.of(of)(cursor)
            cursor.depth -= 1

        return skip

    def _variant(self, types: list[int]) -> Skip:
        def skip(cursor: Cursor) -> None:
            cursor.pay_skipped(1)
            case = cursor.count()
            if case >= len(types):
                raise cursor.refused(f"the variant has {len(types)} cases, got number {case}")
            descend(cursor)
            self.of(types[case])(cursor)
            cursor.depth -= 1

        return skip


def present(cursor: Cursor) -> bool:
    """Return whether the opt that begins here holds a value."""
    byte = cursor.data[cursor.pos]
    if byte > 1:
        raise cursor.refused(f"an opt begins with 0 or 1, got {byte}")
    cursor.pos += 1
    return byte == 1


def descend(cursor: Cursor) -> None:
    """Go one level deeper."""
    cursor.depth += 1
    if cursor.depth > DEEPEST:
        raise cursor.too_deep()
