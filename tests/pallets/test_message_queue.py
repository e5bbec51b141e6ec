"""Events of upward messages: what ran, what did not, and why, with the pallet's own reason."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from relaycast_pallets import NotRegistered
from relaycast_pallets.message_queue import (
    MessageOverweight,
    MessageProcessed,
    MessageProcessingFailed,
    event_of,
)
from relaycast_xcm import (
    AllowPublishFrom,
    ClearOrigin,
    Everything,
    ParachainBroadcastAdapter,
    ParaId,
    Publish,
    Weight,
    WeightMeter,
    XcmExecutor,
    encode_versioned_xcm,
)
from relaycast_xcm.ump import Processing, UpwardMessageQueue

SENDER = ParaId(3000)
KEY = bytes(32)


@dataclass
class RefusesFrom:
    """Publishes for everybody up to a number of values, then says that nobody is registered."""

    allowed: int

    def handle_publish(self, publisher: ParaId, key: bytes, value: bytes, *, ttl: int) -> None:
        self.allowed -= 1
        if self.allowed < 0:
            raise NotRegistered(publisher)

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()


def served(data: bytes, *, allowed: int = 9, service_weight: Weight = Weight.MAX) -> list[Processing]:
    handler = ParachainBroadcastAdapter(Everything(), RefusesFrom(allowed))
    queue = UpwardMessageQueue(
        XcmExecutor(AllowPublishFrom(Everything()), broadcast=handler), service_weight=service_weight
    )
    queue.enqueue(SENDER, data)
    told: list[Processing] = []
    results = queue.service()
    queue.enqueue(SENDER, data)
    queue.service_with(WeightMeter(), tell=told.append)
    assert [type(result) for result in told] == [type(result) for result in results]
    return list(results)


def test_a_message_that_ran_to_its_end_is_a_success() -> None:
    (result,) = served(encode_versioned_xcm([Publish(KEY, b"value")]))
    event = event_of(result)
    assert isinstance(event, MessageProcessed)
    assert (event.origin, event.success, event.error) == (SENDER, True, None)
    assert event.weight_used == Weight(10, 10)
    assert event.name == "MessageQueue.MessageProcessed"


def test_the_pallets_own_reason_is_kept() -> None:
    (result,) = served(encode_versioned_xcm([Publish(KEY, b"1"), Publish(KEY, b"2")]), allowed=1)
    event = event_of(result)
    assert isinstance(event, MessageProcessed)
    assert not event.success
    assert event.error == (
        "instruction 1: PublishFailed: NotRegistered (parachain 3000 is not registered as a publisher)"
    )


def test_a_message_that_the_barrier_stops_failed() -> None:
    (result,) = served(encode_versioned_xcm([ClearOrigin()]))
    event = event_of(result)
    assert isinstance(event, MessageProcessingFailed)
    assert event.error.startswith("Unsupported: ")


def test_bytes_that_are_no_message_failed_where_they_fail() -> None:
    (result,) = served(b"\x05\x04\xff")
    event = event_of(result)
    assert isinstance(event, MessageProcessingFailed)
    assert event.error.startswith("Corrupt: ")


def test_a_message_no_block_could_serve_is_set_aside() -> None:
    (result,) = served(encode_versioned_xcm([Publish(KEY, b"")]), service_weight=Weight(5, 5))
    assert event_of(result) == MessageOverweight(result.id, SENDER, Weight(10, 10))
