"""The textual form of values, read at types as a message is.

```text
text      = "(" [ annotated { "," annotated } [","] ] ")"
annotated = value [ ":" type ] | "(" annotated ")"
value     = number | float | string | "true" | "false" | "null" | "nan" | [sign] "inf" | "blob" string
          | "opt" value | "vec" "{" annotated; ... "}" | "record" "{" field; ... "}" | "variant" "{" field "}"
          | "principal" string | "service" string | "func" string "." name
field     = label "=" annotated | annotated (in a record) | label (in a variant)
```
What does not fit is refused, below an ``opt`` too: a text is written by hand. ``inf`` and ``nan`` are words of ours.
Source: Candid specification, "Textual Format".
"""

import math
import struct
from typing import NamedTuple, cast

from relaycast_gateway.candid.cursor import FORMATS
from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.lexer import TextToken, string_bytes, string_text
from relaycast_gateway.candid.subtyping import Subtyping
from relaycast_gateway.candid.type_graph import (
    BOOL,
    DEEPEST,
    FLOAT32,
    FLOAT64,
    INT,
    NAT,
    NAT8,
    NULL,
    PRINCIPAL,
    RESERVED,
    TEXT,
    FuncType,
    Node,
    OptType,
    RecordType,
    ServiceType,
    VariantType,
    VecType,
    has_null,
    redirected,
    type_name,
)
from relaycast_gateway.candid.type_parser import TypeParser, parse_types
from relaycast_gateway.candid.values import FuncReference, Present, Principal, Variant


class WrittenValue(NamedTuple):
    """A value as a text says it: its kind, its content, where it stands, the type behind a colon."""

    kind: str
    content: object
    token: TextToken
    annotation: int | None = None


WrittenFields = dict[int, WrittenValue]


def parse_values(text: str, types: str) -> list[object]:
    """Return the values of a text such as ``(42, opt "a")`` at ``types``, as ``decode`` returns them.

    ``CandidError`` with line and column for a text that is malformed or does not fit.
    """
    try:
        return _ValueParser(text, types).values()
    except RecursionError as error:
        raise CandidError(f"values nest at most {DEEPEST} deep") from error


class _ValueParser(TypeParser):
    def __init__(self, text: str, types: str) -> None:
        super().__init__(text)
        known = parse_types(types)
        self.nodes = list(known.nodes)
        self.definitions = dict(known.names)
        self._asked = known.listed()

    def values(self) -> list[object]:
        self.expect("(")
        written = [self._annotated() for _ in self.each(")", ",")]
        if self.token.kind != "end":
            raise self.refusal("the end")
        meant = self.meanings()
        fitting = _Fitting(self, [redirected(node, meant) for node in self.nodes], meant)
        missing = self._asked[len(written) :]
        for of in missing:
            if not has_null(fitting.nodes, of):
                raise self.refusal(f"a further argument ({type_name(fitting.nodes, of)})")
        found = [fitting.value(value, of) for value, of in zip(written, self._asked, strict=False)]
        return found + [None] * len(missing)

    def _annotated(self) -> WrittenValue:
        found = self._nested()
        if self.takes(":"):
            token = self.token
            if found.annotation is not None:
                raise self.refused("a value has one type", token)
            found = found._replace(annotation=self.type_here())
        return found

    def _value(self) -> WrittenValue:  # noqa: PLR0911 - one for each form
        token = self.step()
        if token.kind == "number":
            return WrittenValue("number", self._integer(token), token)
        if token.kind == "float":
            return WrittenValue("float", self._float(token), token)
        if token.kind == "string":
            return WrittenValue("text", string_text(token, self.text), token)
        if token.kind != "name":
            raise self.refusal("a value", token)
        word = token.text
        if word in {"true", "false"}:
            return WrittenValue("bool", word == "true", token)
        if word == "null":
            return WrittenValue("null", None, token)
        if word in {"nan", "inf"}:
            return WrittenValue("float", float(word), token)
        return self._worded(word, token)

    def _worded(self, word: str, token: TextToken) -> WrittenValue:
        content: object
        match word:
            case "opt":
                content = self._nested()
            case "vec":
                content = self._elements()
            case "record":
                content = self._written_fields()
            case "variant":
                content = self._case()
            case "blob":
                content = string_bytes(self._string(), self.text)
            case "principal" | "service":
                content = self._principal()
            case "func":
                service = self._principal()
                self.expect(".")
                content = FuncReference(service, self.method())
            case _:
                raise self.refusal("a value", token)
        return WrittenValue(word, content, token)

    def _nested(self) -> WrittenValue:
        """Take a value, or one in parentheses, without a colon behind it: behind ``opt`` it belongs to the whole."""
        if self.depth >= DEEPEST:
            raise self.refused(f"values nest at most {DEEPEST} deep", self.token)
        self.depth += 1
        if self.takes("("):
            found = self._annotated()
            self.expect(")")
        else:
            found = self._value()
        self.depth -= 1
        return found

    def _integer(self, token: TextToken) -> int:
        digits = token.text.replace("_", "")
        try:
            return int(digits, 16 if "0x" in digits else 10)
        except ValueError as error:
            raise self.refused("a decimal number has too many digits: write it as 0x...", token) from error

    def _float(self, token: TextToken) -> float:
        digits = token.text.replace("_", "")
        try:
            found = float.fromhex(digits) if "0x" in digits else float(digits)
        except (ValueError, OverflowError) as error:
            raise self.refused("the number is out of the range of float64", token) from error
        if math.isinf(found) and "inf" not in digits:
            raise self.refused("the number is out of the range of float64", token)
        return found

    def _string(self) -> TextToken:
        token = self.step()
        if token.kind != "string":
            raise self.refusal("a string", token)
        return token

    def _principal(self) -> Principal:
        token = self._string()
        try:
            return Principal.of(string_text(token, self.text))
        except CandidError as error:
            raise self.refused(error.reason, token) from error

    def _elements(self) -> list[WrittenValue]:
        self.expect("{")
        return [self._annotated() for _ in self.each("}", ";")]

    def _written_fields(self) -> WrittenFields:
        self.expect("{")
        found: WrittenFields = {}
        number = -1
        for token in self.each("}", ";"):
            if self.is_before("="):
                label = self.label()
                self.step()
            else:
                label = number + 1
            number = self.number_of(label, token)
            if number in found:
                raise self.refused(f"two fields have the number {number}", token)
            found[number] = self._annotated()
        return found

    def _case(self) -> tuple[int, WrittenValue]:
        self.expect("{")
        token = self.token
        number = self.number_of(self.label(), token)
        value = self._annotated() if self.takes("=") else WrittenValue("null", None, token)
        self.takes(";")
        self.expect("}")
        return number, value


