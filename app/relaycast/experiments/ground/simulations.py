"""Scenarios run for their records alone: the network that ``relaycast run`` builds, without its files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from relaycast.network import Network
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.simulation import Simulation
from relaycast_ledger import Accounts, BlockRecord
from relaycast_ledger.outcome import rank
from relaycast_xcm import ParaId


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The blocks of all subscribers, and the network as they leave it."""

    records: list[BlockRecord]
    network: Network

    def of(self, para_id: int, *, after: int = 0) -> list[BlockRecord]:
        """Return the blocks of one subscriber, those after block ``after``."""
        wanted = ParaId(para_id)
        return [record for record in self.records if record.para_id == wanted and record.tick > after]


def simulated(scenario: Scenario, *, accounting: bool = False) -> RecordedRun:
    """Run ``scenario``; an ``AssertionError`` when an invariant did not hold."""
    simulation = Simulation.prepare(scenario)
    if accounting:
        simulation.network.ledger.accounts = Accounts.BY_PUBLISHER
    records = [record for passed in simulation.blocks() for record in passed.records]
    check(simulation.network)
    return RecordedRun(records, simulation.network)


def check(network: Network) -> None:
    """Raise ``AssertionError`` when an invariant did not hold: no figure comes from a broken run."""
    invariants = network.ledger.invariants
    assert invariants.ok, invariants.violations[0]


def mean(values: Iterable[int], *, digits: int = 1) -> float:
    """Return the mean, rounded; 0 of nothing."""
    given = list(values)
    return round(float(Fraction(sum(given), len(given))), digits) if given else 0.0


def percentile(values: Iterable[int], percent: int) -> int | None:
    """Return the value that ``percent`` of all do not exceed, by nearest rank; ``None`` of nothing."""
    ordered = sorted(values)
    return rank(ordered, percent) if ordered else None


def crossing(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the first x, between points by a straight line, at which y comes down to 0; ``None`` where it stays up."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if y0 > 0 >= y1:
            return x0 + (x1 - x0) * y0 / (y0 - y1)
    return None
