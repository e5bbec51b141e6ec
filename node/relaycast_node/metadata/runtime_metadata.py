"""Metadata in the two versions that clients ask for, 14 and 15 (frame-metadata), out of a runtime."""

from collections.abc import Sequence
from typing import Any

from relaycast_node.metadata.declarations import DeclaredConstant, DeclaredPallet, DeclaredStorage
from relaycast_node.metadata.portable_types import encode_docs, encode_text
from relaycast_node.metadata.runtime import CALL, ERROR, EVENT, Runtime
from relaycast_node.metadata.runtime_apis import RUNTIME_APIS, RuntimeApi
from relaycast_node.metadata.signed_extensions import (
    ADDRESS,
    EXTRA,
    EXTRINSIC,
    EXTRINSIC_VERSION,
    SIGNATURE,
    SIGNED_EXTENSIONS,
)
from relaycast_pallets.frame.typed_storage import StorageCodec, StorageDoubleMap, StorageHasher, StorageValue
from relaycast_trie.scale import encode_bytes, encode_compact, encode_option, encode_u8, encode_vec

MAGIC = b"meta"
VERSIONS = (14, 15)

HASHERS = (
    "Blake2_128", "Blake2_256", "Blake2_128Concat", "Twox128", "Twox256", "Twox64Concat", "Identity",
)  # fmt: skip
"""``StorageHasher``, in the order of its variants."""

OPTIONAL, DEFAULT = b"\x00", b"\x01"
PLAIN, MAP = b"\x00", b"\x01"


def encode_metadata(runtime: Runtime, version: int) -> bytes:
    """Return ``RuntimeMetadataPrefixed``; ``ValueError`` for a version that is not among ``VERSIONS``."""
    if version not in VERSIONS:
        raise ValueError(f"metadata has the version {' or '.join(map(str, VERSIONS))}, got {version}")
    pallets = encode_vec([_pallet(runtime, it, version) for it in runtime.pallets])
    rest = _v14_rest(runtime) if version == 14 else _v15_rest(runtime)
    return MAGIC + encode_u8(version) + runtime.registry.encode() + pallets + rest


def _v14_rest(runtime: Runtime) -> bytes:
    described = _type(runtime, EXTRINSIC) + encode_u8(EXTRINSIC_VERSION) + _extensions(runtime)
    return described + _type(runtime, "()")


def _v15_rest(runtime: Runtime) -> bytes:
    parts = b"".join(_type(runtime, it) for it in (ADDRESS, CALL, SIGNATURE, EXTRA))
    apis = encode_vec([_api(runtime, it) for it in RUNTIME_APIS])
    outer = b"".join(_type(runtime, it) for it in (CALL, EVENT, ERROR))
    no_custom_values = encode_compact(0)
    extrinsic = encode_u8(EXTRINSIC_VERSION) + parts + _extensions(runtime)
    return extrinsic + _type(runtime, "()") + apis + outer + no_custom_values


def _pallet(runtime: Runtime, pallet: DeclaredPallet, version: int) -> bytes:
    storage = None
    if pallet.storage:
        storage = encode_text(pallet.name) + encode_vec([_storage(runtime, it) for it in pallet.storage])
    calls, events, errors = (runtime.part(pallet, outer) for outer in (CALL, EVENT, ERROR))
    return b"".join(
        (
            encode_text(pallet.name),
            encode_option(storage),
            _optional(calls),
            _optional(events),
            encode_vec([_constant(runtime, it) for it in pallet.constants]),
            _optional(errors),
            encode_u8(pallet.index),
            encode_docs(pallet.docs) if version > 14 else b"",
        )
    )


def _storage(runtime: Runtime, declared: DeclaredStorage) -> bytes:
    item = declared.item
    value = _type(runtime, item.codec.name)
    if isinstance(item, StorageValue):
        kind = PLAIN + value
    elif isinstance(item, StorageDoubleMap):
        hashers = (item.first_hasher, item.second_hasher)
        kind = MAP + _hashers(hashers) + _type(runtime, f"({_name(item.first_codec)}, {_name(item.second_codec)})")
        kind += value
    else:
        kind = MAP + _hashers((item.hasher,)) + _type(runtime, _name(item.key_codec)) + value
    default = None if isinstance(item, StorageDoubleMap) else item.default
    modifier = OPTIONAL if default is None else DEFAULT
    fallback = b"\x00" if default is None else item.codec.encode(default)
    return encode_text(item.name[1]) + modifier + kind + encode_bytes(fallback) + encode_docs(declared.docs)


def _name(codec: StorageCodec[Any]) -> str:
    return codec.name


def _hashers(hashers: Sequence[StorageHasher]) -> bytes:
    return encode_vec(encode_u8(HASHERS.index(it.name)) for it in hashers)


def _constant(runtime: Runtime, constant: DeclaredConstant) -> bytes:
    number = runtime.types.annotated(constant.annotation)
    value = runtime.codec.encode(number, constant.value)
    return encode_text(constant.name) + encode_compact(number) + encode_bytes(value) + encode_docs(constant.docs)


def _extensions(runtime: Runtime) -> bytes:
    return encode_vec(
        encode_text(it.name) + _type(runtime, it.name) + _type(runtime, it.additional) for it in SIGNED_EXTENSIONS
    )


def _api(runtime: Runtime, api: RuntimeApi) -> bytes:
    methods = [
        encode_text(method.name)
        + encode_vec(encode_text(name) + _type(runtime, spelling) for name, spelling in method.inputs)
        + _type(runtime, method.output)
        + encode_docs(())
        for method in api.methods
    ]
    return encode_text(api.name) + encode_vec(methods) + encode_docs(())


def _type(runtime: Runtime, spelling: str) -> bytes:
    return encode_compact(runtime.types.spelled(spelling))


def _optional(number: int | None) -> bytes:
    return encode_option(None if number is None else encode_compact(number))
