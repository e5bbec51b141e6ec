"""How a block comes about with extrinsics in it: inherents first, then what the pool has ready, then what clients read.

A signed extrinsic pays before its call runs and counts in its account's nonce; a call that is refused leaves these two
and its last event, ``ExtrinsicFailed`` (frame-executive ``apply_extrinsic``).
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from relaycast_collator.header import ClosedBody, DigestItem, ordered_root
from relaycast_node.chain.block_storage import BlockStorage, phases
from relaycast_node.chain.dispatcher import Dispatcher
from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.extrinsic.extrinsic import Bare, Signed, decode_extrinsic
from relaycast_node.extrinsic.validity import JudgedHere, how_many_fit, pre_dispatch
from relaycast_node.extrinsic.validity_errors import Invalid, InvalidTransaction, TransactionValidityError
from relaycast_node.metadata.runtime import EVENT, Runtime
from relaycast_pallets.frame.dispatch import (
    DispatchClass,
    DispatchError,
    DispatchInfo,
    Origin,
    Pays,
    PostDispatchInfo,
)
from relaycast_pallets.frame.system import System
from relaycast_pallets.parachain_system.pallet import ParachainInherentData
from relaycast_pallets.timestamp import Timestamp
from relaycast_pallets.transaction_payment import TransactionPayment
from relaycast_trie.exceptions import CodecError, MissingNode
from relaycast_trie.hasher import blake2_256
from relaycast_xcm.primitives import BlockNumber, Weight

log = logging.getLogger(__name__)

MAX_BLOCK_WEIGHT = Weight(2_000_000_000_000, 5 * 1024 * 1024)
"""What extrinsics of one block may weigh: two seconds."""

MAX_BLOCK_LENGTH = 5 * 1024 * 1024
NORMAL_PART = 0.75
"""The part of a block's weight and length that signed extrinsics may use."""


LEFT_IN_THE_POOL = frozenset({Invalid.FUTURE, Invalid.EXHAUSTS_RESOURCES})
"""Why an extrinsic may be valid in a later block, though it is not in this one."""


@dataclass(frozen=True, slots=True)
class Given:
    """An inherent: its call, and whether the pallet has run it already."""

    call: bytes
    has_run: bool = False


Inherents = Callable[[ParachainInherentData | None], Iterable[Given]]


