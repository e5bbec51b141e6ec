"""``state_call``: the runtime APIs that clients call, SCALE in and SCALE out, and what other groups ask the runtime.

An extrinsic in a runtime call is its own length in front of it; what is left of the input after the arguments is
ignored by nobody: the call fails.
"""

from collections.abc import Callable
from dataclasses import dataclass

from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.extrinsic.extrinsic import Signed, decode_extrinsic
from relaycast_node.extrinsic.validity import validate
from relaycast_node.extrinsic.validity_errors import TransactionValidityError
from relaycast_node.metadata.runtime_apis import RUNTIME_APIS
from relaycast_node.rpc.faces import BlockFace
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.rpc_error import client_error, shown
from relaycast_node.rpc.served import Served
from relaycast_pallets.frame.dispatch import DispatchClass, Pays
from relaycast_pallets.transaction_payment.pallet import FeeDetails
from relaycast_trie import CodecError
from relaycast_trie.scale import (
    ScaleReader,
    encode_bytes,
    encode_compact,
    encode_option,
    encode_u8,
    encode_u32,
    encode_u128,
    encode_vec,
)
from relaycast_xcm import Weight
from relaycast_xcm.primitives import U64_MAX

DISPATCH_CLASSES = {
    DispatchClass.Normal: "normal",
    DispatchClass.Operational: "operational",
    DispatchClass.Mandatory: "mandatory",
}
"""In the order of their SCALE variants."""

METADATA_VERSIONS = (14, 15)

API_VERSIONS = [(api.id, api.version) for api in RUNTIME_APIS]


@dataclass(frozen=True, slots=True)
class RuntimeDispatchInfo:
    """What a call weighs, and in which class; ``partial_fee`` without a tip."""

    weight: Weight
    dispatch_class: str
    partial_fee: int


RuntimeCall = Callable[[Served, ScaleReader, BlockFace], bytes]


def call_runtime(served: Served, name: str, data: bytes, block: BlockFace) -> bytes:
    """Return what a method of the runtime answers at ``block``; raises ``RpcError``."""
    method = _METHODS.get(name)
    if method is None:
        raise client_error(f"Execution failed: Other: Exported method {shown(name)[1:-1]} is not found")
    reader = ScaleReader(data)
    try:
        return method(served, reader, block)
    except (CodecError, ValueError) as error:
        short = name.partition("_")[2]
        raise client_error(f"Execution failed: Bad input data provided to {short}: {error}") from None


def runtime_version_json(served: Served) -> dict[str, object]:
    """Return the version as ``state_getRuntimeVersion`` gives it."""
    names = served.chain.runtime.names
    return {
        "specName": names.spec_name,
        "implName": names.impl_name,
        "authoringVersion": names.authoring_version,
        "specVersion": names.spec_version,
        "implVersion": names.impl_version,
        "apis": [(hexed(api), version) for api, version in API_VERSIONS],
        "transactionVersion": names.transaction_version,
        "systemVersion": names.system_version,
        "stateVersion": names.system_version,
    }


def info_of(served: Served, call: DecodedCall, length: int, *, pays: bool) -> RuntimeDispatchInfo:
    """Return what a call weighs and costs; one that nobody signed pays nothing."""
    info = served.chain.fees.info(call)
    fee = served.chain.fees.details(call, length).total if pays and info.pays_fee is Pays.Yes else 0
    return RuntimeDispatchInfo(info.weight, DISPATCH_CLASSES[info.class_], fee)


def call_in(served: Served, extrinsic: bytes) -> tuple[DecodedCall, bool]:
    """Return the call of an extrinsic, and whether somebody signed it; raises ``CodecError``."""
    decoded = decode_extrinsic(extrinsic)
    return served.chain.runtime.decode_call(decoded.call), isinstance(decoded, Signed)


