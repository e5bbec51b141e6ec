"""Scenario files: TOML, YAML or JSON into a ``Scenario``, with presets folded in.

Law: an error names the path in the file, the value and what was expected, and the nearest name where one was mistyped.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from functools import partial, reduce
from importlib import resources
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec.structs import asdict

from relaycast.inputs import STDIN, parse_json, parse_toml, place_of, read_bytes
from relaycast.refusal import BadInput, nearest, one_line, shown
from relaycast.scenario.checks import check_references
from relaycast.scenario.ranges import WANTED_KEYS
from relaycast.scenario.scenario import MAX_BLOCKS, RelayChainTable, Scenario

Table = dict[str, Any]

BLOCKS_TO_ARRIVE = 2
"""From the block that sends a value to the one that receives it."""

_AT = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>.*)`")
_MISSING = re.compile(r"missing required field `(?P<name>.*)`")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
FORMS = {
    ".changed": 'a number from 1 on, or a share of the keys such as "10%"',
    "].keys": WANTED_KEYS,
}
"""The forms that a place accepts, by the end of its name."""

EDITORS_SCHEMA = "$schema"
"""A member by which JSON files tell an editor what they are; it says nothing of the scenario."""

FILES = (
    ("relaychain", "genesis"),
    ("relaychain", "wasm"),
    ("publications",),
    ("parachains", "wasm"),
    ("parachains", "genesis"),
    ("parachains", "extrinsics"),
    ("parachains", "messages", "downward", "file"),
    ("parachains", "messages", "horizontal", "file"),
)
"""Where a scenario names files, relative to its own."""

SUFFIXES = (".toml", ".yaml", ".yml", ".json")
"""Endings of the names of scenario files."""

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def presets() -> list[str]:
    """Return the names of the presets."""
    folder = resources.files("relaycast.scenario") / "presets"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def runnable_presets() -> list[str]:
    """Return the names of those that can run by themselves; the others are ground to stand on."""
    return [name for name in presets() if "parachains" in _preset(name, "the preset")]


def preset_text(name: str) -> str:
    """Return the file of the preset ``name``."""
    return (resources.files("relaycast.scenario") / "presets" / f"{name}.toml").read_text("utf-8")


def load_preset(name: str) -> Scenario:
    """Return the preset ``name``; one that others stand on has no parachains, and cannot run."""
    if name not in runnable_presets():
        hint = nearest(name, runnable_presets())
        raise BadInput("the preset", shown(name), "the name of a preset that can run", hint)
    return _scenario(_fold(_preset(name, "the preset"), f"preset {name}", Path(), ()), f"preset {name}")


def ground_of(name: str, place: str) -> Table:
    """Return what holds in a scenario that extends ``name`` and says nothing itself; its ``description`` stays behind.

    ``place`` is where the name stands. Files that are named in it are relative to the working folder.
    """
    return _fold({"extends": name}, place, Path(), ())


def lifted_limits(relay: RelayChainTable) -> list[str]:
    """Return the limits of a relay chain that are above those of the preset ``polkadot-2026``, with both values."""
    proposed: Table = ground_of("polkadot-2026", "the preset")["relaychain"]
    limits = {name: value for name, value in asdict(relay).items() if name.startswith("max_") and name in proposed}
    return [f"{name} {value:,} (of {proposed[name]:,})" for name, value in limits.items() if value > proposed[name]]


def load_scenario(file: str) -> Scenario:
    """Return the scenario in ``file``; its ``genesis`` is relative to the file."""
    place = place_of(file)
    folder = Path() if file == STDIN else Path(file).parent
    return _scenario(_fold(_parse(file), place, folder, (str(Path(file).resolve()),)), place)


def load_named(name: str, place: str) -> Scenario:
    """Return the preset of this name, or the scenario in the file; ``place`` is where the name stands."""
    if name in presets():
        return load_preset(name)
    if name != STDIN and not Path(name).suffix and not Path(name).exists():
        raise BadInput(place, shown(name), "a scenario file, or the name of a preset", nearest(name, presets()))
    return load_scenario(name)


def _scenario(table: Table, place: str) -> Scenario:
    try:
        scenario = msgspec.convert(table, Scenario)
    except msgspec.ValidationError as error:
        raise refused_value(str(error), table, place) from None
    check_references(scenario, place)
    recorded = scenario.recording()
    if recorded is not None and "blocks" not in table:
        scenario = msgspec.structs.replace(scenario, blocks=min(recorded.last_block + BLOCKS_TO_ARRIVE, MAX_BLOCKS))
    return scenario.with_copies()


def _preset(name: str, place: str) -> Table:
    if name not in presets():
        raise BadInput(place, shown(name), "the name of a preset", nearest(name, presets()))
    return tomllib.loads(preset_text(name))


def _parse(file: str) -> Table:
    data, place = read_bytes(file), place_of(file)
    suffix = Path(file).suffix.lower()
    readers: dict[str, Callable[[bytes, str], Any]] = {".json": parse_json, ".yaml": _parse_yaml, ".yml": _parse_yaml}
    table = readers.get(suffix, _parse_toml)(data, place)
    if not isinstance(table, dict):
        raise BadInput(place, shown(table), "a scenario: names with their values")
    _check_texts(table, place)
    return {name: value for name, value in table.items() if name != EDITORS_SCHEMA}


def _check_texts(table: Table, place: str) -> None:
    """Raise ``BadInput`` for a text that terminals, pages or files could not show: control characters, half characters.

    Paragraphs may have lines and tabs.
    """
    stack: list[tuple[str, Any]] = [(place, table)]
    while stack:
        here, value = stack.pop()
        if isinstance(value, dict):
            stack += [(here, name) for name in value if isinstance(name, str)]
            stack += [(f"{here} at {name}" if here == place else f"{here}.{name}", it) for name, it in value.items()]
        elif isinstance(value, list):
            stack += [(f"{here}[{index}]", it) for index, it in enumerate(value)]
        elif isinstance(value, str) and (wrong := _UNSHOWN.search(value)):
            raise BadInput(here, f"the character {shown(wrong[0])} in {shown(value)}", "text that prints")


_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys rather than shows, what turns text round, and halves of characters."""


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{place} at byte {error.start}", f"0x{data[error.start]:02x}", "text in UTF-8") from None


