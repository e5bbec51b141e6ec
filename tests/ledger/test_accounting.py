"""Accounts: what every byte of a proof is for, and why the rest of what was collected is not in it."""

import dataclasses
import pickle
import random
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from collator.networks import (
    EVERYTHING,
    OTHER_PUBLISHER,
    PUBLISHER,
    SUBSCRIBER,
    accounted,
    deep_keys,
    key,
    keys,
    network,
    publish,
    run,
    value,
    values,
)
from ledger.watched import Watched
from relaycast_ledger import Accounts, BlockRecord, Ending, NodeTotals, PublisherAccount
from relaycast_ledger.accounting import IN_THE_PROOF, sibling_bytes
from relaycast_ledger.block_checks import account_checks
from relaycast_ledger.run_tables import PROOFS
from relaycast_pallets import derive_child_info
from relaycast_pallets.parachain_system.relay_budget import Remaining
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.policies import CachePolicy, Policies, StructureNodes
from relaycast_pallets.subscriber.subscription import SubscribedKey, SubscribedPaths
from relaycast_pallets.subscriber.variants.drafts import NoCache
from relaycast_trie import blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_trie.node import Branch, Leaf
from relaycast_trie.node_codec import decode_node, encode_node
from relaycast_xcm import ParaId, Weight

OUTSIDE = 400
"""Bytes of a value that stands outside of its node."""


def only(record: BlockRecord) -> PublisherAccount:
    assert record.account is not None
    (account,) = record.account.publishers
    return account


def reconciled(net: Watched, records: list[BlockRecord]) -> None:
    """Demand that every record adds up to the byte, counted here once more."""
    assert net.invariants.ok, net.invariants.violations
    for record in records:
        account = record.account
        assert account is not None
        assert account.static.node_bytes == record.static_bytes
        in_proof = record.static_bytes
        pruned = account.pruned_unsubscribed.node_bytes
        for it in account.publishers:
            in_proof += it.top.node_bytes + it.new.node_bytes + it.changed.node_bytes + it.unseen.node_bytes
            in_proof += it.value.node_bytes
            pruned += it.pruned_unchanged.node_bytes + it.pruned_cached.node_bytes
            pruned += it.pruned_beyond_budget.node_bytes + it.pruned_disabled.node_bytes
        assert in_proof == record.proof_bytes
        assert in_proof + pruned == record.collected_bytes
        assert sum(it.callbacks for it in account.publishers) == len(record.deliveries)
        assert sum((it.consumed for it in account.publishers), Weight.ZERO) == record.consumed


def test_a_network_keeps_no_accounts_unless_asked_to() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1))
    assert {record.account for record in run(net, 2)} == {None}


def test_at_first_sight_everything_is_new() -> None:
    net = accounted({PUBLISHER: keys(20)})
    publish(net, PUBLISHER, values(20, size=OUTSIDE))
    records = run(net, 4)
    reconciled(net, records)
    first = next(record for record in records if record.deliveries)
    account = only(first)
    assert account.ending is Ending.FINISHED
    assert (account.keys, account.keys_walked, account.keys_changed, account.callbacks) == (20, 20, 20, 20)
    assert account.value.nodes == 20
    assert account.value.node_bytes > 20 * OUTSIDE
    assert account.new.nodes > 20, "a leaf for each key, and branches above them"
    assert account.changed == account.unseen == account.cached == account.pruned == NodeTotals()
    assert account.sibling_bytes == 0, "every reference leads to a subscribed key"


def test_before_a_publisher_has_a_trie_it_is_absent() -> None:
    net = accounted({PUBLISHER: keys(1)})
    records = run(net, 2)
    reconciled(net, records)
    assert [only(record).ending for record in records] == [Ending.ABSENT] * 2


def test_an_unchanged_publisher_takes_its_way_through_the_top_trie_and_no_more() -> None:
    net = accounted({PUBLISHER: keys(20)})
    publish(net, PUBLISHER, values(20, size=OUTSIDE))
    first, *_, last = [record for record in run(net, 6) if record.tick >= 3]
    reconciled(net, [first, last])
    account = only(last)
    assert account.ending is Ending.UNCHANGED
    assert account.proof == account.top
    assert (account.keys_walked, account.cached) == (0, NodeTotals())
    before = only(first)
    assert account.pruned_unchanged == before.new + before.value == account.pruned


