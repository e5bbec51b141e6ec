"""Everything that can be chosen by name: policies, budgets, limits of a relay chain, grounds of a prediction.

Where a network or a prediction takes one of these, the object and its name do the same; a name that is not known is
a ``ValueError`` with the nearest.

>>> policies_of({"cache": "none", "order": "numeric"}).cache
NoCache()
>>> budget_of("floor:65536")
Floor(minimum_bytes=65536, inner=Remaining(percent=85, limit_bytes=None))
>>> broadcaster_of("rococo").max_stored_keys
100
>>> sorted(NAMES["cache"])
['none', 'structure']
"""

from collections.abc import Mapping

from msgspec.structs import replace

from relaycast.predict.ground import BARE, GROUNDS, KUSAMA, MODELLED, Ground
from relaycast.refusal import BadInput, nearest
from relaycast.scenario.policy_choice import KINDS, PolicyTable, check_policies, walked_plainly
from relaycast.scenario.policy_choice import budget_of as _budget_of
from relaycast.scenario.policy_choice import policies_of as _policies_of
from relaycast_pallets.broadcaster.config import DRAFT_MOCK, POLKADOT, PRESETS, ROCOCO, SPEC, BroadcasterConfig
from relaycast_pallets.broadcaster.storage import INFINITE
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy, CumulusSixths, Floor, Remaining
from relaycast_pallets.subscriber.policies import (
    MAX_NODE_BYTES,
    ChangedKeys,
    EveryRead,
    IgnoreDeletions,
    Policies,
    StructureNodes,
    SystemFirstShuffled,
    WhenPublisherDone,
)
from relaycast_pallets.subscriber.variants.deletions import NotifyDeletions
from relaycast_pallets.subscriber.variants.drafts import (
    AfterFirstKey,
    AllKeysOnChange,
    ForgetUnchanged,
    NoCache,
    SystemFirstNumeric,
    ValuesOnly,
)

__all__ = [
    "BARE",
    "DRAFT_MOCK",
    "GROUNDS",
    "INFINITE",
    "KUSAMA",
    "MAX_NODE_BYTES",
    "MODELLED",
    "NAMES",
    "POLKADOT",
    "ROCOCO",
    "SPEC",
    "AfterFirstKey",
    "AllKeysOnChange",
    "BroadcasterConfig",
    "BudgetPolicy",
    "ChangedKeys",
    "CumulusSixths",
    "EveryRead",
    "Floor",
    "ForgetUnchanged",
    "Ground",
    "IgnoreDeletions",
    "NoCache",
    "NotifyDeletions",
    "Policies",
    "Remaining",
    "StructureNodes",
    "SystemFirstNumeric",
    "SystemFirstShuffled",
    "ValuesOnly",
    "WhenPublisherDone",
    "broadcaster_of",
    "budget_of",
    "policies_of",
    "walked_plainly",
]

NAMES: Mapping[str, tuple[str, ...]] = {
    **{kind: tuple(choices) for kind, choices in KINDS.items()},
    "broadcaster": tuple(PRESETS),
    "ground": tuple(GROUNDS),
}
"""What there is of every kind."""


def policies_of(names: Mapping[str, str | int]) -> Policies:
    """Return the policies of these names by kind, the default of every other kind; ``ValueError`` for no such name.

    The kinds are those of a scenario's ``[policies]``, but for the budget, which goes its own way.
    """
    kinds = [kind for kind in (*KINDS, "max_cached_node") if kind != "budget"]
    for kind, name in names.items():
        if kind not in kinds:
            raise ValueError(f"{kind!r} is no kind of policy ({nearest(kind, kinds)})")
        wanted = int if kind == "max_cached_node" else str
        if type(name) is not wanted:
            raise ValueError(f"the {kind} policy is a {'number of bytes' if wanted is int else 'name'}, got {name!r}")
    table = replace(PolicyTable(), **names)
    if not 1 <= table.max_cached_node <= MAX_NODE_BYTES:
        raise ValueError(f"max_cached_node is from 1 to {MAX_NODE_BYTES}, got {table.max_cached_node}")
    return _policies_of(_checked(table))


def budget_of(name: str) -> BudgetPolicy:
    """Return the budget of this name, as ``remaining``, ``remaining:50``, ``cumulus`` or ``floor:65536``."""
    return _budget_of(_checked(PolicyTable(budget=name)), pov_percent=Remaining().percent)


def broadcaster_of(name: str) -> BroadcasterConfig:
    """Return the limits of this name; ``ValueError`` for no such name."""
    if name not in PRESETS:
        raise ValueError(f"{name!r} names no limits of a relay chain ({nearest(name, list(PRESETS))})")
    return PRESETS[name]


def _checked(table: PolicyTable) -> PolicyTable:
    try:
        check_policies(table, "policies")
    except BadInput as error:
        raise ValueError(str(error)) from None
    return table
