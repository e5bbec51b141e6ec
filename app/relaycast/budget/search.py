"""The smallest budget with which a scenario delivers everything, by bisection over runs.

Law: every figure is measured. Each budget is a whole run of the scenario, which continues until all readers have caught
up, or for so long that they never will. More budget is taken to serve no worse; the curve shows every run, so that it
can be seen where it does.
"""

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from relaycast.compare.comparison import Design, measure
from relaycast.scenario.scenario import Scenario
from relaycast.simulation.sources import Sources
from relaycast_trie.engine import Engine

PRECISION = 0.01
"""Part of a budget up to which the smallest one is found."""

SMALLEST_STEP = 16
"""Bytes between budgets that are told apart."""

CURVE_POINTS = 5
"""Budgets between the smallest and the largest that are tried for the curve alone, each the same factor apart."""

SETTLING_BLOCKS = 40
"""Relay blocks after the scenario's in which readers catch up; who takes longer is said to lose values."""

Tried = Callable[[int], None]
"""Told the number of runs that are done."""


class BudgetPoint(Struct, frozen=True, kw_only=True):
    """What one budget comes to: values of all readers together."""

    budget_bytes: int
    """Bytes that messages and pub-sub share in a block."""

    callbacks: int
    overtaken: int
    """Values that a later one replaced, or that expired, before a reader could see them."""

    lost: int
    """Values that were lost, or that have not arrived when the network has come to rest."""

    incomplete_blocks: int
    latency_p99: int | None
    """Relay blocks from a publication to its delivery, the p99 of the slowest reader."""

    oversize_blocks: int


class BudgetCurve(Struct, frozen=True, kw_only=True):
    """The runs that were made, by their budget, and the smallest budgets that do."""

    name: str
    allowed_bytes: int
    """The scenario's own budget."""

    unavoidable: int
    """Values that are overtaken with the scenario's own budget as well: sent faster than blocks are built, or while
    messages filled them."""

    nothing_overtaken: int | None
    """The smallest budget tried with which no more is overtaken; ``None`` where the scenario's own is too small."""

    nothing_lost: int | None
    """The smallest budget tried with which nothing is lost; ``None`` where the scenario's own is too small."""

    points: list[BudgetPoint]

    @property
    def runs(self) -> int:
        """How many budgets were tried."""
        return len(self.points)


def find_budget(scenario: Scenario, *, tried: Tried | None = None, trie_engine: Engine = "auto") -> BudgetCurve:
    """Search for the smallest budgets of ``scenario``; raises ``BadInput`` as ``Simulation.prepare`` does."""
    sources = Sources.of(scenario.with_copies()).for_many_runs(scenario)
    measured = partial(
        measure, trie_engine=trie_engine, sources=sources, accounts=False, settling_blocks=SETTLING_BLOCKS
    )
    search = _Search(scenario, measured, tried)
    allowed = scenario.relaychain.allowed_pov_bytes
    whole = search.at(allowed)

    def is_in_time(point: BudgetPoint) -> bool:
        return search.loses_nothing(point) and point.overtaken <= whole.overtaken

    if not any(chain.messages for chain in scenario.parachains):
        search.at(min(allowed, max(SMALLEST_STEP, search.most_charged)))
    in_time = search.smallest(is_in_time, allowed)
    arriving = search.smallest(search.loses_nothing, allowed)
    for budget in _between(min(search.points), in_time or allowed):
        search.at(budget)
    return BudgetCurve(
        name=scenario.name,
        allowed_bytes=allowed,
        unavoidable=whole.overtaken,
        nothing_overtaken=in_time,
        nothing_lost=arriving,
        points=[search.points[budget] for budget in sorted(search.points)],
    )


class _Search:
    """Budgets that were tried, each once."""

    def __init__(self, scenario: Scenario, measured: Callable[[Scenario], Design], tried: Tried | None) -> None:
        self.points: dict[int, BudgetPoint] = {}
        self.most_charged = 0
        """The most that a pass was charged in any run: more budget serves no better, but for messages."""

        self._scenario, self._measured, self._tried = scenario, measured, tried

    def at(self, budget: int) -> BudgetPoint:
        """Return what ``budget`` bytes come to."""
        if budget not in self.points:
            policies = replace(self._scenario.policies, budget=f"remaining:{budget}B")
            design = self._measured(replace(self._scenario, policies=policies))
            charged = (it.charged_bytes_max for it in design.subscribers.values())
            self.most_charged = max(self.most_charged, *charged)
            self.points[budget] = _point(budget, design)
            if self._tried is not None:
                self._tried(len(self.points))
        return self.points[budget]

    def loses_nothing(self, point: BudgetPoint) -> bool:
        """Return whether nothing is lost with this budget."""
        return point.lost == 0

    def smallest(self, serves: Callable[[BudgetPoint], bool], most: int) -> int | None:
        """Return the smallest budget up to ``most`` that ``serves``, to ``PRECISION``; ``None`` where none does."""
        if not serves(self.at(most)):
            return None
        known = [budget for budget, point in self.points.items() if not serves(point)]
        good = min(budget for budget, point in self.points.items() if serves(point))
        bad = max((budget for budget in known if budget < good), default=0)
        while good - bad > max(SMALLEST_STEP, good * PRECISION):
            middle = (good + bad) // 2 if bad else good // 2
            if serves(self.at(middle)):
                good = middle
            else:
                bad = middle
        return good


def _between(low: int, high: int) -> Iterator[int]:
    """Yield budgets between the two, each the same factor apart."""
    factor = (high / low) ** (1 / (CURVE_POINTS + 1))
    yield from (round(low * factor**step) for step in range(1, CURVE_POINTS + 1))


def _point(budget: int, design: Design) -> BudgetPoint:
    readers = design.subscribers.values()
    p99s = [it.latency_blocks.p99 for it in readers if it.latency_blocks.p99 is not None]
    return BudgetPoint(
        budget_bytes=budget,
        callbacks=sum(it.callbacks for it in readers),
        overtaken=sum(it.conflated for it in readers),
        lost=sum(it.lost_updates + it.undelivered for it in readers),
        incomplete_blocks=sum(it.incomplete_blocks for it in readers),
        latency_p99=max(p99s, default=None),
        oversize_blocks=sum(it.oversize_blocks for it in readers),
    )
