"""What a served chain cannot answer.

::

    RelaycastError
    ├── ChainRefusal
    │   ├── UnknownBlock          no block with this hash
    │   ├── CannotGoBack          the chains cannot return there
    │   └── CodeRefused           the chain's code gave no answer
    │       ├── MissingMethod     it has no such method
    │       └── BadCallInput      the method cannot read its input
    ├── TickFailed                a tick that was rolled back
    └── ChainsHalted              the chains accept no input
"""

from relaycast_trie.exceptions import RelaycastError


class ChainRefusal(RelaycastError):
    """A question that the chain has no answer to."""


class UnknownBlock(ChainRefusal, message="there is no block {hash}"):
    """The chain has no block with this ``hash``."""

    hash: bytes


class CannotGoBack(ChainRefusal, message="{reason}"):
    """Chains that cannot stand at another block or time, for ``reason``."""

    reason: str


class CodeRefused(ChainRefusal, message="{reason}"):
    """A call of the chain's code that gave no answer, for ``reason``."""

    reason: str


class MissingMethod(CodeRefused):
    """The code has no method of this ``name``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"Exported method {self.name} is not found"


class BadCallInput(CodeRefused):
    """A ``method`` that cannot read its input, for ``reason``."""

    def __init__(self, method: str, reason: str) -> None:
        RelaycastError.__init__(self, method, reason)
        self.method = method
        self.reason = reason

    def __str__(self) -> str:
        return f"Bad input data provided to {self.method.partition('_')[2]}: {self.reason}"


class TickFailed(RelaycastError):
    """A tick that failed for ``reason`` and was rolled back, with the ``dropped`` inputs since the tick before it.

    ``number`` is the relay block that could not be built, ``place`` the file that keeps the dropped inputs, if any.
    """

    number: int
    reason: str
    dropped: int
    place: str | None

    def __str__(self) -> str:
        one = self.dropped == 1
        lost = f"the {'input' if one else f'{self.dropped:,} inputs'} since then {'was' if one else 'were'} dropped"
        kept = "" if self.place is None else f" (kept in {self.place})"
        return (
            f"relay block {self.number:,} could not be built: {self.reason}; "
            f"the chains are back at relay block {self.number - 1:,}, "
            f"{lost + kept if self.dropped else 'there was no input since then'}"
        )


class ChainsHalted(RelaycastError, message="{reason}"):
    """Chains that accept no input and build no block until the next start, for ``reason``."""

    reason: str
