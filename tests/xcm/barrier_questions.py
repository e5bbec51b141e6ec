"""Messages, places and origins that barriers are asked about, and a barrier that remembers what it was asked."""

from dataclasses import dataclass, field

import pytest

from relaycast_xcm import (
    Asset,
    DepositAsset,
    Location,
    ProcessMessageError,
    Properties,
    Publish,
    ShouldExecute,
    TransferAsset,
    Weight,
    Wild,
    Xcm,
    assets,
)
from relaycast_xcm.assets import AllCounted
from xcm.message_vectors import PARA_1000, PARA_2000

NATIVE = Location.here()
WEIGHT = Weight(10, 10)
TOPIC = bytes([7]) * 32
FUNDS = assets([Asset.fungible(NATIVE, 100)])
DEPOSIT = DepositAsset(Wild(AllCounted(1)), PARA_2000)
TRANSFER = TransferAsset(FUNDS, PARA_1000)


def publish(count: int = 1) -> Xcm:
    return tuple(Publish(bytes([number]) * 32, b"value", 0) for number in range(count))


def ask(barrier: ShouldExecute, message: Xcm, *, origin: Location = PARA_2000, weight: Weight = WEIGHT) -> Xcm:
    return barrier.should_execute(origin, message, weight, Properties())


def refusal_of(barrier: ShouldExecute, message: Xcm, *, origin: Location = PARA_2000) -> ProcessMessageError:
    with pytest.raises(ProcessMessageError) as refusal:
        ask(barrier, message, origin=origin)
    return refusal.value


@dataclass
class Recorder:
    """A barrier that says what it is told to, and remembers that it was asked."""

    answer: ProcessMessageError | None = None
    asked: list[tuple[Location, Xcm]] = field(default_factory=list)

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Xcm:
        self.asked.append((origin, message))
        if self.answer is not None:
            raise self.answer
        return message
