"""The pool takes, refuses, orders, prunes and tells, as sc-transaction-pool does and sc-rpc-api words it."""

import pickle
from dataclasses import replace

import pytest

from node.small_chain import ALICE, BOB, CHARLIE, LONGEST, SmallChain, remark, set_timestamp, signed
from node.small_pool import CHAIN, block, refused
from relaycast_node.extrinsic.era import Mortal
from relaycast_node.extrinsic.extrinsic import Bare, MetadataHashMode, extrinsic_hash
from relaycast_node.extrinsic.pool import BAN_SECONDS, MOST_BANNED, PoolStatus, TransactionPool
from relaycast_node.extrinsic.pool_errors import (
    AlreadyImported,
    BadExtrinsicFormat,
    CycleDetected,
    ImmediatelyDropped,
    InvalidInPool,
    NoTagsProvided,
    PoolError,
    TemporarilyBanned,
    TooLowPriority,
    UnknownValidity,
    VerificationFailed,
)
from relaycast_node.extrinsic.tag_graph import QueueLimit
from relaycast_node.extrinsic.validity_errors import Invalid, InvalidTransaction, Unknown, UnknownTransaction
from relaycast_node.extrinsic.watchers import (
    DROPPED,
    FUTURE,
    INVALID,
    MOST_BLOCKS_AWAITING_FINALITY,
    READY,
    StatusKind,
    TransactionStatus,
    Watchers,
)
from relaycast_trie.scale import encode_bytes


def pool_of(*data: bytes, chain: SmallChain = CHAIN) -> TransactionPool:
    pool = TransactionPool(chain)
    for one in data:
        pool.submit(one)
    return pool


def test_a_pool_returns_the_hash_and_holds_the_bytes() -> None:
    data = signed(CHAIN, ALICE, 0)
    pool = TransactionPool(CHAIN)
    assert pool.submit(data) == extrinsic_hash(data)
    assert pool.pending() == [data]
    assert extrinsic_hash(data) in pool
    assert pool.status() == PoolStatus(1, len(data), 0, 0)


def test_a_nonce_ahead_waits_until_the_gap_is_filled() -> None:
    zero, one, two = (signed(CHAIN, ALICE, nonce) for nonce in range(3))
    pool = pool_of(two, one)
    assert (pool.pending(), pool.futures()) == ([], [two, one])
    pool.submit(zero)
    assert (pool.pending(), pool.futures()) == ([zero, one, two], [])


def test_the_next_nonce_is_behind_what_is_ready() -> None:
    pool = pool_of(signed(CHAIN, ALICE, 0), signed(CHAIN, ALICE, 1), signed(CHAIN, ALICE, 3))
    assert (pool.next_nonce(ALICE.account), pool.next_nonce(BOB.account)) == (2, 0)
    assert pool_of(chain=replace(CHAIN, nonces={BOB.account: 7})).next_nonce(BOB.account) == 7


def test_a_tip_goes_first_and_nonces_stay_in_order() -> None:
    alice = [signed(CHAIN, ALICE, 0), signed(CHAIN, ALICE, 1, tip=90)]
    bob = [signed(CHAIN, BOB, 0, tip=5), signed(CHAIN, BOB, 1)]
    charlie = [signed(CHAIN, CHARLIE, 0)]
    assert pool_of(*alice, *bob, *charlie).pending() == [bob[0], alice[0], alice[1], bob[1], charlie[0]]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (signed(replace(CHAIN, spec_version=1), ALICE, 0), "Transaction has a bad signature"),
        (signed(CHAIN, ALICE, 0, tip=1 << 101), "Inability to pay some fees (e.g. account balance too low)"),
        (signed(CHAIN, ALICE, 0, call=remark(bytes(LONGEST))), "Transaction would exhaust the block limits"),
        (
            signed(replace(CHAIN, block_number=5_003), ALICE, 0, era=Mortal.starting_at(5_003, period=64)),
            "Transaction has an ancient birth block",
        ),
        (
            Bare(set_timestamp(1)).encode(),
            "Transaction dispatch is mandatory; transactions must not be validated.",
        ),
    ],
)
def test_what_is_invalid_is_refused_with_its_reason_and_then_banned(data: bytes, expected: str) -> None:
    pool = TransactionPool(CHAIN)
    assert refused(pool, data) == (1010, "Invalid Transaction", expected)
    assert refused(pool, data) == (1012, "Transaction is temporarily banned", None)


