"""The headline experiments: what people ask about pub-sub, each a run, a table, a chart and one sentence.

A module ``eNN_...`` in this folder with an ``EXPERIMENT`` is one; it is loaded when it is asked for. Everything follows
from a seed: the same command gives the same bytes.
"""

import ast
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relaycast.experiments.experiment import Experiment

REGISTRY: Mapping[str, str] = {
    f"E{int(module.name[1:3])}": module.name for module in iter_modules(__path__) if module.name[1:3].isdecimal()
}
"""The module of every experiment, by its name: ``e07_system_first`` is E7."""


def load(name: str) -> "Experiment[Any]":
    """Return the experiment; ``KeyError`` for a name that is none."""
    experiment: Experiment[Any] = import_module(f"relaycast.experiments.{REGISTRY[name]}").EXPERIMENT
    return experiment


def questions() -> dict[str, str]:
    """Return the question of every experiment, read from its source: none of them is loaded, nor what they load."""
    return {name: _question(Path(__file__).with_name(f"{module}.py")) for name, module in REGISTRY.items()}


def _question(file: Path) -> str:
    given = (
        it.value
        for it in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(it, ast.keyword) and it.arg == "question"
    )
    question: str = ast.literal_eval(next(given))
    return question