class _Fitting:
    """Written values as values of types of one graph."""

    def __init__(self, parser: _ValueParser, nodes: list[Node], meant: dict[int, int]) -> None:
        self.nodes = tuple(nodes)
        self._parser = parser
        self._meant = meant
        self._subtyping = Subtyping(self.nodes, self.nodes)

    def unfit(self, value: WrittenValue, of: int) -> CandidError:
        return self._parser.refused(f"expected {type_name(self.nodes, of)}, got {value.kind}", value.token)

    def value(self, value: WrittenValue, of: int) -> object:
        if value.annotation is not None:
            given = self._meant.get(value.annotation, value.annotation)
            if not self._subtyping.holds(given, of):
                wanted, name = type_name(self.nodes, of), type_name(self.nodes, given)
                raise self._parser.refused(f"expected {wanted}, got a value of type {name}", value.token)
            value = value._replace(annotation=None)
            if given < 0:
                self.value(value, given)
        if of == RESERVED:
            return None
        return self._primitive(value, of) if of < 0 else self._composite(value, of)

    def _primitive(self, value: WrittenValue, of: int) -> object:
        content = value.content
        match value.kind:
            case "number" if of in {NAT, INT} or (of in FORMATS and of not in {FLOAT32, FLOAT64}):
                return self._integer(value, of)
            case "number" | "float" if of in {FLOAT32, FLOAT64}:
                return self._float(value, of)
            case "bool" if of == BOOL:
                return content
            case "text" if of == TEXT:
                return content
            case "null" if of == NULL:
                return None
            case "principal" | "service" if of == PRINCIPAL:
                return content
        raise self.unfit(value, of)

    def _integer(self, value: WrittenValue, of: int) -> object:
        number = value.content
        try:
            if of in FORMATS:
                struct.pack("<" + FORMATS[of], number)
        except struct.error as error:
            raise self._parser.refused(f"the number is out of the range of {type_name((), of)}", value.token) from error
        if of == NAT and isinstance(number, int) and number < 0:
            raise self._parser.refused("expected a natural number, got a negative one", value.token)
        return number

    def _float(self, value: WrittenValue, of: int) -> object:
        """Return the number as the type has it: a float32 is rounded."""
        form = "<" + FORMATS[of]
        try:
            return struct.unpack(form, struct.pack(form, value.content))[0]
        except (OverflowError, struct.error) as error:
            raise self._parser.refused(f"the number is out of the range of {type_name((), of)}", value.token) from error

    def _composite(self, value: WrittenValue, of: int) -> object:  # noqa: PLR0911 - one for each form
        content = value.content
        match self.nodes[of], content:
            case OptType(inner), _:
                return self._opt(value, inner)
            case VecType(inner), bytes() if inner == NAT8:
                return content
            case VecType(inner), list():
                found = [self.value(element, inner) for element in content]
                return bytes(cast(list[int], found)) if inner == NAT8 else found
            case RecordType() as node, dict():
                return self._record(value, node, content)
            case VariantType(labels), (int() as number, WrittenValue() as held) if value.kind == "variant":
                for label in labels:
                    if label.number == number:
                        return Variant(label.name, self.value(held, label.of))
                raise self._parser.refused("unknown case of the variant", value.token)
            case FuncType(), FuncReference():
                return content
            case ServiceType(), Principal() if value.kind == "service":
                return content
        raise self.unfit(value, of)

    def _opt(self, value: WrittenValue, inner: int) -> object:
        if value.kind == "null":
            return None
        content = value.content
        held = content if value.kind == "opt" and isinstance(content, WrittenValue) else value
        found = self.value(held, inner)
        return Present(found) if has_null(self.nodes, inner) else found

    def _record(self, value: WrittenValue, node: RecordType, content: WrittenFields) -> object:
        found: dict[str | int, object] = dict.fromkeys(node.order)
        for label in node.labels:
            if label.number in content:
                found[label.name] = self.value(content[label.number], label.of)
            elif not has_null(self.nodes, label.of):
                raise self._parser.refused(f"the field {label.name} is missing", value.token)
        return found
