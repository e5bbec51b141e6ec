"""What a served chain cannot answer.

::

    RelaycastError
    └── ChainRefusal
        └── UnknownBlock      no block with this hash
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