def _parse_toml(data: bytes, place: str) -> Any:
    return parse_toml(data, place, "a scenario in TOML")


def _parse_yaml(data: bytes, place: str) -> Any:
    from relaycast.scenario.strict_yaml import parse_yaml  # noqa: PLC0415 - few need it

    return parse_yaml(_text(data, place), place)


def _fold(table: Table, place: str, folder: Path, above: tuple[str, ...]) -> Table:
    """Return ``table`` over what it extends, and so on to the ground; paths become relative to the working folder."""
    for path in FILES:
        table = _relative(table, path, folder)
    base = table.get("extends")
    if not isinstance(base, str):
        return table
    if base.endswith(SUFFIXES):
        file = str(folder / base)
        name = str(Path(file).resolve())
        below, place_below, folder_below = partial(_parse, file), file, Path(file).parent
    else:
        name = base
        below, place_below, folder_below = partial(_preset, base, f"{place} at extends"), f"preset {base}", Path()
    if name in above:
        raise BadInput(f"{place} at extends", shown(base), "a scenario that does not lead back to this one")
    ground = _fold(below(), place_below, folder_below, (*above, name))
    return _merged({member: value for member, value in ground.items() if member != "description"}, table)


def _relative(inside: Any, path: tuple[str, ...], folder: Path) -> Any:
    """Return what is ``inside`` with the file at ``path`` named from the working folder; lists are gone through."""
    if not path:
        return str(folder / inside) if isinstance(inside, str) else inside
    if isinstance(inside, list):
        return [_relative(entry, path, folder) for entry in inside]
    if not isinstance(inside, dict) or path[0] not in inside:
        return inside
    return {**inside, path[0]: _relative(inside[path[0]], path[1:], folder)}


def _merged(base: Table, over: Table) -> Table:
    """Return ``base`` with what ``over`` says: tables by name, parachains by id, everything else replaced."""
    result = dict(base)
    for name, value in over.items():
        known = base.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            result[name] = _merged(known, value)
        elif name == "parachains" and isinstance(known, list) and isinstance(value, list):
            result[name] = _merged_parachains(known, value)
        else:
            result[name] = value
    return result