def test_a_changed_key_takes_its_path_its_value_and_the_references_beside_it() -> None:
    net = accounted({PUBLISHER: keys(3)})
    publish(net, PUBLISHER, values(40, size=OUTSIDE))
    run(net, 4)
    publish(net, PUBLISHER, {key(1): value(77, OUTSIDE)})
    records = run(net, 3)
    reconciled(net, records)
    account = only(next(record for record in records if record.deliveries))
    assert (account.keys_changed, account.value.nodes, account.new) == (1, 1, NodeTotals())
    assert account.changed.nodes == account.changed.nodes == account.cached.nodes > 1
    assert account.pruned_unchanged.nodes >= 4, "leaf and value of both other keys"
    assert account.sibling_bytes % 33 == 0, "each reference is a hash behind one byte for its length"
    assert 0 < account.sibling_bytes < account.changed.node_bytes


def test_a_key_that_comes_is_new_below_branches_that_change() -> None:
    net = accounted({PUBLISHER: keys(30)})
    publish(net, PUBLISHER, values(29))
    run(net, 4)
    publish(net, PUBLISHER, {key(29): value(1)})
    records = run(net, 3)
    reconciled(net, records)
    account = only(next(record for record in records if record.deliveries))
    assert (account.new.nodes, account.keys_changed) == (2, 1), "its leaf, and the one that it pushes down a level"
    assert account.changed.nodes >= 1, "the root above it"


def test_a_short_budget_says_what_was_beyond_it() -> None:
    net = accounted({PUBLISHER: keys(12), OTHER_PUBLISHER: keys(12)}, budget=EVERYTHING, max_pov_size=9_000)
    publish(net, PUBLISHER, values(12, size=OUTSIDE))
    publish(net, OTHER_PUBLISHER, values(12, version=1, size=OUTSIDE))
    records = run(net, 8)
    reconciled(net, records)
    short = next(record for record in records if not record.complete)
    assert short.account is not None
    assert short.cursor is not None
    endings = {it.ending: it for it in short.account.publishers}
    assert endings.keys() == {Ending.CUT_SHORT, Ending.NOT_REACHED} or endings.keys() == {
        Ending.FINISHED,
        Ending.CUT_SHORT,
    }
    cut = endings[Ending.CUT_SHORT]
    assert cut.publisher == short.cursor[0]
    assert 0 < cut.keys_walked < cut.keys
    assert cut.pruned_beyond_budget.nodes > 0
    assert cut.pruned_unchanged == NodeTotals()
    assert all(record.cursor is None for record in records if record.complete)


def test_a_publisher_that_is_not_reached_takes_nothing() -> None:
    net = accounted({PUBLISHER: keys(4)}, budget=Remaining(percent=100), max_pov_size=1)
    publish(net, PUBLISHER, values(4))
    records = run(net, 4)
    reconciled(net, records)
    account = only(records[-1])
    assert account.ending is Ending.NOT_REACHED
    assert account.proof == NodeTotals()
    assert account.pruned == account.pruned_beyond_budget != NodeTotals()


def test_a_path_that_is_too_deep_is_read_down_to_the_limit() -> None:
    net = accounted({PUBLISHER: deep_keys(9)}, config=SubscriberConfig(max_trie_depth=4))
    publish(net, PUBLISHER, dict.fromkeys(deep_keys(9), bytes(OUTSIDE)))
    records = [record for record in run(net, 4) if record.disabled]
    reconciled(net, records)
    account = only(records[0])
    assert account.ending is Ending.DISABLED
    assert account.new.nodes >= 4
    assert account.callbacks == 0
    assert account.pruned == account.pruned_disabled != NodeTotals()


FULL = [key(number) for number in range(80)]


