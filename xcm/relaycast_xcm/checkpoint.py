"""Checkpoints are data: what a chain puts away between two blocks, and takes over again, is made of these.

Law: a dump holds numbers, bytes and lists of them, and nothing that names code. Whatever loads one checks it, and
raises ``CheckpointRefused`` for what no ``dump`` has written. The fields of a dump may have types of the chains: kinds
of numbers and bytes, counters, and classes with ``dump`` and ``of_dump``. ``encoded`` and ``decoded`` know them.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.hasher import HASH_LENGTH
from relaycast_xcm.primitives import U32_MAX

T = TypeVar("T")

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


def encoded(dump: object) -> bytes:
    """Return what is put away as MessagePack."""
    return msgspec.msgpack.encode(dump, enc_hook=_plain)


def decoded(data: bytes, kind: type[T]) -> T:
    """Return what the MessagePack of a dump holds; raises ``CheckpointRefused``."""
    try:
        return msgspec.msgpack.decode(data, type=kind, dec_hook=_typed)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CheckpointRefused(str(error)) from error


def _plain(value: Any) -> object:
    """Return a value of a type of the chains as what MessagePack knows."""
    for plain in (int, bytes):
        if isinstance(value, plain):
            return plain(value)
    return value.dump()


def _typed(kind: Any, value: Any) -> object:
    """Return the value of a type of the chains that ``_plain`` made plain."""
    if get_origin(kind) is Counter:
        return Counter(msgspec.convert(value, dict[get_args(kind)[0], int]))  # type: ignore[misc]
    for plain in (int, bytes):
        if issubclass(kind, plain):
            return kind(msgspec.convert(value, plain))
    return kind.of_dump(value)
