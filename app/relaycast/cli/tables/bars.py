"""Progress of work in stages: bars with rows, rate and time left on a terminal, plain lines elsewhere."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from relaycast.terminal import is_hushed, shows_progress
from relaycast_ledger.segments.simulated import Progress, Unseen

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

SECONDS_A_LINE = 10.0
"""Plain lines come no more often than this, but for the last of each stage."""


@contextmanager
def stage_progress() -> Iterator[Progress]:
    """Give what shows stages on standard error for a while."""
    if not shows_progress():
        yield Unseen() if is_hushed() else Lines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    from relaycast.terminal import console  # noqa: PLC0415

    columns = (
        TextColumn("{task.description:>12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console(stderr=True), transient=True) as bars:
        yield _Bars(bars)


class _Bars:
    """One bar a stage."""

    def __init__(self, bars: "RichProgress") -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        self._tasks[stage] = self._bars.add_task(stage, total=total, completed=done, unit=unit, rate="")

    def advance(self, stage: str, rows: int) -> None:
        number = self._tasks[stage]
        self._bars.advance(number, rows)
        speed = self._bars.tasks[number].speed
        self._bars.update(number, rate=f"{speed:,.0f}/s" if speed else "")


class Lines:
    """A line for a stage from time to time, and one when it is done."""

    def __init__(self) -> None:
        self._stages: dict[str, _Stage] = {}
        self._lock = threading.Lock()

    def begin(self, stage: str, total: int, *, done: int = 0, unit: str = "blocks") -> None:
        """Start to count a stage."""
        now = monotonic()
        self._stages[stage] = _Stage(stage, total, done, done, unit, now, now)
        if done:
            print(f"relaycast: {stage} goes on after {done:,} of {total:,} {unit}", file=sys.stderr, flush=True)

    def advance(self, stage: str, rows: int) -> None:
        """Count rows in."""
        with self._lock:
            line = self._stages[stage].advance(rows, monotonic())
        if line is not None:
            print(line, file=sys.stderr, flush=True)


class _Stage:
    """How far one stage is."""

    def __init__(self, name: str, total: int, done: int, before: int, unit: str, began: float, told: float) -> None:
        self.name, self.total, self.done, self.before, self.unit = name, total, done, before, unit
        self.began, self.told = began, told

    def advance(self, rows: int, now: float) -> str | None:
        """Count ``rows`` in and return a line when one is due."""
        self.done += rows
        if self.done < self.total and now - self.told < SECONDS_A_LINE:
            return None
        self.told = now
        rate = (self.done - self.before) / max(now - self.began, 1e-3)
        line = f"relaycast: {self.name} {self.done:,} of {self.total:,} {self.unit}, {rate:,.0f}/s"
        left = (self.total - self.done) / rate if rate else 0.0
        return f"{line}, {left:,.0f} s left" if self.done < self.total else line
