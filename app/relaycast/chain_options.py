"""Options of a parachain as ``rc.Network`` takes them: objects or their names, checked before a chain is touched."""

from collections.abc import Mapping
from typing import Any

from relaycast.choices import budget_of, policies_of
from relaycast.feed import described, whole_number
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber.policies import Policies


def chain_options(
    policies: Policies | Mapping[str, str | int] | None, budget: BudgetPolicy | str | None, max_pov_bytes: int | None
) -> dict[str, Any]:
    """Return the given options as a new parachain takes them."""
    if isinstance(policies, Mapping):
        policies = policies_of(policies)
    if isinstance(budget, str):
        budget = budget_of(budget)
    if not isinstance(policies, Policies | None):
        raise TypeError(f"policies are Policies(..), got {described(policies)}")
    if budget is not None and not callable(getattr(budget, "share_out", None)):
        raise TypeError(f"a budget shares out a block, as Remaining() does, got {described(budget)}")
    if max_pov_bytes is not None and whole_number(max_pov_bytes, "max_pov_bytes") < 1:
        raise ValueError(f"max_pov_bytes is at least 1, got {max_pov_bytes}")
    given = {"policies": policies, "budget": budget, "max_pov_size": max_pov_bytes}
    return {name: value for name, value in given.items() if value is not None}
