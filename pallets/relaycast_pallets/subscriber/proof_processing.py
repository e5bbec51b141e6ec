"""One algorithm in two modes: what the collator prunes by is what the chain verifies by.

``process_proof`` walks the publishers from the cursor on, once around, reading what changed until the meter or the
proof ends. With PRUNE it writes nothing: what it read is what the pruned proof holds. With VERIFY the subscriber
takes over what was found. Running out of weight is a result with a cursor.

A pass may take several blocks. Until a publisher is done, its old root stays. The pallet remembers which of its keys
are processed, and against which root. No change is delivered twice and none is lost, even one that is taken back.
"""

from collections.abc import Callable
from enum import Enum

from relaycast_pallets.subscriber.carried_pass import CarriedPass
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.proof_pass import Pass
from relaycast_pallets.subscriber.result import ProofProcessingResult
from relaycast_pallets.subscriber.tracked_proof import TrackedProof
from relaycast_trie.proofs.storage_proof import StorageProof
from relaycast_xcm.primitives import BlockNumber, WeightMeter


class ProcessingMode(Enum):
    """Whether what is found is kept: ``PRUNE`` in the collator, ``VERIFY`` on chain."""

    PRUNE = "prune"
    VERIFY = "verify"


Demand = Callable[[ProofProcessingResult], None]
"""What must hold of a pass before anything of it is kept; raises when it does not."""


def process_proof(
    mode: ProcessingMode,
    proof: StorageProof | TrackedProof,
    relay_root: bytes,
    meter: WeightMeter,
    subscriber: Subscriber,
    *,
    seed: bytes = b"",
    relay_parent_number: BlockNumber = 0,
    crowded: bool = False,
    demand: Demand | None = None,
) -> ProofProcessingResult:
    """Process a relay state proof for everything that ``subscriber`` subscribes to, within what ``meter`` allows.

    ``seed`` shuffles the publishers; both modes must be given the same one. A pass that goes on where the last one was
    cut short keeps that one's order, so that no publisher is repeatedly shuffled last. ``crowded`` says that messages
    took a part of what the meter allows (see ``turns``). A ``TrackedProof`` learns what was read.
    With ``VERIFY`` the result must first meet the ``demand``; then the subscriber's storage is written and its handler
    called, with times to live counted from ``relay_parent_number``. Raises ``InvalidNode`` and ``InvalidChildRoot``
    where the relay chain's state is broken, and ``ValueError`` for VERIFY by hashes that were taken on trust.
    """
    if mode is ProcessingMode.VERIFY and isinstance(proof, TrackedProof) and proof.is_trusted:
        raise ValueError("a block hashes what it is given: no proof that is taken on trust")
    tracked = proof if isinstance(proof, TrackedProof) else TrackedProof(proof, relay_root)
    kind = CarriedPass if subscriber.policies.metering.charges_own_state else Pass
    result = kind(tracked, meter, subscriber, seed, crowded=crowded).run()
    if mode is ProcessingMode.VERIFY:
        if demand is not None:
            demand(result)
        subscriber.apply(result, relay_parent_number=relay_parent_number)
    return result
