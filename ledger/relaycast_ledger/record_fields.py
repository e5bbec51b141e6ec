"""A figure is stated once: its field says where its value is taken from, and how two blocks or two runs add up.

A path names a value below a record, such as ``account.static.nodes`` or ``cursor.0``. Its value is ``None`` where
something on the way is. Tables are lists of paths (``run_tables``), with the types that the records declare.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

T = TypeVar("T")


class Of(NamedTuple):
    """Marks a field that ``taken`` reads at ``path``; other fields are read under their own name."""

    path: str


def later(_before: Any, after: Any) -> Any:
    """Return the later one of two values."""
    return after


def appended(before: list[Any], after: Any) -> list[Any]:
    """Return the list with one item more."""
    before.append(after)
    return before


class Total(NamedTuple):
    """Marks a field that adds up: ``add`` counts in what is at ``path`` of a record, ``merge`` what later blocks had.

    The path is the field's own name unless given, and ``merge`` is ``add``. ``None`` at the path adds nothing.
    """

    path: str = ""
    add: Callable[[Any, Any], Any] = operator.add
    merge: Callable[[Any, Any], Any] | None = None


Sum = Annotated[int, Total()]
Last = Annotated[int, Total(add=later)]


def each(path: str) -> Total:
    """Mark a list that gets an item of every record."""
    return Total(path, appended, operator.iadd)


def count_in(statistics: Struct, record: object) -> None:
    """Add a record to all fields of ``statistics`` that are marked as totals."""
    for name, total, read in _totals(type(statistics)):
        value = read(record)
        if value is not None:
            setattr(statistics, name, total.add(getattr(statistics, name), value))


def merged_totals(before: Struct, after: Struct) -> dict[str, Any]:
    """Return the totals of two values of one type by name; lists of ``before`` grow."""
    names, merges, values = _merges(type(before))
    return {
        name: merge(one, more)
        for name, merge, one, more in zip(names, merges, values(before), values(after), strict=True)
    }


def merge_in(before: Struct, after: Struct) -> None:
    """Count later blocks in."""
    for name, value in merged_totals(before, after).items():
        setattr(before, name, value)


def taken(kind: Callable[..., T], source: object, **given: Any) -> T:
    """Return a ``kind`` with its fields read from ``source``, but for those ``given``; ``None`` becomes the default."""
    values = dict(given)
    for name, read, has_default in _readers(kind):
        if name not in given:
            value = read(source)
            if value is not None or not has_default:
                values[name] = value
    return kind(**values)


def total_names(kind: type[Struct]) -> tuple[str, ...]:
    """Return the names of the fields that are marked as totals."""
    return tuple(name for name, _, _ in _totals(kind))


@cache
def _merges(kind: type[Struct]) -> tuple[tuple[str, ...], list[Callable[[Any, Any], Any]], Callable[[object], Any]]:
    names = total_names(kind)
    return names, [total.merge or total.add for _, total, _ in _totals(kind)], _together(names)


@cache
def _totals(kind: type[Struct]) -> tuple[tuple[str, Total, Callable[[object], Any]], ...]:
    marks = [(name, mark) for name, mark in _marks(kind) if isinstance(mark, Total)]
    return tuple((name, mark, reader(mark.path or name)) for name, mark in marks)


@cache
def _readers(kind: Any) -> tuple[tuple[str, Callable[[object], Any], bool], ...]:
    paths = {name: mark.path for name, mark in _marks(kind) if isinstance(mark, Of)}
    defaults = {it.name: it.default is not NODEFAULT or it.default_factory is not NODEFAULT for it in fields(kind)}
    return tuple((name, reader(paths.get(name, name)), defaults[name]) for name in defaults)


def _marks(kind: type[Struct]) -> Iterator[tuple[str, object]]:
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for mark in getattr(hint, "__metadata__", ()):
            yield name, mark


def reader(path: str) -> Callable[[Any], Any]:
    """Return what reads the value at a path."""
    step, _, rest = path.partition(".")
    first = operator.itemgetter(int(step)) if step.isdigit() else operator.attrgetter(step)
    if not rest:
        return first
    below = reader(rest)

    def read(source: Any) -> Any:
        found = first(source)
        return None if found is None else below(found)

    return read


def row_reader(kind: type, paths: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what reads the values at all paths of a ``kind``: at once where nothing on the way may be ``None``."""
    apart = [(place, reader(path)) for place, path in enumerate(paths) if type_at(kind, path).is_optional]
    places = {place for place, _ in apart}
    together = _together([path for place, path in enumerate(paths) if place not in places])
    if not apart:
        return together

    def read(source: Any) -> tuple[Any, ...]:
        values = list(together(source))
        for place, of in apart:
            values.insert(place, of(source))
        return tuple(values)

    return read


def _together(paths: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    read = operator.attrgetter(*paths)
    return read if len(paths) > 1 else lambda source: (read(source),)


class Found(NamedTuple):
    """The type at a path; ``is_optional`` where something on the way there may be ``None``."""

    kind: Any
    is_optional: bool


def type_at(kind: Any, path: str) -> Found:
    """Return the type that a record declares at a path; ``AttributeError`` where it declares none."""
    found, is_optional = Found(kind, is_optional=False), False
    for step in path.split("."):
        is_optional |= found.is_optional
        found = _bare(_step(found.kind, step))
    return Found(found.kind, is_optional)


def _step(kind: Any, step: str) -> Any:
    if step.isdigit():
        return get_args(kind)[int(step)]
    if issubclass(kind, Enum) and step == "_value_":
        return type(next(iter(kind)).value)
    member = getattr(kind, step)
    return get_type_hints(member.fget)["return"] if isinstance(member, property) else get_type_hints(kind)[step]


def _bare(hint: Any) -> Found:
    """Return a type without ``None``, and whether that was part of it."""
    if get_origin(hint) not in (Union, UnionType):
        return Found(hint, is_optional=False)
    (kind,) = (it for it in get_args(hint) if it is not type(None))
    return Found(kind, is_optional=True)
