"""What an extrinsic would do and cost, without doing it."""

from dataclasses import dataclass

from relaycast_node.chain.executive import Executive
from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.extrinsic.extrinsic import Signed, decode_extrinsic
from relaycast_node.extrinsic.validity import pre_dispatch
from relaycast_node.extrinsic.validity_errors import TransactionValidityError
from relaycast_pallets.frame.dispatch import DispatchError, DispatchInfo, Origin
from relaycast_pallets.transaction_payment import FeeDetails
from relaycast_xcm.primitives import Weight

APPLIED = b"\x00\x00"
"""``ApplyExtrinsicResult``: the extrinsic is valid, and its call succeeds."""

REFUSED, INVALID = b"\x00\x01", b"\x01"


@dataclass(frozen=True, slots=True)
class Fees:
    """What calls weigh and cost on the chain of an ``executive``."""

    executive: Executive

    def info(self, call: DecodedCall) -> DispatchInfo:
        return self.executive.dispatcher.info(call)

    def details(self, call: DecodedCall, length: int) -> FeeDetails:
        """Return the parts of the fee of an extrinsic of ``length`` bytes, without a tip."""
        return self.executive.payment.fee_details(length, self.info(call).weight)

    def weight_to_fee(self, weight: Weight) -> int:
        return self.executive.payment.weight_to_fee(weight)

    def length_to_fee(self, length: int) -> int:
        return self.executive.payment.length_to_fee(length)


class _Undone(Exception):
    """Takes a trial back."""


def dry_run(executive: Executive, data: bytes) -> bytes:
    """Return the SCALE ``ApplyExtrinsicResult`` of an extrinsic in the next block; raises ``CodecError``."""
    extrinsic = decode_extrinsic(data)
    call = executive.runtime.decode_call(extrinsic.call)
    try:
        pre_dispatch(extrinsic, executive.view())
    except TransactionValidityError as refusal:
        return INVALID + refusal.encode()
    account = extrinsic.address.account if isinstance(extrinsic, Signed) else None
    result = APPLIED
    try:
        with executive.system.state.transaction():
            if isinstance(extrinsic, Signed) and account is not None:
                weight = executive.dispatcher.info(call).weight
                executive.payment.withdraw_fee(account, len(data), weight, extrinsic.extra.tip)
                executive.system.inc_account_nonce(account)
            try:
                executive.dispatcher.dispatch(call, Origin.none() if account is None else Origin.signed(account))
            except DispatchError as error:
                result = REFUSED + executive.runtime.encode("DispatchError", error)
            raise _Undone
    except _Undone:
        return result
