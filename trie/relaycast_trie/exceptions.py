"""What can be wrong with bytes, tries and proofs: one class for each way.

::

    RelaycastError                 everything that a chain can meet; a caller's slip is ValueError or TypeError
    ├── CodecError                 bytes that do not decode
    │   └── InvalidNode            (also a ProofError) a node whose hash fits but whose bytes do not decode
    └── ProofError                 nodes that do not prove what they claim
        ├── RootMismatch           no node hashes to the root, or the nodes hash to another one
        ├── MissingNode            a path leads to a node that is not there
        ├── UnusedNodes            nodes that no path needs (strict verification)
        ├── DuplicateNode          the same node twice (strict verification)
        ├── IncompleteProof        the nodes of an ordered proof end too early
        ├── ExtraneousNode         an ordered proof goes on after the last node that is needed
        ├── TooManyNodes           nodes that share each other until a walk through them has no end in sight
        ├── TooManyBytes           shared nodes that a compact proof would repeat until nobody can hold it
        ├── ExtraneousChildProof   a compact proof holds a child trie that its top trie does not name
        ├── InvalidChildRoot       the value under a child trie's key is no root
        └── StatementError         a proof that leaves out what its statement gives does not fit that statement
            ├── DuplicateKey       the statement names a key twice
            ├── ExtraneousValue    the proof holds a value that the statement gives
            ├── ExtraneousHash     the proof holds a child's hash that can be computed
            ├── InvalidChild       an inline child longer than a hash
            └── ValueMismatch      the statement gives what the trie does not hold

Every argument goes to ``super().__init__``, so that errors pickle.
"""

from typing import Self

from relaycast_trie.nibbles import digits


class RelaycastError(Exception):
    """Something that a chain can meet; never a slip of the caller."""

    def as_value(self) -> Self:
        """Return the error to be kept: without the frames that it passed, which hold all that was worked on there."""
        error: BaseException | None = self
        while error is not None:
            error.__traceback__ = None
            error = error.__cause__ or error.__context__
        return self


class CodecError(RelaycastError):
    """Bytes that do not decode: ``reason``, and the ``offset`` of the byte where it shows."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.reason} at byte {self.offset}"


class ProofError(RelaycastError):
    """Nodes that do not prove what they claim."""


class RootMismatch(ProofError):
    """No node hashes to the ``expected`` root; ``actual`` is the root that the nodes do have, where one can be told."""

    def __init__(self, expected: bytes, actual: bytes | None = None) -> None:
        super().__init__(expected, actual)
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        if self.actual is None:
            return f"no node of the proof hashes to the root 0x{self.expected.hex()}"
        return f"the proof has the root 0x{self.actual.hex()}, expected 0x{self.expected.hex()}"


class MissingNode(ProofError):
    """The node or value with this ``node_hash`` is needed and not there, at ``path`` (nibbles from the root)."""

    def __init__(self, node_hash: bytes, path: bytes = b"") -> None:
        super().__init__(node_hash, path)
        self.node_hash = node_hash
        self.path = path

    def __str__(self) -> str:
        return f"node 0x{self.node_hash.hex()} is missing at nibble path '{digits(self.path)}'"


class UnusedNodes(ProofError):
    """Nodes that no path needs; ``hashes`` sorted."""

    def __init__(self, hashes: tuple[bytes, ...]) -> None:
        super().__init__(hashes)
        self.hashes = hashes

    def __str__(self) -> str:
        more = f" and {len(self.hashes) - 1} more" if len(self.hashes) > 1 else ""
        return f"unused node 0x{self.hashes[0].hex()}{more}"


class DuplicateNode(ProofError):
    """The node with this ``node_hash`` comes more than once."""

    def __init__(self, node_hash: bytes) -> None:
        super().__init__(node_hash)
        self.node_hash = node_hash

    def __str__(self) -> str:
        return f"node 0x{self.node_hash.hex()} comes more than once"


class InvalidNode(CodecError, ProofError):
    """A node whose hash fits but whose bytes do not decode."""

    def __init__(self, node_hash: bytes, reason: str, offset: int = 0) -> None:
        RelaycastError.__init__(self, node_hash, reason, offset)
        self.node_hash = node_hash
        self.reason = reason
        self.offset = offset

    def __str__(self) -> str:
        return f"node 0x{self.node_hash.hex()} does not decode: {self.reason} at byte {self.offset}"


class TooManyNodes(ProofError):
    """Nodes that share each other so often that a walk through them would meet more than ``limit``."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"a walk through the proof meets more than {self.limit} nodes"


class TooManyBytes(ProofError):
    """Nodes that share each other so often that a compact proof, which repeats them, has more than ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"the compact proof repeats nodes until it has more than {self.limit} bytes"


class DetailedProofError(ProofError):
    """A proof error whose ``detail`` is the key, node or hash in question (empty when there is none)."""

    def __init__(self, detail: bytes = b"") -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        reason = (type(self).__doc__ or "").rstrip(".")
        return f"{reason}: 0x{self.detail.hex()}" if self.detail else reason


class IncompleteProof(DetailedProofError):
    """The proof ends before the last node that is needed."""


class ExtraneousNode(DetailedProofError):
    """The proof goes on after the last node that is needed."""


class ExtraneousChildProof(DetailedProofError):
    """The proof holds a child trie that the top trie does not name."""


class InvalidChildRoot(DetailedProofError):
    """The value under a child trie's key is no root."""


class StatementError(DetailedProofError):
    """A proof that leaves out what its statement gives does not fit that statement."""


class DuplicateKey(StatementError):
    """The statement names a key twice."""


class ExtraneousValue(StatementError):
    """The proof holds a value that the statement gives."""


class ExtraneousHash(StatementError):
    """The proof holds a child's hash that can be computed."""


class InvalidChild(StatementError):
    """The proof holds an inline child longer than a hash."""


class ValueMismatch(StatementError):
    """The statement gives a value, or an absence, that the trie does not hold."""
