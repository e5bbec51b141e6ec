"""A scenario as chains that live: its workload goes on with every block, for as long as the server runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from relaycast.refusal import BadInput, shown
from relaycast_node.block_time import EXPECTED, BlockTime, block_time_of
from relaycast_node.rpc.faces import LiveFace


@dataclass(frozen=True, slots=True)
class LivingNetwork:
    """The chains and their clock; ``key_names`` are the names of keys that a scenario gives."""

    live: LiveFace
    title: str
    key_names: Mapping[bytes, str]


def pace_of(block_time: str, *, default: float) -> BlockTime:
    """Return the block time that a user gave, ``default`` seconds for none; raises ``BadInput``."""
    if not block_time:
        return default
    try:
        return block_time_of(block_time)
    except ValueError:
        raise BadInput("--block-time", shown(block_time), EXPECTED) from None


def living(name: str, block_time: str = "") -> LivingNetwork:
    """Return the network of a preset or a scenario file; raises ``BadInput``."""
    raise NotImplementedError(name, block_time)
