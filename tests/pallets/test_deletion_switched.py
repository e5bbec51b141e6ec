"""Runtime upgrades that begin to tell of deletions, or cease to: which keys count as delivered."""

from collections.abc import Callable

import pytest

from pallets.block_vectors import ALPHA
from pallets.subscriber_world import K, World
from pallets.told_world import TOLD, bits, clear_root, told_world
from relaycast_pallets import Policies
from relaycast_pallets.subscriber.variants.deletions import migrate_delivered


def switch(world: World, policies: Policies) -> None:
    """Upgrade the runtime to other policies, with the migration that this takes."""
    before, world.subscriber.policies = world.subscriber.policies, policies
    migrate_delivered(world.storage, notified_before=before.deletion.notifies, notifies=policies.deletion.notifies)


def switch_unmigrated(world: World, policies: Policies) -> None:
    world.subscriber.policies = policies


@pytest.mark.parametrize("upgrade", [switch, switch_unmigrated])
def test_switched_on_in_mid_run_keys_dealt_with_count_as_delivered(upgrade: Callable[[World, Policies], None]) -> None:
    world = told_world(policies=Policies())
    upgrade(world, TOLD)
    assert world.block().deleted == ()
    assert bits(world) == (None if upgrade is switch_unmigrated else "11100000")
    world.subscribe(ALPHA, K[1:5])
    world.delete(ALPHA, [K[2], K[4]])
    assert world.block().deleted == ((ALPHA, K[2]),), "the last one is new, and was never delivered"
    assert bits(world) == "10100000"


def test_switched_on_while_a_first_pass_is_interrupted_only_keys_dealt_with_count() -> None:
    world = World()
    world.subscribe(ALPHA, K)
    world.publish(ALPHA, K, bytes(100))
    first = world.block(1_000)
    assert 0 < len(first.called) < len(K)
    switch(world, TOLD)
    world.delete(ALPHA, K)
    assert world.block().deleted == tuple(first.called)


def test_switched_off_the_items_go_and_switched_on_again_keys_count_as_delivered() -> None:
    world = told_world()
    world.delete(ALPHA, K[:1])
    world.block()
    switch(world, Policies())
    assert bits(world) is None
    world.subscribe(ALPHA, [K[2], *K[5:7]])
    assert world.block().deleted == ()
    switch(world, TOLD)
    world.delete(ALPHA, K[6:7])
    assert world.block().deleted == ((ALPHA, K[6]),)


def test_switched_on_after_a_root_was_cleared_nothing_counts_until_it_is_dealt_with_again() -> None:
    """While deletions are silent a root alone says that its keys were delivered."""
    world = told_world(policies=Policies())
    clear_root(world)
    switch(world, TOLD)
    world.delete(ALPHA, K[:1])
    assert world.block().deleted == ()
    world.delete(ALPHA, K[1:2])
    assert world.block().deleted == ((ALPHA, K[1]),)


def test_what_is_deleted_after_an_upgrade_that_forgets_roots_is_told() -> None:
    world = told_world(policies=Policies())
    switch(world, TOLD)
    clear_root(world)
    world.delete(ALPHA, K[:1])
    assert world.block().deleted == ((ALPHA, K[0]),)


def test_a_migration_touches_nothing_where_the_policy_stays() -> None:
    world = told_world()
    before = world.state.snapshot()
    assert migrate_delivered(world.storage, notified_before=True, notifies=True) == 0
    assert world.state.snapshot() == before
    assert migrate_delivered(world.storage, notified_before=True, notifies=False) == 1
    assert migrate_delivered(world.storage, notified_before=False, notifies=True) == 1
    assert world.state.snapshot() == before