def _merged_parachains(base: list[Any], over: list[Any]) -> list[Any]:
    def identity(chain: Any) -> Any:
        return chain.get("id") if isinstance(chain, dict) else None

    result = list(base)
    for chain in over:
        same = [
            index
            for index, known in enumerate(base)
            if identity(chain) is not None and identity(known) == identity(chain)
        ]
        if same:
            result[same[0]] = _merged(base[same[0]], chain)
        else:
            result.append(chain)
    return result


def refused_value(message: str, table: Table, place: str) -> BadInput:
    """Return the refusal that a ``msgspec.ValidationError`` of a scenario's ``table`` comes to."""
    found = _AT.search(message)
    path = found["path"] if found else ""
    expectation = message[: found.start()] if found else message
    here = f"{place} at {path}" if path else place
    if unknown := _UNKNOWN.search(expectation):
        names = _field_names(path)
        return BadInput(here, f"the name {shown(unknown['name'])}", "a known name", nearest(unknown["name"], names))
    if missing := _MISSING.search(expectation):
        tags = _tags(path, missing["name"])
        return BadInput(here, f"no {missing['name']}", f"{missing['name']} = {', '.join(tags) or '...'}")
    if expectation.startswith(("Invalid value", "Invalid enum value")):
        got = _value_at(table, path)
        names = _names_at(path)
        return BadInput(here, shown(got), "one of the known names", nearest(str(got), names))
    if form := next((form for end, form in FORMS.items() if path.endswith(end)), ""):
        return BadInput(here, shown(_value_at(table, path)), form)
    expected = one_line(expectation.removeprefix("Expected ").partition(", got ")[0].replace("`", ""))
    return BadInput(here, shown(_value_at(table, path)), _in_words(expected))


def _in_words(expected: str) -> str:
    """Return what msgspec expects, in the words of a scenario file."""
    words = re.sub(r"\b(int|float|str|bool|array|object)\b", lambda kind: _KINDS[kind[0]], expected)
    return words.replace(" | ", " or ")


def _steps(path: str) -> Iterator[int | str]:
    for index, name in _STEP.findall(path):
        yield int(index) if index else name


def _value_at(table: Any, path: str) -> Any:
    for step in _steps(path):
        table = table[step]
    return table


def _field_names(path: str) -> list[str]:
    """Return the names that the struct at ``path`` of a scenario knows."""
    structs = _structs(_type_at(path))
    tagged = [str(struct.__struct_config__.tag_field) for struct in structs if struct.__struct_config__.tag_field]
    return [*tagged, *(field.encode_name for struct in structs for field in msgspec.structs.fields(struct))]


def _names_at(path: str) -> list[str]:
    """Return the texts that may stand at ``path``: those of a choice, or the tags of tables."""
    above, _, last = path.rpartition(".")
    if tags := _tags(above, last):
        return tags
    return [text for option in _options(_type_at(path)) if get_origin(option) is Literal for text in get_args(option)]


def _tags(path: str, name: str) -> list[str]:
    """Return what the structs at ``path`` are told apart by, where that is the field ``name``."""
    configs = [struct.__struct_config__ for struct in _structs(_type_at(path))]
    return [str(config.tag) for config in configs if config.tag_field == name]


def _type_at(path: str) -> Any:
    return reduce(_type_below, _steps(path), Scenario)


def _type_below(kind: Any, step: int | str) -> Any:
    if isinstance(step, int):
        return next(get_args(option)[0] for option in _options(kind) if get_origin(option) is list)
    fields = (field for struct in _structs(kind) for field in msgspec.structs.fields(struct))
    return next((field.type for field in fields if field.encode_name == step), str)


def _structs(kind: Any) -> list[type[msgspec.Struct]]:
    return [option for option in _options(kind) if isinstance(option, type) and issubclass(option, msgspec.Struct)]


def _options(kind: Any) -> list[Any]:
    """Return what a type may be, without its annotations."""
    if get_origin(kind) is Annotated:
        return _options(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [option for part in get_args(kind) if part is not NoneType for option in _options(part)]
    return [kind]
