"""A chart as a value: what is drawn over what. ``chart_files`` makes pictures of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Mark = Literal["line", "bar", "cells"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction: the ``field`` of the points, its title with the unit, and for names their ``order``."""

    field: str
    title: str
    names: bool = False
    log: bool = False
    log_from_zero: bool = False
    """Logarithmic but near 0, which has a place of its own."""

    order: tuple[str, ...] = ()
    zero: bool = True
    percent: bool = False
    angle: int = 0
    """Angle of names, in degrees: long ones need room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Points and how they are drawn: a colour, a dash and a panel for each value of these fields.

    ``rules`` are horizontal lines at fixed heights, each with its label.
    """

    title: str
    mark: Mark
    x: Axis
    y: Axis
    points: Sequence[dict[str, Any]]
    colour: Axis | None = None
    dash: Axis | None = None
    panel: Axis | None = None
    nested: bool = False
    """Whether lines may coincide: each later one is thinner, so that none hides another."""

    rules: Sequence[tuple[float, str]] = ()
    width: int = 420
    height: int = 260
