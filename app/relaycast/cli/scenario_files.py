"""``relaycast new`` and ``relaycast schema``: scenario files to begin with, and what editors need to know of them."""

import json as json_text
import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import AlwaysJson, Json
from relaycast.out_file import write_text
from relaycast.refusal import BadInput, nearest, shown

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Origin = Annotated[
    str,
    Parameter(
        name="--from",
        help="the preset that it begins as (relaycast list shows them), or a scenario file that it extends",
    ),
]


def new(
    name: Annotated[str, Parameter(help="what the scenario is called; NAME.toml is written into this folder")],
    /,
    *,
    origin: Origin = "oracle",
) -> ExitCode:
    """Write a commented scenario file, ready to run: a preset under a new name, or a scenario file to be changed.

    Comments list every setting with the value that holds without a line for it: that of the preset or file which the
    scenario extends, or the default. An existing file is refused, and left as it is.

    Example: relaycast new weather --from late-subscriber

    Example: relaycast new storm --from weather.toml
    """
    from relaycast.predict.closed_forms import inline_hint  # noqa: PLC0415
    from relaycast.scenario.files import SUFFIXES, load_scenario, runnable_presets  # noqa: PLC0415
    from relaycast.scenario.template import scenario_text  # noqa: PLC0415
    from relaycast.terminal import say  # noqa: PLC0415

    stem = name.removesuffix(".toml")
    if not NAME.fullmatch(stem):
        raise BadInput("new", shown(name), "a name of letters, digits, ., _ and -, to be written into this folder")
    if origin.endswith(SUFFIXES):
        load_scenario(origin)
    elif origin not in runnable_presets():
        hint = nearest(origin, runnable_presets())
        raise BadInput("--from", shown(origin), "the name of a preset that can run, or a scenario file", hint)
    file = Path(f"{stem}.toml")
    if file.exists():
        raise BadInput(str(file), "a file that exists", "a new name")
    write_text(file, scenario_text(stem, origin, str(file)), "new")
    print(f"{file} is written. Run it: relaycast run {file}")
    for publisher, rule in load_scenario(str(file)).publishers().items():
        if hint := inline_hint(rule.value_bytes):
            say(f"{publisher}: {hint}")
    return ExitCode.FINE


def list_presets(*, json: Json = False) -> ExitCode:
    """List the presets that run, demo, compare, budget and pov take by name.

    Example: relaycast list
    """
    from relaycast.scenario.files import load_preset, runnable_presets  # noqa: PLC0415

    found = [load_preset(name) for name in runnable_presets()]
    if json:
        told = [{"name": it.name, "blocks": it.blocks, "description": it.description} for it in found]
        print(json_text.dumps(told))
        return ExitCode.FINE
    from relaycast.terminal import console, print_table  # noqa: PLC0415

    columns = ("preset", "blocks", "what it shows")
    print_table(console(), columns, [(it.name, f"{it.blocks:,}", it.description) for it in found], right=("blocks",))
    return ExitCode.FINE


def schema(*, json: AlwaysJson = False) -> ExitCode:  # noqa: ARG001
    """Print the JSON Schema of scenario files, so that an editor knows their names, ranges and defaults.

    For TOML the editors' taplo takes a first line "#:schema ./scenario.schema.json"; for YAML
    "# yaml-language-server: $schema=scenario.schema.json"; for JSON a member "$schema".

    Example: relaycast schema > scenario.schema.json
    """
    from relaycast.scenario.schema import scenario_schema  # noqa: PLC0415

    print(json_text.dumps(scenario_schema(), indent=2))
    return ExitCode.FINE
