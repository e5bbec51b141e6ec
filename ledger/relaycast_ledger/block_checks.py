"""The invariants that a run checks on every parachain block: each gives its name, whether it holds, and what was seen.

They hold for the policies that are the default; another policy is found out here by what it breaks.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from relaycast_collator.collator import Collation
from relaycast_collator.facts import WasmBlockBuilt
from relaycast_collator.parachain import Parachain, ParachainBlock, Update
from relaycast_ledger.deliveries import Place
from relaycast_ledger.records import BlockRecord
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_pallets.subscriber.policies import MAX_NODE_BYTES
from relaycast_pallets.subscriber.variants.cache_limit import CacheLimit
from relaycast_trie import blake2_256
from relaycast_xcm import ParaId, Weight


class Check(NamedTuple):
    """One invariant in one block."""

    invariant: str
    holds: bool
    seen: object
    """What to say where it does not hold, or what returns that."""


def agreement_checks(collation: Collation, block: ParachainBlock) -> Iterator[Check]:
    """Check that collator and chain did the same: what an honest collator owes."""
    pruned, verified = collation.pruning, block.outcome.result
    both = partial("{!r} and {!r}".format, pruned, verified)
    yield Check("prune and verify read the same nodes", pruned.reads == verified.reads, both)
    yield Check("prune and verify consume the same weight", pruned.consumed == verified.consumed, both)
    yield Check("prune and verify set the same cursor", pruned.turn == verified.turn, both)
    foreign = set(block.inherent.relay_chain_state) - collation.collected.nodes
    yield Check("the pruned proof is a part of the collected one", not foreign, f"{len(foreign)} foreign nodes")


def account_checks(record: BlockRecord, *, honest: bool) -> Iterator[Check]:
    """Check that every byte of a block is accounted for; what a liar adds was never collected."""
    account = record.account
    if account is None:
        return
    proof, consumed = account.proof, sum((it.consumed for it in account.publishers), Weight.ZERO)
    told = (proof.nodes, proof.node_bytes) == (record.proof_nodes, record.proof_bytes)
    seen = partial("{} of {} nodes and {} bytes".format, proof, record.proof_nodes, record.proof_bytes)
    yield Check("every byte of the proof has a cause", told, seen)
    seen = partial("{} of {}".format, consumed, record.consumed)
    yield Check("every publisher's weight adds up", consumed == record.consumed, seen)
    if honest:
        pruned = account.pruned.node_bytes
        told = record.proof_bytes + pruned == record.collected_bytes
        seen = partial("{} and {} of {} bytes".format, record.proof_bytes, pruned, record.collected_bytes)
        yield Check("every collected byte is in the proof or was pruned for a reason", told, seen)


def pass_checks(subscriber: Subscriber, block: ParachainBlock) -> Iterator[Check]:
    """Check what one pass consumed, read and left in storage."""
    result, meter = block.outcome.result, block.outcome.meter
    yield Check("no more is consumed than allowed", meter.consumed.all_lte(meter.limit), meter)
    read_bytes = result.chargeable_bytes
    seen = f"{read_bytes} bytes where {meter.limit.proof_size} are allowed"
    yield Check("no more is read than allowed", read_bytes <= meter.limit.proof_size, seen)
    declared, limit = result.callback_weight, result.callback_limit
    yield Check("callbacks declare no more than a block allows", declared.all_lte(limit), f"{declared} of {limit}")
    inserted = (node for cache in subscriber.cache_changes.values() for node in cache.insert.values())
    largest = max(map(len, inserted), default=0)
    yield Check("cached nodes are within their bound", largest <= MAX_NODE_BYTES, f"a node of {largest} bytes")
    cached = subscriber.node_cache
    if isinstance(cached, CacheLimit):
        settled = [it for it in result.changes if it.finished and it.root is not None and it.disabled_by is None]
        over = [it.para_id for it in settled if cached.of(it.para_id).size > cached.share]
        seen = f"more than the {cached.share} bytes of a share for {over}"
        yield Check("cached bytes are within their limit", not over, seen)
    moved = {change.para_id for change in result.changes}
    roots = subscriber.storage.previous_roots()
    gone = [
        publisher
        for publisher, view in result.plan.views.items()
        if publisher not in moved and roots.get(publisher) != view.root
    ]
    yield Check("roots of unchanged publishers are kept", not gone, f"those of {gone} are not")


def delivery_checks(
    parachain: Parachain, block: ParachainBlock, repeated: list[Update], lost: list[Place]
) -> Iterator[Check]:
    """Check that subscribers get every change and nothing else; holds only for a cache that keeps every node.

    If the code before an upgrade kept fewer nodes, a part of the old trie may not be cached: values below it are
    delivered again once.
    """
    if parachain.subscriber.keeps_every_node:
        excused: set[ParaId] = set()
        if parachain.upgrades.kept_fewer_nodes:
            excused = {change.para_id for change in block.outcome.result.changes if change.unseen}
        seen = [f"0x{key.hex()} of {publisher}" for publisher, key, _ in repeated if publisher not in excused]
        yield Check("no callback without a change", not seen, seen)
    seen = [f"0x{key.hex()} of {publisher}" for publisher, key in lost]
    yield Check("no update is lost", not lost, seen)


def deletion_checks(block: ParachainBlock, still_published: list[Place]) -> Iterator[Check]:
    """Check that told deletions are of deleted keys, none of which is delivered in the same block."""
    seen = [f"0x{key.hex()} of {publisher}" for publisher, key in still_published]
    yield Check("a key that is told as deleted is not published", not still_published, seen)
    both = {(publisher, key) for publisher, key, _ in block.updates} & set(block.deletions)
    seen = [f"0x{key.hex()} of {publisher}" for publisher, key in sorted(both)]
    yield Check("no key is delivered and told as deleted in one block", not both, seen)


def wasm_block_checks(fact: WasmBlockBuilt) -> Iterator[Check]:
    """Check what every block must keep to."""
    block, header = fact.block, fact.block.header
    follows = (header.parent_hash, header.number) == (fact.parent.hash, fact.parent.number + 1)
    seen = f"block {header.number} on 0x{header.parent_hash.hex()}, its parent is block {fact.parent.number}"
    yield Check("a Wasm parachain's block follows on the one before", follows, seen)
    roots = set(map(blake2_256, block.relay_proof.nodes))
    told = fact.relay_parent.state_root in roots
    yield Check("a Wasm parachain's relay proof has its relay parent's state root", told, f"{len(roots)} other nodes")
    if len(block.own_proof):
        own = set(map(blake2_256, block.own_proof.nodes))
        told = fact.parent.state_root in own
        yield Check(
            "a Wasm parachain's own proof has the state root of the block before", told, f"{len(own)} other nodes"
        )
    shared = sum(share.proof_bytes for share in block.shares)
    seen = f"{shared} of {block.own_proof.proof_bytes} bytes"
    yield Check(
        "every byte of a Wasm parachain's own proof has a storage item", shared == block.own_proof.proof_bytes, seen
    )
    yield Check("every extrinsic has a result", len(block.results) == len(block.extrinsics), f"{len(block.results)}")
