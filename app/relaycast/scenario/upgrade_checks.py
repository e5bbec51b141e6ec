"""Checks of a scenario's runtime upgrades against each other and the rest of the scenario."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from relaycast.refusal import BadInput
from relaycast.scenario.policy_choice import PolicyTable, check_policies
from relaycast.scenario.scenario import ParachainTable, RelayChainTable, Scenario, upgraded_subscriptions
from relaycast.scenario.upgrade_tables import PolicyChange, RelayUpgradeTable, UpgradeTable, given


class _Bound(Struct, frozen=True):
    """The longest value from a relay block on; ``place`` is where the scenario says so."""

    at: int
    bytes: int
    place: str


def check_upgrades(scenario: Scenario, place: str) -> None:
    """Raise ``BadInput`` if upgrades are out of order, change nothing, name no policy, or expect too short values.

    What upgrades subscribe to is checked with the other subscriptions.
    """
    relay = scenario.relaychain
    _check_order(relay.upgrades or [], f"{place} at relaychain.upgrades")
    published = _bounds(relay.upgrades or [], relay, place, f"{place} at relaychain")
    for index, chain in enumerate(scenario.parachains):
        here = f"{place} at parachains[{index}]"
        _check_order(chain.upgrades or [], f"{here}.upgrades")
        for number, upgrade in enumerate(chain.upgrades or []):
            if isinstance(upgrade.policies, PolicyChange):
                check_policies(upgrade.policies.over(scenario.policies), f"{here}.upgrades[{number}].policies")
        if chain.reads:
            _check_bounds(_bounds(chain.upgrades or [], relay, place, here), published, chain)


def policies_over_time(chain: ParachainTable, table: PolicyTable) -> Iterator[tuple[int, PolicyTable]]:
    """Yield the policies of a parachain with the relay block from which each table holds; ``table`` is the first."""
    yield 0, table
    for upgrade in chain.upgrades or []:
        if isinstance(upgrade.policies, PolicyChange):
            table = upgrade.policies.over(table)
            yield upgrade.at, table


LIMITS = ("max_publishers", "max_subscribed_keys", "max_total_keys", "max_cached_bytes")
"""Limits of what a parachain reads and keeps, which upgrades may set."""


def readers_over_time(chain: ParachainTable, place: str) -> Iterator[tuple[str, ParachainTable]]:
    """Yield a parachain's subscriptions and limits, at first and after each upgrade that changes them."""
    yield place, chain
    replaced = upgraded_subscriptions(chain)
    for number, upgrade in enumerate(chain.upgrades or []):
        changes = {name: value for name, value in given(upgrade).items() if name in LIMITS}
        if upgrade.at in replaced:
            changes["subscribe"] = replaced[upgrade.at]
        if changes:
            chain = replace(chain, **changes)
            yield f"{place}.upgrades[{number}]", chain


def most_generous(relay: RelayChainTable) -> RelayChainTable:
    """Return the relay chain's table with the highest value of each limit over time."""
    limits: dict[str, int] = {}
    for upgrade in relay.upgrades or []:
        for name, value in given(upgrade).items():
            first = getattr(relay, name, 0)
            if isinstance(first, int):  # there may be no limit at first
                limits[name] = max(value, limits.get(name, first))
    limits.pop("at", None)
    return replace(relay, **limits)


def _check_order(upgrades: Sequence[UpgradeTable | RelayUpgradeTable], place: str) -> None:
    last = 0
    for number, upgrade in enumerate(upgrades):
        if upgrade.at <= last:
            raise BadInput(
                f"{place}[{number}].at", str(upgrade.at), f"a block after that of the upgrade before, {last}"
            )
        changes = [name for name in type(upgrade).__struct_fields__ if name != "at"]
        if len(given(upgrade)) == 1:
            raise BadInput(f"{place}[{number}]", "an upgrade that changes nothing", f"one of {', '.join(changes)}")
        last = upgrade.at


def _bounds(
    upgrades: Sequence[UpgradeTable | RelayUpgradeTable], relay: RelayChainTable, place: str, here: str
) -> list[_Bound]:
    bounds = [_Bound(0, relay.max_value_bytes, f"{place} at relaychain.max_value_bytes")]
    for number, upgrade in enumerate(upgrades):
        if isinstance(upgrade.max_value_bytes, int):
            named = f"{here}.upgrades[{number}].max_value_bytes"
            bounds.append(_Bound(upgrade.at, upgrade.max_value_bytes, named))
    return bounds


def _check_bounds(expected: list[_Bound], published: list[_Bound], chain: ParachainTable) -> None:
    for block in sorted({it.at for it in (*expected, *published)}):
        bound = [it for it in expected if it.at <= block][-1]
        allowed = [it for it in published if it.at <= block][-1]
        if bound.bytes < allowed.bytes:
            from_then = f"from relay block {block} on"
            if allowed.at > bound.at:
                expected_text = (
                    f"at most {bound.bytes}, the longest value that parachain {chain.id} expects {from_then}"
                )
                raise BadInput(allowed.place, str(allowed.bytes), expected_text)
            expected_text = f"at least {allowed.bytes}, the longest value that may be published {from_then}"
            raise BadInput(bound.place, str(bound.bytes), expected_text)
