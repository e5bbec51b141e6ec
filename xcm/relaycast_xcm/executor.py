"""How a message ends, the machine that runs it, and the executor of one chain (xcm-executor).

The executor weighs a message, asks the barrier, and runs it. The origin of a ``Publish`` must resolve to a parachain.
A failing instruction ends the message: earlier ones stay applied, the registers and accounts are as they were before
it, and the weight of those after it is surplus. A message that weighing or the barrier refuses changes nothing. The
error that a handler raised is kept as the ``cause``, which upstream loses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec import Struct

from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.assets import (
    All,
    Asset,
    AssetHandler,
    Assets,
    AssetTrap,
    Holding,
    NoAssets,
    NoTrader,
    NoTrap,
    WeightTrader,
    Wild,
)
from relaycast_xcm.barriers import Properties, ShouldExecute
from relaycast_xcm.broadcast import BroadcastHandler
from relaycast_xcm.exceptions import (
    BadOrigin,
    Barrier,
    FailedToTransactAsset,
    LocationFull,
    NotHoldingFees,
    ProcessMessageError,
    Trapped,
    Unimplemented,
    WeightLimitReached,
    XcmError,
)
from relaycast_xcm.instructions import (
    KEY_BYTES,
    BuyExecution,
    ClearError,
    ClearOrigin,
    ClearTopic,
    DepositAsset,
    DescendOrigin,
    Instruction,
    PayFees,
    Publish,
    PublishItems,
    RefundSurplus,
    SetAppendix,
    SetErrorHandler,
    SetTopic,
    TransferAsset,
    Trap,
    UnpaidExecution,
    WithdrawAsset,
    Xcm,
)
from relaycast_xcm.location import Location
from relaycast_xcm.primitives import Weight
from relaycast_xcm.weigher import TEST_WEIGHTS, Weigher


@dataclass(frozen=True, slots=True)
class InstructionError:
    """Instruction ``index`` failed with ``error``, because of ``cause`` where a handler said why."""

    index: int
    error: XcmError
    cause: RelaycastError | None = field(default=None, compare=False)

    def __str__(self) -> str:
        because = f", {type(self.cause).__name__}: {self.cause}" if self.cause is not None else ""
        return f"instruction {self.index} failed with {self.error.name}{because}"


class Complete(Struct, frozen=True):
    """Every instruction ran; ``trapped`` are assets left in holding."""

    used: Weight
    trapped: Assets = ()


class Incomplete(Struct, frozen=True):
    """An instruction failed; those before it stay done."""

    used: Weight
    error: InstructionError
    trapped: Assets = ()


@dataclass(frozen=True, slots=True)
class Error:
    """Nothing ran: the message cannot be weighed, weighs too much, or a barrier refuses it for ``cause``."""

    error: XcmError
    cause: RelaycastError | None = field(default=None, compare=False)


Outcome = Complete | Incomplete | Error


class MachineConfig(Protocol):
    """What a machine needs of the chain that it runs on."""

    @property
    def broadcast(self) -> BroadcastHandler: ...

    @property
    def weigher(self) -> Weigher: ...

    @property
    def assets(self) -> AssetHandler: ...

    @property
    def trader(self) -> Callable[[], WeightTrader]: ...

    @property
    def trap(self) -> AssetTrap: ...


class Machine:
    """Runs one message from one origin, and says how it ended."""

    def __init__(self, config: MachineConfig, origin: Location, weight: Weight, topic: bytes | None) -> None:
        self._config = config
        self._weight = weight
        self._trader = config.trader()
        self._surplus = Weight.ZERO
        self._refunded = Weight.ZERO
        self._fees = Holding()
        self._paid = False
        self._error_handler: tuple[Xcm, Weight] = ((), Weight.ZERO)
        self._appendix: tuple[Xcm, Weight] = ((), Weight.ZERO)
        self._origin_at_first = origin
        self.origin: Location | None = origin
        self.holding = Holding()
        self.topic = topic
        self.error: InstructionError | None = None

    def run(self, message: Xcm) -> Complete | Incomplete:
        """Run the message, then its error handler where it failed, then its appendix."""
        while message:
            failure = self._process(message)
            if failure is not None:
                self.error = failure
                message = self._take_error_handler() or self._take_appendix()
            else:
                self._drop_error_handler()
                message = self._take_appendix()
        return self._finish()

    def _process(self, message: Xcm) -> InstructionError | None:
        for index, instruction in enumerate(message):
            try:
                self._execute(instruction)
            except XcmError as error:
                for skipped in message[index + 1 :]:
                    self._surplus += self._config.weigher.weigh_instruction(skipped)
                cause = error.__cause__
                return InstructionError(index, error.as_value(), cause if isinstance(cause, RelaycastError) else None)
        return None

    def _execute(self, instruction: Instruction) -> None:
        act = _ACTS.get(type(instruction))
        if act is None:
            raise Unimplemented
        act(self, instruction)

    def _finish(self) -> Complete | Incomplete:
        """Refund, let the fees be earned, and trap what is still in holding."""
        self._refund()
        self._trader.settle()
        used, trapped = self._weight - self._surplus, self.holding.assets
        if trapped:
            self._config.trap.drop_assets(self.origin or self._origin_at_first, trapped)
        return Complete(used, trapped) if self.error is None else Incomplete(used, self.error, trapped)

    def _origin(self) -> Location:
        if self.origin is None:
            raise BadOrigin
        return self.origin

    # -- publishing

    def _publish(self, instruction: Publish) -> None:
        self._config.broadcast.handle_publish(self._origin(), instruction.key, instruction.value, instruction.ttl)

    def _publish_items(self, instruction: PublishItems) -> None:
        """Publish all items, or none when one is refused."""
        origin, broadcast = self._origin(), self._config.broadcast
        if any(len(item.key) != KEY_BYTES for item in instruction.data):
            raise Unimplemented
        with broadcast.transaction():
            for item in instruction.data:
                broadcast.handle_publish(origin, item.key, item.value, 0)

    # -- origin and topic

    def _clear_origin(self, _: ClearOrigin) -> None:
        self.origin = None

    def _descend_origin(self, instruction: DescendOrigin) -> None:
        descended = self._origin().appended_with(instruction.interior)
        if descended is None:
            raise LocationFull
        self.origin = descended

    def _unpaid_execution(self, instruction: UnpaidExecution) -> None:
        if instruction.check_origin is not None and instruction.check_origin != self.origin:
            raise BadOrigin

    def _set_topic(self, instruction: SetTopic) -> None:
        self.topic = instruction.topic

    def _clear_topic(self, _: ClearTopic) -> None:
        self.topic = None

    # -- assets

    def _withdraw_asset(self, instruction: WithdrawAsset) -> None:
        origin = self._origin()
        self.holding.ensure_room(instruction.assets)
        self._move(instruction.assets, lambda asset: self._config.assets.withdraw(asset, origin))
        self.holding.subsume(instruction.assets)

    def _transfer_asset(self, instruction: TransferAsset) -> None:
        origin, beneficiary = self._origin(), instruction.beneficiary
        self._move(instruction.assets, lambda asset: self._config.assets.transfer(asset, origin, beneficiary))

    def _deposit_asset(self, instruction: DepositAsset) -> None:
        before = self.holding.snapshot()
        deposited = self.holding.saturating_take(instruction.assets)
        try:
            self._move(deposited, lambda asset: self._config.assets.deposit(asset, instruction.beneficiary))
        except XcmError:
            self.holding.restore(before)
            raise

    def _move(self, moved: Assets, move: Callable[[Asset], None]) -> None:
        """Move all assets or none; a handler's own error is the cause of ``FailedToTransactAsset``."""
        try:
            with self._config.assets.transaction():
                for asset in moved:
                    move(asset)
        except XcmError:
            raise
        except RelaycastError as error:
            raise FailedToTransactAsset from error

    # -- fees

    def _buy_execution(self, instruction: BuyExecution) -> None:
        if instruction.weight_limit is not None:
            self.holding.subsume(self._pay(instruction.fees, instruction.weight_limit))

    def _pay_fees(self, instruction: PayFees) -> None:
        if not self._paid:
            self._paid = True
            self._fees.subsume(self._pay(instruction.asset, self._weight))

    def _pay(self, fees: Asset, weight: Weight) -> Assets:
        """Return what is left of ``fees`` from holding; holding keeps all of it where that fails."""
        if not self.holding.try_take(fees):
            raise NotHoldingFees
        try:
            return self._trader.buy_weight(weight, fees)
        except XcmError:
            self.holding.subsume((fees,))
            raise

    def _refund_surplus(self, _: RefundSurplus) -> None:
        self._refund()

    def _refund(self) -> None:
        if self._surplus.any_gt(self._refunded):
            refund = self._trader.refund_weight(self._surplus - self._refunded)
            self._refunded = self._surplus
            self.holding.subsume(() if refund is None else (refund,))
        if not self._fees.is_empty:
            self.holding.subsume(self._fees.saturating_take(Wild(All())))

    # -- errors and what follows

    def _set_error_handler(self, instruction: SetErrorHandler) -> None:
        weight = self._config.weigher.weigh(instruction.xcm)
        self._surplus += self._error_handler[1]
        self._error_handler = (instruction.xcm, weight)

    def _set_appendix(self, instruction: SetAppendix) -> None:
        weight = self._config.weigher.weigh(instruction.xcm)
        self._surplus += self._appendix[1]
        self._appendix = (instruction.xcm, weight)

    def _take_error_handler(self) -> Xcm:
        handler, self._error_handler = self._error_handler[0], ((), Weight.ZERO)
        return handler

    def _drop_error_handler(self) -> None:
        self._surplus += self._error_handler[1]
        self._error_handler = ((), Weight.ZERO)

    def _take_appendix(self) -> Xcm:
        appendix, self._appendix = self._appendix[0], ((), Weight.ZERO)
        return appendix

    def _clear_error(self, _: ClearError) -> None:
        self.error = None

    def _trap(self, instruction: Trap) -> None:
        raise Trapped(instruction.code)


_ACTS: dict[type[Instruction], Callable[[Machine, Any], None]] = {
    Publish: Machine._publish,
    PublishItems: Machine._publish_items,
    ClearOrigin: Machine._clear_origin,
    DescendOrigin: Machine._descend_origin,
    UnpaidExecution: Machine._unpaid_execution,
    SetTopic: Machine._set_topic,
    ClearTopic: Machine._clear_topic,
    WithdrawAsset: Machine._withdraw_asset,
    TransferAsset: Machine._transfer_asset,
    DepositAsset: Machine._deposit_asset,
    BuyExecution: Machine._buy_execution,
    PayFees: Machine._pay_fees,
    RefundSurplus: Machine._refund_surplus,
    SetErrorHandler: Machine._set_error_handler,
    SetAppendix: Machine._set_appendix,
    ClearError: Machine._clear_error,
    Trap: Machine._trap,
}
"""What each instruction does; ``Transact`` and ``QueryResponse`` are read and not executed."""


class XcmExecutor:
    """Executes messages on a chain; ``trader`` makes one seller of weight per message, ``trap`` takes what is left."""

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
