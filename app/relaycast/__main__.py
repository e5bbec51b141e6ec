"""The way into the command: ``relaycast`` and ``python -m relaycast``.

Law: an interrupt, whenever it comes, ends with one line and exit code 130; nothing half-written stays behind.
"""

import signal
import sys
from typing import NoReturn

from relaycast.exit_code import ExitCode


def main() -> NoReturn:
    """Run the command line of this process."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        from relaycast.cli import execute  # noqa: PLC0415 - an interrupt while it loads is met here too

        code = execute(sys.argv[1:])
    except KeyboardInterrupt:
        print("relaycast: interrupted, nothing was written", file=sys.stderr)
        code = ExitCode.INTERRUPTED
    sys.exit(code)


def _terminated(_signal: int, _frame: object) -> NoReturn:
    sys.exit(ExitCode.TERMINATED)


if __name__ == "__main__":
    main()
