"""A simulation between two blocks, as bytes that another process goes on from.

Constants of our modules are stored by name and found again by identity. Nothing is loaded that is not ours or a plain
container, whatever our modules import or our objects lead to: a checkpoint is data, even one from a folder that
somebody else wrote to.
"""

import io
import pickle
import sys
from functools import lru_cache
from typing import Any, cast

import pyarrow as pa

from relaycast_spark.exceptions import CheckpointRefused
from relaycast_spark.simulated import Simulated
from relaycast_trie import blake2_256

ROOMS = ("relaycast", "relaycast_trie", "relaycast_xcm", "relaycast_pallets", "relaycast_collator", "relaycast_spark")

ROOMS_OF_FUNCTIONS = ("relaycast_trie", "relaycast_xcm", "relaycast_pallets", "relaycast_collator")
"""Rooms whose functions a simulation may hold: none of them opens a file or begins a process at a file's word."""

PLAIN = frozenset(
    {
        ("builtins", "set"),
        ("builtins", "frozenset"),
        ("builtins", "bytearray"),
        ("collections", "Counter"),
        ("collections", "OrderedDict"),
        ("collections", "defaultdict"),
        ("collections", "deque"),
        ("functools", "partial"),
        ("sortedcontainers.sortedlist", "SortedList"),
        ("msgspec._utils", "rebuild"),
    }
)
"""What a simulation holds beside our own classes."""

CODEC = "zstd"

Name = tuple[str, str]


def freeze(simulation: Simulated) -> bytes:
    """Return the simulation as bytes; what it has told so far is not part of it."""
    data = freeze_plainly(simulation)
    return len(data).to_bytes(8, "little") + cast(bytes, pa.compress(data, codec=CODEC, asbytes=True))


def freeze_plainly(thing: object) -> bytes:
    """Return anything that is made of our values as bytes."""
    stream = io.BytesIO()
    _Pickler(stream).dump(thing)
    return stream.getvalue()


def thaw(data: bytes) -> Simulated:
    """Return the simulation that ``freeze`` put away; raises ``CheckpointRefused``."""
    try:
        plain = pa.decompress(data[8:], int.from_bytes(data[:8], "little"), codec=CODEC, asbytes=True)
    except (OSError, ValueError) as error:
        raise CheckpointRefused(str(error)) from error
    return cast(Simulated, thaw_plainly(plain))


def thaw_plainly(data: bytes) -> Any:
    """Return what ``freeze_plainly`` put away; raises ``CheckpointRefused``."""
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (ValueError, EOFError, IndexError, pickle.UnpicklingError, AttributeError, ImportError) as error:
        raise CheckpointRefused(str(error)) from error


def closing_digest(simulation: Simulated) -> bytes:
    """Return a digest of where every chain stands: equal digests, equal histories."""
    chains = simulation.chains
    heads = b"".join(chains.parachains[para_id].head.hash for para_id in sorted(chains.parachains))
    return blake2_256(chains.relay_chain.head.hash + heads)


def _is_ours(module: str, rooms: tuple[str, ...] = ROOMS) -> bool:
    return module.split(".", 1)[0] in rooms


def _is_made_by_us(thing: object) -> bool:
    """Return whether a class or a function is from our own modules: neither one they import nor one they lead to."""
    rooms = ROOMS if isinstance(thing, type) else ROOMS_OF_FUNCTIONS
    return callable(thing) and _is_ours(str(getattr(thing, "__module__", "")), rooms)


def _method_of(owner: Any, name: str) -> Any:
    """Return a method of ours: how a bound method is put together again. Raises ``CheckpointRefused``."""
    kind = owner if isinstance(owner, type) else type(owner)
    found = getattr(owner, name, None) if _is_ours(kind.__module__) else None
    if not _is_made_by_us(found):
        raise CheckpointRefused(f"{name} of {kind.__module__}.{kind.__qualname__}")
    return found


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=5)
        self._constants = _constants(len(sys.modules))

    def persistent_id(self, thing: Any) -> Name | None:
        known = self._constants.get(id(thing))
        return None if known is None else known[0]


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: Name) -> Any:
        module, attribute = name
        if not _is_ours(module):
            raise CheckpointRefused(f"a constant of {module}")
        found = getattr(sys.modules.get(module) or __import__(module, fromlist=[attribute]), attribute)
        if isinstance(found, type) or not _is_ours(type(found).__module__):
            raise CheckpointRefused(f"{module}.{attribute}, which is no constant of ours")
        return found

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return _method_of
        if (module, name) in PLAIN:
            return super().find_class(module, name)
        if _is_ours(module) and _is_made_by_us(found := super().find_class(module, name)):
            return found
        raise CheckpointRefused(f"{module}.{name}")


@lru_cache(maxsize=1)
def _constants(_modules: int) -> dict[int, tuple[Name, object]]:
    """Return the instances of our classes that our modules name, by identity; so many modules are loaded.

    They are held, so that nothing else takes on the identity of one that a module lets go.
    """
    found: dict[int, tuple[Name, object]] = {}
    for module in sorted(name for name in sys.modules if _is_ours(name)):
        for attribute, value in vars(sys.modules[module]).items():
            if not isinstance(value, type) and _is_ours(type(value).__module__):
                found.setdefault(id(value), ((module, attribute), value))
    return found
