"""What a publisher, a subscriber and recorded publications came to, out of what was counted of them."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from relaycast.predict.closed_forms import value_sizes
from relaycast.scenario.files import lifted_limits
from relaycast.scenario.scenario import ParachainTable, RelayChainTable
from relaycast.simulation.sources import Sources
from relaycast.simulation.wasm_sources import loaded
from relaycast_collator.relay_chain import RelayChain
from relaycast_ledger.outcome import (
    PublisherCost,
    PublisherOutcome,
    RecordedOutcome,
    RelayOutcome,
    SubscriberOutcome,
    share,
)
from relaycast_ledger.record_fields import taken
from relaycast_ledger.run_statistics import SubscriberStatistics
from relaycast_ledger.segments.simulated import PublisherCount
from relaycast_pallets.broadcaster.storage import derive_child_info
from relaycast_pallets.subscriber.config import budget_for_any_key
from relaycast_pallets.subscriber.pallet import Subscriber
from relaycast_xcm import ParaId

if TYPE_CHECKING:
    from relaycast.scenario.recording import Recording


MODELLED_GENESIS = "modelled"


def publisher_outcome(
    chain: ParachainTable, counts: PublisherCount, *, keys: int, spent_planck: int | msgspec.UnsetType
) -> PublisherOutcome:
    """Return what a publisher of ``keys`` sent, and what became of it."""
    return PublisherOutcome(
        para_id=chain.id,
        name=chain.name,
        keys=keys,
        sent=counts.sent,
        published=counts.published,
        refused_messages=counts.refused,
        value_bytes=counts.value_bytes,
        sizes=[] if chain.publish is None else value_sizes(chain.publish.value_bytes),
        spent_planck=spent_planck,
    )


def relay_outcome(chain: RelayChain, table: RelayChainTable, sources: Sources, *, entries: int) -> RelayOutcome:
    """Return the relay chain's first state, with its number of ``entries``, and its last."""
    runtime = None if sources.relay_code is None else loaded(sources.relay_code, str(table.wasm)).version
    return RelayOutcome(
        genesis=MODELLED_GENESIS if sources.spec is None else sources.spec.name,
        genesis_entries=entries,
        genesis_root=f"0x{chain.genesis_root.hex()}",
        state_root=f"0x{chain.head.state_root.hex()}",
        allowed_pov_bytes=table.allowed_pov_bytes,
        max_pov_bytes=table.max_pov_bytes,
        runtime=msgspec.UNSET if runtime is None else f"{runtime.spec_name} {runtime.spec_version}",
        lifted=lifted_limits(table) or msgspec.UNSET,
    )


def recorded_outcome(recording: "Recording") -> RecordedOutcome:
    """Return which recorded publications were played."""
    return RecordedOutcome(
        file=Path(recording.path).name,
        rows=recording.rows,
        last_block=recording.last_block,
        digest=f"0x{recording.digest.hex()}",
    )


def bytes_for_any_key(relay: RelayChain, subscriber: Subscriber, publishers: Iterable[int]) -> int:
    """Return the budget that holds any key of these publishers, on the relay chain as it is now."""
    state, most = relay.state, subscriber.config.min_weight.proof_size
    keys = [derive_child_info(ParaId(para_id)).prefixed_storage_key() for para_id in publishers]
    ways = [state.prove_read(state.root, [key]).nodes for key in keys]
    longest = max((sum(min(len(node), most) for node in nodes) for nodes in ways), default=0)
    return budget_for_any_key(subscriber.config, top_path_bytes=longest)


def subscriber_outcome(
    chain: ParachainTable,
    it: SubscriberStatistics,
    *,
    keys: int,
    publishers: list[PublisherCost],
    max_pov_bytes: int,
    message_free_bytes: int,
    any_key_bytes: int,
) -> SubscriberOutcome:
    """Return what a subscriber to ``keys`` paid, and what it got."""
    allowed = partial(share, allowed=max_pov_bytes)
    return taken(
        SubscriberOutcome,
        it,
        para_id=chain.id,
        name=chain.name,
        keys=keys,
        pov_share=allowed(it.pov_bytes),
        compressed_share=allowed(it.compressed_bytes),
        pov_parts={part: allowed(sizes) for part, sizes in it.pov_parts.items()},
        message_free_bytes=message_free_bytes,
        any_key_bytes=any_key_bytes,
        uncharged=sorted(it.uncharged.values(), key=lambda it: (-it.excess_bytes, it.name)),
        publishers=publishers,
        callback_load=it.callback_load(chain.callback_limit),
        deletions=it.deletions or msgspec.UNSET,
        starvation=it.starvation or msgspec.UNSET,
    )
