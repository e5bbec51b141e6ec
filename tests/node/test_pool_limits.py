"""A pool holds as much as its limits allow. The worst leave first; a block may make more ready than the limit."""

from dataclasses import replace

from node.small_chain import ALICE, BOB, CHARLIE, signed
from node.small_pool import CHAIN, block, refused
from relaycast_node.extrinsic.pool import TransactionPool
from relaycast_node.extrinsic.tag_graph import QueueLimit
from relaycast_node.extrinsic.watchers import DROPPED, FUTURE, READY, TransactionStatus


def test_a_pool_that_is_full_of_better_ones_drops_the_newcomer() -> None:
    pool = TransactionPool(CHAIN, ready_limit=QueueLimit(2, 10_000))
    pool.submit(signed(CHAIN, BOB, 0, tip=5))
    pool.submit(signed(CHAIN, CHARLIE, 0, tip=5))
    worst = signed(CHAIN, ALICE, 0)
    dropped = (1016, "Immediately Dropped", "The transaction couldn't enter the pool because of the limit")
    assert refused(pool, worst) == dropped
    assert refused(pool, worst)[0] == 1012


def test_a_better_newcomer_pushes_the_worst_out_of_a_full_pool() -> None:
    pool, told = TransactionPool(CHAIN, ready_limit=QueueLimit(2, 10_000)), list[TransactionStatus]()
    pool.submit_and_watch(signed(CHAIN, ALICE, 0), told.append)
    best = [signed(CHAIN, BOB, 0, tip=5), signed(CHAIN, CHARLIE, 0, tip=5)]
    for data in best:
        pool.submit(data)
    assert pool.pending() == best
    assert told == [READY, DROPPED]


def test_futures_are_limited_by_bytes_too() -> None:
    first, second = signed(CHAIN, ALICE, 1), signed(CHAIN, BOB, 10)
    pool = TransactionPool(CHAIN, future_limit=QueueLimit(100, len(second)))
    pool.submit(first)
    pool.submit(second)
    assert pool.futures() == [second]
    assert refused(pool, first)[0] == 1012


def test_what_a_block_makes_ready_exceeds_the_limit_until_the_next_is_taken() -> None:
    pool, told = TransactionPool(CHAIN, ready_limit=QueueLimit(1, 10_000)), list[TransactionStatus]()
    pool.submit_and_watch(signed(CHAIN, ALICE, 1), told.append)
    pool.submit(signed(CHAIN, BOB, 0))
    block(pool, signed(CHAIN, ALICE, 0))
    assert pool.pending() == [signed(CHAIN, BOB, 0), signed(CHAIN, ALICE, 1)]
    refused(pool, signed(CHAIN, ALICE, 0))
    assert pool.status().ready == 2
    best = signed(CHAIN, CHARLIE, 0, tip=5)
    pool.submit(best)
    assert pool.pending() == [best]
    assert told == [FUTURE, READY, DROPPED]


def test_one_that_a_block_left_valid_is_taken_again_within_the_limit() -> None:
    kept, worst = signed(CHAIN, ALICE, 0, tip=5), signed(CHAIN, CHARLIE, 1)
    told = list[TransactionStatus]()
    pool = TransactionPool(CHAIN, ready_limit=QueueLimit(1, 10_000))
    pool.submit(kept)
    pool.submit_and_watch(worst, told.append)
    failed = signed(CHAIN, ALICE, 0)
    pool.prune([failed, signed(CHAIN, CHARLIE, 0)], replace(CHAIN, block_number=11, nonces={CHARLIE.account: 1}))
    assert pool.pending() == [kept]
    assert told == [FUTURE, READY, DROPPED]
    assert refused(pool, worst)[0] == 1012