def test_a_nonce_that_was_used_is_outdated() -> None:
    pool = pool_of(chain=replace(CHAIN, nonces={ALICE.account: 1}))
    assert refused(pool, signed(CHAIN, ALICE, 0)) == (1010, "Invalid Transaction", "Transaction is outdated")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (Bare(remark(b"")).encode(), "NoUnsignedValidator"),
        (signed(CHAIN, ALICE, 0, mode=MetadataHashMode.ENABLED), "CannotLookup"),
    ],
)
def test_what_nobody_can_judge_is_refused_every_time(data: bytes, expected: str) -> None:
    pool = TransactionPool(CHAIN)
    assert [refused(pool, data) for _ in range(2)] == [(1011, "Unknown Transaction Validity", expected)] * 2


def test_bytes_whose_length_is_wrong_have_a_bad_format() -> None:
    reason = "the extrinsic announces 4 bytes, 2 follow at byte 0"
    expected = (1001, f"Extrinsic has invalid format: {reason}", None)
    assert refused(TransactionPool(CHAIN), b"\x10\x04\x00") == expected


@pytest.mark.parametrize("body", [b"\x45\x00", b"\x04\xff\xff", b"\x84\x00", signed(CHAIN, ALICE, 0)[2:] + b"\x00"])
def test_bytes_that_the_runtime_cannot_decode_fail_verification(body: bytes) -> None:
    code, message, data = refused(TransactionPool(CHAIN), encode_bytes(body))
    assert (code, data) == (1002, None)
    assert message.startswith("Verification Error: ")
    assert "\n" not in message


def test_what_is_here_is_refused_as_such_every_time() -> None:
    for data in (signed(CHAIN, ALICE, 0), signed(CHAIN, ALICE, 5)):
        pool = pool_of(data)
        known = f"0x{extrinsic_hash(data).hex()}"
        assert [refused(pool, data) for _ in range(3)] == [(1013, "Transaction Already Imported", known)] * 3


@pytest.mark.parametrize("tip", [0, 5])
def test_a_replacement_must_pay_more(tip: int) -> None:
    pool = pool_of(signed(CHAIN, ALICE, 0, tip=5))
    assert refused(pool, signed(CHAIN, ALICE, 0, tip=tip, call=remark(b"other"))) == (
        1014,
        f"Priority is too low: (6 vs {tip + 1})",
        "The transaction has too low priority to replace another transaction already in the pool.",
    )


def test_a_replacement_that_pays_more_usurps() -> None:
    old, new, child = signed(CHAIN, ALICE, 0), signed(CHAIN, ALICE, 0, tip=1), signed(CHAIN, ALICE, 1)
    pool, told = TransactionPool(CHAIN), list[TransactionStatus]()
    pool.submit_and_watch(old, told.append)
    pool.submit(child)
    usurper = pool.submit(new)
    assert pool.pending() == [new, child]
    assert told == [READY, TransactionStatus(StatusKind.USURPED, usurper)]


def test_a_ban_ends_after_half_an_hour() -> None:
    now = 1_000.0
    pool = TransactionPool(replace(CHAIN, nonces={ALICE.account: 1}), clock=lambda: now)
    data = signed(CHAIN, ALICE, 0)
    assert refused(pool, data)[0] == 1010
    now += BAN_SECONDS
    assert refused(pool, data)[0] == 1012
    now += 1
    assert refused(pool, data)[0] == 1010


def test_bans_do_not_pile_up() -> None:
    pool = TransactionPool(CHAIN)
    for number in range(MOST_BANNED + 1):
        pool.remove([number.to_bytes(32, "big")])
    assert len(pool._banned_until) == MOST_BANNED // 2
    assert list(pool._banned_until)[-1] == MOST_BANNED.to_bytes(32, "big")


def test_a_block_takes_its_extrinsics_and_lets_the_others_go_on() -> None:
    zero, one, three = (signed(CHAIN, ALICE, nonce) for nonce in (0, 1, 3))
    pool = pool_of(zero, one, three, signed(CHAIN, BOB, 0))
    after, _ = block(pool, Bare(set_timestamp(6)).encode(), zero)
    assert pool.pending() == [one, signed(CHAIN, BOB, 0)]
    assert pool.futures() == [three]
    assert refused(pool, zero)[0] == 1012
    block(pool, one, signed(CHAIN, ALICE, 2), chain=after)
    assert (pool.pending(), pool.futures()) == ([signed(CHAIN, BOB, 0), three], [])


