"""A scenario file to begin with: a preset under a new name, or a file's scenario to be changed, and all the settings.

Law: what is written loads. It says of every setting what the schema says of it, and which value holds without a line
for it. That is the one from the scenario that it extends, or the default.
"""

import re
import tomllib
from collections.abc import Iterator
from textwrap import wrap
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from relaycast.scenario.files import Table, ground_of, load_scenario, preset_text, presets
from relaycast.scenario.message_load import MessageLoad
from relaycast.scenario.policy_choice import KINDS, PolicyTable
from relaycast.scenario.scenario import (
    Grief,
    ParachainTable,
    Payment,
    PublishTable,
    RelayChainTable,
    Scenario,
    SubscriptionTable,
)
from relaycast.scenario.schema import plain, structs_below, told_of
from relaycast.scenario.upgrade_tables import KeysTable, PolicyChange, RelayUpgradeTable, UpgradeTable

WIDTH = 110

PLACES: dict[type[Struct], str] = {
    Scenario: "at the top",
    ParachainTable: "[[parachains]]",
    PublishTable: "publish = { ... }",
    Payment: "publish = { payment = { ... } }",
    Grief: "publish = { grief = { ... } }",
    SubscriptionTable: "subscribe = [{ ... }]",
    MessageLoad: "messages = { ... }",
    RelayChainTable: "[relaychain]",
    PolicyTable: "[policies]",
    UpgradeTable: "[[parachains.upgrades]]",
    KeysTable: "subscribe = [{ ... }] in [[parachains.upgrades]]",
    PolicyChange: "policies = { ... } in [[parachains.upgrades]]",
    RelayUpgradeTable: "[[relaychain.upgrades]]",
}
"""Where a table of the schema stands in a file; those that are told apart by their shape say so themselves."""

PATHS: dict[type[Struct], tuple[str, ...]] = {
    Scenario: (),
    RelayChainTable: ("relaychain",),
    PolicyTable: ("policies",),
}
"""Where a table stands that a scenario has once."""

PATHS_OF_PARACHAINS: dict[type[Struct], tuple[str, ...]] = {
    ParachainTable: (),
    PublishTable: ("publish",),
    Payment: ("publish", "payment"),
    Grief: ("publish", "grief"),
    MessageLoad: ("messages",),
}
"""Where a table stands below a parachain, of which each has its own."""

FROM_A_PRESET = """\
# {name}: a scenario that began as the preset {origin}. Run it:
"""

FROM_A_FILE = """\
# {name}: the scenario in {origin}, with the changes that this file makes. Run it:
"""

HEAD = """\
#
#     relaycast run {file}
#
# For names, ranges and explanations in an editor: relaycast schema > scenario.schema.json, and as the first line here
# #:schema ./scenario.schema.json

"""

REFERENCE = """
# Every setting of a scenario, with the value that holds if this file has no line for it: the one from
# {ground}, or the default. Blocks are those of the relay chain.
"""


class Extended(NamedTuple):
    """What a scenario extends: its name, and what holds where the scenario says nothing."""

    name: str
    table: Table


def scenario_text(name: str, origin: str, file: str) -> str:
    """Return a commented scenario named ``name`` that does what the preset or the file ``origin`` does.

    Raises ``BadInput`` where a file cannot be extended.
    """
    if origin in presets():
        text = preset_text(origin)
        body = re.sub(r'(?m)^name = ".*"$', f'name = "{name}"', text, count=1)
        head, extended = FROM_A_PRESET, str(tomllib.loads(text)["extends"])
        table = ground_of(extended, f"preset {origin}")
    else:
        head, extended, table = FROM_A_FILE, origin, ground_of(origin, "--from")
        table.setdefault("blocks", load_scenario(origin).blocks)
        body = f"extends = {_toml(origin)}\nname = {_toml(name)}\n"
    ground = Extended(extended, table)
    parts = [head.format(name=name, origin=origin), HEAD.format(file=file), body, REFERENCE.format(ground=extended)]
    for struct in structs_below(Scenario):
        parts += ["#\n", *(f"# {line}\n" for line in _reference(struct, ground))]
    return "".join(parts)


def _reference(struct: type[Struct], ground: Extended) -> Iterator[str]:
    config = struct.__struct_config__
    place = PLACES.get(struct) or f'{{ {config.tag_field} = "{config.tag}", ... }}'
    yield from wrap(f"{place}: {plain(struct.__doc__ or '')}", WIDTH)
    told = told_of(struct)
    for field in msgspec.structs.fields(struct):
        yield f"  {field.encode_name}{_held(struct, field, ground) or _default(field)}"
        about = told.get(field.encode_name, "")
        if struct in (PolicyTable, PolicyChange) and field.encode_name in KINDS:
            about = f"One of {', '.join(KINDS[field.encode_name])}."
        about = f"{about} {_held_by_parachains(struct, field.encode_name, ground)}".strip()
        yield from (f"      {line}" for line in wrap(about, WIDTH))


def _held(struct: type[Struct], field: Any, ground: Extended) -> str:
    """Return what the ground says of a setting that a scenario has once; empty where it says nothing."""
    value = _at(ground.table, (*PATHS[struct], field.encode_name)) if struct in PATHS else None
    if value is None or isinstance(value, dict) or field.encode_name == "extends":
        return ""
    if field.encode_name == "parachains":
        return f"  # {', '.join(str(chain['id']) for chain in value)} from {ground.name}"
    return f" = {_toml(value)}  # from {ground.name}"


def _held_by_parachains(struct: type[Struct], name: str, ground: Extended) -> str:
    """Return in a sentence which values parachains of the ground keep without a line; empty where there are none."""
    if struct not in PATHS_OF_PARACHAINS or name == "id":
        return ""
    is_table = any(path[-1:] == (name,) for path in PATHS_OF_PARACHAINS.values())
    kept = []
    for chain in ground.table.get("parachains", []):
        value = _at(chain, (*PATHS_OF_PARACHAINS[struct], name))
        if value is not None and not is_table:
            kept.append(f"{_toml(value)} (parachain {chain['id']})")
    return f"Kept from {ground.name}: {', '.join(kept)}." if kept else ""


def _at(table: Any, path: tuple[str, ...]) -> Any:
    """Return what stands at ``path`` of a table, ``None`` where nothing does."""
    for step in path:
        table = table.get(step) if isinstance(table, dict) else None
    return table


def _default(field: Any) -> str:
    if field.required:
        return "  (has to be given)"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if default is None or isinstance(default, Struct | list | msgspec.UnsetType):
        return ""
    return f" = {_toml(default)}"


def _toml(value: Any) -> str:
    """Return a value as it stands on one line of TOML."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(name)} = {_toml(it)}' for name, it in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:_}"
    return msgspec.json.encode(value).decode()


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
