"""Start-up: the blocks of a chart that percentiles leave out, by default those of the first delivery.

Law: start-up ends where steady operation begins, so a run that never leaves it has none that could be set apart.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from relaycast_ledger.outcome import Outcome, Point


class StartUp(NamedTuple):
    """Relay blocks of a chart that are shaded; ``end`` is the first one behind them."""

    first: int
    end: int


def start_up(run: Outcome) -> StartUp | None:
    """Return the start-up of all readers together, None if there is none to set apart."""
    return _together(run.series.values())


def start_up_of(points: Sequence[Point]) -> StartUp | None:
    """Return the start-up of one reader, None if there is none to set apart."""
    return _together([points])


def _together(series: Iterable[Sequence[Point]]) -> StartUp | None:
    shown = [points for points in series if points]
    ends = [end for points in shown if (end := _end(points)) is not None]
    last = max((points[-1].block for points in shown), default=0)
    if not ends or max(ends) > last:
        return None
    return StartUp(min(points[0].block for points in shown), max(ends))


def _end(points: Sequence[Point]) -> int | None:
    """Return the first relay block after the warm-up, ``None`` if nothing is delivered."""
    delivers = any(point.callbacks for point in points)
    return next((it.block for it in points if not it.warm_up), points[-1].block + 1) if delivers else None