def test_a_full_branch_that_is_not_cached_hides_the_old_trie_below_it() -> None:
    net = accounted({PUBLISHER: FULL}, policies=Policies(cache=StructureNodes(512)))
    publish(net, PUBLISHER, {name: value(number, OUTSIDE) for number, name in enumerate(FULL)})
    run(net, 4)
    publish(net, PUBLISHER, {FULL[5]: value(999, OUTSIDE)})
    records = run(net, 3)
    reconciled(net, records)
    account = only(next(record for record in records if record.deliveries))
    assert (account.uncacheable.nodes, account.changed.nodes) == (1, 1), "the root, with all of its sixteen children"
    assert account.changed == account.uncacheable
    assert account.unseen.nodes == 2, "the changed key's branch and leaf: what was there could not be reached"
    assert account.pruned_cached.nodes > 80, "all others are in the cache by their hashes"
    assert account.keys_changed == 80, "and all keys are told again"


def test_without_a_cache_what_is_below_the_root_is_read_again() -> None:
    net = accounted({PUBLISHER: keys(20)}, policies=Policies(cache=NoCache()))
    publish(net, PUBLISHER, values(20))
    run(net, 4)
    publish(net, PUBLISHER, {key(1): value(77)})
    records = run(net, 3)
    reconciled(net, records)
    account = only(next(record for record in records if record.deliveries))
    assert (account.changed.nodes, account.new.nodes) == (1, 0)
    assert account.unseen.nodes >= 20
    assert account.uncacheable == account.changed + account.unseen


def every_place(net: Watched, publisher: ParaId, names: list[bytes]) -> dict[bytes, bytes]:
    """Return every node with a hash on the paths of keys by its prefix, straight from the relay parent's state."""
    state, root, info = net.relay_chain.state, net.relay_chain.blocks[-2].state_root, derive_child_info(publisher)
    by_hash = {blake2_256(node): node for node in state.prove_child_read(root, info, names).nodes}
    name = info.prefixed_storage_key()
    child_root = state.prove_read(root, [name]).verify(root, [name])[name]
    found: dict[bytes, bytes] = {}
    for name in names:
        path, depth, reference = to_nibbles(name), 0, child_root
        while reference is not None:
            if len(reference) == 32:
                found[path[:depth]] = by_hash[reference]
            node = decode_node(by_hash[reference] if len(reference) == 32 else reference)
            assert isinstance(node, Branch | Leaf)
            if path[depth : depth + len(node.partial)] != node.partial:
                break
            depth += len(node.partial)
            reference = node.children[path[depth]] if isinstance(node, Branch) and depth < len(path) else None
            depth += 1
    return found


@pytest.mark.parametrize("seed", range(4))
def test_causes_are_those_that_two_whole_tries_show(seed: int) -> None:
    lots = random.Random(seed)
    names = keys(30)
    net = accounted({PUBLISHER: names[:18]})
    before: dict[bytes, bytes] = {}
    for _ in range(14):
        chosen = lots.sample(names, lots.randrange(5))
        publish(net, PUBLISHER, {name: value(lots.randrange(10_000), 20) for name in chosen}, ttl=lots.choice([0, 4]))
        (record,) = net.recorded_step()
        after = every_place(net, PUBLISHER, names[:18])
        moved = {place: node for place, node in after.items() if before.get(place) != node}
        account = only(record)
        assert account.changed == sum_of(node for place, node in moved.items() if place in before)
        assert account.new == sum_of(node for place, node in moved.items() if place not in before)
        before = after
    assert account.keys == 18
    reconciled(net, [record])


def sum_of(nodes: Iterable[bytes]) -> NodeTotals:
    """Return the totals of nodes, of which equal ones are carried once."""
    once = set(nodes)
    return NodeTotals(len(once), sum(map(len, once)))


@pytest.mark.parametrize("seed", range(6))
def test_accounts_add_up_over_random_networks(seed: int) -> None:
    lots = random.Random(seed)
    caches: list[CachePolicy] = [StructureNodes(), StructureNodes(200), NoCache()]
    policies = Policies(cache=lots.choice(caches))
    budget = lots.choice([3_000, 6_000, 1 << 20])
    wanted = {PUBLISHER: keys(25), OTHER_PUBLISHER: keys(9, start=20)}
    net = accounted(wanted, policies=policies, budget=EVERYTHING, max_pov_size=budget)
    records = []
    for tick in range(14):
        for publisher in wanted:
            names = lots.sample(keys(40), lots.randrange(4))
            size = lots.choice([3, 20, OUTSIDE])
            publish(net, publisher, {name: value(lots.randrange(5), size) for name in names}, ttl=lots.choice([0, 3]))
        if tick == 8:
            net.subscribe(SUBSCRIBER, PUBLISHER, keys(3, start=30))
        records += net.recorded_step()
    reconciled(net, records)
    assert any(record.deliveries for record in records)


