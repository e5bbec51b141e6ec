"""What no single part of a scenario can tell: whether its parts fit together.

Law: what does not raises ``BadInput`` with the path inside the file, the value and what was expected.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from relaycast.callback_time import PICOSECONDS, limit_of
from relaycast.refusal import BadInput, nearest, shown
from relaycast.scenario.limit_checks import KeyCount, check_cache_limit, check_limits, holds
from relaycast.scenario.message_load import DOWNWARD, HORIZONTAL, Bursts, MessageLoad, Uniform
from relaycast.scenario.policy_choice import PolicyTable, budget_of, check_policies
from relaycast.scenario.ranges import check_range, range_of
from relaycast.scenario.scenario import (
    ParachainTable,
    Payment,
    PublishTable,
    RelayChainTable,
    Scenario,
    SubscriptionTable,
    key_name,
    upgraded_subscriptions,
)
from relaycast.scenario.upgrade_checks import check_upgrades, most_generous, policies_over_time, readers_over_time
from relaycast.scenario.wasm_checks import check_wasm, check_wasm_keys
from relaycast.scenario.workload import GRIEF_VALUE_BYTES
from relaycast_pallets.parachain_system.relay_budget import PovUsage, check_enough_messages_included
from relaycast_xcm.primitives import LOWEST_PUBLIC_ID, Weight

if TYPE_CHECKING:
    from relaycast.scenario.recording import Recording

MAX_PARACHAIN_ID = 2**32 - 1

Publishers = Mapping[int, PublishTable]


def check_references(scenario: Scenario, place: str) -> None:
    """Raise ``BadInput`` where the parts of a scenario, each fine in itself, do not fit together."""
    check_policies(scenario.policies, f"{place} at policies")
    check_upgrades(scenario, place)
    _check_ids(scenario, place)
    whole = scenario.with_copies()
    publishers, recorded = whole.publishers(), whole.recording()
    wasm_ids = {chain.id for chain in whole.wasm_parachains()}
    for index, chain in enumerate(scenario.parachains):
        here = f"{place} at parachains[{index}]"
        if chain.is_wasm or isinstance(chain.extrinsics, str):
            check_wasm(chain, here)
        elif chain.publish is None and not chain.reads and (recorded is None or chain.id not in recorded.keys):
            raise BadInput(here, f"parachain {chain.id} with nothing to do", "publish, subscribe, or both")
        if chain.publish is not None:
            _check_publish(chain, chain.publish, most_generous(scenario.relaychain), f"{here}.publish")
        if chain.messages is not None:
            for _, policies in policies_over_time(chain, scenario.policies):
                _check_load(chain.messages, scenario.relaychain, policies, f"{here}.messages")
            _check_senders(chain, chain.messages.senders, f"{here}.messages.senders")
        for subscription, inside in _subscriptions(chain, here):
            if subscription.publisher in wasm_ids:
                check_wasm_keys(subscription, inside)
            else:
                _check_subscription(subscription, publishers, recorded, inside)
        _check_limits(chain, scenario, partial(_key_count, publishers, recorded), here)
    if isinstance(scenario.relaychain.wasm, str) and scenario.relaychain.genesis is None:
        raise BadInput(f"{place} at relaychain.wasm", "a runtime without a state", "a genesis beside it")
    if not scenario.subscribers() and not wasm_ids:
        raise BadInput(place, "a scenario in which nobody subscribes", "at least one parachain with subscribe or wasm")


def _check_ids(scenario: Scenario, place: str) -> None:
    seen: dict[int, int] = {}
    for index, chain in enumerate(scenario.parachains):
        here = f"{place} at parachains[{index}]"
        if chain.id + chain.copies - 1 > MAX_PARACHAIN_ID:
            raise BadInput(f"{here}.copies", str(chain.copies), f"ids of at most {MAX_PARACHAIN_ID:,}")
        for para_id in range(chain.id, chain.id + chain.copies):
            if para_id in seen:
                raise BadInput(f"{here}.id", f"{para_id}, the id of parachains[{seen[para_id]}]", "an id of its own")
            seen[para_id] = index


def _check_publish(chain: ParachainTable, publish: PublishTable, relay: RelayChainTable, place: str) -> None:
    grief = 0 if publish.grief is None else publish.grief.keys
    if publish.keys + grief > relay.max_stored_keys:
        got = str(publish.keys) if not grief else f"{publish.keys} and {grief} crafted ones"
        raise BadInput(f"{place}.keys", got, f"at most relaychain.max_stored_keys = {relay.max_stored_keys}")
    largest = max(publish.size_of(index) for index in range(publish.keys))
    if largest > relay.max_value_bytes:
        raise BadInput(
            f"{place}.value_bytes", str(largest), f"at most relaychain.max_value_bytes = {relay.max_value_bytes}"
        )
    total = sum(32 + publish.size_of(index) for index in range(publish.keys)) + grief * (32 + GRIEF_VALUE_BYTES)
    if total > relay.max_total_bytes:
        got = f"{total:,} bytes in all keys and values"
        raise BadInput(place, got, f"at most relaychain.max_total_bytes = {relay.max_total_bytes:,}")
    if publish.changed_keys > publish.keys:
        raise BadInput(f"{place}.changed", str(publish.changed), f"at most keys = {publish.keys}")
    _check_span(publish, place)
    if isinstance(publish.payment, Payment) and publish.payment.balance < publish.payment.fees:
        got, fees = str(publish.payment.balance), publish.payment.fees
        raise BadInput(f"{place}.payment.balance", got, f"at least what one publication may cost, fees = {fees}")
    if publish.deregisters_at is not None and chain.id < LOWEST_PUBLIC_ID:
        got = f"{publish.deregisters_at} for parachain {chain.id}"
        raise BadInput(f"{place}.deregisters_at", got, f"an id from {LOWEST_PUBLIC_ID} on: others never registered")
    if publish.deregisters_at == 1:
        raise BadInput(f"{place}.deregisters_at", "1", "a later block: in the first one publishers register")


def _check_span(span: PublishTable | SubscriptionTable, place: str) -> None:
    if span.stops_at is not None and span.stops_at <= span.starts_at:
        raise BadInput(f"{place}.stops_at", str(span.stops_at), f"a block after starts_at = {span.starts_at}")


def _check_load(messages: MessageLoad, relay: RelayChainTable, policies: PolicyTable, place: str) -> None:
    budget = budget_of(policies, pov_percent=relay.pov_percent, pov_bytes=relay.pov_bytes)
    for side, load in ((DOWNWARD, messages.downward), (HORIZONTAL, messages.horizontal)):
        if load == 0:
            continue
        if isinstance(load, Uniform) and load.low_bytes > load.high_bytes:
            raise BadInput(f"{place}.{side}.low_bytes", str(load.low_bytes), f"at most high_bytes = {load.high_bytes}")
        if isinstance(load, Bursts) and load.length > load.every:
            raise BadInput(f"{place}.{side}.length", str(load.length), f"at most every = {load.every}")
        message = (bytes(messages.message_bytes),)
        downward, horizontal = (message, ()) if side == DOWNWARD else ((), message)
        abridged = budget.share_out(PovUsage(relay.max_pov_bytes, downward, horizontal))
        full_count = abridged.downward_count if side == DOWNWARD else abridged.horizontal_count
        if abridged.over_bytes or not check_enough_messages_included(message, full_count):
            got = f"{messages.message_bytes}, more than a block has room for"
            raise BadInput(f"{place}.message_bytes", got, f"what fits into the {side} part of a block's budget")
    if messages.downward != 0 and messages.horizontal != 0:
        both = (bytes(messages.message_bytes),)
        over_bytes = budget.share_out(PovUsage(relay.max_pov_bytes, both, both)).over_bytes
        if over_bytes:
            got = f"{messages.message_bytes}, twice of which are {over_bytes} bytes more than a block has room for"
            raise BadInput(f"{place}.message_bytes", got, "what lets a block hold one message of each kind")


def _check_senders(chain: ParachainTable, senders: Sequence[int], place: str) -> None:
    for index, sender in enumerate(senders):
        if sender in senders[:index]:
            raise BadInput(f"{place}[{index}]", f"{sender} again", "every sender once")
        if chain.id <= sender < chain.id + chain.copies:
            raise BadInput(f"{place}[{index}]", f"{sender}, the recipient itself", "the id of another parachain")


def _subscriptions(chain: ParachainTable, here: str) -> Iterator[tuple[SubscriptionTable, str]]:
    for number, subscription in enumerate(chain.subscribe):
        place = f"{here}.subscribe[{number}]"
        _check_span(subscription, place)
        for earlier in chain.subscribe[:number]:
            if earlier.publisher == subscription.publisher and _overlap(earlier, subscription):
                got = f"{subscription.publisher} again"
                raise BadInput(f"{place}.publisher", got, "every publisher once at a time (starts_at, stops_at)")
        _check_callbacks(subscription, chain.callback_limit, place)
        yield subscription, place
    yield from _upgraded_subscriptions(chain, here)


def _check_limits(chain: ParachainTable, scenario: Scenario, count_of: KeyCount, here: str) -> None:
    for place, reader in readers_over_time(chain, here):
        check_limits(reader, count_of, place)
        for _, policies in policies_over_time(chain, scenario.policies):
            check_cache_limit(reader, policies, place)


def _upgraded_subscriptions(chain: ParachainTable, here: str) -> Iterator[tuple[SubscriptionTable, str]]:
    replaced, limit = upgraded_subscriptions(chain), chain.callback_limit
    for index, upgrade in enumerate(chain.upgrades or []):
        limit = limit_of(upgrade.callback_limit_us) if isinstance(upgrade.callback_limit_us, int) else limit
        place, tables = f"{here}.upgrades[{index}].subscribe", replaced.get(upgrade.at, [])
        for number, subscription in enumerate(tables):
            if any(earlier.publisher == subscription.publisher for earlier in tables[:number]):
                raise BadInput(
                    f"{place}[{number}].publisher", f"{subscription.publisher} again", "every publisher once"
                )
            _check_callbacks(subscription, limit, f"{place}[{number}]")
            yield subscription, f"{place}[{number}]"


def _check_callbacks(subscription: SubscriptionTable, limit: Weight, place: str) -> None:
    if subscription.callback_weight.any_gt(limit):
        got, most = str(subscription.callback_us), limit.ref_time // PICOSECONDS
        raise BadInput(f"{place}.callback_us", got, f"at most what a block allows, callback_limit_us = {most}")


def _overlap(one: SubscriptionTable, other: SubscriptionTable) -> bool:
    return holds(one, other.starts_at) or holds(other, one.starts_at)


def _key_count(publishers: Publishers, recorded: "Recording | None", subscription: SubscriptionTable) -> int:
    """Return how many keys a subscription wants at a time."""
    if isinstance(subscription.keys, list):
        return len(set(subscription.keys))
    if recorded is not None and subscription.publisher in recorded.keys:
        return len(range_of(subscription.keys, len(recorded.keys[subscription.publisher])))
    return len(range_of(subscription.keys, publishers[subscription.publisher].keys))


def _check_subscription(
    subscription: SubscriptionTable, publishers: Publishers, recorded: "Recording | None", place: str
) -> None:
    keys = subscription.keys
    if subscription.slides_every is not None and not isinstance(keys, int):
        raise BadInput(f"{place}.slides_every", str(subscription.slides_every), "a number of keys to slide, as keys")
    if recorded is not None and subscription.publisher in recorded.keys:
        recorded.subscribed(subscription.publisher, keys, f"{place}.keys")
        return
    publish = publishers.get(subscription.publisher)
    if publish is None:
        known = ", ".join(map(str, [*publishers, *(() if recorded is None else recorded.keys)])) or "none"
        raise BadInput(
            f"{place}.publisher", str(subscription.publisher), f"the id of a parachain that publishes ({known})"
        )
    if not isinstance(keys, list):
        check_range(keys, publish.keys, f"{place}.keys", f"the {publish.keys} keys that are published")
    if isinstance(keys, list):
        names = [key_name(publish, index) for index in range(publish.keys)]
        known_names = set(names)
        for name in keys:
            if name not in known_names:
                expected = f"a published name, {names[0]} to {names[-1]}"
                hint = nearest(name, names)
                raise BadInput(f"{place}.keys", shown(name), expected, hint if hint.startswith("did") else "")
