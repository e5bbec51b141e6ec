"""Why a pass ends before it has dealt with every key."""

from enum import Enum


class StopCause(Enum):
    """What ran out: the meter of reads, the proof, or the meter of callbacks."""

    BUDGET = "budget"
    PROOF = "proof"
    """A node is missing. What PRUNE leaves out for want of budget, VERIFY finds missing."""

    CALLBACKS = "callbacks"


class Stop(Exception):
    """The pass ends here, for this ``cause``."""

    def __init__(self, cause: StopCause = StopCause.BUDGET) -> None:
        super().__init__(cause)
        self.cause = cause
