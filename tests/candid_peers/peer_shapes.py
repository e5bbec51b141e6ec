"""Random types and values for each peer: all that ours knows but for what ``test_known_differences.py`` shows."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from gateway.candid.candid_shapes import PRIMITIVES, SERVICES, Shape, labels, shapes_of
from relaycast_gateway.candid import FuncReference

_NUMBER_LABEL = re.compile(r"_(?:[0-9]+|0x[0-9a-fA-F]+)_")


def primitives(keeps: Callable[[Any], bool], *, without: tuple[str, ...] = ()) -> list[Shape]:
    """Return the primitive types but for some, with those values, texts and names of methods that a peer keeps."""

    def kept(value: Any) -> bool:
        return keeps(value.method if isinstance(value, FuncReference) else value)

    return [replace(it, values=it.values.filter(kept)) for it in PRIMITIVES if it.text not in without]


def no_byte_order_mark(value: Any) -> bool:
    return not (isinstance(value, str) and value.startswith("\ufeff"))


def printed_as_it_is_read(value: Any) -> bool:
    return not (isinstance(value, str) and "\0" in value) and not (isinstance(value, float) and math.isinf(value))


def kept_by_all(values: object) -> bool:
    """Tell whether values hold none of the texts and numbers that some peer changes."""
    shown = repr(values)
    return not any(part in shown for part in ("\\ufeff", "\\x00", "inf"))


def _printed_label(label: str | int) -> bool:
    return isinstance(label, int) or (label != "_" and not set(label) & {"\0", ","})


def _names_no_number(label: str | int) -> bool:
    return isinstance(label, int) or not _NUMBER_LABEL.fullmatch(label)


def _short_or_name(label: str | int) -> bool:
    return label < 1_000 if isinstance(label, int) else not label.isdigit() and _names_no_number(label)


dfinity_shapes = shapes_of(primitives(no_byte_order_mark), labels.filter(_names_no_number))
dfinity_subtypes = shapes_of(
    primitives(no_byte_order_mark, without=("nat", *SERVICES)), labels.filter(_names_no_number)
)
icp_shapes = shapes_of(primitives(lambda _: True, without=(SERVICES[1],)), labels.filter(_short_or_name))
didc_shapes = shapes_of(primitives(printed_as_it_is_read), labels.filter(_printed_label))
didc_subtypes = shapes_of(primitives(printed_as_it_is_read, without=tuple(SERVICES)), labels.filter(_printed_label))


@st.composite
def typed(draw: st.DrawFn, shapes: st.SearchStrategy[Shape]) -> tuple[str, list[Any]]:
    """Draw a list of types, and values of them."""
    drawn = draw(st.lists(shapes, min_size=1, max_size=3))
    return f"({', '.join(shape.text for shape in drawn)})", [draw(shape.values) for shape in drawn]


@st.composite
def read_above(draw: st.DrawFn, shapes: st.SearchStrategy[Shape]) -> tuple[str, list[Any], str, list[Any]]:
    """Draw a list of types with values, and supertypes with the values as read there."""
    drawn = draw(st.lists(shapes, min_size=1, max_size=3))
    values = [draw(shape.values) for shape in drawn]
    above = f"({', '.join(shape.above for shape in drawn)})"
    read = [shape.read(value) for shape, value in zip(drawn, values, strict=True)]
    return f"({', '.join(shape.text for shape in drawn)})", values, above, read
