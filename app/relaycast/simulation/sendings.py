"""What one publisher of a scenario sent, and what the relay chain took of it."""

from collections import Counter
from collections.abc import Mapping

from relaycast_collator import RelayBlock
from relaycast_ledger.run_statistics import WasmParachainStatistics
from relaycast_ledger.segments.simulated import PublisherCount
from relaycast_pallets.broadcaster.events import DataPublished
from relaycast_xcm.ump import Processed


def count_block(
    block: RelayBlock, published: Mapping[int, PublisherCount], runtimes: Mapping[int, WasmParachainStatistics]
) -> None:
    """Count publications and refusals in a relay block, of modelled publishers (``published``) and real runtimes."""
    counts = Counter(int(event.publisher) for event in block.events if isinstance(event, DataPublished))
    for para_id, count in counts.items():
        if para_id in runtimes:
            runtimes[para_id].published += count
        else:
            published[para_id].published += count
    for message in block.messages:
        if isinstance(message, Processed) and message.success:
            continue
        origin = int(message.origin)
        if origin in runtimes:
            runtimes[origin].refused_messages += 1
        else:
            published[origin].refused += 1
