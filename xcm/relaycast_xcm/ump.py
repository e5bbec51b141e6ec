"""Upward messages: bytes that parachains send to the relay chain, queued, weighed, executed.

A queue takes messages within its limits or refuses all that a candidate sends. Each block serves the queues with a
weight limit, one after another, beginning one further each block; what does not fit stays queued in its order
(pallet-message-queue).
"""

from collections import deque
from collections.abc import Callable, Sequence

from msgspec import Struct

from relaycast_trie.exceptions import CodecError, RelaycastError
from relaycast_trie.hasher import blake2_256
from relaycast_xcm.barriers import Properties
from relaycast_xcm.checkpoint import U32, Dump, DumpRow, refusing
from relaycast_xcm.exceptions import (
    CapacityExceeded,
    Corrupt,
    ExceedsStackLimit,
    MessageTooLarge,
    MoreMessagesThanPermitted,
    ProcessMessageError,
    StackLimitReached,
    TotalSizeExceeded,
    Unsupported,
    XcmError,
)
from relaycast_xcm.executor import Complete, Error, Incomplete, XcmExecutor
from relaycast_xcm.instructions import Xcm
from relaycast_xcm.location import Location
from relaycast_xcm.message import V5, XcmCodec
from relaycast_xcm.primitives import ParaId, Weight, WeightMeter


class UpwardLimits(Struct, frozen=True):
    """What a relay chain accepts from one parachain: in one block, in one message, and in its queue."""

    messages_per_candidate: int = 16
    message_bytes: int = 65_531
    queue_count: int = 174_762
    queue_bytes: int = 1_048_576


POLKADOT_LIMITS = UpwardLimits()
"""Polkadot's host configuration (``max_upward_message_num_per_candidate`` and its neighbours)."""


class UpwardMessage(Struct, frozen=True):
    """The bytes that a parachain sent; ``id`` is their Blake2b-256 hash."""

    origin: ParaId
    data: bytes
    id: bytes


class Processed(Struct, frozen=True):
    """A message ran, to its end or to the instruction that failed; ``id`` is its topic where it has one."""

    id: bytes
    origin: ParaId
    weight_used: Weight
    success: bool
    outcome: Complete | Incomplete


class ProcessingFailed(Struct, frozen=True):
    """A message did not run and is dropped; ``cause`` says more than ``error`` where more is known."""

    id: bytes
    origin: ParaId
    error: ProcessMessageError
    cause: RelaycastError | None = None


class OverweightEnqueued(Struct, frozen=True):
    """A message weighs ``required``, more than any block gives: it is set aside until it is executed on purpose."""

    id: bytes
    origin: ParaId
    required: Weight


Processing = Processed | ProcessingFailed | OverweightEnqueued


class WaitingDump(DumpRow, frozen=True):
    """Messages of one parachain, the oldest first."""

    para_id: U32
    messages: list[bytes]


class UpwardDump(Dump, frozen=True):
    """The queues that are not empty, in the order in which they are served next, and what is set aside."""

    queues: list[WaitingDump]
    overweight: list[WaitingDump]


