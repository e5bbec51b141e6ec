"""A scenario file to begin with: a preset under a new name, and beside it everything else that can be said.

Law: what is written loads, and says of every setting what the schema says of it.
"""

import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

import msgspec
from msgspec import Struct

from relaycast.scenario.files import preset_text
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
}
"""Where a table of the schema stands in a file; those that are told apart by their shape say so themselves."""

HEAD = """\
# {name}: a scenario that began as the preset {preset}. Run it:
#
#     relaycast run {file}
#
# For names, ranges and explanations in an editor: relaycast schema > scenario.schema.json, and as the first line here
# #:schema ./scenario.schema.json
"""

REFERENCE = """
# Everything that a scenario can say, with what holds where it says nothing. Blocks are those of the relay chain.
"""


def scenario_text(name: str, preset: str, file: str) -> str:
    """Return a commented scenario named ``name`` that does what ``preset`` does."""
    text = preset_text(preset)
    body = re.sub(r'(?m)^name = ".*"$', f'name = "{name}"', text, count=1)
    parts = [HEAD.format(name=name, preset=preset, file=file), "\n", body, REFERENCE]
    for struct in structs_below(Scenario):
        parts += ["#\n", *(f"# {line}\n" for line in _reference(struct))]
    return "".join(parts)


def _reference(struct: type[Struct]) -> Iterator[str]:
    config = struct.__struct_config__
    place = PLACES.get(struct) or f'{{ {config.tag_field} = "{config.tag}", ... }}'
    yield from wrap(f"{place}: {plain(struct.__doc__ or '')}", WIDTH)
    told = told_of(struct)
    for field in msgspec.structs.fields(struct):
        yield f"  {field.encode_name}{_default(field)}"
        about = told.get(field.encode_name, "")
        if struct is PolicyTable and field.encode_name in KINDS:
            about = f"One of {', '.join(KINDS[field.encode_name])}."
        yield from (f"      {line}" for line in wrap(about, WIDTH))


def _default(field: Any) -> str:
    if field.required:
        return "  (has to be given)"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if default is None or isinstance(default, Struct | list | msgspec.UnsetType):
        return ""
    shown = msgspec.json.encode(default).decode()
    return f" = {f'{default:_}' if isinstance(default, int) and default >= 10_000 else shown}"
