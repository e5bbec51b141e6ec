"""The JSON Schema of scenario files, for editors: names, ranges, defaults, and what the source says of each.

Law: whatever a scenario file may say is valid here, those that stand on another one included; a name that is not known
never is. What only the whole scenario can tell (references, budgets) is left to the command.
"""

import ast
import inspect
import re
import sys
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from relaycast.scenario.files import presets
from relaycast.scenario.message_load import MessageLoad
from relaycast.scenario.policy_choice import BYTE_UNITS, KINDS, PolicyTable
from relaycast.scenario.ranges import KEY_RANGE
from relaycast.scenario.scenario import Grief, Payment, PublishTable, RelayChainTable, Scenario
from relaycast.scenario.upgrade_tables import PolicyChange

TITLE = "relaycast scenario"

STANDS_ON_ANOTHER = (Scenario, PublishTable, Payment, Grief, RelayChainTable, PolicyTable, MessageLoad)
"""Tables that are merged with those of the scenario below: it may have what they lack."""

DESCRIBED = re.compile(rb'(?<=["/])(Keys|Parachain|Publish|RelayChain|RelayUpgrade|Subscription|Upgrade)Table(?=")')
"""Tables that editors name by what they describe."""

Schema = dict[str, Any]


def scenario_schema() -> Schema:
    """Return the schema of a scenario file."""
    schema = msgspec.json.schema(Scenario)
    definitions: dict[str, Schema] = schema["$defs"]
    for struct in structs_below(Scenario):
        _complete(definitions[struct.__name__], struct)
    schema = msgspec.json.decode(DESCRIBED.sub(rb"\1", msgspec.json.encode(schema)))
    definitions = schema["$defs"]
    scenario = definitions["Scenario"]
    scenario["anyOf"] = [{"required": ["parachains"]}, {"required": ["extends"]}]
    scenario["properties"]["extends"] |= {"anyOf": [{"enum": presets()}, {"pattern": r"\.(toml|yaml|yml|json)$"}]}
    scenario["properties"]["$schema"] = {"type": "string", "description": "Where an editor finds this schema."}
    for name in ("Subscription", "Keys"):
        (text,) = (it for it in definitions[name]["properties"]["keys"]["anyOf"] if it.get("type") == "string")
        text["pattern"] = f"^({KEY_RANGE.pattern})$"  # msgspec 0.22 crashes over lists beside texts with a pattern
    for kind in KINDS:
        for table in (PolicyTable, PolicyChange):
            definitions[table.__name__]["properties"][kind]["pattern"] = _policy_pattern(kind)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": TITLE, **schema}


def structs_below(struct: type[Struct]) -> list[type[Struct]]:
    """Return ``struct`` and all that its fields lead to, in the order in which they are met."""
    found = [struct]
    for known in found:
        for field in msgspec.structs.fields(known):
            found += [it for it in _structs_in(msgspec.inspect.type_info(field.type)) if it not in found]
    return found


@cache
def told_of(struct: type[Struct]) -> dict[str, str]:
    """Return what the source says of each field of ``struct``, on one line."""
    source = ast.parse(inspect.getsource(sys.modules[struct.__module__]))
    body = next(node.body for node in source.body if isinstance(node, ast.ClassDef) and node.name == struct.__name__)
    told: dict[str, str] = {}
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as said)):
                told[name] = plain(said)
    return told


def _complete(definition: Schema, struct: type[Struct]) -> None:
    definition["description"] = plain(definition.get("description", ""))
    if struct in STANDS_ON_ANOTHER:
        definition.pop("required", None)
    for name, about in definition["properties"].items():
        _complete_field(about, told_of(struct).get(name))


def _complete_field(about: Schema, told: str | None) -> None:
    if told is not None:
        about["description"] = told
    options = [option for option in about.pop("anyOf", ()) if option != {"type": "null"}]
    about.update(options[0] if len(options) == 1 else {"anyOf": options} if options else {})
    if "$ref" in about or about.get("default", ...) in (None, []):
        about.pop("default", None)


def _structs_in(info: msgspec.inspect.Type) -> list[type[Struct]]:
    match info:
        case msgspec.inspect.StructType(cls=struct):
            return [struct]
        case msgspec.inspect.ListType(item_type=item):
            return _structs_in(item)
        case msgspec.inspect.UnionType(types=options):
            return [struct for option in options for struct in _structs_in(option)]
        case _:
            return []


def _policy_pattern(kind: str) -> str:
    units = "|".join(BYTE_UNITS)
    names = [
        f"{name}(:[0-9]+{f'({units})?' if choice.takes_bytes else ''})?" if choice.number is not None else name
        for name, choice in KINDS[kind].items()
    ]
    return f"^({'|'.join(names)})$"


def plain(text: str) -> str:
    """Return a docstring without its markup."""
    return re.sub(r"``(.*?)``", r"\1", " ".join(text.split()))
