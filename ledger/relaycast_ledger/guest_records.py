"""What a block of a guest costs: the relay proof, the proof of its own state by storage item, and the whole PoV."""

from collections.abc import Iterator

from msgspec import Struct

from relaycast_collator.facts import GuestBuilt, GuestRefusedBlock
from relaycast_collator.guests import ExtrinsicLeftOut, GuestBlock, StorageItemShare
from relaycast_ledger.block_checks import Check
from relaycast_ledger.pov import PovSize, guest_pov_size
from relaycast_trie import RootMismatch, blake2_256
from relaycast_xcm import ParaId

DISPATCH_FAILED = b"\x00\x01"
"""What a result begins with where the call of an extrinsic failed: ``ApplyExtrinsicResult`` in SCALE."""


class GuestRecord(Struct, frozen=True, kw_only=True):
    """One block of one guest; sizes in bytes, times in ticks of the relay chain.

    Of a block that was refused there is the ``refusal``, and no sizes.
    """

    tick: int
    para_id: ParaId
    number: int
    relay_parent: int
    spec_name: str
    spec_version: int
    extrinsics: int = 0
    failed_extrinsics: int = 0
    """Extrinsics whose call failed."""

    left_out: int = 0
    """Extrinsics that were submitted and that the code does not take."""

    panics: tuple[str, ...] = ()
    """What the code said where it trapped at an extrinsic."""

    extrinsic_bytes: int = 0
    relay_proof_bytes: int = 0
    carried_relay_bytes: int = 0
    """Those of ``relay_proof_bytes`` that stand in the block's extrinsics: its code may drop others."""

    own_proof_bytes: int = 0
    """Nodes of its own state that the block reads and rewrites, in full."""

    upward_messages: int = 0
    shares: tuple[StorageItemShare, ...] = ()
    """``own_proof_bytes`` by storage item."""

    pov: PovSize | None = None
    """``None`` where the own proof is not one of the state of the block before."""

    refusal: str | None = None
    log: tuple[str, ...] = ()
    warm_up: bool = False
    """Whether the block is part of the warm-up, which percentiles leave out."""


def guest_record(
    fact: GuestBuilt | GuestRefusedBlock, *, spec_name: str, spec_version: int, warm_up: bool = False
) -> GuestRecord:
    """Return the record of a guest's block, which its code in this version built or refused."""
    if isinstance(fact, GuestRefusedBlock):
        return GuestRecord(
            tick=fact.tick,
            para_id=fact.para_id,
            number=fact.head.number,
            relay_parent=fact.relay_parent.number,
            spec_name=spec_name,
            spec_version=spec_version,
            refusal=fact.reason,
            log=fact.log,
            warm_up=warm_up,
        )
    block = fact.block
    return GuestRecord(
        tick=fact.tick,
        para_id=fact.para_id,
        number=block.header.number,
        relay_parent=fact.relay_parent.number,
        spec_name=spec_name,
        spec_version=spec_version,
        extrinsics=len(block.extrinsics),
        failed_extrinsics=sum(result.startswith(DISPATCH_FAILED) for result in block.results),
        left_out=len(block.left_out),
        panics=tuple(_panic(it) for it in block.left_out if it.panicked),
        extrinsic_bytes=sum(map(len, block.extrinsics)),
        relay_proof_bytes=block.relay_proof.proof_bytes,
        carried_relay_bytes=_carried_relay_bytes(block),
        own_proof_bytes=block.own_proof.proof_bytes,
        upward_messages=len(block.upward_messages),
        shares=block.shares,
        pov=_pov(fact),
        log=block.log,
        warm_up=warm_up,
    )


def _panic(left_out: ExtrinsicLeftOut) -> str:
    return f"extrinsic 0x{blake2_256(left_out.extrinsic).hex()}: {left_out.reason}"


def _carried_relay_bytes(block: GuestBlock) -> int:
    """Return how many bytes of the relay proof's nodes stand in the extrinsics."""
    carried = sum(len(node) for node in block.relay_proof.nodes if any(node in it for it in block.extrinsics))
    return min(carried, sum(map(len, block.extrinsics)))


def _pov(fact: GuestBuilt) -> PovSize | None:
    try:
        return guest_pov_size(fact.block, own_root=fact.parent.state_root, max_pov_bytes=fact.max_pov_size)
    except RootMismatch:
        return None


def guest_checks(fact: GuestBuilt) -> Iterator[Check]:
    """Check what every block must keep to."""
    block, header = fact.block, fact.block.header
    follows = (header.parent_hash, header.number) == (fact.parent.hash, fact.parent.number + 1)
    seen = f"block {header.number} on 0x{header.parent_hash.hex()}, its parent is block {fact.parent.number}"
    yield Check("a guest's block follows on the one before", follows, seen)
    roots = set(map(blake2_256, block.relay_proof.nodes))
    told = fact.relay_parent.state_root in roots
    yield Check("a guest's relay proof has its relay parent's state root", told, f"{len(roots)} other nodes")
    if len(block.own_proof):
        own = set(map(blake2_256, block.own_proof.nodes))
        told = fact.parent.state_root in own
        yield Check("a guest's own proof has the state root of the block before", told, f"{len(own)} other nodes")
    shared = sum(share.proof_bytes for share in block.shares)
    seen = f"{shared} of {block.own_proof.proof_bytes} bytes"
    yield Check("every byte of a guest's own proof has a storage item", shared == block.own_proof.proof_bytes, seen)
    yield Check("every extrinsic has a result", len(block.results) == len(block.extrinsics), f"{len(block.results)}")
