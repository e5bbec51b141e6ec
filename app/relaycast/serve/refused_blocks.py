"""Lines of the server's log about parachain blocks that were refused or never built."""

import logging

from relaycast_collator import BlockPanicked, Fact, WasmBlockRefused
from relaycast_node.line_rate import LineRate
from relaycast_xcm import ParaId

LONGEST_REASON = 300

log = logging.getLogger(__name__)
log.addFilter(LineRate())


class RefusedBlocks:
    """Logs each block that a parachain or the relay chain refused, or in which its runtime panicked.

    A block refused again for the same reason is logged once.
    """

    def __init__(self) -> None:
        self._last: dict[ParaId, tuple[int, str]] = {}

    def on_fact(self, fact: Fact) -> None:
        """Log one line for a refused block; other facts are ignored."""
        if not isinstance(fact, BlockPanicked | WasmBlockRefused):
            return
        refused = fact.head.number + 1, " ".join(fact.reason.split())[:LONGEST_REASON]
        if self._last.get(fact.para_id) != refused:
            self._last[fact.para_id] = refused
            number, reason = refused
            log.warning(
                "parachain %d has no block %d on relay block %d: %s",
                fact.para_id,
                number,
                fact.relay_parent.number,
                reason,
            )
