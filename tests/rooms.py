"""The rooms of the house, as ``tool.relaycast`` in ``pyproject.toml`` lists them for every check."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())

SLOPE: tuple[tuple[str, ...], ...] = tuple(map(tuple, PROJECT["tool"]["relaycast"]["slope"]))
"""From the lowest step to the highest. A room imports from itself and from lower steps, not from its own step."""

ROOMS = tuple(room for step in SLOPE for room in step)

PACKAGES = {room: "relaycast" if room == "app" else f"relaycast_{room}" for room in ROOMS}
"""The import package in each room."""


def closed_to(room: str) -> set[str]:
    """Return the packages that ``room`` must not import: those of higher steps, and its neighbours' on its own."""
    (step,) = (number for number, rooms in enumerate(SLOPE) if room in rooms)
    return {PACKAGES[other] for rooms in SLOPE[step:] for other in rooms} - {PACKAGES[room]}
