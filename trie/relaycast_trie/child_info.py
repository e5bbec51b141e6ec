"""Child tries: a trie of its own, whose root is a value in the top trie (sp-core ``ChildInfo``)."""

from msgspec import Struct

CHILD_STORAGE_PREFIX = b":child_storage:default:"
"""What the top trie puts before the name of a default child trie (``DEFAULT_CHILD_STORAGE_KEY_PREFIX``)."""


class ChildInfo(Struct, frozen=True, order=True):
    """The name of a default child trie, without its prefix."""

    storage_key: bytes

    @classmethod
    def new_default(cls, storage_key: bytes) -> "ChildInfo":
        return cls(storage_key)

    @classmethod
    def from_prefixed_key(cls, key: bytes) -> "ChildInfo":
        """Return the child trie that a key of the top trie names; ``ValueError`` when it names none."""
        if not key.startswith(CHILD_STORAGE_PREFIX):
            raise ValueError(f"0x{key.hex()} does not start with {CHILD_STORAGE_PREFIX.decode()}")
        return cls(key[len(CHILD_STORAGE_PREFIX) :])

    def prefixed_storage_key(self) -> bytes:
        """Return the key of the top trie that holds the child's root."""
        return CHILD_STORAGE_PREFIX + self.storage_key

    def __repr__(self) -> str:
        return f"ChildInfo(0x{self.storage_key.hex()})"
