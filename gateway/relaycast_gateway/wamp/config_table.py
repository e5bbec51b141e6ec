"""Reads tables of a TOML file, name by name, and refuses what is not expected there.

Law: a refusal is one line: the place (``realms[0].roles[1].name``), what stands there, what was expected, and the
nearest name where one was mistyped. Values that may be secrets are not shown.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

Choice = TypeVar("Choice", bound=str)

_SHOWN_CHARACTERS = 60


class InvalidRouterConfig(ValueError):
    """``place`` holds ``got`` where ``expected`` is needed; ``hint`` says what may have been meant."""

    def __init__(self, place: str, got: str, expected: str, hint: str = "") -> None:
        super().__init__(place, got, expected, hint)
        self.place = place
        self.got = got
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        line = f"{self.place}: got {self.got}, expected {self.expected}"
        return f"{line} ({self.hint})" if self.hint else line


def shown(value: object) -> str:
    """Return ``value`` as a refusal shows it: short, in ASCII, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    text = ascii(value) if isinstance(value, str | int | float) else ascii(str(value))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def nearest_of(name: object, known: Collection[str]) -> str:
    """Return a hint that names what is most like ``name``, or all there is when nothing is."""
    close = get_close_matches(name, known, n=1) if isinstance(name, str) else []
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known)) or 'none'}"


class ConfigTable:
    """One table. ``end`` refuses the names in it that nobody asked for."""

    def __init__(self, place: str, values: Mapping[str, Any]) -> None:
        self.place = place
        self._values = values
        self._asked: list[str] = []

    def at(self, name: str) -> str:
        """Return the place of a value."""
        return f"{self.place}.{name}" if self.place else name

    def has(self, name: str) -> bool:
        """Return whether the name is given."""
        return name in self._values

    def know(self, *names: str) -> None:
        """Count ``names`` among those that mean something here."""
        self._asked.extend(names)

    def refuse(self, name: str, expected: str, *, got: str | None = None, hint: str = "") -> InvalidRouterConfig:
        """Return the refusal of a value."""
        if got is None:
            got = shown(self._values[name]) if name in self._values else "nothing"
        return InvalidRouterConfig(self.at(name), got, expected, hint)

    def text(self, name: str, expected: str, *, default: str | None = None) -> str:
        """Return a text that is not empty; without a default it has to be given."""
        value = self._get(name, default)
        if not isinstance(value, str) or not value:
            raise self.refuse(name, expected)
        return value

    def any_text(self, name: str, expected: str) -> str:
        """Return a text, which may be empty but has to be given."""
        value = self._get(name, None)
        if not isinstance(value, str):
            raise self.refuse(name, expected)
        return value

    def secret(self, name: str, expected: str, *, shortest: int) -> str:
        """Return a text that no refusal shows."""
        value = self._get(name, None)
        if not isinstance(value, str):
            raise self.refuse(name, expected, got="no text")
        if len(value) < shortest:
            raise self.refuse(name, expected, got=f"{len(value)} characters")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self.refuse(name, "true or false")
        return value

    def number(self, name: str, *, default: int, least: int, most: int) -> int:
        """Return a whole number in bounds."""
        value = self._get(name, default)
        if type(value) is not int or not least <= value <= most:
            raise self.refuse(name, f"a whole number from {least:,} to {most:,}")
        return value

    def bound(self, name: str, unit: str) -> int | None:
        """Return a whole number from 0 on, ``None`` where none is given."""
        value = self._get(name, None)
        if value is not None and (type(value) is not int or value < 0):
            raise self.refuse(name, f"a number of {unit}, 0 or more")
        return value

    def seconds(self, name: str, *, default: float | None, least: float, most: float) -> float | None:
        """Return seconds in bounds."""
        value = self._get(name, default)
        if value is None:
            return None
        if type(value) not in (int, float) or not least <= value <= most:
            raise self.refuse(name, f"seconds from {least:,g} to {most:,g}")
        return float(value)

    def choice(self, name: str, known: Sequence[Choice], *, default: Choice | None = None) -> Choice:
        """Return one of the ``known`` words."""
        value = self._get(name, default)
        for word in known:
            if word == value:
                return word
        raise self.refuse(name, f"one of {', '.join(known)}", hint=nearest_of(value, known) if value else "")

    def choices(self, name: str, known: Sequence[Choice], *, default: Sequence[Choice]) -> tuple[Choice, ...]:
        """Return a list of ``known`` words, each at most once, in the order in which they are given."""
        value = self._get(name, default)
        expected = f"a list of some of {', '.join(known)}"
        if not isinstance(value, list | tuple):
            raise self.refuse(name, expected)
        found: list[Choice] = []
        for index, item in enumerate(value):
            place = f"{self.at(name)}[{index}]"
            fitting = [word for word in known if word == item]
            if not fitting:
                raise InvalidRouterConfig(place, shown(item), f"one of {', '.join(known)}", nearest_of(item, known))
            if fitting[0] in found:
                raise InvalidRouterConfig(place, f"{shown(item)} again", "each word once")
            found.append(fitting[0])
        return tuple(found)

    def table(self, name: str) -> "ConfigTable":
        """Return the table inside, which is empty where it is not given."""
        value = self._get(name, {})
        if not isinstance(value, dict):
            raise self.refuse(name, f"a table: [{self.at(name)}]")
        return ConfigTable(self.at(name), value)

    def tables(self, name: str) -> Iterator["ConfigTable"]:
        """Yield the tables of a list, which is empty where it is not given."""
        value = self._get(name, [])
        expected = f"a list of tables: [[{name}]]"
        if not isinstance(value, list):
            raise self.refuse(name, expected)
        for index, item in enumerate(value):
            place = f"{self.at(name)}[{index}]"
            if not isinstance(item, dict):
                raise InvalidRouterConfig(place, shown(item), "a table")
            yield ConfigTable(place, item)

    def end(self) -> None:
        """Refuse names that mean nothing here."""
        for name in self._values:
            if name not in self._asked:
                known = sorted(set(self._asked))
                raise InvalidRouterConfig(self.at(name), "an unknown name", "a setting", nearest_of(name, known))

    def _get(self, name: str, default: object) -> Any:
        self._asked.append(name)
        return self._values.get(name, default)
