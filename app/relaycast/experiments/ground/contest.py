"""Several publishers and one reader whose budget is short: who gets what, and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaycast.experiments.ground.feeds import READER
from relaycast.experiments.ground.simulations import RecordedRun, mean, percentile, simulated
from relaycast.scenario.policy_choice import PolicyTable
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast_ledger import BlockRecord, Delivery

WARM_UP = 8
"""Blocks before the figures begin: all values are there by then."""

LEAST_POV_BYTES = 4_096
"""Smallest ``pov_bytes`` of a scenario."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Publishers by id with their keys, all of which are new in every ``every``-th block."""

    publishers: Mapping[int, int]
    value_bytes: int
    seed: int
    every: int = 1
    blocks: int = 40
    relay_blocks_per_block: int = 1
    relay_parent_offset: int = 0
    """The pace of all parachains."""

    def demand(self) -> int:
        """Return the bytes that the meter charges for a block that brings everything, nothing being short."""
        records = self._run(1 << 24, PolicyTable(), blocks=WARM_UP + 2 * self.every).of(READER, after=WARM_UP)
        return max(record.consumed.proof_size for record in records)

    def run(self, budget_bytes: int, policies: PolicyTable) -> "ReaderBlocks":
        """Let the reader have ``budget_bytes`` a block, not less than a scenario takes."""
        assert budget_bytes >= LEAST_POV_BYTES, f"a budget of {budget_bytes} bytes"
        run = self._run(budget_bytes, policies, blocks=WARM_UP + self.blocks)
        return ReaderBlocks(run.of(READER, after=WARM_UP))

    def _run(self, budget_bytes: int, policies: PolicyTable, *, blocks: int) -> RecordedRun:
        chains = [
            self._chain(para_id, publish=PublishTable(keys=keys, value_bytes=self.value_bytes, every=self.every))
            for para_id, keys in self.publishers.items()
        ]
        reader = self._chain(READER, subscribe=[SubscriptionTable(publisher=para_id) for para_id in self.publishers])
        relay = RelayChainTable(max_pov_bytes=budget_bytes, pov_percent=100)
        scenario = Scenario(
            parachains=[*chains, reader], seed=self.seed, blocks=blocks, relaychain=relay, policies=policies
        )
        return simulated(scenario)

    def _chain(
        self, para_id: int, *, publish: PublishTable | None = None, subscribe: Sequence[SubscriptionTable] = ()
    ) -> ParachainTable:
        return ParachainTable(
            id=para_id,
            publish=publish,
            subscribe=list(subscribe),
            relay_blocks_per_block=self.relay_blocks_per_block,
            relay_parent_offset=self.relay_parent_offset,
        )


@dataclass(frozen=True, slots=True)
class ReaderBlocks:
    """The reader's blocks."""

    records: list[BlockRecord]

    def of(self, *publishers: int) -> list[Delivery]:
        """Return what was delivered of these publishers."""
        return [it for record in self.records for it in record.deliveries if it.publisher in publishers]

    @property
    def complete_share(self) -> float:
        """Blocks that dealt with everything."""
        return round(sum(record.complete for record in self.records) / len(self.records), 4)


def mean_latency(deliveries: list[Delivery]) -> float | None:
    """Return the mean of blocks from publication to callback, ``None`` of nothing."""
    return mean((it.latency_blocks for it in deliveries), digits=2) if deliveries else None


def p99_latency(deliveries: list[Delivery]) -> int | None:
    """Return the latency that 99 of 100 values do not exceed, ``None`` of nothing."""
    return percentile((it.latency_blocks for it in deliveries), 99)


def fairness(shares: list[int]) -> float:
    """Return Jain's index: 1 when all get the same, 1/n when one gets all."""
    squares = len(shares) * sum(share * share for share in shares)
    return round(sum(shares) ** 2 / squares, 4) if squares else 1.0
