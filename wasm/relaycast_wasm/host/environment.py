"""What a runtime can reach beside storage: keys, the store of offchain workers, the pool of transactions.

It answers as the node of a validator without a network would: there are no peers, and no request leaves. Time and
randomness are given, so that the same blocks come out of the same seed.
"""

from dataclasses import dataclass, field
from hashlib import blake2b

KeyType = bytes
"""Four bytes that say what a key is for, such as ``babe``."""


@dataclass(slots=True)
class HostEnvironment:
    """Shared by the calls of one chain; what runtimes put here stays here."""

    seed: bytes = b""
    timestamp_ms: int = 0
    """What the clock shows, in milliseconds since 1970."""

    keys: dict[tuple[str, KeyType], dict[bytes, bytes]] = field(default_factory=dict)
    """Secrets by public key, for each scheme and type of key."""

    local_storage: dict[tuple[int, bytes], bytes] = field(default_factory=dict)
    """What offchain workers keep, by kind (1 persistent, 2 local) and key."""

    offchain_index: dict[bytes, bytes | None] = field(default_factory=dict)
    """What blocks wrote for offchain workers; ``None`` removes."""

    indexed: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Extrinsics whose data is to be kept: index, size, hash; renewed ones have the size 0."""

    submitted: list[bytes] = field(default_factory=list)
    """Transactions that offchain workers sent to the pool."""

    _drawn: int = 0

    def random_seed(self) -> bytes:
        """Return 32 bytes, other ones with every call."""
        self._drawn += 1
        return blake2b(self.seed + self._drawn.to_bytes(8, "little"), digest_size=32).digest()
