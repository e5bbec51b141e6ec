"""The textual form of types: definitions, lists in parentheses and services.

```text
text      = { "type" name "=" type ";" } [ list ] [ "service" [name] ":" [ list "->" ] ( methods | name ) [";"] ]
list      = "(" [ [name ":"] type { "," [name ":"] type } [","] ] ")"
type      = name | primitive | "blob" | "opt" type | "vec" type | "record" "{" fields "}" | "variant" "{" fields "}"
          | "func" function | "service" methods
function  = list "->" list { "query" | "oneway" | "composite_query" }
methods   = "{" { name ":" ( function | name ) ";" } "}"
```
A field is ``label : type``, a type alone (the label before plus one, from 0) or, in a variant, a label alone, which
has the type null. A name may be a string. Source: Candid specification, "Core Grammar".
"""

from functools import lru_cache
from types import MappingProxyType

from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.lexer import TextToken, TokenReader, string_text
from relaycast_gateway.candid.same_types import merged
from relaycast_gateway.candid.type_graph import (
    ANNOTATIONS,
    DEEPEST,
    NAT8,
    NULL,
    PRIMITIVES,
    CandidTypes,
    FuncType,
    Label,
    Node,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    label_number,
    redirected,
)

_COMPOSITES = {"blob", "opt", "vec", "record", "variant", "func", "service"}
KEYWORDS = {*PRIMITIVES, *ANNOTATIONS, *_COMPOSITES, "type", "import", "true", "false"}
"""Words that cannot name a type, and stand in quotes where they label a field."""
_FIRST_NAME = -1_000
"""References from here downwards stand for names until all definitions are known."""


@lru_cache(maxsize=256)
def parse_types(text: str) -> CandidTypes:
    """Return what a text of types says; ``CandidError`` with line and column where it is none."""
    try:
        return TypeParser(text).parsed()
    except RecursionError as error:
        raise CandidError(f"types nest at most {DEEPEST} deep") from error


