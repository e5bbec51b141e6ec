"""From a publisher to its subscribers, over all chains: what the public test plan calls integration and e2e."""

from dataclasses import replace

import pytest

from collator.networks import (
    EVERYTHING,
    OTHER_PUBLISHER,
    OTHER_SUBSCRIBER,
    PUBLISHER,
    SUBSCRIBER,
    SYSTEM_PUBLISHER,
    deep_keys,
    deliveries,
    kept,
    key,
    keys,
    network,
    publish,
    run,
    told,
    value,
    values,
)
from ledger.watched import Watched
from relaycast_collator import Collator, Parachain
from relaycast_pallets import Infinite, KeyExpired, TimedOut, ValidFor
from relaycast_pallets.broadcaster.config import POLKADOT
from relaycast_pallets.frame.system import Origin
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_pallets.subscriber.variants.drafts import NoCache
from relaycast_xcm import ParaId


def ttl_states(net: Watched, subscriber: int = SUBSCRIBER) -> dict[bytes, object]:
    return {name: state for (_, name), (_, state) in net.parachains[ParaId(subscriber)].kept.values.items()}


@pytest.mark.upstream("e2e_publish_subscribe")
@pytest.mark.upstream("basic_publish_subscribe_flow")
def test_a_published_value_reaches_its_subscriber() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, [key(0)])
    publish(net, PUBLISHER, {key(0): b"42"})
    first, second, third = run(net, 3)
    assert (first.deliveries, second.deliveries) == ((), ())
    (delivery,) = third.deliveries
    assert (delivery.publisher, delivery.key, delivery.entry.value) == (PUBLISHER, key(0), b"42")
    assert (delivery.entry.when_inserted, delivery.entry.ttl) == (2, 0)
    assert kept(net, SUBSCRIBER) == {key(0): b"42"}
    assert ttl_states(net) == {key(0): Infinite()}
    assert net.invariants.ok


@pytest.mark.upstream("multi_block_processing")
def test_updates_over_many_blocks_arrive_in_order() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, [key(0)])
    records = []
    for tick in range(10):
        if tick % 3 == 0:
            publish(net, PUBLISHER, {key(0): value(tick)})
        records += net.recorded_step()
    records += run(net, 2)
    assert told(records) == [(key(0), value(tick)) for tick in (0, 3, 6, 9)]


@pytest.mark.upstream("subscription_before_publish")
def test_a_subscription_waits_for_its_publisher() -> None:
    net = network(publishers=())
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(3))
    assert all(record.complete and not record.deliveries for record in run(net, 5))
    net.add_parachain(PUBLISHER)
    net.register_publisher(PUBLISHER)
    publish(net, PUBLISHER, {key(1): b"at last"})
    assert told(run(net, 3)) == [(key(1), b"at last")]
    assert net.invariants.ok


@pytest.mark.upstream("e2e_ttl_expiration")
def test_a_value_expires_on_the_relay_chain_and_its_subscriber_knew_when() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(3))
    publish(net, PUBLISHER, {key(0): b"short"}, ttl=3)
    publish(net, PUBLISHER, {key(1): b"long"}, ttl=50)
    publish(net, PUBLISHER, {key(2): b"for ever"})
    run(net, 3)
    assert ttl_states(net) == {key(0): ValidFor(3), key(1): ValidFor(50), key(2): Infinite()}
    storage = net.relay_chain.broadcaster.storage
    expired: dict[bytes, int] = {}
    for _ in range(4):
        records = net.recorded_step()
        expired |= {event.key: net.tick for event in net.relay_chain.head.events if isinstance(event, KeyExpired)}
        assert told(records) == [], "that a key is gone is no news"
    assert expired == {key(0): 2 + 3}
    assert storage.entry(PUBLISHER, key(0)) is None
    assert set(storage.keys_of(PUBLISHER)) == {key(1), key(2)}
    publish(net, PUBLISHER, {key(0): b"again"}, ttl=9)
    assert told(run(net, 3)) == [(key(0), b"again")]
    assert ttl_states(net)[key(0)] == ValidFor(9)
    assert net.invariants.ok


def test_an_expired_value_that_nobody_has_deleted_is_delivered_as_timed_out() -> None:
    net = Watched(broadcaster=replace(POLKADOT, max_ttl_scans_per_idle=0))
    system = net.add_parachain(SYSTEM_PUBLISHER)
    system.publish(key(0), b"stale", ttl=2)
    run(net, 6)
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, SYSTEM_PUBLISHER, keys(1))
    assert told(net.recorded_step()) == [(key(0), b"stale")]
    assert ttl_states(net) == {key(0): TimedOut()}


