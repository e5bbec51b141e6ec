"""The logs that headers carry: who built the block in which slot, on which relay parent, and a seal.

Their sizes and encodings are exact. Modelled are the slots (one a relay block), the authority of a relay block, and the
signature in a parachain's seal. The signature follows from its header, and so from the seed.
"""

from hashlib import blake2b

from relaycast_collator.header import DigestItem, Header
from relaycast_trie import blake2_256
from relaycast_trie.scale import encode_compact, encode_u32, encode_u64
from relaycast_xcm import ParaId

BABE, AURA, RPSR = b"BABE", b"aura", b"RPSR"
"""Engine ids: of the relay chain's consensus, of a parachain's, and of relay-parent storage roots (cumulus)."""

SECONDARY_PLAIN = b"\x02"
"""The variant of sp-consensus-babe's ``PreDigest`` without a VRF output."""

MODELLED_AUTHORITIES = 600
SIGNATURE_BYTES = 64


def babe_pre_digest(*, authority_index: int, slot: int) -> DigestItem:
    """Return the log of a relay block built in a secondary slot: ``SecondaryPlainPreDigest``, 13 bytes of data."""
    return DigestItem.pre_runtime(BABE, SECONDARY_PLAIN + encode_u32(authority_index) + encode_u64(slot))


def aura_pre_digest(*, slot: int) -> DigestItem:
    """Return the log of a parachain block built in ``slot``: a u64."""
    return DigestItem.pre_runtime(AURA, encode_u64(slot))


def relay_parent_storage_root_item(storage_root: bytes, number: int) -> DigestItem:
    """Return the log that names the relay parent: its state root and its number, compact (cumulus ``rpsr_digest``)."""
    return DigestItem.consensus(RPSR, storage_root + encode_compact(number))


def authority_of(seed: bytes, slot: int) -> int:
    """Return the modelled authority of a relay chain slot."""
    return int.from_bytes(blake2_256(seed + b"author" + encode_u64(slot))[:8], "little") % MODELLED_AUTHORITIES


def modelled_seal(para_id: ParaId, header: Header) -> DigestItem:
    """Return the seal of a header that is complete but for it: 64 bytes in the place of its author's signature.

    They follow from the parachain and the header's hash, so that whoever builds the same block seals it alike.
    """
    author = blake2_256(b"collator" + para_id.encode())
    return DigestItem.seal(AURA, blake2b(header.hash, key=author, digest_size=SIGNATURE_BYTES).digest())
