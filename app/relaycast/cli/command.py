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
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnusedCliTokensError,
)

from relaycast import __version__
from relaycast.cli.exit_code import ExitCode
from relaycast.inputs import STDIN
from relaycast.refusal import BadInput, nearest, one_line, shown
from relaycast.terminal import hushed
from relaycast_spark.exceptions import SparkUnavailable, TableRefused
from relaycast_trie.exceptions import RelaycastError

VERBS = {
    "demo": ("relaycast.cli.simulate:demo", "Run a preset end to end: a summary here, a report in out/."),
    "run": ("relaycast.cli.simulate:run", "Simulate a scenario file."),
    "budget": ("relaycast.cli.budget:budget", "The smallest budget that delivers everything, and the curve below it."),
    "serve": (
        "relaycast.cli.serve:serve",
        "Let the chains of a scenario live, for polkadot.js, PAPI and other clients.",
    ),
    "subscribe": (
        "relaycast.cli.subscribe:app",
        "Push what the chains of a running server tell to a webhook or a broker.",
    ),
    "history": (
        "relaycast.cli.history:history",
        "Print the events that a running server keeps of a topic, and follow new ones.",
    ),
    "icrc": (
        "relaycast.cli.icrc:app",
        "Call the canisters of a running server, and listen to events as ICRC-72 has it.",
    ),
    "list": ("relaycast.cli.scenario_files:list_presets", "List the presets: what each is and what it shows."),
    "predict": ("relaycast.cli.predict:predict", "What a subscription costs, by closed forms, at once."),
    "new": ("relaycast.cli.scenario_files:new", "Write a commented scenario file to begin with."),
    "schema": ("relaycast.cli.scenario_files:schema", "Print the JSON Schema of scenario files, for editors."),
    "pov": ("relaycast.cli.pov:app", "Keep proof sizes under version control, and take a real block apart."),
    "trie": ("relaycast.cli.trie:app", "The root of key-value pairs, and the trie that they make."),
    "proof": ("relaycast.cli.proof:app", "Make, verify and look into storage proofs."),
    "compare": ("relaycast.cli.compare:compare", "The same trace under two designs, side by side."),
    "attack": (
        "relaycast.cli.attack:app",
        "Spam, crafted and churned keys, heavy callbacks, squatted ids, lying collators: what they cost, what helps.",
    ),
    "xcm": ("relaycast.cli.xcm:app", "Messages from JSON to bytes, and bytes back to what they mean."),
    "scale": ("relaycast.cli.scale:app", "SCALE bytes from JSON and back, for every type of pub-sub."),
    "prove": ("relaycast.cli.prove:prove", "Make proofs in bulk for a state, on Spark."),
    "verify-proofs": ("relaycast.cli.verify_proofs:verify_proofs", "Verify a table of proofs in bulk, on Spark."),
    "sweep": ("relaycast.cli.sweep:sweep", "Run a grid of scenarios, seeds and policies as one Spark job."),
    "bench": (
        "relaycast.cli.bench:app",
        "Run the headline experiments E1 to E22, or time the engines here.",
    ),
    "runtime": (
        "relaycast.cli.runtime:app",
        "Look into a real runtime: what it is, what it answers, what an upgrade changes.",
    ),
    "import": ("relaycast.cli.import_:app", "Read real chain data and check it by its state root."),
    "doctor": ("relaycast.cli.doctor:doctor", "What is installed, what is slow, and how to fix it."),
    "vectors": (
        "relaycast.cli.vectors:app",
        "Write and check a conformance suite for implementations of pub-sub.",
    ),
    "completion": ("relaycast.cli.completion:completion", "Print what bash, zsh or fish need to complete verbs."),
}
"""Where each verb stands, and its line on the help page; its module is loaded when it is called."""

KINDS: dict[object, str] = {int: "a whole number", float: "a number"}

QUIET = ("-q", "--quiet")
"""What every verb takes: nothing is printed but errors."""

EPILOGUE = """\
Every verb has --help with an example, and takes -q (--quiet): print nothing but errors. In a pipe and under NO_COLOR
there are neither colours nor bars.

Exit codes: 0 fine, 1 a check failed, 2 bad input, 3 an invariant was violated, 130 interrupted, 143 stopped by SIGTERM.
"""


def build_app(*, called: str = "") -> App:
    """Return the command with all its verbs; the one that is ``called`` tells of itself more than its line."""
    app = App(
        name="relaycast",
        help="See what Polkadot's pub-sub (RFC-0160) costs before you build it: exact tries, state proofs, pruned PoV.",
        help_epilogue=EPILOGUE,
        version=f"relaycast {__version__}",
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for name, (place, line) in VERBS.items():
        app.command(place, name=name, **({} if name == called else {"help": line}))
    return app


def execute(arguments: Sequence[str]) -> ExitCode:
    """Run one command line and return how it ended; a lone ``-`` is standard input."""
    spoken = [argument for argument in arguments if argument not in QUIET]
    tokens = [STDIN if argument == "-" else argument for argument in spoken]
    try:
        with nullcontext() if len(spoken) == len(arguments) else hushed():
            result = build_app(called=next(iter(spoken), ""))(tokens, exit_on_error=False, print_error=False)
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_stdout()
        return ExitCode.PIPE_CLOSED
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # rich ends so, and calls it a failure
            return ExitCode.PIPE_CLOSED
        raise
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
        case _ if isinstance(error, SparkUnavailable | TableRefused) or _is_of_a_busy_place(error):
            return str(error), ExitCode.BAD_INPUT
        case RelaycastError():
            return f"{type(error).__name__}: {error}", ExitCode.CHECK_FAILED
        case OSError():
            return _refused_by_system(error), ExitCode.BAD_INPUT
        case MemoryError():
            return "the input: more than this machine's memory holds, expected a smaller one", ExitCode.BAD_INPUT
        case _:
            return str(error), ExitCode.BAD_INPUT


def _is_of_a_busy_place(error: BaseException) -> bool:
    """Return whether another process writes to the same place; its class is loaded where it was raised."""
    loaded = sys.modules.get("relaycast_ledger.exceptions")
    return loaded is not None and isinstance(error, loaded.WorkFolderInUse)


def _refused_by_system(error: OSError) -> str:
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"file handles: got a limit of {most:,}, all in use, expected a higher one (ulimit -n)"
    _drop_stdout()
    where, got = error.filename or "standard output", os.strerror(error.errno) if error.errno else str(error)
    return f"{where}: got {got.lower()}, expected a place that can be written"


def _slip(error: CycloptsError) -> str:
    """Return what was wrong with a command line."""
    match error:
        case UnknownCommandError():
            token = next(iter(error.unused_tokens or ()), "")
            known = [name for name in error.app or () if name.startswith("-") == token.startswith("-")]
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


def _drop_stdout() -> None:
    """Let the interpreter flush into nothing at its end, where it would complain once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
