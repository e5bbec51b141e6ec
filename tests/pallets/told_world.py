"""A world whose reader was told of keys, and what its item says of them."""

from pallets.block_vectors import ALPHA
from pallets.subscriber_world import World, following
from relaycast_pallets import Origin, Policies
from relaycast_pallets.subscriber.variants.deletions import NotifyDeletions
from relaycast_xcm.primitives import ParaId

TOLD = Policies(deletion=NotifyDeletions())
ROOT = Origin.root()


def told_world(*publishers: ParaId, wanted: int = 3, policies: Policies = TOLD) -> World:
    """Return a world whose reader was told the first keys of each publisher."""
    return following(*publishers, wanted=wanted, policies=policies)


def bits(world: World, publisher: ParaId = ALPHA) -> str | None:
    """Return the bits of a publisher's item, the first key's first."""
    bitmap = world.storage.delivered_keys.get(publisher)
    return None if bitmap is None else "".join(f"{byte:08b}"[::-1] for byte in bitmap)


def clear_cache(world: World) -> None:
    world.subscriber.clear_publisher_cache(ROOT, ALPHA)


def clear_root(world: World) -> None:
    world.subscriber.clear_stored_roots(ROOT, ALPHA)
