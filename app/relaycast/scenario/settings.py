"""Single settings of a scenario by their path: what ``--set`` on a command line and ``vary`` in a sweep name.

A path leads through tables by name: ``relaychain.pov_percent``, ``parachains.3000.subscribe.2000.keys``. Parachains go
by their id, subscriptions by their publisher and upgrades by their relay block. Law: a scenario with other settings is
as strict as a file.
"""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec

from relaycast.refusal import BadInput, nearest, shown
from relaycast.scenario.checks import check_references
from relaycast.scenario.files import refused_value
from relaycast.scenario.scenario import Scenario
from relaycast.scenario.schema import structs_below

IDENTITIES = ("id", "publisher", "at")
"""Fields by which the tables of a list are named in a path."""


def with_settings(scenario: Scenario, values: Mapping[str, Any], place: str) -> Scenario:
    """Return ``scenario`` with other ``values`` at some paths; ``place`` is where they stand. Raises ``BadInput``."""
    if not values:
        return scenario
    table = msgspec.to_builtins(scenario)
    for path, value in values.items():
        _put(table, path, value, f"{place}.{path}" if place.endswith("vary") else f"{place} {path}")
    try:
        return msgspec.convert(table, Scenario)
    except msgspec.ValidationError as error:
        raise refused_value(str(error), table, place) from None


def parsed_settings(texts: Iterable[str], *, place: str = "--set") -> dict[str, Any]:
    """Return what ``path=value`` texts set; a value is TOML, and a bare word a text. Raises ``BadInput``."""
    values: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals or not path.strip():
            raise BadInput(place, shown(text), "PATH=VALUE, such as relaychain.pov_percent=50")
        if path.strip() in values:
            raise BadInput(place, f"{path.strip()} again", "every setting once")
        values[path.strip()] = _value(value.strip())
    return values


def set_by(scenario: Scenario, texts: Iterable[str]) -> Scenario:
    """Return ``scenario`` with what ``--set path=value`` says; raises ``BadInput`` also where parts do not fit."""
    values = parsed_settings(texts)
    if not values:
        return scenario
    changed = with_settings(scenario, values, "--set")
    check_references(changed, "--set")
    return changed.with_copies()


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, numbers of too many digits, or nested too deeply
        return text


def _put(table: Any, path: str, value: Any, here: str) -> None:
    *steps, last = path.split(".")
    inside = table
    for step in steps:
        inside = _step(inside, step, here)
    if not isinstance(inside, dict) or (last not in inside and last not in _unset_names()):
        names = list(inside) if isinstance(inside, dict) else []
        raise BadInput(here, shown(last), "the name of a setting", nearest(last, names))
    inside[last] = value


@cache
def _unset_names() -> frozenset[str]:
    """Return the settings that a scenario may leave out and that have no default; one in the wrong table is refused."""
    return frozenset(
        field.encode_name
        for struct in structs_below(Scenario)
        for field in msgspec.structs.fields(struct)
        if field.default is msgspec.UNSET
    )


def _step(inside: Any, step: str, here: str) -> Any:
    if isinstance(inside, list):
        for entry in inside:
            if isinstance(entry, dict) and any(str(entry.get(name)) == step for name in IDENTITIES):
                return entry
    elif isinstance(inside, dict) and inside.get(step) is not None:
        return inside[step]
    raise BadInput(here, shown(step), "a path inside the scenario, parachains by their id")
