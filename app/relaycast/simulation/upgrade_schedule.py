"""The runtime upgrades of a scenario, scheduled on its chains and listed in its outcome."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from relaycast.network import Network
from relaycast.scenario.policy_choice import PolicyTable, budget_of, policies_of
from relaycast.scenario.scenario import (
    ParachainTable,
    RelayChainTable,
    Scenario,
    SubscriptionTable,
    upgraded_subscriptions,
)
from relaycast.scenario.upgrade_tables import (
    BROADCASTER_CONSTANTS,
    SUBSCRIBER_CONSTANTS,
    KeysTable,
    PolicyChange,
    constants_of,
    given,
)
from relaycast.simulation.wanted_feeds import WantedFeeds
from relaycast.terminal import counted
from relaycast_collator import ParachainUpgrade, RelayUpgrade
from relaycast_ledger.outcome import UpgradeOutcome
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId


def schedule_upgrades(scenario: Scenario, network: Network, feeds: WantedFeeds) -> None:
    """Schedule the scenario's upgrades on the chains of ``network``."""
    relay = scenario.relaychain
    network.chains.upgrades.schedule(
        relay=[
            RelayUpgrade(at=it.at, constants=constants_of(it, BROADCASTER_CONSTANTS)) for it in relay.upgrades or []
        ],
        parachains={
            ParaId(chain.id): list(_upgrades(chain, scenario, network, feeds))
            for chain in scenario.parachains
            if chain.upgrades
        },
    )


def upgrade_outcomes(scenario: Scenario) -> list[UpgradeOutcome] | UnsetType:
    """Return a scenario's upgrades up to its last block; unset without any."""
    relay, last = scenario.relaychain, scenario.blocks
    chains: list[tuple[int | None, ParachainTable | RelayChainTable]] = [(None, relay)]
    chains += [(chain.id, chain) for chain in scenario.parachains]
    found = [
        UpgradeOutcome(at=at, para_id=para_id, changes=changes)
        for para_id, table in chains
        for at, changes in _changes(table, scenario)
        if at <= last
    ]
    return sorted(found, key=lambda it: it.at) or UNSET


def _upgrades(
    chain: ParachainTable, scenario: Scenario, network: Network, feeds: WantedFeeds
) -> Iterator[ParachainUpgrade]:
    table, relay, upgraded = scenario.policies, scenario.relaychain, feeds.upgraded(chain)
    told = upgraded_subscriptions(chain)
    network.name_feeds(feed for wanted in upgraded.values() for feeds in wanted.values() for feed in feeds)
    for upgrade in chain.upgrades or []:
        changed = isinstance(upgrade.policies, PolicyChange)
        if isinstance(upgrade.policies, PolicyChange):
            table = upgrade.policies.over(table)
        wanted = None
        if upgrade.at in upgraded:
            feeds_of = upgraded[upgrade.at].items()
            wanted = {ParaId(publisher): [SubscribedKey(feed.key) for feed in named] for publisher, named in feeds_of}
        yield ParachainUpgrade(
            at=upgrade.at,
            constants=constants_of(upgrade, SUBSCRIBER_CONSTANTS),
            policies=policies_of(table) if changed else None,
            budget=budget_of(table, pov_percent=relay.pov_percent, pov_bytes=relay.pov_bytes) if changed else None,
            subscriptions=wanted,
            weights={ParaId(it.publisher): it.callback_weight for it in told.get(upgrade.at, ()) if it.declares},
        )


def _changes(table: ParachainTable | RelayChainTable, scenario: Scenario) -> Iterator[tuple[int, list[str]]]:
    """Yield the relay block of each upgrade with what it changes."""
    before = {"max_value_bytes": scenario.relaychain.max_value_bytes, **_values(table), **_values(scenario.policies)}
    before["subscribe"] = _told(table.subscribe if isinstance(table, ParachainTable) else [])
    for upgrade in table.upgrades or []:
        after: dict[str, Any] = {}
        for name, value in given(upgrade).items():
            after |= given(value) if isinstance(value, PolicyChange) else {name: value}
        del after["at"]
        if "subscribe" in after:
            after["subscribe"] = _told(after["subscribe"])
        yield upgrade.at, [f"{name}: {before.get(name)} -> {value}" for name, value in after.items()]
        before |= after


def _values(table: ParachainTable | RelayChainTable | PolicyTable) -> dict[str, Any]:
    return {name: value for name, value in given(table).items() if isinstance(value, int | str)}


def _told(tables: Sequence[SubscriptionTable | KeysTable]) -> str:
    """Return subscriptions on one line, each as a publisher with its number of keys and their callbacks' weight."""
    return ", ".join(f"{it.publisher} ({_count(it.keys)}{_weight(it)})" for it in tables) or "nothing"


def _weight(table: SubscriptionTable | KeysTable) -> str:
    weights = ((table.callback_us, "us"), (table.callback_proof_bytes, "B"))
    given = [f"{number:,} {unit}" for number, unit in weights if isinstance(number, int)]
    return f", callbacks of {' and '.join(given)}" if given else ""


def _count(keys: int | list[str] | str) -> str:
    return "all keys" if isinstance(keys, str) else counted(keys if isinstance(keys, int) else len(keys), "key")
