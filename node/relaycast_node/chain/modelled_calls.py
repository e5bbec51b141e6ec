"""The runtime APIs of modelled chains, SCALE in and SCALE out.

An extrinsic in a runtime call is its own length in front of it; what is left of the input after the arguments is
ignored by nobody: the call fails.
"""

from collections.abc import Callable
from typing import Protocol

from relaycast_node.chain.code import CodeVersion
from relaycast_node.chain.exceptions import BadCallInput, MissingMethod
from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.extrinsic.extrinsic import Signed, decode_extrinsic
from relaycast_node.extrinsic.validity import ValidationView, validate
from relaycast_node.extrinsic.validity_errors import TransactionValidityError
from relaycast_node.metadata.runtime import RuntimeNames
from relaycast_node.metadata.runtime_apis import RUNTIME_APIS
from relaycast_pallets.frame.dispatch import DispatchClass, DispatchInfo, Pays
from relaycast_pallets.transaction_payment import FeeDetails
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

DISPATCH_CLASSES = (DispatchClass.Normal, DispatchClass.Operational, DispatchClass.Mandatory)
"""In the order of their SCALE variants."""

METADATA_VERSIONS = (14, 15)

API_VERSIONS = tuple((api.id, api.version) for api in RUNTIME_APIS)


class RuntimeFace(Protocol):
    """What a runtime is called, and its calls."""

    @property
    def names(self) -> RuntimeNames: ...
    def decode_call(self, data: bytes, /) -> DecodedCall: ...


class FeesFace(Protocol):
    """What calls weigh and cost; ``details`` without a tip."""

    def info(self, call: DecodedCall, /) -> DispatchInfo: ...
    def details(self, call: DecodedCall, length: int, /) -> FeeDetails: ...
    def weight_to_fee(self, weight: Weight, /) -> int: ...
    def length_to_fee(self, length: int, /) -> int: ...


class ModelledFace(Protocol):
    """What the methods ask of a modelled chain; ``view_at`` raises ``UnknownBlock``."""

    @property
    def runtime(self) -> RuntimeFace: ...
    @property
    def fees(self) -> FeesFace: ...
    def metadata_in(self, version: int, /) -> bytes: ...
    def view_at(self, block_hash: bytes, /) -> ValidationView: ...


RuntimeCall = Callable[[ModelledFace, ScaleReader, bytes], bytes]


def call_modelled(chain: ModelledFace, name: str, data: bytes, block_hash: bytes) -> bytes:
    """Return what a method answers at a block; raises ``MissingMethod``, ``BadCallInput`` and ``UnknownBlock``."""
    method = _METHODS.get(name)
    if method is None:
        raise MissingMethod(name)
    reader = ScaleReader(data)
    try:
        return method(chain, reader, block_hash)
    except (CodecError, ValueError) as error:
        raise BadCallInput(name, str(error)) from None


def version_of(names: RuntimeNames) -> CodeVersion:
    """Return what a modelled runtime says of itself."""
    return CodeVersion(
        spec_name=names.spec_name,
        impl_name=names.impl_name,
        authoring_version=names.authoring_version,
        spec_version=names.spec_version,
        impl_version=names.impl_version,
        apis=API_VERSIONS,
        transaction_version=names.transaction_version,
        state_version=names.system_version,
    )


def _core_version(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    reader.done()
    names = chain.runtime.names
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


def _metadata(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    reader.done()
    return encode_bytes(chain.metadata_in(METADATA_VERSIONS[0]))


def _metadata_versions(_chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    reader.done()
    return encode_vec(map(encode_u32, METADATA_VERSIONS))


def _metadata_at_version(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    version = reader.u32()
    reader.done()
    return encode_option(encode_bytes(chain.metadata_in(version)) if version in METADATA_VERSIONS else None)


def _account_nonce(chain: ModelledFace, reader: ScaleReader, block_hash: bytes) -> bytes:
    account = reader.take(32)
    reader.done()
    return encode_u32(chain.view_at(block_hash).nonce(account))


def _query_info(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    (call, signed), length = _call_in(chain, _read_extrinsic(reader)), reader.u32()
    reader.done()
    return _encoded_info(chain, call, length, pays=signed)


def _query_fee_details(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    extrinsic = _read_extrinsic(reader)
    length = reader.u32()
    reader.done()
    call, signed = _call_in(chain, extrinsic)
    fee = chain.fees.details(call, length) if signed else None
    decoded = decode_extrinsic(extrinsic)
    return _encode_details(fee, decoded.extra.tip if isinstance(decoded, Signed) else 0)


def _query_call_info(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    call, length = _read_call(chain, reader)
    return _encoded_info(chain, call, length, pays=True)


def _query_call_fee_details(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    call, length = _read_call(chain, reader)
    return _encode_details(chain.fees.details(call, length), 0)


def _query_weight_to_fee(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    ref_time, proof_size = reader.compact(), reader.compact()
    reader.done()
    if max(ref_time, proof_size) > U64_MAX:
        raise CodecError("a weight is two u64", 0)
    return encode_u128(chain.fees.weight_to_fee(Weight(ref_time, proof_size)))


def _query_length_to_fee(chain: ModelledFace, reader: ScaleReader, _block_hash: bytes) -> bytes:
    length = reader.u32()
    reader.done()
    return encode_u128(chain.fees.length_to_fee(length))


def _validate_transaction(chain: ModelledFace, reader: ScaleReader, block_hash: bytes) -> bytes:
    source = reader.u8()
    if source > 2:
        raise CodecError(f"a source is 0 to 2 (in a block, local, external), got {source}", 0)
    extrinsic, at = _read_extrinsic(reader), reader.take(32)
    reader.done()
    view = chain.view_at(block_hash if at == bytes(32) else at)
    try:
        return validate(decode_extrinsic(extrinsic), view).encode_result()
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


def _read_call(chain: ModelledFace, reader: ScaleReader) -> tuple[DecodedCall, int]:
    """Return a call and a length: a call has no length in front, so it is what stands before the last four bytes."""
    data = reader.take(max(reader.remaining - 4, 0))
    length = reader.u32()
    return chain.runtime.decode_call(data), length


def _call_in(chain: ModelledFace, extrinsic: bytes) -> tuple[DecodedCall, bool]:
    """Return the call of an extrinsic, and whether somebody signed it; raises ``CodecError``."""
    decoded = decode_extrinsic(extrinsic)
    return chain.runtime.decode_call(decoded.call), isinstance(decoded, Signed)


def _encoded_info(chain: ModelledFace, call: DecodedCall, length: int, *, pays: bool) -> bytes:
    """Return what a call weighs and costs, without a tip; one that nobody signed pays nothing."""
    info = chain.fees.info(call)
    fee = chain.fees.details(call, length).total if pays and info.pays_fee is Pays.Yes else 0
    sizes = encode_compact(info.weight.ref_time) + encode_compact(info.weight.proof_size)
    return sizes + encode_u8(DISPATCH_CLASSES.index(info.class_)) + encode_u128(fee)


def _encode_details(fee: FeeDetails | None, tip: int) -> bytes:
    parts = None if fee is None else b"".join(map(encode_u128, (fee.base_fee, fee.len_fee, fee.adjusted_weight_fee)))
    return encode_option(parts) + encode_u128(tip)
