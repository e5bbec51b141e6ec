"""Checkpoints are data: what a chain puts away between two blocks, and takes over again, is made of these.

Law: a dump holds numbers, bytes and lists of them, and nothing that names code. Whatever loads one checks it, and
raises ``CheckpointRefused`` for what no ``dump`` has written.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from msgspec import Meta, Struct

from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_xcm.primitives import U32_MAX

Version = Literal[1]
VERSION: Version = 1
"""Stands in what is put away by itself: a chain, a listener. Whatever changes the bytes of a dump changes it."""

U32 = Annotated[int, Meta(ge=0, le=U32_MAX)]
Count = Annotated[int, Meta(ge=0)]
Hash = Annotated[bytes, Meta(min_length=HASH_LENGTH, max_length=HASH_LENGTH)]


class CheckpointRefused(RelaycastError, message="the checkpoint cannot be loaded: {reason}"):
    """A checkpoint that cannot be loaded, for this ``reason``, which names the part of it."""

    reason: str


class Dump(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a checkpoint, its fields by name."""


class DumpRow(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A part of which a checkpoint has many: its fields in their order."""


@contextmanager
def refusing(part: str) -> Iterator[None]:
    """Let ``CheckpointRefused`` name the ``part`` in which something is wrong: what ``ValueError`` and the like say."""
    try:
        yield
    except CheckpointRefused as refusal:
        raise CheckpointRefused(f"{part}, {refusal.reason}") from refusal
    except (ValueError, IndexError, RelaycastError) as error:
        raise CheckpointRefused(f"{part}: {error}") from error
