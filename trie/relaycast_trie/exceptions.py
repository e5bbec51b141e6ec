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

A refusal is declared: annotated fields, and one ``message`` with their names in braces. The base class makes the rest.
"""

import string
from inspect import get_annotations
from typing import Any, ClassVar, Self, dataclass_transform, get_origin

from relaycast_trie.nibbles import digits


class _Shown(string.Formatter):
    """Formats fields of a refusal: bytes as ``0x`` and hexadecimal digits."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        return f"0x{value.hex()}" if isinstance(value, bytes) else super().format_field(value, format_spec)


_SHOWN = _Shown()


@dataclass_transform(eq_default=True)
class RelaycastError(Exception):
    """Something that a chain can meet; never a slip of the caller.

    A subclass declares its fields as annotations, those of its base come first, and its ``message``; without one its
    docstring is the message. Without fields it takes any values, as ``Exception`` does. Two errors are equal if their
    classes and values are. Errors pickle.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    template: ClassVar[str] = ""

    def __init_subclass__(cls, *, message: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        own = (name for name, kind in get_annotations(cls).items() if not _is_of_class(kind))
        cls.fields = tuple(dict.fromkeys((*cls.fields, *own)))
        if message:
            cls.template = message

    def __init__(self, *values: Any, **named: Any) -> None:
        kind, fields = type(self), type(self).fields
        if not fields or kind.__init__ is not RelaycastError.__init__:  # without fields, or a class that fills its own
            super().__init__(*values, **named)
            return
        given = dict(zip(fields, values, strict=False)) | named
        if len(values) > len(fields) or len(given) < len(values) + len(named) or not given.keys() <= set(fields):
            raise TypeError(f"{kind.__name__} has the fields {', '.join(fields) or 'none'}, got {values} and {named}")
        missing = [name for name in fields if name not in given and not hasattr(kind, name)]
        if missing:
            raise TypeError(f"{kind.__name__} needs {', '.join(missing)}")
        filled = {name: given[name] if name in given else getattr(kind, name) for name in fields}
        super().__init__(*filled.values())
        self.__dict__.update(filled)

    def __str__(self) -> str:
        if self.template:
            return _SHOWN.vformat(self.template, (), self.__dict__)
        if self.args and not self.fields:
            return super().__str__()
        return (self.__doc__ or "").partition("\n")[0].rstrip(".")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.args == other.args

    def __hash__(self) -> int:
        return hash(type(self))

    def as_value(self) -> Self:
        """Return the error to be kept: without the frames that it passed, which hold all that was worked on there."""
        error: BaseException | None = self
        while error is not None:
            error.__traceback__ = None
            error = error.__cause__ or error.__context__
        return self


def _is_of_class(annotation: Any) -> bool:
    """Return whether an annotation, given as itself or as text, is a ``ClassVar``."""
    if isinstance(annotation, str):
        return annotation.startswith("ClassVar")
    return get_origin(annotation) is ClassVar or annotation is ClassVar


class CodecError(RelaycastError, message="{reason} at byte {offset}"):
    """Bytes that do not decode: ``reason``, and the ``offset`` of the byte where it shows."""

    reason: str
    offset: int = 0


class ProofError(RelaycastError):
    """Nodes that do not prove what they claim."""


class RootMismatch(ProofError):
    """No node hashes to the ``expected`` root; ``actual`` is the root that the nodes do have, where one can be told."""

    expected: bytes
    actual: bytes | None = None

    def __str__(self) -> str:
        if self.actual is None:
            return f"no node of the proof hashes to the root 0x{self.expected.hex()}"
        return f"the proof has the root 0x{self.actual.hex()}, expected 0x{self.expected.hex()}"


class MissingNode(ProofError):
    """The node or value with this ``node_hash`` is needed and not there, at ``path`` (nibbles from the root)."""

    node_hash: bytes
    path: bytes = b""

    def __str__(self) -> str:
        return f"node 0x{self.node_hash.hex()} is missing at nibble path '{digits(self.path)}'"


class UnusedNodes(ProofError):
    """Nodes that no path needs; ``hashes`` sorted."""

    hashes: tuple[bytes, ...]

    def __str__(self) -> str:
        more = f" and {len(self.hashes) - 1} more" if len(self.hashes) > 1 else ""
        return f"unused node 0x{self.hashes[0].hex()}{more}"


class DuplicateNode(ProofError, message="node {node_hash} comes more than once"):
    """The node with this ``node_hash`` comes more than once."""

    node_hash: bytes


class InvalidNode(CodecError, ProofError, message="node {node_hash} does not decode: {reason} at byte {offset}"):
    """A node whose hash fits but whose bytes do not decode."""

    def __init__(self, node_hash: bytes, reason: str, offset: int = 0) -> None:
        Exception.__init__(self, node_hash, reason, offset)
        self.node_hash = node_hash
        self.reason = reason
        self.offset = offset


class TooManyNodes(ProofError, message="a walk through the proof meets more than {limit} nodes"):
    """Nodes that share each other so often that a walk through them would meet more than ``limit``."""

    limit: int


class TooManyBytes(ProofError, message="the compact proof repeats nodes until it has more than {limit} bytes"):
    """Nodes that share each other so often that a compact proof, which repeats them, has more than ``limit`` bytes."""

    limit: int


class DetailedProofError(ProofError):
    """A proof error whose ``detail`` is the key, node or hash in question (empty when there is none)."""

    detail: bytes = b""

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