class Executive:
    """The body of the blocks of one chain (``BlockBody``); ``ready`` gives the extrinsics that wait, best first."""

    writes_consensus = False

    def __init__(
        self,
        runtime: Runtime,
        *,
        system: System,
        timestamp: Timestamp,
        payment: TransactionPayment,
        blocks: BlockStorage,
        inherents: Inherents,
    ) -> None:
        self.runtime = runtime
        self.system = system
        self.timestamp = timestamp
        self.payment = payment
        self.blocks = blocks
        self.dispatcher = Dispatcher(runtime)
        self.genesis_hash = bytes(32)
        self.head = (0, bytes(32))
        """Number and hash of the block that transactions are judged after: the last one, or the parent of this one."""

        self.ready: Callable[[], Iterable[bytes]] = tuple
        self.extrinsics: list[bytes] = []
        """Extrinsics of the block that is being built, or that was built last."""

        self.invalid: list[bytes] = []
        """Ready extrinsics that the same block found invalid: they never become valid by waiting."""

        self._inherents = inherents
        self._marks: list[int] = []
        self._length = 0

    def open(self, number: int, parent_hash: bytes, logs: Sequence[DigestItem]) -> None:
        """Begin a block, see ``BlockBody``."""
        self.extrinsics, self.invalid, self._marks, self._length = [], [], [], 0
        self.head = (number - 1, parent_hash)
        self.blocks.open(number, parent_hash, logs)

    def apply(self, inherent: ParachainInherentData | None = None) -> None:
        """Apply inherents, and ready extrinsics as long as there is room."""
        is_in_first_inherent = inherent is not None  # a parachain's events so far are those of its validation data
        self._marks.append(0 if is_in_first_inherent else len(self.system.events))
        for given in self._inherents(inherent):
            self._apply_inherent(given)
        for data in self.ready():
            self._apply_signed(data)

    def close(self) -> ClosedBody:
        """End the block, see ``BlockBody``."""
        self.timestamp.on_finalize()
        events = list(self.system.events)
        number = self.runtime.types.spelled(f"EventRecord<{EVENT}, H256>")
        records = [
            self.runtime.codec.encode(number, {"phase": phase, "event": (event.pallet, event), "topics": []})
            for phase, event in zip(phases(self._marks, len(events)), events, strict=True)
        ]
        self.blocks.close(records, extrinsics=len(self.extrinsics))
        return ClosedBody(ordered_root(self.extrinsics))

    def view(self) -> "View":
        """Return the chain as transactions are judged by: after the last block, or in the middle of one."""
        return View(self)

    def _apply_inherent(self, given: Given) -> None:
        call = self.runtime.decode_call(given.call)
        info = self.dispatcher.info(call)
        if not given.has_run:
            self.dispatcher.dispatch(call, Origin.none())
        self.system.note_applied_extrinsic(DispatchInfo(info.weight, DispatchClass.Mandatory, Pays.Yes))
        self._note(Bare(given.call).encode())

    def _apply_signed(self, data: bytes) -> None:
        """Apply an extrinsic of the pool; one that has no room, or waits for another one, is left there."""
        view = self.view()
        try:
            extrinsic = decode_extrinsic(data)
            pre_dispatch(extrinsic, view)
        except (CodecError, TransactionValidityError, MissingNode) as error:
            if not (isinstance(error, InvalidTransaction) and error.reason in LEFT_IN_THE_POOL):
                self.invalid.append(data)
            return
        assert isinstance(extrinsic, Signed), "nothing but signed extrinsics is in a pool"
        call, account = view.decode_call(extrinsic.call), extrinsic.address.account
        assert account is not None, "an address that names no account is not valid"
        info = self.dispatcher.info(call)
        if self._length + len(data) > MAX_BLOCK_LENGTH * NORMAL_PART or not self.system.meter.can_consume(info.weight):
            return
        try:
            with self.system.state.transaction():
                self._dispatch(extrinsic, call, account, info, len(data))
        except (CodecError, MissingNode) as error:
            # somebody put something else into the state than its types say, or it has gaps
            log.warning("the extrinsic 0x%s is dropped: %s", blake2_256(data).hex(), error)
            self.invalid.append(data)
            return
        self._note(data)

    def _dispatch(self, extrinsic: Signed, call: DecodedCall, account: bytes, info: DispatchInfo, length: int) -> None:
        withdrawn = self.payment.withdraw_fee(account, length, info.weight, extrinsic.extra.tip)
        self.system.inc_account_nonce(account)
        error: DispatchError | None = None
        try:
            with self.system.state.transaction():
                used = self.dispatcher.dispatch(call, Origin.signed(account))
        except DispatchError as refusal:
            error, used = refusal, PostDispatchInfo(info.weight)
        self.payment.refund(withdrawn, used)
        self.system.meter.consume(used.weight)
        self.system.note_applied_extrinsic(DispatchInfo(used.weight, info.class_, used.pays_fee), error)

    def _note(self, data: bytes) -> None:
        self.extrinsics.append(data)
        self._length += len(data)
        self._marks.append(len(self.system.events))


class View(JudgedHere):
    """A chain as its state shows it to transactions (``ValidationView``).

    Between blocks that is the state after the last one; while a block is built, what it has done so far.
    """

    def __init__(self, executive: Executive) -> None:
        self._executive = executive
        self.genesis_hash = executive.genesis_hash
        self.spec_version = executive.runtime.names.spec_version
        self.transaction_version = executive.runtime.names.transaction_version

    @property
    def block_number(self) -> BlockNumber:
        return self._executive.head[0]

    def block_hash(self, number: BlockNumber) -> bytes | None:
        if number == 0:
            return self.genesis_hash
        if number == self._executive.head[0]:
            return self._executive.head[1]
        return self._executive.blocks.block_hash.get(number)

    def nonce(self, account: bytes) -> int:
        return self._executive.system.account_nonce(account)

    def can_pay(self, account: bytes, fee: int) -> bool:
        if not self._executive.system.account_info(account).is_kept:
            return False
        return self._executive.payment.can_withdraw_fee(account, fee)

    def fee(self, call: DecodedCall, encoded_length: int, tip: int) -> int:
        info = self._executive.dispatcher.info(call)
        return self._executive.payment.compute_fee(encoded_length, info.weight, tip)

    def decode_call(self, data: bytes) -> DecodedCall:
        return self._executive.runtime.decode_call(data)

    def weight_fits(self, call: DecodedCall, encoded_length: int) -> bool:
        most = Weight(int(MAX_BLOCK_WEIGHT.ref_time * NORMAL_PART), int(MAX_BLOCK_WEIGHT.proof_size * NORMAL_PART))
        weight = self._executive.dispatcher.info(call).weight
        return weight.all_lte(most) and encoded_length <= MAX_BLOCK_LENGTH * NORMAL_PART

    def is_mandatory(self, call: DecodedCall) -> bool:
        return self._executive.dispatcher.info(call).class_ is DispatchClass.Mandatory

    def transactions_per_block(self, call: DecodedCall, encoded_length: int) -> int:
        weight = self._executive.dispatcher.info(call).weight
        return how_many_fit(weight, encoded_length, block_weight=MAX_BLOCK_WEIGHT, block_length=MAX_BLOCK_LENGTH)