@pytest.mark.upstream("e2e_system_parachain_publisher")
def test_a_system_parachain_publishes_without_registration() -> None:
    net = network(publishers=())
    for para_id in (1_000, 1_999):
        net.add_parachain(para_id)
        net.subscribe(SUBSCRIBER, para_id, keys(2))
        publish(net, para_id, {name: para_id.to_bytes(2, "big") for name in keys(2)})
    run(net, 3)
    for para_id in (1_000, 1_999):
        assert kept(net, SUBSCRIBER, para_id) == {name: para_id.to_bytes(2, "big") for name in keys(2)}
    assert net.relay_chain.broadcaster.storage.registered_publishers.count() == 0


@pytest.mark.upstream("e2e_large_dataset")
def test_a_thousand_keys_arrive_and_the_cache_is_their_structure() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(1_200))
    publish(net, PUBLISHER, values(1_200))
    run(net, 8)
    assert kept(net, SUBSCRIBER) == values(1_200)
    changed: dict[bytes, bytes] = {key(number): b"changed" for number in (0, 600, 1_199)}
    publish(net, PUBLISHER, changed)
    records = run(net, 3)
    assert dict(told(records)) == changed
    assert records[-1].reads["relay_node"].nodes < 20, "three paths, not a thousand"
    storage = net.parachains[SUBSCRIBER].subscriber.storage
    subscribed = net.relay_chain.prove_child_read(net.relay_chain.head, b"pubsub" + PUBLISHER.encode(), keys(1_200))
    top = net.relay_chain.prove_read(net.relay_chain.head, [b":child_storage:default:pubsub" + PUBLISHER.encode()])
    assert set(storage.cache_of(PUBLISHER).all().values()) == subscribed.nodes - top.nodes
    assert net.invariants.ok


@pytest.mark.upstream("e2e_multiple_publishers")
@pytest.mark.upstream("multiple_publishers_single_subscriber")
def test_one_subscriber_hears_five_publishers() -> None:
    publishers = [ParaId(2_000 + number) for number in range(5)]
    net = network(publishers=publishers)
    for publisher in publishers:
        net.subscribe(SUBSCRIBER, publisher, keys(4))
    for tick in range(4):
        for publisher in publishers:
            publish(net, publisher, values(4, tick * 10_000 + publisher))
        net.step()
    run(net, 2)
    for publisher in publishers:
        assert kept(net, SUBSCRIBER, publisher) == values(4, 30_000 + publisher)
    assert net.invariants.ok


@pytest.mark.upstream("single_publisher_multiple_subscribers")
@pytest.mark.upstream("overlapping_subscriptions")
def test_subscribers_of_one_publisher_do_not_disturb_each_other() -> None:
    net = network(subscribers=(3_000, 3_001, 3_002))
    wanted = {3_000: keys(4), 3_001: keys(4, start=2), 3_002: keys(1, start=9)}
    for subscriber, names in wanted.items():
        net.subscribe(subscriber, PUBLISHER, names)
    publish(net, PUBLISHER, values(10))
    run(net, 4)
    for subscriber, names in wanted.items():
        assert kept(net, subscriber) == {name: values(10)[name] for name in names}
    assert net.invariants.ok


@pytest.mark.upstream("cache_reduces_proof_size")
@pytest.mark.upstream("cache_survives_no_changes")
def test_the_cache_makes_proofs_smaller_and_outlives_quiet_blocks() -> None:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER)
    net.add_parachain(OTHER_SUBSCRIBER, policies=Policies(cache=NoCache()))
    for subscriber in (SUBSCRIBER, OTHER_SUBSCRIBER):
        net.subscribe(subscriber, PUBLISHER, keys(60))
    publish(net, PUBLISHER, values(60))
    run(net, 10)
    quiet_cached, quiet = net.recorded_step()
    assert quiet_cached.reads == quiet.reads == {"relay_top": quiet.reads["relay_top"]}
    publish(net, PUBLISHER, {key(7): b"one"})
    cached, uncached = run(net, 3)[-2:]
    assert (cached.para_id, uncached.para_id) == (SUBSCRIBER, OTHER_SUBSCRIBER)
    assert [delivery.key for delivery in cached.deliveries] == [key(7)]
    assert cached.reads["relay_node"].proof_bytes * 3 < uncached.reads["relay_node"].proof_bytes


