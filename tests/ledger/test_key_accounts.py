"""Accounts by key: which key each node counts with, and that keys add up to their publisher."""

import pickle
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from collator.networks import (
    EVERYTHING,
    OTHER_PUBLISHER,
    PUBLISHER,
    SUBSCRIBER,
    accounted,
    deep_keys,
    keys,
    publish,
    run,
    value,
    values,
)
from ledger.watched import Watched
from relaycast_ledger import (
    Accounts,
    BlockAccount,
    BlockRecord,
    KeyAccount,
    KeyEnding,
    NodeTotals,
    PublisherAccount,
    accounting,
)
from relaycast_ledger import ledger as ledger_module
from relaycast_ledger.accounting import IN_THE_PROOF, PRUNED
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.policies import CachePolicy, Policies, StructureNodes
from relaycast_pallets.subscriber.variants.drafts import NoCache
from relaycast_trie.nibbles import to_nibbles
from relaycast_xcm import ParaId

OUTSIDE = 400
"""Bytes of a value that stands outside of its node."""


def by_key(wanted: Mapping[ParaId, Sequence[bytes]], **subscriber: Any) -> Watched:
    return accounted(wanted, accounts=Accounts.BY_NODE, **subscriber)


def account_of(record: BlockRecord) -> BlockAccount:
    assert record.account is not None
    return record.account


def keys_of(account: BlockAccount, publisher: ParaId) -> list[KeyAccount]:
    return [it for it in account.keys if it.publisher == publisher]


def adds_up(record: BlockRecord) -> None:
    """Demand that keys and nodes add up to their publisher, cause by cause."""
    account = account_of(record)
    for it in account.publishers:
        mine = keys_of(account, it.publisher)
        assert [one.key for one in mine] == sorted({one.key for one in mine})
        assert len(mine) == it.keys
        assert sum((one.top for one in mine), NodeTotals()) == it.top
        assert sum((one.structure for one in mine), NodeTotals()) == it.structure
        assert sum((one.value for one in mine), NodeTotals()) == it.value
        assert sum((one.cached for one in mine), NodeTotals()) == it.cached
        assert sum((one.pruned for one in mine), NodeTotals()) == it.pruned
        assert sum(one.ending is KeyEnding.CHANGED for one in mine) == it.keys_changed
        uses = [use for use in account.nodes if use.publisher == it.publisher]
        for cause in (*IN_THE_PROOF, "cached", *PRUNED):
            found = [use.node_bytes for use in uses if use.cause == cause]
            assert NodeTotals(len(found), sum(found)) == getattr(it, cause), cause


def nodes_count_with_their_first_key(net: Watched, record: BlockRecord) -> None:
    """Demand of every node that no subscribed key before its own has it on its path."""
    wanted = net.parachains[record.para_id].kept.wanted
    for use in account_of(record).nodes:
        mine = sorted(set(wanted[use.publisher]))
        if use.in_top_trie:
            assert use.key == mine[0]
        else:
            assert use.key == next(name for name in mine if to_nibbles(name).startswith(use.prefix))


@pytest.mark.parametrize("seed", range(6))
def test_keys_add_up_to_their_publisher_over_random_networks(seed: int) -> None:
    lots = random.Random(seed)
    caches: list[CachePolicy] = [StructureNodes(), StructureNodes(200), NoCache()]
    budget = lots.choice([3_000, 6_000, 1 << 20])
    wanted = {PUBLISHER: keys(25), OTHER_PUBLISHER: keys(9, start=20)}
    net = by_key(wanted, policies=Policies(cache=lots.choice(caches)), budget=EVERYTHING, max_pov_size=budget)
    endings: Counter[KeyEnding] = Counter()
    for tick in range(14):
        for publisher in wanted:
            names = lots.sample(keys(40), lots.randrange(4))
            size = lots.choice([3, 20, OUTSIDE])
            publish(net, publisher, {name: value(lots.randrange(5), size) for name in names}, ttl=lots.choice([0, 3]))
        if tick == 8:
            net.subscribe(SUBSCRIBER, PUBLISHER, keys(3, start=30))
        for record in net.recorded_step():
            adds_up(record)
            nodes_count_with_their_first_key(net, record)
            endings.update(it.ending for it in account_of(record).keys)
    assert net.invariants.ok
    assert {KeyEnding.CHANGED, KeyEnding.UNCHANGED, KeyEnding.ABSENT} <= endings.keys()


def test_a_key_pays_for_what_it_adds_to_the_keys_before_it() -> None:
    net = by_key({PUBLISHER: keys(20)})
    publish(net, PUBLISHER, values(20, size=OUTSIDE))
    record = next(record for record in run(net, 4) if record.deliveries)
    adds_up(record)
    mine = keys_of(account_of(record), PUBLISHER)
    first, later = mine[0], mine[1:]
    assert first.top.nodes > 0, "the way to the publisher counts with its first key"
    assert {it.top for it in later} == {NodeTotals()}
    assert {it.value.nodes for it in mine} == {1}
    assert first.structure.nodes > min(it.structure.nodes for it in later) == 1, "its own leaf at least"
    assert {it.ending for it in mine} == {KeyEnding.CHANGED}