def test_one_that_a_block_made_invalid_hears_so() -> None:
    ours, theirs, told = signed(CHAIN, ALICE, 0), signed(CHAIN, ALICE, 0, tip=9), list[TransactionStatus]()
    pool = TransactionPool(CHAIN)
    pool.submit_and_watch(ours, told.append)
    pool.submit(signed(CHAIN, ALICE, 1))
    block(pool, theirs)
    assert told == [READY, INVALID]
    assert pool.pending() == [signed(CHAIN, ALICE, 1)]


def test_a_future_one_whose_nonce_a_block_used_is_dropped() -> None:
    told = list[TransactionStatus]()
    pool = TransactionPool(CHAIN)
    pool.submit_and_watch(signed(CHAIN, ALICE, 1), told.append)
    block(pool, signed(CHAIN, ALICE, 0, tip=1), signed(CHAIN, ALICE, 1, tip=1))
    assert told == [FUTURE, DROPPED]
    assert pool.status() == PoolStatus(0, 0, 0, 0)


def test_a_mortal_one_leaves_when_the_next_block_is_beyond_its_era() -> None:
    told = list[TransactionStatus]()
    pool, chain = TransactionPool(CHAIN), CHAIN
    data = signed(CHAIN, ALICE, 0, era=Mortal.starting_at(10, period=4))
    pool.submit_and_watch(data, told.append)
    for number in (11, 12):
        chain, _ = block(pool, chain=chain)
        assert (chain.block_number, pool.pending()) == (number, [data])
    chain, _ = block(pool, chain=chain)
    assert (chain.block_number, pool.pending()) == (13, [])
    assert told == [READY, INVALID]


def test_statuses_lead_from_the_pool_to_finality() -> None:
    told = list[TransactionStatus]()
    pool = TransactionPool(CHAIN)
    data = signed(CHAIN, ALICE, 1)
    pool.submit_and_watch(data, told.append)
    pool.submit(signed(CHAIN, ALICE, 0))
    _, block_hash = block(pool, Bare(set_timestamp(6)).encode(), signed(CHAIN, ALICE, 0), data)
    pool.finalize(block_hash)
    pool.finalize(block_hash)
    assert told == [
        FUTURE,
        READY,
        TransactionStatus(StatusKind.IN_BLOCK, block_hash, 2),
        TransactionStatus(StatusKind.FINALIZED, block_hash, 2),
    ]
    assert [status.is_last for status in told] == [False, False, False, True]


def test_what_a_retracted_block_included_waits_for_another() -> None:
    told = list[TransactionStatus]()
    pool = TransactionPool(CHAIN)
    data = [signed(CHAIN, ALICE, nonce) for nonce in range(4)]
    pool.submit_and_watch(data[0], told.append)
    for one in data[1:]:
        pool.submit(one)
    included = [Bare(set_timestamp(6)).encode(), *data[:2]]
    _, lost = block(pool, *included)
    assert pool.pending() == data[2:]
    fork = replace(CHAIN, fork=b"other")
    pool.retract(lost, included, fork)
    assert pool.pending() == data
    _, found = block(pool, data[0], chain=fork)
    assert pool.pending() == data[1:]
    assert told == [
        READY,
        TransactionStatus(StatusKind.IN_BLOCK, lost, 1),
        TransactionStatus(StatusKind.RETRACTED, lost),
        READY,
        TransactionStatus(StatusKind.IN_BLOCK, found, 0),
    ]


def test_what_signed_a_block_that_was_retracted_is_invalid_on_the_fork() -> None:
    pool, told = TransactionPool(CHAIN), list[TransactionStatus]()
    after, lost = block(pool)
    pool.submit_and_watch(signed(after, ALICE, 0, era=Mortal.starting_at(11, period=64)), told.append)
    pool.retract(lost, [], replace(CHAIN, block_number=11, fork=b"other"))
    assert told == [READY, INVALID]


