"""Values as text, in the form that ``parse_values`` reads.

Source: Candid specification, "Textual Format".
"""

import re
from collections.abc import Sequence
from typing import Any

from relaycast_gateway.candid.encoder import encode
from relaycast_gateway.candid.errors import CandidError
from relaycast_gateway.candid.lexer import PLAIN_NAME
from relaycast_gateway.candid.type_graph import (
    DEEPEST,
    NULL,
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
from relaycast_gateway.candid.type_parser import KEYWORDS, parse_types
from relaycast_gateway.candid.values import FuncReference, Principal, Variant

_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"\\]")
_LONGEST_DECIMAL_BITS = 8_000
"""Longer numbers are printed as hexadecimal: Python refuses long decimal ones."""


def format_values(values: Sequence[object], types: str) -> str:
    """Return the textual form of ``values`` at ``types``; ``CandidError`` where ``encode`` raises it."""
    parsed = parse_types(types)
    encode(types, values)
    printer = _Printer(parsed.nodes)
    try:
        texts = [printer.text(value, of) for value, of in zip(values, parsed.listed(), strict=True)]
    except RecursionError as error:
        raise CandidError(f"values nest at most {DEEPEST} deep") from error
    return f"({', '.join(texts)})"


def quoted(text: str) -> str:
    """Return a string as it stands in a text."""
    return '"' + _ESCAPED.sub(lambda match: f"\\u{{{ord(match.group()):x}}}", text) + '"'


def _label(name: str | int) -> str:
    if isinstance(name, int):
        return str(name)
    return name if PLAIN_NAME.fullmatch(name) and name not in KEYWORDS else quoted(name)


class _Printer:
    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._nodes = nodes

    def text(self, value: Any, of: int) -> str:
        return _primitive(value, of) if of < 0 else self._composite(value, of)

    def _composite(self, value: Any, of: int) -> str:  # noqa: PLR0911 - one for each form
        match self._nodes[of]:
            case OptType(inner):
                if value is None:
                    return "null"
                return "opt " + self.text(value.value if has_null(self._nodes, inner) else value, inner)
            case VecType():
                return self._vec(value, of)
            case RecordType(labels, order):
                fields = dict(enumerate(value)) if isinstance(value, tuple) else value
                types = {label.name: label.of for label in labels}
                texts = [f"{_label(name)} = {self.text(fields.get(name), types[name])}" for name in order]
                return f"record {{ {'; '.join(texts)} }}"
            case VariantType(labels):
                return self._variant(value, {label.name: label.of for label in labels})
            case ServiceType():
                return f'service "{value}"'
            case FuncType():
                return _func(value)
        raise AssertionError(of)

    def _vec(self, value: Any, of: int) -> str:
        node = self._nodes[of]
        assert isinstance(node, VecType)
        if isinstance(value, bytes | bytearray | memoryview):
            return 'blob "' + "".join(f"\\{byte:02x}" for byte in bytes(value)) + '"'
        return f"vec {{ {'; '.join([self.text(element, node.of) for element in value])} }}"

    def _variant(self, value: Variant, cases: dict[str | int, int]) -> str:
        of = cases[value.tag]
        held = "" if of == NULL else f" = {self.text(value.value, of)}"
        return f"variant {{ {_label(value.tag)}{held} }}"


def _func(value: FuncReference) -> str:
    return f'func "{value.service}".{quoted(value.method)}'


def _primitive(value: Any, of: int) -> str:
    if value is None or of == RESERVED:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Principal):
        return f'principal "{value}"'
    if isinstance(value, int) and value.bit_length() > _LONGEST_DECIMAL_BITS:
        return f"{value:#x}"
    return repr(value)
