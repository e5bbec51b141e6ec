"""Attacks on a running network, seeded and in seconds: what they cost, whom they harm, what catches them.

* ``spam`` floods the relay chain with messages.
* ``depth`` publishes under crafted keys.
* ``churn`` adds and removes keys beside subscribed ones.
* ``callbacks`` makes a reader's callbacks take long.
* ``squat`` registers a parachain that belongs to others.
* ``omit`` and ``extra`` are collators that lie about the relay chain's state and about messages.
* ``price`` (a folder) measures the cost of each to the attacker, beside its harm.

Each returns a report that prints, compares and encodes to JSON.
"""

from relaycast.attacks.bystander import Bystander, Carried, Service
from relaycast.attacks.churned_paths import ChurnReport, churn
from relaycast.attacks.deep_paths import DepthReport, depth
from relaycast.attacks.heavy_callbacks import CallbackReport, TimeTaken, callbacks
from relaycast.attacks.lying_collator import LieReport, LieRow, extra, omit
from relaycast.attacks.message_flood import FloodBlock, SpamReport, spam
from relaycast.attacks.squatted_ids import SquatReport, SquatRow, squat
from relaycast.scenario.workload import crafted_keys

__all__ = [
    "Bystander",
    "CallbackReport",
    "Carried",
    "ChurnReport",
    "DepthReport",
    "FloodBlock",
    "LieReport",
    "LieRow",
    "Service",
    "SpamReport",
    "SquatReport",
    "SquatRow",
    "TimeTaken",
    "callbacks",
    "churn",
    "crafted_keys",
    "depth",
    "extra",
    "omit",
    "spam",
    "squat",
]
