"""How executing a message ended: complete, incomplete, or not begun.

An incomplete message keeps what its earlier instructions did. The error that a handler raised is kept as the
``cause``, which upstream loses.
"""

from dataclasses import dataclass, field

from msgspec import Struct

from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.assets import Assets
from relaycast_xcm.primitives import Weight
from relaycast_xcm.xcm_error import XcmError


@dataclass(frozen=True, slots=True)
class InstructionError:
    """Instruction ``index`` failed with ``error``, because of ``cause`` where a handler said why."""

    index: int
    error: XcmError
    cause: RelaycastError | None = field(default=None, compare=False)

    def __str__(self) -> str:
        because = f", {type(self.cause).__name__}: {self.cause}" if self.cause is not None else ""
        return f"instruction {self.index} failed with {self.error.name}{because}"


class Complete(Struct, frozen=True):
    """Every instruction ran; ``trapped`` are assets left in holding."""

    used: Weight
    trapped: Assets = ()


class Incomplete(Struct, frozen=True):
    """An instruction failed; those before it stay done."""

    used: Weight
    error: InstructionError
    trapped: Assets = ()


@dataclass(frozen=True, slots=True)
class Error:
    """Nothing ran: the message cannot be weighed, weighs too much, or a barrier refuses it for ``cause``."""

    error: XcmError
    cause: RelaycastError | None = field(default=None, compare=False)


Outcome = Complete | Incomplete | Error
