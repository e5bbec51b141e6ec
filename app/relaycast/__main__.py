"""The way into the command: ``relaycast`` and ``python -m relaycast``.

Law: an interrupt, whenever it comes, ends with one line and exit code 130, and SIGTERM with 143; nothing half-written
stays behind.
"""

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from relaycast.cli.exit_code import ExitCode, Terminated
from relaycast.gc_policy import OBJECTS_OF_A_RUN, collect_seldom

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

STDERR = 2
"""The last of the three standard streams."""


def main() -> NoReturn:
    """Run the command line of this process."""
    sys.unraisablehook = _unraisable
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGALRM, _asked_again)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else somebody ignores it for us
        signal.signal(signal.SIGINT, _interrupted)
    _open_closed_streams()
    collect_seldom(OBJECTS_OF_A_RUN)
    try:
        from relaycast.cli.command import execute  # noqa: PLC0415 - an interrupt while it loads is met here too

        try:
            code = execute(sys.argv[1:])
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
    except (KeyboardInterrupt, Terminated, Exception) as error:
        if not isinstance(error, KeyboardInterrupt | Terminated) and not _ASKED:
            raise
        code = _ASKED[-1] if _ASKED else ExitCode.INTERRUPTED
        how = "interrupted" if code is ExitCode.INTERRUPTED else "stopped by SIGTERM"
        print(f"relaycast: {how}, nothing was written", file=sys.stderr)
    sys.exit(code)


_ASKED: list[ExitCode] = []
"""Signals that came, as exit codes: what is raised for one inside the compiler may come out as another error."""

ASK_AGAIN_SECONDS = 0.02
"""Until a signal that got lost is raised again: C code that called back has gone on by then, or gets another."""


def _unraisable(error: "UnraisableHookArgs") -> None:
    """Print what could not be raised; a signal that came while C code called back is raised again a moment later."""
    if not issubclass(error.exc_type, KeyboardInterrupt | Terminated):
        sys.__unraisablehook__(error)
    else:
        signal.setitimer(signal.ITIMER_REAL, ASK_AGAIN_SECONDS)


def _asked_again(_signal: int, _frame: object) -> NoReturn:
    raise Terminated if _ASKED and _ASKED[-1] is ExitCode.TERMINATED else KeyboardInterrupt


def _open_closed_streams() -> None:
    """Let standard streams that were closed lead nowhere: otherwise the next file that is opened takes their place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(STDERR, "w", closefd=False)


def _terminated(_signal: int, _frame: object) -> NoReturn:
    _ASKED.append(ExitCode.TERMINATED)
    raise Terminated


def _interrupted(_signal: int, _frame: object) -> NoReturn:
    _ASKED.append(ExitCode.INTERRUPTED)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
