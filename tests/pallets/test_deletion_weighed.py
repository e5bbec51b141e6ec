"""Deletions told while a block has time for few callbacks."""

import pytest

from pallets.block_vectors import ALPHA, BETA, path_key, staircase
from pallets.subscriber_invariants import callbacks_within_the_limit
from pallets.subscriber_mutants import count_no_deletions
from pallets.subscriber_world import K
from pallets.told_world import TOLD
from pallets.weighing_world import WeighingWorld, micros
from relaycast_pallets import CallbackBeyondLimit
from relaycast_xcm.primitives import ParaId


def weighing(limit: int, *, publishers: tuple[ParaId, ...] = (ALPHA,)) -> WeighingWorld:
    """Return a world whose reader was told ten keys of each publisher; a block has time for ``limit`` callbacks."""
    world = WeighingWorld(each=micros(1), limit=micros(100), policies=TOLD)
    for publisher in publishers:
        world.subscribe(publisher, K)
        world.publish(publisher, K, bytes(40))
    world.block()
    world.handler.take()
    world.system.events.take()
    world.allow(micros(limit))
    return world


def test_values_and_deletions_share_the_limit() -> None:
    world = weighing(3, publishers=(ALPHA, BETA))
    world.publish(ALPHA, K[1:6:2], bytes(50))
    world.delete(ALPHA, K[0:6:2])
    world.delete(BETA, K[:1])
    blocks = [world.block() for _ in range(3)]
    assert [(len(block.calls), len(block.deleted)) for block in blocks] == [(1, 2), (2, 1), (0, 1)]
    assert blocks[-1].result.is_complete


def test_a_trie_that_comes_back_while_its_deletions_wait_is_told_as_it_is() -> None:
    world = weighing(4)
    world.delete(ALPHA, K)
    assert len(world.block().deleted) == 4
    world.publish(ALPHA, [K[0], K[7]], b"again")
    blocks = [world.block() for _ in range(3)]
    assert sorted(it for block in blocks for it in block.called) == [(ALPHA, K[0]), (ALPHA, K[7])]
    owed = {*K[4:]} - {K[7]}
    assert sorted(it for block in blocks for it in block.deleted) == sorted((ALPHA, key) for key in owed)
    assert blocks[-1].result.is_complete


def test_a_deletion_that_never_fits_is_passed_over_and_stays_owed() -> None:
    world = weighing(3)
    world.weigher.declared[ALPHA, K[1]] = micros(9)
    world.delete(ALPHA, K[:4])
    told = [it for _ in range(6) for it in world.block().deleted]
    assert sorted(told) == [(ALPHA, key) for key in (K[0], K[2], K[3])]
    assert CallbackBeyondLimit(ALPHA, K[1], micros(9), micros(3)) in world.system.events.of(CallbackBeyondLimit)
    world.allow(micros(9))
    assert [it for _ in range(2) for it in world.block().deleted] == [(ALPHA, K[1])]


def test_deletions_of_a_disabled_publisher_leave_their_room_to_others() -> None:
    """The publisher's first key is deleted and noted, then another of its paths turns out too deep."""
    deep, early = staircase(12, subscribed=path_key("f")), path_key("0001")
    world = WeighingWorld(each=micros(1), limit=micros(3), policies=TOLD)
    world.subscribe(ALPHA, [early, deep[0]])
    world.publish(ALPHA, [early, deep[0]], bytes(40))
    world.subscribe(BETA, K[:1])
    world.publish(BETA, K[:1], bytes(40))
    world.block()
    world.allow(micros(1))
    world.publish(ALPHA, deep, bytes(50))
    world.delete(ALPHA, [early])
    world.delete(BETA, K[:1])
    block = world.block()
    callbacks_within_the_limit(world, block)
    assert ALPHA in world.storage.disabled_publishers
    assert block.deleted == ((BETA, K[0]),)
    assert block.result.is_complete


def test_a_pallet_that_counts_no_deletions_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    count_no_deletions(monkeypatch)
    with pytest.raises(AssertionError):
        test_values_and_deletions_share_the_limit()
