"""A served chain between two blocks, as data, beside the chain itself."""

from relaycast_xcm.checkpoint import DumpRow, Hash


class ServedChainDump(DumpRow, frozen=True):
    """The best block, its header in SCALE, and who is banned from the pool, with the seconds when that ends."""

    header: bytes
    extrinsics: list[bytes]
    bans: list[tuple[Hash, float]]
