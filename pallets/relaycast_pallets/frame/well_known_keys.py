"""Keys of a relay chain's state that parachains prove: static ones in every block, and those that a chain asks for.

The static keys are those of cumulus ``get_static_relay_storage_keys``, the others a ``RelayProofRequest``. A few keys
have plain names and belong to no pallet (sp-storage ``well_known_keys``).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

from relaycast_pallets.frame.typed_storage import read_all, storage_prefix
from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import twox_64_concat
from relaycast_trie.scale import ScaleReader, encode_bytes, encode_vec
from relaycast_xcm.primitives import ParaId

HOST_KEYS = (
    b":relay_dispatch_queue_remaining_capacity",  # one for each parachain: the id follows
    b":code",
    b":heappages",
    b":extrinsic_index",
    b":intrablock_entropy",
    b":grandpa_authorities",
)


def host_key(key: bytes) -> str:
    """Return the name that ``key`` starts with, empty when there is none."""
    return next((known.decode() for known in HOST_KEYS if key.startswith(known)), "")


CURRENT_BLOCK_RANDOMNESS = storage_prefix("Babe", "AuthorVrfRandomness")
ONE_EPOCH_AGO_RANDOMNESS = storage_prefix("Babe", "NextRandomness")
TWO_EPOCHS_AGO_RANDOMNESS = storage_prefix("Babe", "Randomness")
CURRENT_SLOT = storage_prefix("Babe", "CurrentSlot")
ACTIVE_CONFIG = storage_prefix("Configuration", "ActiveConfig")


def _by_para(pallet: str, item: str) -> Callable[[ParaId], bytes]:
    prefix = storage_prefix(pallet, item)
    return lambda para_id: prefix + twox_64_concat(para_id.encode())


dmq_mqc_head = _by_para("Dmp", "DownwardMessageQueueHeads")
"""The key of the head of a parachain's downward message queue."""

relay_dispatch_queue_size = _by_para("Ump", "RelayDispatchQueueSize")
"""The key of what waits in a parachain's upward queue, as older relay chains keep it."""

hrmp_ingress_channel_index = _by_para("Hrmp", "HrmpIngressChannelsIndex")
hrmp_egress_channel_index = _by_para("Hrmp", "HrmpEgressChannelsIndex")
upgrade_go_ahead_signal = _by_para("Paras", "UpgradeGoAheadSignal")
upgrade_restriction_signal = _by_para("Paras", "UpgradeRestrictionSignal")
para_head = _by_para("Paras", "Heads")


def relay_dispatch_queue_remaining_capacity(para_id: ParaId) -> bytes:
    """Return the key of the room left in the parachain's upward queue: a key with a plain name."""
    return b":relay_dispatch_queue_remaining_capacity" + para_id.encode()


def hrmp_channel(sender: ParaId, recipient: ParaId) -> bytes:
    """Return the key of the channel between two parachains, which both of them prove."""
    return storage_prefix("Hrmp", "HrmpChannels") + twox_64_concat(sender.encode() + recipient.encode())


@cache
def static_relay_keys(para_id: ParaId) -> tuple[bytes, ...]:
    """Return the keys that the relay state proof of ``para_id`` always covers, beside those of its open channels."""
    return (
        CURRENT_BLOCK_RANDOMNESS,
        ONE_EPOCH_AGO_RANDOMNESS,
        TWO_EPOCHS_AGO_RANDOMNESS,
        CURRENT_SLOT,
        ACTIVE_CONFIG,
        dmq_mqc_head(para_id),
        relay_dispatch_queue_size(para_id),
        relay_dispatch_queue_remaining_capacity(para_id),
        hrmp_ingress_channel_index(para_id),
        hrmp_egress_channel_index(para_id),
        upgrade_go_ahead_signal(para_id),
        upgrade_restriction_signal(para_id),
        para_head(para_id),
    )


@dataclass(frozen=True, slots=True)
class Top:
    """A key of the relay chain's top trie."""

    key: bytes

    def encode(self) -> bytes:
        return b"\x00" + encode_bytes(self.key)


@dataclass(frozen=True, slots=True)
class Child:
    """A key of a child trie; ``storage_key`` names the trie without its prefix."""

    storage_key: bytes
    key: bytes

    def encode(self) -> bytes:
        return b"\x01" + encode_bytes(self.storage_key) + encode_bytes(self.key)


RelayStorageKey = Top | Child


@dataclass(frozen=True, slots=True)
class RelayProofRequest:
    """All keys that the next relay state proof is to cover."""

    keys: tuple[RelayStorageKey, ...] = ()
    _by_child_trie: dict[bytes, list[bytes]] | None = field(default=None, init=False, compare=False, repr=False)

    def encode(self) -> bytes:
        return encode_vec(key.encode() for key in self.keys)

    @classmethod
    def decode(cls, data: bytes) -> "RelayProofRequest":
        """Return the request that all of ``data`` encodes; raises ``CodecError``."""
        return read_all(data, lambda reader: cls(tuple(_read_key(reader) for _ in range(reader.length(2)))))

    def by_child_trie(self) -> dict[bytes, list[bytes]]:
        """Return the keys wanted of each child trie, each once, in the order of the request."""
        if self._by_child_trie is None:
            groups: dict[bytes, dict[bytes, None]] = {}
            for key in self.keys:
                if isinstance(key, Child):
                    groups.setdefault(key.storage_key, {})[key.key] = None
            grouped = {storage_key: list(keys) for storage_key, keys in groups.items()}
            object.__setattr__(self, "_by_child_trie", grouped)
        assert self._by_child_trie is not None
        return {storage_key: list(keys) for storage_key, keys in self._by_child_trie.items()}

    def top_keys(self) -> list[bytes]:
        """Return the keys wanted of the top trie, each once."""
        return list(dict.fromkeys(key.key for key in self.keys if isinstance(key, Top)))

    def __iter__(self) -> Iterator[RelayStorageKey]:
        return iter(self.keys)

    def __len__(self) -> int:
        return len(self.keys)


def _read_key(reader: ScaleReader) -> RelayStorageKey:
    start = reader.offset
    variant = reader.u8()
    if variant == 0:
        return Top(reader.bytes_())
    if variant == 1:
        return Child(reader.bytes_(), reader.bytes_())
    raise CodecError(f"RelayStorageKey is Top (0) or Child (1), got {variant}", start)
