"""The XCM executor of one chain: weighs a message, asks the barrier, and runs it.

The origin of a ``Publish`` must be there and resolve to a parachain. A failing instruction ends the message and keeps
what the earlier ones did; a message that does not get past weighing and barrier changes nothing.
"""

from collections.abc import Callable, Sequence

from relaycast_xcm.barriers import Properties, ShouldExecute
from relaycast_xcm.broadcast import BroadcastHandler
from relaycast_xcm.exceptions import ProcessMessageError
from relaycast_xcm.holding import AssetHandler, AssetTrap, NoAssets, NoTrader, NoTrap, WeightTrader
from relaycast_xcm.instructions import Instruction, Xcm
from relaycast_xcm.location import Location
from relaycast_xcm.machine import Machine
from relaycast_xcm.outcome import Error, Outcome
from relaycast_xcm.primitives import Weight
from relaycast_xcm.weigher import TEST_WEIGHTS, Weigher
from relaycast_xcm.xcm_error import Barrier, WeightLimitReached, XcmError


class XcmExecutor:
    """Executes messages on a chain; ``trader`` makes one seller of weight per message, ``trap`` takes what is left."""

    __slots__ = ("assets", "barrier", "broadcast", "trader", "trap", "weigher")

    def __init__(
        self,
        barrier: ShouldExecute,
        *,
        broadcast: BroadcastHandler,
        weigher: Weigher = TEST_WEIGHTS,
        assets: AssetHandler | None = None,
        trader: Callable[[], WeightTrader] = NoTrader,
        trap: AssetTrap | None = None,
    ) -> None:
        self.barrier = barrier
        self.broadcast = broadcast
        self.weigher = weigher
        self.assets: AssetHandler = NoAssets() if assets is None else assets
        self.trader = trader
        self.trap: AssetTrap = NoTrap() if trap is None else trap

    def prepare_and_execute(
        self,
        origin: Location,
        message: Sequence[Instruction],
        *,
        weight_limit: Weight = Weight.MAX,
        weight_credit: Weight = Weight.ZERO,
        message_id: bytes | None = None,
    ) -> Outcome:
        """Weigh the message and execute it if it weighs at most ``weight_limit``."""
        program = tuple(message)
        try:
            weight = self.weigher.weigh(program)
        except XcmError as error:
            return Error(error.as_value())
        if weight.any_gt(weight_limit):
            return Error(WeightLimitReached(weight))
        return self.execute(origin, program, weight, Properties(weight_credit, message_id))

    def execute(self, origin: Location, message: Xcm, weight: Weight, properties: Properties) -> Outcome:
        """Execute a message that was weighed; the barrier's refusal is the cause of ``Error(Barrier)``.

        ``properties`` gives the credit of the origin, and afterwards holds the id under which the message ran.
        """
        try:
            allowed = self.barrier.should_execute(origin, message, weight, properties)
        except ProcessMessageError as refusal:
            return Error(Barrier(), refusal.as_value())
        return Machine(self, origin, weight, properties.message_id).run(allowed)