def test_a_change_counts_with_the_key_that_changed_unless_one_before_it_shares_the_node() -> None:
    net = by_key({PUBLISHER: keys(20)})
    publish(net, PUBLISHER, values(20))
    run(net, 4)
    changed = max(keys(20))
    publish(net, PUBLISHER, {changed: value(77)})
    record = next(record for record in run(net, 3) if record.deliveries)
    adds_up(record)
    mine = keys_of(account_of(record), PUBLISHER)
    assert [it.ending for it in mine] == [KeyEnding.UNCHANGED] * 19 + [KeyEnding.CHANGED]
    assert mine[0].structure.nodes == mine[0].top.nodes + 1, "the child trie's root is on the first key's path too"
    assert mine[-1].structure.nodes >= 1
    assert mine[-1].pruned == NodeTotals()
    assert all(it.structure == NodeTotals() and it.pruned.nodes >= 1 for it in mine[1:-2])


def test_a_short_budget_says_which_keys_it_did_not_reach() -> None:
    net = by_key({PUBLISHER: keys(12)}, budget=EVERYTHING, max_pov_size=5_000)
    publish(net, PUBLISHER, values(12, size=OUTSIDE))
    record = next(record for record in run(net, 4) if not record.complete)
    adds_up(record)
    mine = keys_of(account_of(record), PUBLISHER)
    assert record.cursor is not None
    reached = [it.key < record.cursor[1] for it in mine]
    assert [it.ending is KeyEnding.NOT_REACHED for it in mine] == [not told for told in reached]
    assert sum(it.ending is KeyEnding.CHANGED for it in mine) == len(record.deliveries) > 0


def test_keys_of_a_disabled_publisher_say_so() -> None:
    net = by_key({PUBLISHER: deep_keys(9)}, config=SubscriberConfig(max_trie_depth=4))
    publish(net, PUBLISHER, dict.fromkeys(deep_keys(9), bytes(OUTSIDE)))
    (record,) = (record for record in run(net, 4) if record.disabled)
    adds_up(record)
    assert {it.ending for it in account_of(record).keys} == {KeyEnding.DISABLED}


def test_nothing_is_kept_by_key_unless_asked_for() -> None:
    net = by_key({PUBLISHER: keys(3)})
    net.ledger.accounts = Accounts.BY_PUBLISHER
    publish(net, PUBLISHER, values(3))
    assert {(account_of(record).keys, account_of(record).nodes) for record in run(net, 4)} == {((), ())}


def test_accounts_by_key_pickle() -> None:
    net = by_key({PUBLISHER: keys(3)})
    publish(net, PUBLISHER, values(3))
    records = run(net, 4)
    assert pickle.loads(pickle.dumps(records)) == records


def test_a_node_that_counts_twice_is_noticed() -> None:
    net = by_key({PUBLISHER: keys(3)})
    publish(net, PUBLISHER, values(3))
    record = run(net, 4)[-1]
    account = account_of(record)
    it: PublisherAccount = account.publishers[0]
    assert it.proof.nodes + it.pruned.nodes + it.cached.nodes == len(account.nodes) > 0
    assert len({(use.cause == "cached", use.node_hash) for use in account.nodes}) == len(account.nodes)


@pytest.mark.parametrize("size", [16, OUTSIDE])
@pytest.mark.parametrize("cache", [StructureNodes(), NoCache(), StructureNodes(max_node_bytes=150)])
def test_what_was_walked_in_arrays_is_accounted_for_as_objects_are(
    size: int, cache: CachePolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys come, go and change, some to equal values; the budget cuts passes short for a while."""
    entered, plainly = list[bool](), accounting.account_for

    def both(*arguments: Any, **options: Any) -> BlockAccount:
        found = []
        for least in (1 << 30, 0):
            monkeypatch.setattr(accounting, "ENTERED_IN_ARRAYS", least)
            found.append(plainly(*arguments, **options))
        entered.append(bool(accounting._walked_in_one_go(arguments[0])))
        assert found[0] == found[1]
        return found[0]

    monkeypatch.setattr(ledger_module, "account_for", both)
    wanted = {PUBLISHER: keys(40), OTHER_PUBLISHER: keys(7)}
    policies = Policies(cache=cache)
    net = accounted(wanted, accounts=Accounts.BY_KEY, policies=policies, budget=EVERYTHING, max_pov_size=40_000)
    net.parachains[SUBSCRIBER].system.state.engine = "array"
    drawn = random.Random(size)
    for tick in range(14):
        for publisher in wanted:
            changed = drawn.sample(keys(60), drawn.choice([0, 1, 5, 30]))
            some = {name: value(drawn.randrange(25), size) for name in changed}
            publish(net, publisher, some, ttl=drawn.choice([0, 0, 3]))
        net.collators[SUBSCRIBER].max_pov_size = 4_000 if 5 <= tick < 9 else 40_000
        net.recorded_step()
    assert net.invariants.ok, net.invariants.violations
    assert entered.count(True) >= (5 if cache == StructureNodes() else 1)  # where no node is kept, none is in sight