class UpwardMessageQueue:
    """The queues of all parachains, served by one executor."""

    def __init__(
        self,
        executor: XcmExecutor,
        *,
        limits: UpwardLimits = POLKADOT_LIMITS,
        codec: XcmCodec = V5,
        service_weight: Weight = Weight.MAX,
        overhead: Weight = Weight.ZERO,
    ) -> None:
        self._executor = executor
        self._codec = codec
        self._overhead = overhead
        self._queues: dict[ParaId, deque[UpwardMessage]] = {}
        self._bytes: dict[ParaId, int] = {}
        self._ring: deque[ParaId] = deque()
        self.limits = limits
        self.service_weight = service_weight
        self.overweight: dict[bytes, UpwardMessage] = {}

    def count(self, para: ParaId) -> int:
        """Return how many messages of ``para`` wait."""
        return len(self._queues.get(para, ()))

    def size_bytes(self, para: ParaId) -> int:
        """Return how many bytes of ``para`` wait."""
        return self._bytes.get(para, 0)

    @property
    def waiting(self) -> int:
        """Messages of all parachains that wait; those set aside as overweight are not among them."""
        return sum(map(len, self._queues.values()))

    def enqueue(self, para: ParaId, data: bytes) -> bytes:
        """Queue one message and return its id; raises as ``receive`` does."""
        return self.receive(para, (data,))[0]

    def receive(self, para: ParaId, messages: Sequence[bytes]) -> tuple[bytes, ...]:
        """Queue what a candidate of ``para`` sends, all or nothing, and return the ids.

        Raises ``MoreMessagesThanPermitted``, ``MessageTooLarge``, ``CapacityExceeded`` or ``TotalSizeExceeded``.
        """
        self._check_acceptance(para, messages)

        queue = self._queues.setdefault(para, deque())
        if not queue and messages and para not in self._ring:
            self._ring.append(para)
        accepted = [UpwardMessage(para, bytes(data), blake2_256(data)) for data in messages]
        queue.extend(accepted)
        self._bytes[para] = self.size_bytes(para) + sum(map(len, messages))
        return tuple(message.id for message in accepted)

    def drop(self, para: ParaId) -> None:
        """Forget the queue of a parachain that is off-boarded."""
        self._queues.pop(para, None)
        self._bytes.pop(para, None)
        if para in self._ring:
            self._ring.remove(para)

    def service(self, weight_limit: Weight | None = None) -> tuple[Processing, ...]:
        """Serve the queues with a block's weight, ``service_weight`` by default, and return what happened, in order.

        A message that weighs more than ``service_weight`` is set aside: no block could ever serve it.
        """
        return self.service_with(WeightMeter(self.service_weight if weight_limit is None else weight_limit))

    def service_with(
        self, meter: WeightMeter, *, tell: Callable[[Processing], None] | None = None
    ) -> tuple[Processing, ...]:
        """Serve the queues with what ``meter`` has left; ``tell`` hears of each message when it is done with."""
        results: list[Processing] = []
        for para in tuple(self._ring):
            queue = self._queues[para]
            while queue:
                result = self._serve(queue[0], meter, self.service_weight)
                if result is None:
                    break
                self._bytes[para] -= len(queue.popleft().data)
                results.append(result)
                if tell is not None:
                    tell(result)
        self._turn_ring()
        return tuple(results)

    def dump(self) -> UpwardDump:
        """Return all messages as data."""
        queues = [WaitingDump(int(para), [message.data for message in self._queues[para]]) for para in self._ring]
        overweight = [WaitingDump(int(message.origin), [message.data]) for message in self.overweight.values()]
        return UpwardDump(queues, overweight)

    def load(self, dump: UpwardDump) -> None:
        """Hold the messages that another queue put away; raises ``CheckpointRefused``."""
        with refusing("upward messages"):
            queues = {ParaId(it.para_id): deque(_messages(it)) for it in dump.queues}
            if len(queues) != len(dump.queues) or not all(queues.values()):
                raise ValueError("a parachain with no queue or two, expected one queue with messages for each")
        self._queues, self._ring = queues, deque(queues)
        self._bytes = {para: sum(len(message.data) for message in queue) for para, queue in queues.items()}
        self.overweight = {message.id: message for it in dump.overweight for message in _messages(it)}

    def execute_overweight(self, message_id: bytes, weight_limit: Weight) -> Processing:
        """Execute a message that was set aside; it stays there where the limit is too small."""
        message = self.overweight[message_id]
        result = self._serve(message, WeightMeter(weight_limit), Weight.MAX)
        if result is None:
            return OverweightEnqueued(
                message.id, message.origin, self._executor.weigher.weigh(self._codec.decode(message.data))
            )
        del self.overweight[message_id]
        return result

    def _check_acceptance(self, para: ParaId, messages: Sequence[bytes]) -> None:
        limits = self.limits
        if len(messages) > limits.messages_per_candidate:
            raise MoreMessagesThanPermitted(para, len(messages), limits.messages_per_candidate)
        for index, data in enumerate(messages):
            if len(data) > limits.message_bytes:
                raise MessageTooLarge(para, index, len(data), limits.message_bytes)
        count = self.count(para) + len(messages)
        if count > limits.queue_count:
            raise CapacityExceeded(para, count, limits.queue_count)
        total_bytes = self.size_bytes(para) + sum(map(len, messages))
        if total_bytes > limits.queue_bytes:
            raise TotalSizeExceeded(para, total_bytes, limits.queue_bytes)

    def _serve(self, message: UpwardMessage, meter: WeightMeter, overweight_limit: Weight) -> Processing | None:
        """Return what became of the message, or ``None`` where it has to wait for more weight."""
        if not meter.can_consume(self._overhead):
            return None
        try:
            program = self._codec.decode(message.data)
            required = self._executor.weigher.weigh(program)
        except CodecError as error:
            meter.consume(self._overhead)
            return ProcessingFailed(message.id, message.origin, Corrupt(), error.as_value())
        except XcmError as error:
            meter.consume(self._overhead)
            return ProcessingFailed(message.id, message.origin, _refusal(error), error.as_value())
        if required.any_gt(overweight_limit):
            meter.consume(self._overhead)
            self.overweight[message.id] = message
            return OverweightEnqueued(message.id, message.origin, required)
        if not meter.can_consume(required + self._overhead):
            return None
        return self._run(message, program, required, meter)

    def _run(self, message: UpwardMessage, program: Xcm, required: Weight, meter: WeightMeter) -> Processing:
        properties = Properties(Weight.ZERO, message.id)
        outcome = self._executor.execute(Location.parachain(message.origin), program, required, properties)
        message_id = properties.message_id or message.id
        if isinstance(outcome, Error):
            meter.consume(required + self._overhead)
            return ProcessingFailed(message_id, message.origin, _refusal(outcome.error), outcome.cause or outcome.error)
        meter.consume(outcome.used + self._overhead)
        return Processed(message_id, message.origin, outcome.used, isinstance(outcome, Complete), outcome)

    def _turn_ring(self) -> None:
        """Let the next block begin with the next queue, and forget the empty ones."""
        self._ring.rotate(-1)
        self._ring = deque(para for para in self._ring if self._queues[para])


def _messages(dump: WaitingDump) -> list[UpwardMessage]:
    return [UpwardMessage(ParaId(dump.para_id), data, blake2_256(data)) for data in dump.messages]


def _refusal(error: XcmError) -> ProcessMessageError:
    return StackLimitReached() if isinstance(error, ExceedsStackLimit) else Unsupported()
