"""The ``relaycast`` command: finds the verb, and turns whatever happens into an exit code and at most one line.

Law: what a user got wrong is one line on stderr and exit code 2, never a traceback. A verb returns its ``ExitCode``.
"""

import errno
import os
import resource
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnusedCliTokensError,
)

from relaycast import __version__
from relaycast.cli.exit_code import ExitCode
from relaycast.cli.verbs import QUESTIONS, VERBS, WORDS, overview
from relaycast.inputs import STDIN
from relaycast.refusal import BadInput, nearest, one_line, shown
from relaycast.terminal import hushed
from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.extras import extra_of, install_command

KINDS: dict[object, str] = {int: "a whole number", float: "a number"}

HELP = "help"

QUIET = ("-q", "--quiet")
"""What every verb takes: nothing is printed but errors."""

EPILOGUE = """\
Every verb has --help with an example, and takes -q (--quiet): print nothing but errors. In a pipe and under NO_COLOR
there are neither colours nor bars.

Exit codes: 0 fine, 1 a check failed, 2 bad input, 3 an invariant was violated, 130 interrupted, 143 stopped by SIGTERM.
"""


OF_A_VERB = "Exit codes, and what every verb takes: relaycast --help"


def build_app(*, called: str = "") -> App:
    """Return the command with all its verbs; the one that is ``called`` tells of itself more than its line."""
    app = App(
        name="relaycast",
        help="See what Polkadot's pub-sub (RFC-0160) costs before you build it: exact tries, state proofs, pruned PoV.",
        help_epilogue=OF_A_VERB if called in VERBS else EPILOGUE,
        version=f"relaycast {__version__}",
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for number, (question, verbs) in enumerate(QUESTIONS.items()):
        group = Group(question, sort_key=number)
        for name, (place, line) in verbs.items():
            app.command(place, name=name, group=group, **({} if name == called else {"help": line}))
    return app


def execute(arguments: Sequence[str]) -> ExitCode:
    """Run one command line and return how it ended; a lone ``-`` is standard input."""
    spoken = [argument for argument in arguments if argument not in QUIET]
    tokens = [STDIN if argument == "-" else argument for argument in spoken]
    try:
        if not arguments:
            print(overview(), flush=True)
            return ExitCode.FINE
        with nullcontext() if len(spoken) == len(arguments) else hushed():
            if tokens and tokens[0] == HELP:  # as git, cargo and npm have it
                tokens = [*tokens[1:], "--help"]
            result = build_app(called=next(iter(tokens), ""))(tokens, exit_on_error=False, print_error=False)
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
        return ExitCode.PIPE_CLOSED
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # rich ends so, and calls it a failure
            return ExitCode.PIPE_CLOSED
        raise
    except ModuleNotFoundError as error:
        extra = extra_of(error.name or "")
        if extra is None:
            raise
        expected = f'the extra "{extra}": {install_command(extra)}'
        print(f"relaycast: {tokens[0]}: got no module {error.name}, expected {expected}", file=sys.stderr)
        return ExitCode.BAD_INPUT
    except (CycloptsError, BadInput, RelaycastError, OSError, MemoryError) as error:
        line, code = refusal(error)
        print(f"relaycast: {one_line(line).replace(STDIN, '-')}", file=sys.stderr)
        return code
    return result if isinstance(result, ExitCode) else ExitCode.FINE


def refusal(error: Exception) -> tuple[str, ExitCode]:
    """Return what is said of an error that a user can cause, and the exit code that goes with it."""
    match error:
        case CycloptsError():
            verb = " ".join(error.command_chain or ())
            return (
                f"{verb or 'arguments'}: {_slip(error)} (see {f'relaycast {verb}'.strip()} --help)",
                ExitCode.BAD_INPUT,
            )
        case _ if _says_itself(error):
            return str(error), ExitCode.BAD_INPUT
        case RelaycastError():
            return f"{type(error).__name__}: {error}", ExitCode.CHECK_FAILED
        case OSError():
            return _refused_by_system(error), ExitCode.BAD_INPUT
        case MemoryError():
            return "the input: more than this machine's memory holds, expected a smaller one", ExitCode.BAD_INPUT
        case _:
            return str(error), ExitCode.BAD_INPUT


SAYS_ITSELF = {
    "relaycast_ledger.exceptions": ("TableRefused", "WorkFolderInUse"),
    "relaycast_spark.exceptions": ("SparkUnavailable",),
}
"""Errors whose text says what was given and what is expected."""


def _says_itself(error: BaseException) -> bool:
    """Return whether an error's text is all that is to be said; its class is loaded where it was raised."""
    loaded = [(sys.modules.get(module), names) for module, names in SAYS_ITSELF.items()]
    return any(isinstance(error, getattr(module, name)) for module, names in loaded if module for name in names)


def _refused_by_system(error: OSError) -> str:
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"file handles: got a limit of {most:,}, all in use, expected a higher one (ulimit -n)"
    where, got = error.filename or _broken_stream(), os.strerror(error.errno) if error.errno else str(error)
    return f"{where}: got {got.lower()}, expected a place that can be written"


def _slip(error: CycloptsError) -> str:
    """Return what was wrong with a command line."""
    match error:
        case UnknownCommandError():
            token = next(iter(error.unused_tokens or ()), "")
            known = [name for name in error.app or () if name.startswith("-") == token.startswith("-")]
            if not error.command_chain and token in WORDS:
                return f"got {shown(token)}, expected a verb: {WORDS[token]}"
            kind = "a flag" if token.startswith("-") else "a verb"
            return f"got {shown(token)}, expected {kind}, {nearest(token, known)}"
        case UnusedCliTokensError():
            return f"got {shown(next(iter(error.unused_tokens or ()), ''))} too, expected no further argument"
        case CoercionError(token=token, target_type=kind) if token is not None and kind in KINDS:
            return f"{token.keyword or 'argument'}: got {shown(token.value)}, expected {KINDS[kind]}"
        case MissingArgumentError(argument=wanted) if wanted is not None and wanted.parameter.help:
            given = f"{error.keyword} without a value" if error.keyword else f"no {wanted.name}"
            return f"got {given}, expected {wanted.parameter.help}"
        case _:
            return str(error)


def _broken_stream() -> str:
    """Return the source of an error that names no file: standard output, if it still cannot be written to."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_stdout()
        return "standard output"
    return "standard output or a file"


def _drop_stdout() -> None:
    """Let the interpreter flush into nothing at its end, where it would complain once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
