"""Ids of events as runs with a constant step: what was handed over, and must not be handed over again.

Law: ``has`` is exact for every id that is kept. Ids of a run have one distance, so that a publisher's ids, or every
fifth of them, take one run however many they are. Beyond ``most_runs`` the runs that end lowest are forgotten, and
``floor`` is the highest id that went with them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from relaycast_gateway import crockford

MOST_RUNS = 4_096
SHARE_FORGOTTEN = 4
"""Runs for each one that is dropped at once when there are too many; dropping one at a time would look at all."""

RunDump = tuple[str, str, str]
"""First id, step and last id, as Crockford Base32: ids may be of any size."""


@dataclass(slots=True, eq=False)
class _Run:
    first: int
    step: int
    """0 for a run of one id."""

    last: int

    def __contains__(self, number: int) -> bool:
        if not self.step:
            return number == self.first
        return self.first <= number <= self.last and (number - self.first) % self.step == 0


class IdRuns:
    """A set of natural numbers.

    >>> ids = IdRuns()
    >>> for number in (5, 10, 15, 20):
    ...     ids.add(number)
    >>> ids.has(15), ids.has(16), ids.dump()
    (True, False, [('5', '5', 'M')])
    """

    def __init__(self, runs: Iterable[RunDump] = (), *, floor: int = -1, most_runs: int = MOST_RUNS) -> None:
        self.floor = floor
        """The highest id that was forgotten, -1 before."""

        self._most_runs = most_runs
        self._runs: dict[int, _Run] = {}
        """By first id, in the order in which they began."""

        self._by_next: dict[int, _Run] = {}
        """By the id that continues the run."""

        self._newest: _Run | None = None
        """The newest run if it has one id: the next id gives it a step."""

        for first, step, last in runs:
            self._keep(_Run(crockford.decode(first), crockford.decode(step), crockford.decode(last)))
        self._highest = max((run.last for run in self._runs.values()), default=-1)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    def has(self, number: int) -> bool:
        """Return whether an id is in the set; an id that was forgotten is not."""
        return number <= self._highest and any(number in run for run in self._runs.values())

    def add(self, number: int) -> None:
        """Add an id that is not in the set."""
        self._highest = max(self._highest, number)
        run = self._by_next.pop(number, None)
        if run is not None:
            run.last = number
            self._join(run)
        elif self._newest is not None and number > self._newest.first:
            run, self._newest = self._newest, None
            run.step, run.last = number - run.first, number
            self._join(run)
        else:
            self._newest = _Run(number, 0, number)
            self._keep(self._newest)
            if len(self._runs) > self._most_runs:
                self._forget()

    def dump(self) -> list[RunDump]:
        """Return the runs in plain form: ``IdRuns(dump)`` is the same set."""
        return [
            (crockford.encode(run.first), crockford.encode(run.step), crockford.encode(run.last))
            for run in self._runs.values()
        ]

    def _keep(self, run: _Run) -> None:
        self._runs[run.first] = run
        if run.step:
            self._by_next[run.last + run.step] = run

    def _join(self, run: _Run) -> None:
        """Note how ``run`` goes on, and take in the run that begins there."""
        after = self._runs.get(run.last + run.step)
        if after is not None and after.step in (0, run.step):
            del self._runs[after.first]
            if after is self._newest:
                self._newest = None
            if self._by_next.get(after.last + after.step) is after:
                del self._by_next[after.last + after.step]
            run.last = after.last
        self._by_next[run.last + run.step] = run

    def _forget(self) -> None:
        lowest = sorted(self._runs.values(), key=lambda run: run.last)[: max(1, self._most_runs // SHARE_FORGOTTEN)]
        self.floor = max(self.floor, lowest[-1].last)
        for run in lowest:
            del self._runs[run.first]
            if self._by_next.get(run.last + run.step) is run:
                del self._by_next[run.last + run.step]
            if run is self._newest:
                self._newest = None
