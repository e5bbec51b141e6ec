"""What a command's exit code says."""

from enum import IntEnum


class ExitCode(IntEnum):
    """One number for each way a command can end; anything else is a defect of ours, and comes with a traceback."""

    FINE = 0
    CHECK_FAILED = 1
    BAD_INPUT = 2
    INVARIANT_VIOLATED = 3
    INTERRUPTED = 130
    """As a shell has it for an interrupt."""
    TERMINATED = 143
    """As a shell has it for being asked to end."""

    PIPE_CLOSED = 141
    """The reader of our output went away; said without a message, as other programs do."""


class Terminated(SystemExit):
    """Somebody asked this process to end."""

    def __init__(self) -> None:
        super().__init__(int(ExitCode.TERMINATED))
