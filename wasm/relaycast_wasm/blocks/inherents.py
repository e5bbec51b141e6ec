"""Inherent data: what a block's author knows and its runtime does not, by identifiers of eight bytes.

A runtime takes what it knows the identifier of and leaves the rest: data for old and new runtimes goes in together.
"""

from collections.abc import Mapping

from relaycast_collator.header import Header
from relaycast_trie.scale import encode_bytes, encode_compact, encode_u32, encode_u64

Inherents = Mapping[bytes, bytes]
"""SCALE by identifier."""

TIMESTAMP = b"timstap0"
BABE_SLOT, AURA_SLOT = b"babeslot", b"auraslot"
UNCLES = b"uncles00"
FINALIZED_NUMBER = b"finalnum"
NEW_HEADS = b"newheads"
INCLUSION = b"inclusn0"
PARACHAINS = b"parachn0"
PARACHAIN_SYSTEM = b"sysi1337"
"""cumulus ``PARACHAIN_INHERENT_IDENTIFIER_V0``: validation data, relay proof and messages."""

PARACHAIN_SYSTEM_V1 = b"sysi1338"
"""The same for newer runtimes, with the descendants of the relay parent and the collator's peer id behind."""

SLOT_MILLISECONDS = 6_000
"""How long a slot of the relay chain takes."""

NO_ITEMS = encode_compact(0)


def encode_inherents(data: Inherents) -> bytes:
    """Return SCALE ``InherentData``: a map in the order of its identifiers."""
    return encode_compact(len(data)) + b"".join(key + encode_bytes(data[key]) for key in sorted(data))


def clock_inherents(slot: int, *, slot_milliseconds: int = SLOT_MILLISECONDS) -> dict[bytes, bytes]:
    """Return the time at which ``slot`` begins, and the slot, as a chain with BABE or Aura wants them."""
    now = encode_u64(slot * slot_milliseconds)
    return {TIMESTAMP: now, BABE_SLOT: encode_u64(slot), AURA_SLOT: encode_u64(slot)}


def relay_inherents(
    slot: int, parent: Header, *, finalized: int | None = None, slot_milliseconds: int = SLOT_MILLISECONDS
) -> dict[bytes, bytes]:
    """Return what a relay chain's block on ``parent`` is given: no uncles, no parachain blocks, no disputes.

    ``finalized`` is the last finalized block that its author knows of, two before the parent by default.
    """
    known = max(0, parent.number - 2) if finalized is None else finalized
    return {
        **clock_inherents(slot, slot_milliseconds=slot_milliseconds),
        UNCLES: NO_ITEMS,
        FINALIZED_NUMBER: encode_u32(known),
        NEW_HEADS: NO_ITEMS,
        INCLUSION: 2 * NO_ITEMS + parent.encode(),
        PARACHAINS: 3 * NO_ITEMS + parent.encode(),
    }