def test_equal_values_are_carried_once_and_counted_once() -> None:
    net = accounted({PUBLISHER: keys(6), OTHER_PUBLISHER: keys(6)})
    for publisher in (PUBLISHER, OTHER_PUBLISHER):
        publish(net, publisher, dict.fromkeys(keys(6), bytes(OUTSIDE)))
    records = run(net, 4)
    reconciled(net, records)
    first = next(record for record in records if record.deliveries)
    assert first.account is not None
    assert sum(it.value.nodes for it in first.account.publishers) == 1
    assert sum(it.callbacks for it in first.account.publishers) == 12


def test_references_that_lead_nowhere_subscribed_are_told_from_others() -> None:
    child, inline = bytes(32), encode_node(Leaf(b"\x01" * 5, b"v"))
    children: list[bytes | None] = [None] * 16
    children[2], children[3], children[9] = child, inline, child
    node = Branch(b"\x07", tuple(children))
    subscribed = SubscribedPaths.of(
        [SubscribedKey(bytes([0x72]) + bytes(31)), SubscribedKey(bytes([0x75]) + bytes(31))]
    )
    assert sibling_bytes(subscribed, b"", node) == (1 + len(inline)) + (1 + 32)


def test_an_account_pickles_and_does_not_depend_on_the_run() -> None:
    def records() -> list[BlockRecord]:
        net = accounted({PUBLISHER: keys(9)}, budget=EVERYTHING, max_pov_size=4_000)
        publish(net, PUBLISHER, values(9, size=OUTSIDE))
        return run(net, 5)

    first = records()
    assert first == records() == pickle.loads(pickle.dumps(first))


def test_two_accounts_add_up_to_one() -> None:
    first = PublisherAccount(publisher=PUBLISHER, keys=3, keys_changed=1, new=NodeTotals(1, 10), sibling_bytes=4)
    later = replace(first, keys=5, ending=Ending.CUT_SHORT, value=NodeTotals(2, 70))
    both = first.and_then(later)
    assert (both.keys, both.ending, both.keys_changed, both.sibling_bytes) == (5, Ending.CUT_SHORT, 2, 8)
    assert both.proof == NodeTotals(4, 90)
    names = [name for name in PROOFS.schema.names if name not in {"block", "para_id"}]
    row = dict(zip(names, PROOFS.values(both), strict=True))
    assert (row["new_nodes"], row["new_bytes"], row["value_bytes"]) == (2, 20, 70)


@pytest.mark.parametrize("cause", [*IN_THE_PROOF, "pruned_unchanged", "consumed", "static"])
def test_a_byte_without_a_cause_is_noticed(cause: str) -> None:
    net = accounted({PUBLISHER: keys(2)})
    publish(net, PUBLISHER, values(2))
    record = run(net, 3)[-1]
    assert all(check.holds for check in account_checks(record, honest=True))
    account, it = record.account, only(record)
    assert account is not None
    if cause == "static":
        wrong = replace(account, static=account.static.plus(1))
    elif cause == "consumed":
        wrong = replace(account, publishers=(replace(it, consumed=it.consumed + Weight(1, 0)),))
    else:
        more: NodeTotals = getattr(it, cause)
        wrong = replace(account, publishers=(replace(it, **{cause: more.plus(1)}),))
    checks = list(account_checks(replace(record, account=wrong), honest=True))
    assert sum(not check.holds for check in checks) == 1


def test_a_liar_s_block_is_accounted_for_as_far_as_it_holds() -> None:
    net = network(subscribers=())
    net.ledger.accounts = Accounts.BY_PUBLISHER
    net.add_parachain(
        SUBSCRIBER, tamper=lambda it: dataclasses.replace(it, relay_chain_state=it.relay_chain_state[::-1])
    )
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(3))
    publish(net, PUBLISHER, values(3))
    records = run(net, 4)
    reconciled(net, records)
    assert records[-1].panic is None
