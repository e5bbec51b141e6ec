"""``payment_*``: what an extrinsic weighs and costs, as the chain's code says (``TransactionPaymentApi``)."""

from hashlib import blake2b

from relaycast_node.chain.exceptions import BadCallInput, CodeRefused
from relaycast_node.extrinsic.extrinsic import take_extrinsic
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import BlockHash, HexBytes
from relaycast_node.rpc.rpc_error import RUNTIME_FAILED, UNDECODABLE, RpcError
from relaycast_trie import CodecError
from relaycast_trie.scale import ScaleReader, encode_u32

GROUP = MethodGroup()

PAYMENT_API = blake2b(b"TransactionPaymentApi", digest_size=8).digest()

DISPATCH_CLASSES = ("normal", "operational", "mandatory")
"""In the order of their SCALE variants."""

U128_BYTES = 16
CLASS_AND_FEE_BYTES = 1 + U128_BYTES


@GROUP.method("payment_queryInfo")
def query_info(context: RpcContext, encoded_xt: HexBytes, at: BlockHash | None = None) -> dict[str, object]:
    reader = _asked(context, "query_info", encoded_xt, at, "Unable to query dispatch info.")
    version = context.chain.version(context.block(at).hash).api(PAYMENT_API) or 0
    if version < 2:  # a weight was one number, of four bytes and later of eight
        weight: object = int.from_bytes(reader.take(reader.remaining - CLASS_AND_FEE_BYTES), "little")
    else:
        weight = {"ref_time": reader.compact(), "proof_size": reader.compact()}
    return {"weight": weight, "class": DISPATCH_CLASSES[reader.u8()], "partialFee": str(_u128(reader))}


@GROUP.method("payment_queryFeeDetails")
def query_fee_details(context: RpcContext, encoded_xt: HexBytes, at: BlockHash | None = None) -> dict[str, object]:
    reader = _asked(context, "query_fee_details", encoded_xt, at, "Unable to query fee details.")
    if not reader.u8():
        return {"inclusionFee": None}
    return {"inclusionFee": {name: hex(_u128(reader)) for name in ("baseFee", "lenFee", "adjustedWeightFee")}}


def _asked(context: RpcContext, method: str, extrinsic: bytes, at: bytes | None, message: str) -> ScaleReader:
    """Return what the chain's code says of an extrinsic; raises ``RpcError`` with ``message``."""
    block_hash = context.block(at).hash
    try:
        take_extrinsic(extrinsic)
        data = extrinsic + encode_u32(len(extrinsic))
        return ScaleReader(context.chain.call(f"TransactionPaymentApi_{method}", data, block_hash))
    except CodecError as error:
        raise RpcError(UNDECODABLE, message, str(error)) from None
    except BadCallInput as refusal:
        raise RpcError(UNDECODABLE, message, refusal.reason) from None
    except CodeRefused as refusal:
        raise RpcError(RUNTIME_FAILED, message, str(refusal)) from None


def _u128(reader: ScaleReader) -> int:
    return int.from_bytes(reader.take(U128_BYTES), "little")
