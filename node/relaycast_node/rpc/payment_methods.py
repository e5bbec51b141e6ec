"""``payment_*``: what an extrinsic weighs and costs."""

from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import BlockHash, HexBytes
from relaycast_node.rpc.rpc_error import UNDECODABLE, RpcError
from relaycast_node.rpc.runtime_api import call_in, info_of
from relaycast_node.rpc.served import Served
from relaycast_trie import CodecError

GROUP = MethodGroup()


@GROUP.method("payment_queryInfo")
def query_info(served: Served, encoded_xt: HexBytes, at: BlockHash | None = None) -> dict[str, object]:
    served.block(at)
    call, signed = _call_in(served, encoded_xt, "Unable to query dispatch info.")
    info = info_of(served, call, len(encoded_xt), pays=signed)
    return {
        "weight": {"ref_time": info.weight.ref_time, "proof_size": info.weight.proof_size},
        "class": info.dispatch_class,
        "partialFee": str(info.partial_fee),
    }


@GROUP.method("payment_queryFeeDetails")
def query_fee_details(served: Served, encoded_xt: HexBytes, at: BlockHash | None = None) -> dict[str, object]:
    served.block(at)
    call, signed = _call_in(served, encoded_xt, "Unable to query fee details.")
    if not signed:
        return {"inclusionFee": None}
    fee = served.chain.fees.details(call, len(encoded_xt))
    parts = {"baseFee": fee.base_fee, "lenFee": fee.len_fee, "adjustedWeightFee": fee.adjusted_weight_fee}
    return {"inclusionFee": {name: hex(part) for name, part in parts.items()}}


def _call_in(served: Served, extrinsic: bytes, message: str) -> tuple[DecodedCall, bool]:
    try:
        return call_in(served, extrinsic)
    except CodecError as error:
        raise RpcError(UNDECODABLE, message, str(error)) from None
