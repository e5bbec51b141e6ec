"""A simulation between two blocks, as bytes that another process goes on from.

Constants of our modules are stored by name and found again by identity. Nothing is loaded that is not ours or a plain
container: a checkpoint is data, even one from a folder that somebody else wrote to.
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

PLAIN = frozenset(
    {
        ("builtins", "getattr"),  # how a bound method is put together again
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


def freeze_plainly(thing: object, *, by_value: bool = False) -> bytes:
    """Return anything that is made of our values as bytes.

    ``by_value`` equal things give equal bytes, whichever of their parts are one object; such a thing is a tree.
    """
    stream = io.BytesIO()
    pickler = _Pickler(stream)
    pickler.fast = by_value
    pickler.dump(thing)
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


def _is_ours(module: str) -> bool:
    return module.split(".", 1)[0] in ROOMS


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
        return getattr(sys.modules.get(module) or __import__(module, fromlist=[attribute]), attribute)

    def find_class(self, module: str, name: str) -> Any:
        if _is_ours(module) or (module, name) in PLAIN:
            return super().find_class(module, name)
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
