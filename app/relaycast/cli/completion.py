"""``relaycast completion``: what a shell needs to complete verbs, flags and names."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

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
        print(app.generate_completion(prog_name=PROGRAM, shell=shell))
        return ExitCode.FINE
    try:
        place = app.install_completion(shell=shell)
    except (OSError, ValueError) as error:
        raise BadInput(f"completion {shell}", str(error), "a home folder that can be written to") from None
    print(f"{Path(place)} is written; a new {shell} completes {PROGRAM}")
    return ExitCode.FINE
