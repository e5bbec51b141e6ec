"""A simulation between two blocks, as bytes that another process goes on from.

A checkpoint is data (``relaycast_xcm.checkpoint``): it is loaded into a simulation that was prepared from the same
scenario. Whoever wrote the bytes, they either load, perhaps with wrong values, or raise ``CheckpointRefused``; reading
them takes memory in proportion to their number.
"""

import struct
from typing import cast

import pyarrow as pa

from relaycast_collator.chains import ChainsDump
from relaycast_ledger.ledger import LedgerDump
from relaycast_ledger.segments.simulated import Simulated
from relaycast_trie import blake2_256
from relaycast_trie.gc_policy import uncollected
from relaycast_xcm.checkpoint import CheckpointRefused, Dump, decoded, encoded

CODEC = "zstd"

MARK = b"relaycast checkpoint\n"
FORMAT = 1
"""Number of the layout: the mark, then ``HEAD``, then MessagePack, compressed or not."""

HEAD = struct.Struct("<HBQ")
"""The format, whether the rest is compressed, and its bytes before that."""

MOST_GAIN = 256
"""Bytes that one compressed byte stands for at most; what would shrink further is stored as it is."""


class SimulationDump(Dump, frozen=True):
    """A simulation; ``workload`` is what it holds beside chains and ledger, in its own form."""

    chains: ChainsDump
    ledger: LedgerDump
    workload: bytes


@uncollected()
def freeze(simulation: Simulated) -> bytes:
    """Return the simulation as bytes; what it has told so far is not part of it."""
    dump = SimulationDump(simulation.chains.dump(), simulation.ledger.dump(), simulation.dump())
    return packed(encoded(dump))


@uncollected()
def thaw(data: bytes, simulation: Simulated) -> None:
    """Load what ``freeze`` returned into a simulation that was prepared alike; raises ``CheckpointRefused``.

    A simulation that refuses can no longer be used.
    """
    dump = decoded(unpacked(data), SimulationDump)
    simulation.chains.load(dump.chains)
    simulation.ledger.load(dump.ledger)
    simulation.load(dump.workload)


def packed(data: bytes) -> bytes:
    """Return bytes with their head, compressed where that is worth it."""
    compressed = cast(bytes, pa.compress(data, codec=CODEC, asbytes=True))
    is_compressed = len(data) <= MOST_GAIN * len(compressed)
    return MARK + HEAD.pack(FORMAT, is_compressed, len(data)) + (compressed if is_compressed else data)


def unpacked(data: bytes) -> bytes:
    """Return what ``packed`` was given; raises ``CheckpointRefused``."""
    start = len(MARK) + HEAD.size
    if len(data) < start or not data.startswith(MARK):
        raise CheckpointRefused(f"{len(data)} bytes that begin with 0x{data[:8].hex()}, expected a checkpoint")
    number, is_compressed, size = HEAD.unpack_from(data, len(MARK))
    if number != FORMAT:
        raise CheckpointRefused(f"format {number}, expected {FORMAT}")
    rest = data[start:]
    if not is_compressed:
        return rest
    if size > MOST_GAIN * len(rest):
        raise CheckpointRefused(f"{len(rest)} compressed bytes that announce {size}")
    try:
        return cast(bytes, pa.decompress(rest, size, codec=CODEC, asbytes=True))
    except (OSError, ValueError) as error:
        raise CheckpointRefused(str(error)) from error


def closing_digest(simulation: Simulated) -> bytes:
    """Return a digest of where every chain stands: equal digests, equal histories."""
    chains = simulation.chains
    heads = b"".join(
        held[para_id].head.hash for held in (chains.parachains, chains.wasm_parachains) for para_id in sorted(held)
    )
    return blake2_256(chains.relay_chain.head.hash + heads)
