"""The head of a message: the magic bytes, the table of types and the types of the arguments.

Source: Candid specification, "Binary Format", "Types".
"""

from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.leb128 import signed, signed_at, unsigned, unsigned_at
from relaycast_gateway.candid.type_graph import (
    ANNOTATIONS,
    FUNC,
    NAMES,
    OPT,
    RECORD,
    SERVICE,
    VARIANT,
    VEC,
    FuncType,
    FutureType,
    Label,
    Node,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    references,
)

MAGIC = b"DIDL"
LARGEST_HEAD = 1 << 20
"""Bytes of a head that is read: a table of types beyond it is no interface."""


def written_head(nodes: tuple[Node, ...], arguments: tuple[int, ...]) -> bytes:
    """Return the head of a message, with those types that the arguments reach."""
    order: dict[int, int] = {}
    waiting = list(reversed(arguments))
    while waiting:
        of = waiting.pop()
        if of >= 0 and of not in order:
            order[of] = len(order)
            waiting.extend(reversed(references(nodes[of])))
    refs = {of: signed(at) for of, at in order.items()} | {code: signed(code) for code in NAMES}
    table = b"".join(_written(nodes[of], refs) for of in order)
    types = b"".join(refs[of] for of in arguments)
    return MAGIC + unsigned(len(order)) + table + unsigned(len(arguments)) + types


def _written(node: Node, refs: dict[int, bytes]) -> bytes:
    def listed(of: tuple[int, ...]) -> bytes:
        return unsigned(len(of)) + b"".join(refs[one] for one in of)

    match node:
        case OptType(of):
            return signed(OPT) + refs[of]
        case VecType(of):
            return signed(VEC) + refs[of]
        case RecordType(labels) | VariantType(labels):
            code = RECORD if isinstance(node, RecordType) else VARIANT
            fields = b"".join(unsigned(label.number) + refs[label.of] for label in labels)
            return signed(code) + unsigned(len(labels)) + fields
        case FuncType(arguments, results, annotations):
            codes = unsigned(len(annotations)) + bytes(annotations)
            return signed(FUNC) + listed(arguments) + listed(results) + codes
        case ServiceType(methods):
            named = [(name.encode(), of) for name, of in methods]
            entries = b"".join(unsigned(len(name)) + name + refs[of] for name, of in named)
            return signed(SERVICE) + unsigned(len(named)) + entries
        case FutureType():
            raise CandidError("a type of a later version cannot be written")


def read_head(data: bytes, largest: int = LARGEST_HEAD) -> tuple[tuple[Node, ...], tuple[int, ...], int]:
    """Return the table of types, the types of the arguments and the position of the first value.

    A head that is longer than ``largest`` bytes is refused.
    """
    if data[:4] != MAGIC:
        raise CandidError(f"a message begins with the bytes DIDL, got {data[:4].hex()}", "byte 0")
    reader = _HeadReader(data[:largest])
    try:
        nodes, arguments = reader.table()
    except IndexError as error:
        raise CandidError("the head of the message ends too early", f"byte {min(reader.pos, len(data))}") from error
    return nodes, arguments, reader.pos


class _HeadReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = len(MAGIC)
        self.entries = 0

    def table(self) -> tuple[tuple[Node, ...], tuple[int, ...]]:
        self.entries = self.count("types")
        nodes = tuple([self.node() for _ in range(self.entries)])
        for node in nodes:
            if isinstance(node, ServiceType):
                for name, of in node.methods:
                    if of < 0 or not isinstance(nodes[of], FuncType):
                        raise self.refused(f"the method {name[:40]} is no function")
        return nodes, self.references("arguments")

    def refused(self, reason: str) -> CandidError:
        return CandidError(reason, f"byte {self.pos}")

    def count(self, what: str) -> int:
        found, pos = unsigned_at(self.data, self.pos)
        if found > len(self.data) - pos:
            raise self.refused(f"more {what} than bytes that follow")
        self.pos = pos
        return found

    def reference(self) -> int:
        of, pos = signed_at(self.data, self.pos)
        if not (0 <= of < self.entries or of in NAMES):
            raise self.refused("expected a primitive type or an entry of the table")
        self.pos = pos
        return of

    def references(self, what: str) -> tuple[int, ...]:
        return tuple([self.reference() for _ in range(self.count(what))])

    def node(self) -> Node:  # noqa: PLR0911 - one for each form
        start = self.pos
        code, self.pos = signed_at(self.data, self.pos)
        if code == OPT:
            return OptType(self.reference())
        if code == VEC:
            return VecType(self.reference())
        if code == RECORD:
            return RecordType(self.labels())
        if code == VARIANT:
            return VariantType(self.labels())
        if code == FUNC:
            arguments, results = self.references("arguments"), self.references("results")
            return FuncType(arguments, results, self.annotations())
        if code == SERVICE:
            return ServiceType(self.methods())
        if code < min(NAMES):
            size = self.count("bytes of a future type")
            self.pos += size
            return FutureType()
        self.pos = start
        raise self.refused("expected a composite type")

    def labels(self) -> tuple[Label, ...]:
        found: list[Label] = []
        last = -1
        for _ in range(self.count("fields")):
            number, pos = unsigned_at(self.data, self.pos)
            if not last < number < 1 << 32:
                raise self.refused("the numbers of fields must ascend and be less than 2^32")
            self.pos, last = pos, number
            found.append(Label(number, number, self.reference()))
        return tuple(found)

    def annotations(self) -> tuple[int, ...]:
        found: list[int] = []
        for _ in range(self.count("annotations")):
            code, pos = unsigned_at(self.data, self.pos)
            if code not in ANNOTATIONS.values():
                raise self.refused("unknown annotation of a function")
            self.pos = pos
            found.append(code)
        return tuple(sorted(set(found)))

    def methods(self) -> tuple[tuple[str, int], ...]:
        found: list[tuple[str, int]] = []
        last: bytes | None = None
        for _ in range(self.count("methods")):
            size = self.count("bytes of a name")
            raw = self.data[self.pos : self.pos + size]
            if last is not None and raw <= last:
                raise self.refused("the names of methods must ascend")
            try:
                name = raw.decode()
            except UnicodeDecodeError as error:
                raise self.refused("the name of a method must be UTF-8") from error
            self.pos, last = self.pos + size, raw
            found.append((name, self.reference()))
        return tuple(found)
