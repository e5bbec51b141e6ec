"""Upward messages: what a queue takes, what a block serves, and what is told about each message."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie.exceptions import CodecError
from relaycast_trie.hasher import blake2_256
from relaycast_xcm import (
    V5,
    AllowPublishFrom,
    BarrierChain,
    CapacityExceeded,
    ClearOrigin,
    Corrupt,
    Incomplete,
    MessageTooLarge,
    MoreMessagesThanPermitted,
    NoBarrierAllows,
    OnlyParachains,
    OriginKind,
    OverweightEnqueued,
    ParachainBroadcastAdapter,
    ParaId,
    Processed,
    ProcessingFailed,
    Publish,
    SetTopic,
    StackLimitReached,
    TotalSizeExceeded,
    TrailingSetTopicAsId,
    Transact,
    Unsupported,
    UnsupportedVersion,
    UpwardLimits,
    UpwardMessageQueue,
    UpwardQueueError,
    Weigher,
    Weight,
    WeightMeter,
    XcmExecutor,
)
from relaycast_xcm.checkpoint import CheckpointRefused
from relaycast_xcm.exceptions import WeightNotComputable
from relaycast_xcm.ump import UpwardDump, WaitingDump
from relaycast_xcm.weigher import TEST_WEIGHTS
from xcm.in_memory import PublisherUnknown, Store

A, B, C = ParaId(1_000), ParaId(1_001), ParaId(3_000)
SMALL = UpwardLimits(messages_per_candidate=3, message_bytes=100, queue_count=4, queue_bytes=250)
TOPIC = bytes([7]) * 32


def message(number: int = 0, *, count: int = 1) -> bytes:
    return V5.encode([Publish(bytes([number, at]) + bytes(30), b"v", 0) for at in range(count)])


def queue_of(
    store: Store,
    *,
    limits: UpwardLimits | None = None,
    weigher: Weigher = TEST_WEIGHTS,
    service_weight: Weight = Weight.MAX,
    overhead: Weight = Weight.ZERO,
) -> UpwardMessageQueue:
    barrier = TrailingSetTopicAsId(BarrierChain(AllowPublishFrom(OnlyParachains(), 4)))
    executor = XcmExecutor(barrier, broadcast=ParachainBroadcastAdapter(OnlyParachains(), store), weigher=weigher)
    return UpwardMessageQueue(
        executor, limits=limits or UpwardLimits(), service_weight=service_weight, overhead=overhead
    )


def test_a_message_is_queued_by_its_hash_and_publishes_when_it_is_served() -> None:
    store = Store()
    queue = queue_of(store)
    data = message()
    assert queue.enqueue(A, data) == blake2_256(data)
    assert (queue.count(A), queue.size_bytes(A), queue.waiting) == (1, len(data), 1)
    assert store.stored == {}

    [result] = queue.service(Weight(100, 100))
    assert isinstance(result, Processed)
    assert (result.id, result.origin, result.weight_used, result.success) == (blake2_256(data), A, Weight(10, 10), True)
    assert list(store.stored) == [(1_000, bytes(32))]
    assert (queue.count(A), queue.size_bytes(A), queue.waiting) == (0, 0, 0)
    assert queue.service() == ()


def test_a_message_that_fails_is_processed_without_success_and_says_why() -> None:
    queue = queue_of(Store())
    queue.enqueue(C, message())
    [result] = queue.service()
    assert isinstance(result, Processed)
    assert not result.success
    assert isinstance(result.outcome, Incomplete)
    assert isinstance(result.outcome.error.cause, PublisherUnknown)
    assert queue.waiting == 0


def test_a_topic_becomes_the_messages_id() -> None:
    queue = queue_of(Store())
    queue.enqueue(A, V5.encode((Publish(bytes(32), b"v", 0), SetTopic(TOPIC))))
    [result] = queue.service()
    assert result.id == TOPIC


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", CodecError),
        (b"\x05\x04\x08", CodecError),  # an instruction that is not read
        (b"\x04\x00", UnsupportedVersion),
        (message() + b"\x00", CodecError),  # bytes left over
    ],
)
def test_bytes_that_are_no_message_are_dropped_as_corrupt(data: bytes, cause: type[Exception]) -> None:
    store = Store()
    queue = queue_of(store)
    queue.enqueue(A, data)
    queue.enqueue(A, message())
    failed, processed = queue.service()
    assert isinstance(failed, ProcessingFailed)
    assert failed.error == Corrupt()
    assert isinstance(failed.cause, cause)
    assert isinstance(processed, Processed)
    assert len(store.stored) == 1


def test_a_message_that_no_barrier_allows_is_unsupported_and_the_barriers_word_is_kept() -> None:
    store = Store()
    queue = queue_of(store)
    queue.enqueue(A, message(count=5))
    [result] = queue.service()
    assert isinstance(result, ProcessingFailed)
    assert result.error == Unsupported()
    assert isinstance(result.cause, NoBarrierAllows)
    assert result.cause.refusals == (("AllowPublishFrom", StackLimitReached()),)
    assert store.stored == {}


def test_a_message_that_cannot_be_weighed_does_not_run() -> None:
    store = Store()
    queue = queue_of(store, weigher=Weigher(Weight(10, 10), max_instructions=2))
    queue.enqueue(A, message(count=3))
    queue.enqueue(A, V5.encode((Transact(OriginKind.NATIVE, None, b""), ClearOrigin())))
    too_long, silent = queue.service()
    assert isinstance(too_long, ProcessingFailed)
    assert isinstance(silent, ProcessingFailed)
    assert too_long.error == StackLimitReached()
    assert silent.error == Unsupported()
    assert silent.cause == WeightNotComputable()
    assert store.stored == {}


def test_what_a_block_cannot_serve_waits_for_the_next_in_its_order() -> None:
    store = Store()
    queue = queue_of(store, service_weight=Weight(25, 25))
    ids = [queue.enqueue(A, message(number)) for number in range(5)]
    assert [result.id for result in queue.service()] == ids[:2]
    assert queue.waiting == 3
    assert [result.id for result in queue.service()] == ids[2:4]
    assert queue.service(Weight(9, 10)) == ()
    assert [result.id for result in queue.service()] == ids[4:]


def test_every_queue_is_served_first_in_turn() -> None:
    queue = queue_of(Store(), service_weight=Weight(10, 10))
    for number in range(3):
        for para in (A, B):
            queue.enqueue(para, message(number))
    served = [result.origin for _ in range(6) for result in queue.service()]
    assert served == [A, B, A, B, A, B]


def test_a_small_message_of_another_queue_fits_where_a_large_one_does_not() -> None:
    queue = queue_of(Store(), service_weight=Weight(40, 40))
    queue.enqueue(A, message(count=4))
    queue.enqueue(B, message())
    assert [result.origin for result in queue.service(Weight(39, 39))] == [B]
    assert queue.count(A) == 1


def test_a_message_that_no_block_can_serve_is_set_aside_until_it_is_executed_on_purpose() -> None:
    store = Store()
    queue = queue_of(store, service_weight=Weight(25, 25))
    heavy = queue.enqueue(A, message(1, count=3))
    light = queue.enqueue(A, message(2))
    aside, served = queue.service()
    assert aside == OverweightEnqueued(heavy, A, Weight(30, 30))
    assert served.id == light
    assert list(queue.overweight) == [heavy]
    assert queue.service() == ()

    assert queue.execute_overweight(heavy, Weight(29, 30)) == aside
    assert len(store.stored) == 1
    result = queue.execute_overweight(heavy, Weight(30, 30))
    assert isinstance(result, Processed)
    assert len(store.stored) == 4
    with pytest.raises(KeyError):
        queue.execute_overweight(heavy, Weight.MAX)


def test_a_block_without_weight_sets_nothing_aside() -> None:
    queue = queue_of(Store())
    queue.enqueue(A, message())
    assert queue.service(Weight.ZERO) == ()
    assert (queue.waiting, queue.overweight) == (1, {})


def test_junk_costs_the_overhead_of_looking_at_it() -> None:
    queue = queue_of(Store(), overhead=Weight(4, 0))
    for _ in range(3):
        queue.enqueue(A, b"junk")
    meter = WeightMeter(Weight(10, 10))
    assert len(queue.service_with(meter)) == 2
    assert meter.consumed == Weight(8, 0)
    assert queue.waiting == 1


def test_a_refused_message_consumes_what_it_would_have_weighed() -> None:
    queue = queue_of(Store())
    queue.enqueue(A, message(count=5))
    meter = WeightMeter(Weight(100, 100))
    queue.service_with(meter)
    assert meter.consumed == Weight(50, 50)


@pytest.mark.parametrize(
    ("already", "sent", "refusal"),
    [
        (0, [b"x"] * 4, MoreMessagesThanPermitted),
        (0, [b"x", bytes(101)], MessageTooLarge),
        (2, [b"x"] * 3, CapacityExceeded),
        (2, [bytes(100), bytes(100)], TotalSizeExceeded),
    ],
)
def test_a_candidate_above_a_limit_is_refused_whole(
    already: int, sent: list[bytes], refusal: type[UpwardQueueError]
) -> None:
    queue = queue_of(Store(), limits=SMALL)
    queue.receive(A, [bytes(30)] * already)
    before = (queue.count(A), queue.size_bytes(A), queue.waiting)
    with pytest.raises(refusal, match="1000"):
        queue.receive(A, sent)
    assert (queue.count(A), queue.size_bytes(A), queue.waiting) == before
    queue.receive(B, [b"x"])
    assert [result.origin for result in queue.service()] == [A] * already + [B]


def test_a_candidate_may_reach_every_limit_exactly() -> None:
    queue = queue_of(Store(), limits=SMALL)
    queue.receive(A, [bytes(100), bytes(100), bytes(25)])
    queue.receive(A, [bytes(25)])
    assert (queue.count(A), queue.size_bytes(A)) == (4, 250)


def test_an_off_boarded_parachain_leaves_no_message_behind() -> None:
    queue = queue_of(Store())
    queue.enqueue(A, message())
    queue.enqueue(B, message())
    queue.drop(A)
    queue.drop(C)
    assert [result.origin for result in queue.service()] == [B]
    assert (queue.count(A), queue.size_bytes(A)) == (0, 0)


@given(
    st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(1, 5), st.booleans()), max_size=20),
    st.integers(10, 60),
)
def test_every_message_is_told_about_once_and_no_block_uses_more_than_its_weight(
    sent: list[tuple[ParaId, int, bool]], block: int
) -> None:
    queue = queue_of(Store(), service_weight=Weight(block, block), overhead=Weight(1, 0))
    expected: dict[ParaId, int] = {}
    for para, count, junk in sent:
        queue.enqueue(para, b"junk" if junk else message(count=count))
        expected[para] = expected.get(para, 0) + 1
    told: dict[ParaId, int] = {}
    for _ in range(len(sent) + 1):
        meter = WeightMeter(Weight(block, block) + Weight(1, 0))
        for result in queue.service_with(meter):
            told[result.origin] = told.get(result.origin, 0) + 1
        assert meter.consumed.all_lte(meter.limit)
    assert told == expected
    assert queue.waiting == 0


def test_messages_that_wait_are_put_away_in_the_order_in_which_they_are_served() -> None:
    store, other = Store(), Store()
    queue, again = queue_of(store), queue_of(other)
    for para, count in ((A, 3), (B, 1), (C, 2)):
        for number in range(count):
            queue.enqueue(para, message(number))
    queue.service(queue_of(store)._executor.weigher.weigh(V5.decode(message())))
    again.enqueue(A, message(9))
    again.load(msgspec.msgpack.decode(msgspec.msgpack.encode(queue.dump()), type=UpwardDump))
    assert again.dump() == queue.dump()
    assert [again.count(para) for para in (A, B, C)] == [queue.count(para) for para in (A, B, C)]
    assert [again.size_bytes(para) for para in (A, B, C)] == [queue.size_bytes(para) for para in (A, B, C)]
    assert again.service() == queue.service()


@pytest.mark.parametrize("queues", [[WaitingDump(1_000, [])], [WaitingDump(1_000, [b"a"]), WaitingDump(1_000, [b"b"])]])
def test_a_queue_that_is_empty_or_there_twice_is_refused(queues: list[WaitingDump]) -> None:
    queue = queue_of(Store())
    queue.enqueue(A, message())
    with pytest.raises(CheckpointRefused, match="upward messages: a parachain with no queue or two"):
        queue.load(UpwardDump(queues, []))
    assert queue.count(A) == 1
