"""The way into the command: ``relaycast`` and ``python -m relaycast``.

Law: an interrupt, whenever it comes, ends with one line and exit code 130; nothing half-written stays behind.
"""

import os
import signal
import sys
from typing import NoReturn

from relaycast.cli.exit_code import ExitCode, Terminated

STDERR = 2
"""The last of the three standard streams."""


def main() -> NoReturn:
    """Run the command line of this process."""
    signal.signal(signal.SIGTERM, _terminated)
    _open_closed_streams()
    try:
        from relaycast.cli.command import execute  # noqa: PLC0415 - an interrupt while it loads is met here too

        code = execute(sys.argv[1:])
    except KeyboardInterrupt:
        print("relaycast: interrupted, nothing was written", file=sys.stderr)
        code = ExitCode.INTERRUPTED
    sys.exit(code)


def _open_closed_streams() -> None:
    """Let standard streams that were closed lead nowhere: otherwise the next file that is opened takes their place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(STDERR, "w", closefd=False)


def _terminated(_signal: int, _frame: object) -> NoReturn:
    raise Terminated


if __name__ == "__main__":
    main()
