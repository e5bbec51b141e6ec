"""What one publisher of a scenario sent, and what the relay chain took of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from relaycast.scenario.workload_dump import SendingsDump
from relaycast_collator import RelayBlock
from relaycast_ledger.run_statistics import GuestStatistics
from relaycast_pallets.broadcaster.events import DataPublished
from relaycast_xcm.ump import Processed


@dataclass(slots=True)
class Sendings:
    """Numbers of publications, and the bytes of their values; ``refused`` counts messages."""

    sent: int = 0
    published: int = 0
    refused: int = 0
    value_bytes: int = 0

    def dump(self, para_id: int) -> SendingsDump:
        """Return the numbers as data."""
        return SendingsDump(para_id, self.sent, self.published, self.refused, self.value_bytes)

    @classmethod
    def of_dump(cls, dump: SendingsDump) -> "Sendings":
        """Return the numbers that were put away."""
        return cls(dump.sent, dump.published, dump.refused, dump.value_bytes)


def count_block(block: RelayBlock, published: Mapping[int, Sendings], runtimes: Mapping[int, GuestStatistics]) -> None:
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
