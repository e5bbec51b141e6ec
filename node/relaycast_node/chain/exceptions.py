"""What a served chain cannot answer.

::

    RelaycastError
    └── ChainRefusal
        ├── UnknownBlock          no block with this hash
        ├── CannotGoBack          the chains cannot stand there
        └── CodeRefused           the chain's code gave no answer
            ├── MissingMethod     it has no such method
            └── BadCallInput      the method cannot read its input
"""

from relaycast_trie.exceptions import RelaycastError


class ChainRefusal(RelaycastError):
    """A question that the chain has no answer to."""


class UnknownBlock(ChainRefusal):
    """The chain has no block with this ``hash``."""

    def __init__(self, block_hash: bytes) -> None:
        super().__init__(block_hash)
        self.hash = block_hash

    def __str__(self) -> str:
        return f"there is no block 0x{self.hash.hex()}"


class CannotGoBack(ChainRefusal):
    """Chains that cannot stand at another block or time, for ``reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class CodeRefused(ChainRefusal):
    """A call of the chain's code that gave no answer, for ``reason``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


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
