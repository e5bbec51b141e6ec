"""What hypothesis draws for Candid: types with their values, and types with one of their supertypes."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

from relaycast_gateway.candid import FuncReference, Present, Principal, Variant
from relaycast_gateway.candid.type_graph import label_number
from relaycast_gateway.candid.value_printer import quoted


@dataclass(frozen=True)
class Shape:
    """A type as text, what its values are, whether null is one of them; a supertype, and each value as read there."""

    text: str
    values: st.SearchStrategy[Any]
    has_null: bool
    above: str
    above_has_null: bool
    read: Callable[[Any], Any]


def plain(name: str, values: st.SearchStrategy[Any], above: str = "") -> Shape:
    return Shape(name, values, has_null=False, above=above or name, above_has_null=False, read=lambda value: value)


principals = st.binary(max_size=29).map(Principal)
naturals = st.one_of(st.integers(0, 300), st.integers(0, 1 << 200))
SERVICES = ["service {}", "service { a : () -> (nat) query; b : (text) -> () oneway }"]

PRIMITIVES = [
    Shape("null", st.none(), has_null=True, above="null", above_has_null=True, read=lambda value: value),
    Shape("reserved", st.none(), has_null=True, above="reserved", above_has_null=True, read=lambda value: value),
    plain("bool", st.booleans()),
    plain("nat", naturals, "int"),
    plain("int", st.integers(-(1 << 200), 1 << 200)),
    *(plain(f"nat{bits}", st.integers(0, (1 << bits) - 1)) for bits in (8, 16, 32, 64)),
    *(plain(f"int{bits}", st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)) for bits in (8, 16, 32, 64)),
    plain("float32", st.floats(width=32, allow_nan=False)),
    plain("float64", st.floats(allow_nan=False)),
    plain("text", st.text(max_size=20)),
    plain("principal", principals),
    *(plain(service, principals, "principal") for service in SERVICES),
    plain("func (nat) -> (nat) query", st.builds(FuncReference, principals, st.text(max_size=5))),
    plain("blob", st.binary(max_size=300)),
]

Labels = st.SearchStrategy[str | int]
labels: Labels = st.one_of(
    st.sampled_from(["a", "id", "opt", "with space", 'quote " \\', "☃", "", "record"]),
    st.text(max_size=6),
    st.integers(0, 5),
    st.integers(0, (1 << 32) - 1),
)


def spelled(label: str | int) -> str:
    return str(label) if isinstance(label, int) else quoted(label)


def opt_of(shape: Shape) -> Shape:
    values = shape.values.map(Present) if shape.has_null else shape.values

    def read(value: Any) -> Any:
        if value is None:
            return None
        inner = shape.read(value.value if shape.has_null else value)
        return Present(inner) if shape.above_has_null else inner

    text, above = f"opt {shape.text}", f"opt {shape.above}"
    return Shape(text, st.none() | values, has_null=True, above=above, above_has_null=True, read=read)


def vec_of(shape: Shape) -> Shape:
    if shape.text == "nat8":
        return shape
    values = st.lists(shape.values, max_size=4)
    text, above = f"vec {shape.text}", f"vec {shape.above}"
    return Shape(text, values, False, above, False, lambda value: [shape.read(element) for element in value])


@st.composite
def records(draw: st.DrawFn, parts: st.SearchStrategy[Shape], labels: Labels) -> Shape:
    fields = draw(st.dictionaries(labels, parts, max_size=4))
    numbers = {label_number(label): label for label in fields}
    fields = {label: fields[label] for label in numbers.values()}
    kept = [label for label in fields if draw(st.booleans())]
    new = next(f"new {n}" for n in itertools.count() if label_number(f"new {n}") not in numbers)
    above = "; ".join([*(f"{spelled(label)} : {fields[label].above}" for label in kept), f'"{new}" : opt nat'])

    def read(value: Any) -> Any:
        return {**{label: fields[label].read(value[label]) for label in kept}, new: None}

    text = "; ".join(f"{spelled(label)} : {shape.text}" for label, shape in fields.items())
    values = st.fixed_dictionaries({label: shape.values for label, shape in fields.items()})
    return Shape(f"record {{ {text} }}", values, False, f"record {{ {above} }}", False, read)


@st.composite
def variants(draw: st.DrawFn, parts: st.SearchStrategy[Shape], labels: Labels) -> Shape:
    cases = draw(st.dictionaries(labels, parts, min_size=1, max_size=4))
    cases = {label: cases[label] for label in {label_number(label): label for label in cases}.values()}
    numbers = {label_number(label) for label in cases}
    new = next(f"new {n}" for n in itertools.count() if label_number(f"new {n}") not in numbers)
    values = st.one_of([shape.values.map(partial(Variant, label)) for label, shape in cases.items()])

    def read(value: Any) -> Any:
        return Variant(value.tag, cases[value.tag].read(value.value))

    text = "; ".join(f"{spelled(label)} : {shape.text}" for label, shape in cases.items())
    above = "; ".join([*(f"{spelled(label)} : {shape.above}" for label, shape in cases.items()), f'"{new}" : nat'])
    return Shape(f"variant {{ {text} }}", values, False, f"variant {{ {above} }}", False, read)


def above_in_an_opt(shape: Shape) -> Shape:
    """Return the type with an ``opt`` around its supertype: a value is read as one that is there."""
    if shape.has_null or shape.above_has_null:
        return shape
    return Shape(shape.text, shape.values, shape.has_null, f"opt {shape.above}", True, shape.read)


def above_as_reserved(shape: Shape) -> Shape:
    """Return the type with ``reserved`` as its supertype."""
    return Shape(shape.text, shape.values, shape.has_null, "reserved", True, lambda value: None)


def composites(parts: st.SearchStrategy[Shape], labels: Labels) -> st.SearchStrategy[Shape]:
    return st.one_of(
        parts.map(opt_of),
        parts.map(vec_of),
        records(parts, labels),
        variants(parts, labels),
        parts.map(above_in_an_opt),
        parts.map(above_as_reserved),
    )


def shapes_of(primitives: Sequence[Shape], labels: Labels) -> st.SearchStrategy[Shape]:
    """Return a strategy for types of ``primitives``, with fields of these labels."""
    return st.recursive(st.sampled_from(primitives), lambda parts: composites(parts, labels), max_leaves=6)


shapes = shapes_of(PRIMITIVES, labels)
