"""The headline experiments: what people ask about pub-sub, each a run, a table, a chart and one sentence.

``REGISTRY`` says what there is; a module is loaded when its experiment is asked for. Everything follows from a seed:
the same command gives the same bytes.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relaycast.experiments.experiment import Experiment

REGISTRY: Mapping[str, tuple[str, str]] = {
    "E1": ("e01_proof_bytes", "How many proof bytes does a key cost?"),
    "E4": ("e04_node_cache", "Does the node cache pay for its own place in the block?"),
    "E16": ("e16_lying_collators", "Which lies of a collator does the chain catch?"),
}
"""Module and question of every experiment, by its name."""


def load(name: str) -> "Experiment[Any]":
    """Return the experiment; ``KeyError`` for a name that is none."""
    module, _ = REGISTRY[name]
    experiment: Experiment[Any] = import_module(f"relaycast.experiments.{module}").EXPERIMENT
    return experiment
