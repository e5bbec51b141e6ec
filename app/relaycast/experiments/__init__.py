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
    "E2": ("e02_keys_in_a_budget", "How many keys fit a budget?"),
    "E3": ("e03_update_rate", "How many updates can be kept up?"),
    "E4": ("e04_node_cache", "Does the node cache pay for its own place in the block?"),
    "E5": ("e05_starvation", "What does message load leave of pub-sub?"),
    "E6": ("e06_cursor_fairness", "Does the cursor treat publishers alike?"),
    "E7": ("e07_system_first", "What is it worth to be a system parachain?"),
    "E8": ("e08_heartbeat", "What does it cost to publish the same value again?"),
    "E9": ("e09_depth", "How deep are tries, and how cheaply are they made deeper?"),
    "E10": ("e10_ttl", "What does expiry cost, and how late does it come?"),
    "E11": ("e11_latency", "How long does a value take?"),
    "E12": ("e12_conflation", "How many values are overtaken before they are seen?"),
    "E13": ("e13_hrmp_fan_out", "Is pub-sub cheaper than a message to everyone?"),
    "E14": ("e14_encodings", "What would other encodings save?"),
    "E15": ("e15_metered_weight", "Does the meter charge what a block carries?"),
    "E16": ("e16_lying_collators", "Which lies of a collator does the chain catch?"),
    "E17": ("e17_spark_scaling", "What does a second core give?"),
}
"""Module and question of every experiment, by its name."""


def load(name: str) -> "Experiment[Any]":
    """Return the experiment; ``KeyError`` for a name that is none."""
    module, _ = REGISTRY[name]
    experiment: Experiment[Any] = import_module(f"relaycast.experiments.{module}").EXPERIMENT
    return experiment