def test_judging_anew_tells_only_what_changes() -> None:
    alice, bob = list[TransactionStatus](), list[TransactionStatus]()
    pool = TransactionPool(CHAIN)
    pool.submit_and_watch(signed(CHAIN, ALICE, 0), alice.append)
    pool.submit_and_watch(signed(CHAIN, BOB, 2), bob.append)
    pool.revalidate(CHAIN)
    assert (alice, bob) == ([READY], [FUTURE])
    pool.revalidate(replace(CHAIN, nonces={BOB.account: 2}, balances={BOB.account: 100}))
    assert (alice, bob) == ([READY, INVALID], [FUTURE, READY])
    pool.revalidate(CHAIN)
    assert bob == [FUTURE, READY, FUTURE]


def test_removing_says_what_left_and_bans_what_was_named() -> None:
    zero, one, two = (signed(CHAIN, ALICE, nonce) for nonce in range(3))
    told = list[TransactionStatus]()
    pool = pool_of(zero, one)
    pool.submit_and_watch(two, told.append)
    assert pool.remove([extrinsic_hash(one), bytes(32)]) == [extrinsic_hash(one), extrinsic_hash(two)]
    assert (pool.pending(), told) == ([zero], [READY, INVALID])
    assert refused(pool, one)[0] == 1012
    pool.submit(two)


def test_one_that_is_refused_is_not_watched() -> None:
    told = list[TransactionStatus]()
    pool = pool_of(signed(CHAIN, BOB, 0, tip=5))
    for data in (b"", signed(CHAIN, BOB, 0), signed(replace(CHAIN, spec_version=1), ALICE, 0)):
        with pytest.raises(PoolError):
            pool.submit_and_watch(data, told.append)
    full = TransactionPool(CHAIN, ready_limit=QueueLimit(0, 0))
    with pytest.raises(ImmediatelyDropped):
        full.submit_and_watch(signed(CHAIN, ALICE, 0), told.append)
    assert told == []


def test_one_who_disconnects_hears_no_more_and_the_others_go_on() -> None:
    first, second = list[TransactionStatus](), list[TransactionStatus]()
    pool, data = TransactionPool(CHAIN), signed(CHAIN, ALICE, 0)
    transaction_hash, disconnect = pool.submit_and_watch(data, first.append)
    pool.watch(transaction_hash, second.append)
    disconnect()
    disconnect()
    _, block_hash = block(pool, data)
    assert (first, second) == ([READY], [TransactionStatus(StatusKind.IN_BLOCK, block_hash, 0)])


def test_one_who_waits_too_long_for_finality_hears_so() -> None:
    watchers, told = Watchers(), list[TransactionStatus]()
    watchers.connect(b"x", told.append)
    for number in range(MOST_BLOCKS_AWAITING_FINALITY + 1):
        watchers.in_block(b"block %d" % number, [b"x"] if number == 0 else [])
    assert told[1:] == [TransactionStatus(StatusKind.FINALITY_TIMEOUT, b"block 0")]
    watchers.finalized(b"block 0")
    assert len(told) == 2


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (BadExtrinsicFormat("why"), 1001, "Extrinsic has invalid format: why"),
        (VerificationFailed("why"), 1002, "Verification Error: why"),
        (InvalidInPool(InvalidTransaction(Invalid.STALE)), 1010, "Invalid Transaction: Transaction is outdated"),
        (InvalidInPool(InvalidTransaction(Invalid.CUSTOM, 9)), 1010, "Invalid Transaction: Custom error: 9"),
        (UnknownValidity(UnknownTransaction(Unknown.CUSTOM, 9)), 1011, "Unknown Transaction Validity: Custom(9)"),
        (TemporarilyBanned(), 1012, "Transaction is temporarily banned"),
        (AlreadyImported(b"\x0a"), 1013, "Transaction Already Imported: 0x0a"),
        (TooLowPriority(2, 1), 1014, "Priority is too low: (2 vs 1): The transaction has too low priority to replace"),
        (CycleDetected((b"a",)), 1015, "Cycle Detected"),
        (ImmediatelyDropped(), 1016, "Immediately Dropped: The transaction couldn't enter the pool because of"),
        (NoTagsProvided(), 1019, "No tags provided: Transaction does not provide any tags, so the pool can't"),
    ],
)
def test_every_refusal_has_its_code_and_line_and_survives_a_pickle(error: PoolError, code: int, line: str) -> None:
    assert error.code == code
    assert str(error).startswith(line)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))