@pytest.mark.upstream("publisher_rapid_changes")
def test_of_a_publisher_that_changes_all_the_time_each_block_tells_the_newest() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, [key(0)])
    records = []
    for tick in range(1, 12):
        for turn in range(5):
            publish(net, PUBLISHER, {key(0): value(100 * tick + turn)})
        records += net.recorded_step()
    assert told(records) == [(key(0), value(100 * tick + 4)) for tick in range(1, 10)]
    assert [delivery.conflated for delivery in deliveries(records)] == [0] + [4] * 8
    assert net.invariants.ok


@pytest.mark.upstream("publisher_pathological_trie")
@pytest.mark.upstream("publisher_disabled_then_enabled")
def test_a_publisher_with_a_deep_trie_is_disabled_and_harms_nobody() -> None:
    """Keys that part one nibble after another lead a path past twenty branches; sixteen nodes are allowed."""
    net = network(publishers=(PUBLISHER, OTHER_PUBLISHER))
    target, deep = bytes(32), deep_keys(20)
    for publisher in (PUBLISHER, OTHER_PUBLISHER):
        net.subscribe(SUBSCRIBER, publisher, [target])
        publish(net, publisher, {target: b"fine"})
    run(net, 3)
    publish(net, PUBLISHER, dict.fromkeys(deep, bytes(40)) | {target: b"deep"})
    publish(net, OTHER_PUBLISHER, {target: b"unharmed"})
    records = run(net, 5)
    assert [record.disabled for record in records if record.disabled] == [(PUBLISHER,)]
    assert kept(net, SUBSCRIBER) == {SubscribedKey(target): b"fine"}
    assert kept(net, SUBSCRIBER, OTHER_PUBLISHER) == {SubscribedKey(target): b"unharmed"}
    broadcaster = net.relay_chain.broadcaster
    declared = broadcaster.config.weight("delete_keys", n=len(deep))
    net.call(lambda: broadcaster.delete_keys(Origin.parachain(PUBLISHER), deep), declared=declared)
    run(net, 2)
    net.parachains[SUBSCRIBER].subscriber.enable_publisher(Origin.root(), PUBLISHER)
    assert told(run(net, 2)) == [(target, b"deep")]
    assert net.invariants.ok


@pytest.mark.upstream("e2e_collator_restart")
@pytest.mark.upstream("cursor_recovery_after_restart")
def test_a_collator_that_starts_again_goes_on_as_if_nothing_had_been() -> None:
    """Even in the middle of a pass: the cursor is in the parachain's state, not in its collator."""

    def heads(*, restarts: bool) -> tuple[list[bytes], list[bool]]:
        net = network(subscribers=())
        parachain = net.add_parachain(SUBSCRIBER, budget=EVERYTHING, max_pov_size=4_000)
        net.subscribe(SUBSCRIBER, PUBLISHER, keys(12))
        publish(net, PUBLISHER, values(12, 0, 1_000))
        records = []
        for _ in range(9):
            records += net.recorded_step()
            if restarts:
                net.collators[SUBSCRIBER] = Collator(parachain, net.relay_chain, max_pov_size=4_000)
        assert kept(net, SUBSCRIBER) == values(12, 0, 1_000)
        assert net.invariants.ok
        return [parachain.head.hash, net.relay_chain.head.hash], [record.complete for record in records]

    calm, restarted = heads(restarts=False), heads(restarts=True)
    assert calm == restarted
    assert calm[1].count(False) == 3


@pytest.mark.upstream("e2e_validator_restart")
def test_a_validator_that_starts_from_nothing_reaches_the_same_heads() -> None:
    """All that a block does follows from the inherents: they are executed again by one that saw nothing else."""
    net = network(subscribers=())
    inherents: list[ParachainInherentData] = []

    def record(inherent: ParachainInherentData) -> ParachainInherentData:
        inherents.append(inherent)
        return inherent

    subscriber = net.add_parachain(SUBSCRIBER, budget=EVERYTHING, max_pov_size=4_000, tamper=record)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(12))
    heads = []
    for tick in range(10):
        publish(net, PUBLISHER, dict(list(values(12, tick, 600).items())[tick % 3 :: 3]))
        net.step()
        heads.append(subscriber.head)
    validator = Parachain(SUBSCRIBER, budget=EVERYTHING)
    validator.subscribe(PUBLISHER, keys(12))
    assert [validator.build_block(inherent).header for inherent in inherents] == heads
    assert validator.state.snapshot() == subscriber.state.snapshot()
    assert validator.kept.values == subscriber.kept.values
