"""A simulation between two blocks, as bytes that another process goes on from.

Constants of the chain's rooms are stored by name and found again by identity. Nothing is loaded but what a simulation
is made of (``checkpoint_reading.py``): a checkpoint is data, even one from a folder that somebody else wrote to.
"""

import io
import pickle
import sys
from functools import lru_cache
from typing import Any, cast

import pyarrow as pa

from relaycast_collator import Chains
from relaycast_spark.checkpoint_names import Name, is_of_the_chain
from relaycast_spark.checkpoint_reading import Unpickler
from relaycast_spark.exceptions import CheckpointRefused
from relaycast_spark.simulated import Simulated
from relaycast_trie import blake2_256

CODEC = "zstd"


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
    except (OSError, ValueError, OverflowError, MemoryError) as error:
        raise CheckpointRefused(str(error)) from error
    found = thaw_plainly(plain)
    if not isinstance(getattr(found, "chains", None), Chains):
        raise CheckpointRefused(f"{type(found).__name__}, which is no simulation")
    return cast(Simulated, found)


def thaw_plainly(data: bytes) -> Any:
    """Return what ``freeze_plainly`` put away; raises ``CheckpointRefused``."""
    try:
        return Unpickler(io.BytesIO(data)).load()
    except CheckpointRefused:
        raise
    except Exception as error:  # whatever a class of ours says to what it was never given
        raise CheckpointRefused(f"{type(error).__name__}: {error}") from error


def closing_digest(simulation: Simulated) -> bytes:
    """Return a digest of where every chain stands: equal digests, equal histories."""
    chains = simulation.chains
    heads = b"".join(chains.parachains[para_id].head.hash for para_id in sorted(chains.parachains))
    return blake2_256(chains.relay_chain.head.hash + heads)


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO) -> None:
        super().__init__(stream, protocol=5)
        self._constants = _constants(len(sys.modules))

    def persistent_id(self, thing: Any) -> Name | None:
        known = self._constants.get(id(thing))
        return None if known is None else known[0]


@lru_cache(maxsize=1)
def _constants(_modules: int) -> dict[int, tuple[Name, object]]:
    """Return the instances of their classes that the chain's modules name, by identity; so many modules are loaded.

    They are held, so that nothing else takes on the identity of one that a module lets go.
    """
    found: dict[int, tuple[Name, object]] = {}
    for module in sorted(name for name in sys.modules if is_of_the_chain(name)):
        for attribute, value in vars(sys.modules[module]).items():
            if not isinstance(value, type) and is_of_the_chain(type(value).__module__):
                found.setdefault(id(value), ((module, attribute), value))
    return found
