"""``relaycast completion``: what a shell needs to complete verbs, flags and names."""

import re
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.refusal import BadInput

PROGRAM = "relaycast"

Shell = Literal["bash", "zsh", "fish"]
Install = Annotated[
    bool, Parameter(name="--install", help="write it where the shell looks for it, and say where that is")
]


def completion(shell: Shell, /, *, install: Install = False) -> ExitCode:
    """Print the completion script of a shell: verbs, flags and their choices.

    With --install it is written into your home folder, and for bash and zsh named in the shell's startup file.

    Example: source <(relaycast completion bash)
    """
    from relaycast.cli.command import build_app  # noqa: PLC0415 - the whole command, of which this is a part

    app = build_app()
    if not install:
        print(_unambiguous(app.generate_completion(prog_name=PROGRAM, shell=shell), app))
        return ExitCode.FINE
    try:
        place = Path(app.install_completion(shell=shell))
        place.write_text(_unambiguous(place.read_text(), app))
    except (OSError, ValueError) as error:
        raise BadInput(f"completion {shell}", str(error), "a home folder that can be written to") from None
    print(f"{place} is written; a new {shell} completes {PROGRAM}")
    return ExitCode.FINE


def _unambiguous(script: str, app: App) -> str:
    """Return a script that skips no word after an option that is a flag in some verb.

    bash and fish skip the word after each option that takes a value in any verb, to find the verb and its arguments.
    """
    flags = _flags(app)

    def kept(names: re.Match[str]) -> str:
        return names[1] + " ".join(name for name in names[2].split() if name not in flags) + names[3]

    return re.sub(r"(options_with_values[= ]')([^']*)(')", kept, script)


def _flags(app: App) -> set[str]:
    """Return the options that take no value in some verb."""
    found: set[str] = set()
    for name in app:
        if not name.startswith("-"):
            verb = app[name]
            arguments = verb.assemble_argument_collection() if verb.default_command is not None else ()
            found |= {option for it in arguments if it.is_flag() for option in it.names} | _flags(verb)
    return found