def _core_version(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    reader.done()
    names = served.chain.runtime.names
    apis = encode_vec(api + encode_u32(version) for api, version in API_VERSIONS)
    return (
        encode_bytes(names.spec_name.encode())
        + encode_bytes(names.impl_name.encode())
        + encode_u32(names.authoring_version)
        + encode_u32(names.spec_version)
        + encode_u32(names.impl_version)
        + apis
        + encode_u32(names.transaction_version)
        + encode_u8(names.system_version)
    )


def _metadata(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    reader.done()
    return encode_bytes(served.metadata(METADATA_VERSIONS[0]))


def _metadata_versions(_served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    reader.done()
    return encode_vec(map(encode_u32, METADATA_VERSIONS))


def _metadata_at_version(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    version = reader.u32()
    reader.done()
    return encode_option(encode_bytes(served.metadata(version)) if version in METADATA_VERSIONS else None)


def _account_nonce(served: Served, reader: ScaleReader, block: BlockFace) -> bytes:
    account = reader.take(32)
    reader.done()
    return encode_u32(served.chain.view_at(block.hash).nonce(account))


def _query_info(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    (call, signed), length = call_in(served, _read_extrinsic(reader)), reader.u32()
    reader.done()
    return _encode_info(info_of(served, call, length, pays=signed))


def _query_fee_details(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    extrinsic = _read_extrinsic(reader)
    length = reader.u32()
    reader.done()
    call, signed = call_in(served, extrinsic)
    fee = served.chain.fees.details(call, length) if signed else None
    decoded = decode_extrinsic(extrinsic)
    return _encode_details(fee, decoded.extra.tip if isinstance(decoded, Signed) else 0)


def _query_call_info(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    call, length = _read_call(served, reader)
    return _encode_info(info_of(served, call, length, pays=True))


def _query_call_fee_details(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    call, length = _read_call(served, reader)
    return _encode_details(served.chain.fees.details(call, length), 0)


def _query_weight_to_fee(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    ref_time, proof_size = reader.compact(), reader.compact()
    reader.done()
    if max(ref_time, proof_size) > U64_MAX:
        raise CodecError("a weight is two u64", 0)
    return encode_u128(served.chain.fees.weight_to_fee(Weight(ref_time, proof_size)))


def _query_length_to_fee(served: Served, reader: ScaleReader, _block: BlockFace) -> bytes:
    length = reader.u32()
    reader.done()
    return encode_u128(served.chain.fees.length_to_fee(length))


def _validate_transaction(served: Served, reader: ScaleReader, block: BlockFace) -> bytes:
    source = reader.u8()
    if source > 2:
        raise CodecError(f"a source is 0 to 2 (in a block, local, external), got {source}", 0)
    extrinsic, at = _read_extrinsic(reader), reader.take(32)
    reader.done()
    asked = block if at == bytes(32) else served.block(at)
    try:
        return validate(decode_extrinsic(extrinsic), served.chain.view_at(asked.hash)).encode_result()
    except TransactionValidityError as error:
        return error.encode_result()


_PAYMENT: dict[str, RuntimeCall] = {
    "query_weight_to_fee": _query_weight_to_fee,
    "query_length_to_fee": _query_length_to_fee,
}

_METHODS: dict[str, RuntimeCall] = {
    "Core_version": _core_version,
    "Metadata_metadata": _metadata,
    "Metadata_metadata_versions": _metadata_versions,
    "Metadata_metadata_at_version": _metadata_at_version,
    "AccountNonceApi_account_nonce": _account_nonce,
    "TransactionPaymentApi_query_info": _query_info,
    "TransactionPaymentApi_query_fee_details": _query_fee_details,
    "TransactionPaymentCallApi_query_call_info": _query_call_info,
    "TransactionPaymentCallApi_query_call_fee_details": _query_call_fee_details,
    **{f"TransactionPaymentApi_{name}": method for name, method in _PAYMENT.items()},
    **{f"TransactionPaymentCallApi_{name}": method for name, method in _PAYMENT.items()},
    "TaggedTransactionQueue_validate_transaction": _validate_transaction,
}


def _read_extrinsic(reader: ScaleReader) -> bytes:
    return encode_bytes(reader.bytes_())


def _read_call(served: Served, reader: ScaleReader) -> tuple[DecodedCall, int]:
    """Return a call and a length: a call has no length in front, so it is what stands before the last four bytes."""
    data = reader.take(max(reader.remaining - 4, 0))
    length = reader.u32()
    return served.chain.runtime.decode_call(data), length


def _encode_info(info: RuntimeDispatchInfo) -> bytes:
    sizes = encode_compact(info.weight.ref_time) + encode_compact(info.weight.proof_size)
    place = list(DISPATCH_CLASSES.values()).index(info.dispatch_class)
    return sizes + encode_u8(place) + encode_u128(info.partial_fee)


def _encode_details(fee: FeeDetails | None, tip: int) -> bytes:
    parts = None if fee is None else b"".join(map(encode_u128, (fee.base_fee, fee.len_fee, fee.adjusted_weight_fee)))
    return encode_option(parts) + encode_u128(tip)
