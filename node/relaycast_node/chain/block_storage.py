"""What frame-system keeps for clients beside what pallets need: events, digest, hashes of blocks, the runtime."""

from collections.abc import Sequence
from itertools import chain, pairwise

from relaycast_collator.header import DigestItem
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.typed_storage import BYTES32, TWOX_64_CONCAT, U32, StorageCodec, StorageMap, StorageValue
from relaycast_trie.scale import encode_vec

PALLET = "System"

BLOCK_HASH_COUNT = 4_096
"""Blocks whose hashes the state keeps (``BlockHashCount``), and the longest life of a mortal transaction."""

CODE = b":code"
PLACEHOLDER_CODE = b"relaycast: this chain's runtime is emulated, there is no Wasm here"
"""Stands where a real chain has its runtime: clients hash it."""

EVENTS = StorageCodec("Vec<EventRecord<RuntimeEvent, H256>>", bytes, bytes)
"""Values as bytes: a runtime knows the types of its events."""

DIGEST = StorageCodec("Digest", bytes, bytes)
LAST_UPGRADE = StorageCodec("LastRuntimeUpgradeInfo", bytes, bytes)


class BlockStorage:
    """The storage items of frame-system that a block writes about itself."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.block_hash = StorageMap(state, PALLET, "BlockHash", (TWOX_64_CONCAT, U32), BYTES32, default=bytes(32))
        """Hashes of the last blocks, by number."""

        self.extrinsic_count = StorageValue(state, PALLET, "ExtrinsicCount", U32)
        """Number of extrinsics in the block."""

        self.digest = StorageValue(state, PALLET, "Digest", DIGEST, default=b"\x00")
        """Digest of the block, as far as its author knew it beforehand."""

        self.events = StorageValue(state, PALLET, "Events", EVENTS, default=b"\x00")
        """Events of the block, each with the phase in which it was deposited."""

        self.event_count = StorageValue(state, PALLET, "EventCount", U32, default=0)
        """Number of events in the block."""

        self.last_runtime_upgrade = StorageValue(state, PALLET, "LastRuntimeUpgrade", LAST_UPGRADE)
        """Version and name of the runtime that began last."""

    def open(self, number: int, parent_hash: bytes, logs: Sequence[DigestItem]) -> None:
        """Write what is known when a block begins."""
        self.block_hash.insert(number - 1, parent_hash)
        if number > BLOCK_HASH_COUNT + 1:
            self.block_hash.remove(number - 2 - BLOCK_HASH_COUNT)
        self.digest.put(encode_vec(log.encode() for log in logs))

    def close(self, events: Sequence[bytes], *, extrinsics: int) -> None:
        """Write what is known when it ends."""
        self.events.put(encode_vec(events))
        self.event_count.put(len(events))
        self.extrinsic_count.put(extrinsics)

    def put_code(self) -> None:
        """Put what stands for the runtime's code."""
        self._state.put(CODE, PLACEHOLDER_CODE)


def phases(marks: Sequence[int], count: int) -> list[tuple[str, int | None]]:
    """Return the phase of each of ``count`` events.

    ``marks`` are the numbers of events before each extrinsic, and after the last one.
    """
    before: list[tuple[str, int | None]] = [("Initialization", None)] * marks[0]
    applied = chain.from_iterable(
        [("ApplyExtrinsic", index)] * (end - start) for index, (start, end) in enumerate(pairwise(marks))
    )
    return [*before, *applied, *[("Finalization", None)] * (count - marks[-1])]