class TypeParser(TokenReader):
    """Types from left to right, as nodes of one graph."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.nodes: list[Node] = []
        self.definitions: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.by_number: dict[int, str] = {}
        self._meant: dict[str, int] = {}
        self.used: dict[str, TextToken] = {}
        self.methods: list[tuple[int, TextToken]] = []
        self.depth = 0

    def parsed(self) -> CandidTypes:
        """Return what the whole text says."""
        while self.has("type") or self.has("import"):
            self._definition()
        arguments = self._list() if self.has("(") else None
        service, init, start = None, None, self.token
        if self.takes("service"):
            if not self.has(":"):
                self._identifier("the name of the service or ':'")
            self.expect(":")
            if self.has("("):
                init = self._list()
                self.expect("->")
            start = self.token
            service = self._service() if self.has("{") else self._named()
            self.takes(";")
        if self.token.kind != "end":
            raise self.refusal("a definition, a list of types, a service or the end")
        return self._resolved(arguments, service, init, start)

    def _definition(self) -> None:
        if self.has("import"):
            raise self.refused("imports are not read: put the definitions into one text", self.token)
        self.step()
        token = self.token
        name = self._identifier("the name of a type")
        if name in self.definitions:
            raise self.refused(f"the type {name} is defined twice", token)
        self.expect("=")
        self.definitions[name] = self.type_here()
        self.used.setdefault(name, token)
        if self.token.kind != "end":
            self.expect(";")

    def _identifier(self, expected: str) -> str:
        if self.token.kind != "name" or self.token.text in KEYWORDS:
            raise self.refusal(expected)
        return self.step().text

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _named(self) -> int:
        token = self.token
        name = self._identifier("a type")
        self.used.setdefault(name, token)
        of = self.names.setdefault(name, _FIRST_NAME - len(self.names))
        self.by_number[of] = name
        return of

    def type_here(self) -> int:
        """Take a type; a name in it may stand for one that is defined later."""
        if self.depth >= DEEPEST:
            raise self.refused(f"types nest at most {DEEPEST} deep", self.token)
        self.depth += 1
        of = self._composite()
        self.depth -= 1
        return of

    def _composite(self) -> int:  # noqa: PLR0911 - one for each form
        token = self.token
        if token.kind != "name":
            raise self.refusal("a type")
        if token.text in PRIMITIVES:
            return PRIMITIVES[self.step().text]
        match token.text:
            case "blob":
                self.step()
                return self._add(VecType(NAT8))
            case "opt":
                self.step()
                return self._add(OptType(self.type_here()))
            case "vec":
                self.step()
                return self._add(VecType(self.type_here()))
            case "record":
                self.step()
                labels = self._fields(null_for_a_label=False)
                order = tuple(label.name for label in labels)
                return self._add(RecordType(tuple(sorted(labels)), order))
            case "variant":
                self.step()
                return self._add(VariantType(tuple(sorted(self._fields(null_for_a_label=True)))))
            case "func":
                self.step()
                return self._function()
            case "service":
                self.step()
                return self._service()
        return self._named()

    def _fields(self, *, null_for_a_label: bool) -> list[Label]:
        self.expect("{")
        found: list[Label] = []
        numbers: set[int] = set()
        for token in self.each("}", ";"):
            next_number = found[-1].number + 1 if found else 0
            name, of = self._field(next_number, null_for_a_label=null_for_a_label)
            number = self.number_of(name, token)
            if number in numbers:
                raise self.refused(f"two fields have the number {number}", token)
            numbers.add(number)
            found.append(Label(number, name, of))
        return found

    def _field(self, next_number: int, *, null_for_a_label: bool) -> tuple[str | int, int]:
        token = self.token
        labelled = self.is_before(":")
        if token.kind not in {"name", "string", "number"}:
            raise self.refusal("a field")
        if labelled or null_for_a_label or token.kind != "name":
            name = self.label()
            if self.takes(":"):
                return name, self.type_here()
            if null_for_a_label:
                return name, NULL
            raise self.refusal("':'")
        return next_number, self.type_here()

    def label(self) -> str | int:
        """Take a label: a name, a string or a number."""
        token = self.step()
        if token.kind == "name":
            return token.text
        if token.kind == "string":
            return string_text(token, self.text)
        if token.kind == "number" and token.text[0] not in "+-":
            digits = token.text.replace("_", "")
            if len(digits) <= 20:
                return int(digits, 16 if digits.startswith("0x") else 10)
            raise self.refused("a field's number must be less than 2^32", token)
        raise self.refusal("a name or a number", token)

    def number_of(self, label: str | int, token: TextToken) -> int:
        """Return the number of the field or case that ``token`` begins."""
        number = label_number(label)
        if number >= 1 << 32:
            raise self.refused(f"a field's number must be less than 2^32, got {number}", token)
        return number

    def _list(self) -> tuple[int, ...]:
        self.expect("(")
        found: list[int] = []
        for _ in self.each(")", ","):
            if self.is_before(":"):
                self.label()
                self.step()
            found.append(self.type_here())
        return tuple(found)

    def _function(self) -> int:
        arguments = self._list()
        self.expect("->")
        results = self._list()
        annotations: list[int] = []
        while self.token.text in ANNOTATIONS and self.token.kind == "name":
            token = self.step()
            code = ANNOTATIONS[token.text]
            if code in annotations:
                raise self.refused(f"{token.text} stands twice", token)
            annotations.append(code)
            if token.text == "oneway" and results:
                raise self.refused("a oneway function has no results", token)
        return self._add(FuncType(arguments, results, tuple(sorted(annotations))))

    def _service(self) -> int:
        self.expect("{")
        found: dict[str, int] = {}
        for token in self.each("}", ";"):
            name = self.method()
            if name in found:
                raise self.refused(f"the method {name} stands twice", token)
            self.expect(":")
            at = self.token
            found[name] = self._function() if self.has("(") else self._named()
            self.methods.append((found[name], at))
        return self._add(ServiceType(tuple(sorted(found.items(), key=lambda item: item[0].encode()))))

    def _resolved(
        self, arguments: tuple[int, ...] | None, service: int | None, init: tuple[int, ...] | None, start: TextToken
    ) -> CandidTypes:
        """Replace names by what they stand for, and nodes that are alike by one."""
        meant = self.meanings()
        for of, token in self.methods:
            if not isinstance(self._node(meant.get(of, of)), FuncType):
                raise self.refused(f"a method must be a function, got {token.text}", token)
        if service is not None and not isinstance(self._node(meant.get(service, service)), ServiceType):
            raise self.refused(f"expected the type of a service, got {start.text}", start)
        nodes, kept = merged([redirected(node, meant) for node in self.nodes])
        kept |= {of: kept.get(node, node) for of, node in meant.items()}

        def final(refs: tuple[int, ...] | None) -> tuple[int, ...] | None:
            return None if refs is None else tuple(kept.get(of, of) for of in refs)

        names = {name: kept.get(self._meaning(name), self._meaning(name)) for name in self.definitions}
        return CandidTypes(
            nodes,
            MappingProxyType(names),
            final(arguments),
            None if service is None else kept.get(service, service),
            final(init),
        )

    def meanings(self) -> dict[int, int]:
        """Return what each reference that stands for a name means."""
        return {of: self._meaning(name) for name, of in self.names.items()}

    def _node(self, of: int) -> Node | None:
        return self.nodes[of] if of >= 0 else None

    def _meaning(self, name: str) -> int:
        """Follow a name through the names that it is defined as."""
        first, seen = name, {name}
        while name not in self._meant:
            if name not in self.definitions:
                raise self.refused(f"the type {name} is not defined", self.used[name])
            of = self.definitions[name]
            if of > _FIRST_NAME:
                self._meant[name] = of
                break
            name = self.by_number[of]
            if name in seen:
                raise self.refused(f"the type {first} is defined as itself", self.used[first])
            seen.add(name)
        self._meant |= dict.fromkeys(seen, self._meant[name])
        return self._meant[name]
