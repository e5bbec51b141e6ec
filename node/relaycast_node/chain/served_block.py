"""A block that a chain has sealed, with all that clients may ask of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relaycast_collator.header import Header

Changes = Mapping[bytes, bytes | None]
"""New values by key; ``None`` where the key went."""


@dataclass(frozen=True, slots=True)
class ServedBlock:
    """A sealed block: ``hash`` of its header, the ``extrinsics`` of its body, and what it changed in each trie.

    ``changes`` are those of the top trie, the roots of child tries among them; ``child_changes`` come by the name of
    the trie, without prefix.
    """

    header: Header
    hash: bytes
    extrinsics: tuple[bytes, ...] = ()
    changes: Changes = field(default_factory=dict)
    child_changes: Mapping[bytes, Changes] = field(default_factory=dict)

    @property
    def number(self) -> int:
        return self.header.number

    def __repr__(self) -> str:
        return f"<ServedBlock #{self.number} 0x{self.hash.hex()}, {len(self.extrinsics)} extrinsics>"
