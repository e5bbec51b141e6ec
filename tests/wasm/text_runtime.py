"""A small parachain runtime in WebAssembly text: what no published runtime has can be tested with it.

It exports ``KeyToIncludeInRelayProof``, writes state version 1 and child tries, and asks for the proof's size. An
extrinsic is a number for what it does, and bytes:

==  ===================================================================================
0   the inherent: its data are kept under ``INHERENT``
1   write the rest behind the first 32 bytes under the key that those are
2   remove the key
3   as 1, in the child trie ``CHILD``
4   remove all keys with the prefix
5   panic with a message of its own
6   keep the size of the proof so far under ``PROOF_SIZE``, 8 bytes
7   write the key ``b"lost"``, then say that the extrinsic is not valid: it is in no block
8   read the key
9   send the rest to the relay chain
10  read the key in the child trie ``CHILD``
==  ===================================================================================
"""

from functools import cache
from hashlib import blake2b
from pathlib import Path

import wasmtime

from relaycast_trie.hasher import twox_128
from relaycast_trie.scale import encode_bytes, encode_compact, encode_option, encode_u8, encode_u32, encode_vec


def item(pallet: bytes, name: bytes) -> bytes:
    """Return where a storage value stands."""
    return twox_128(pallet) + twox_128(name)


HEADER = item(b"System", b"Header")
EXTRINSICS = item(b"System", b"Extrinsics")
INHERENT = item(b"ParachainSystem", b"Inherent")
UPWARD = item(b"ParachainSystem", b"UpwardMessages")
PROOF_SIZE = item(b"Store", b"ProofSize")
REQUEST = item(b"Store", b"Request")
"""What the runtime asks its collator to prove: a ``RelayProofRequest`` in SCALE; genesis puts it there."""

CHILD = b"store"
LOST = b"lost"

APIS = {
    b"Core": 4,
    b"Metadata": 2,
    b"BlockBuilder": 6,
    b"TaggedTransactionQueue": 3,
    b"AccountNonceApi": 1,
    b"CollectCollationInfo": 2,
    b"KeyToIncludeInRelayProof": 1,
}

SPEC_NAME = b"text-runtime"

VERSION = (
    encode_bytes(SPEC_NAME)
    + encode_bytes(b"relaycast")
    + b"".join(map(encode_u32, (1, 7, 1)))
    + encode_vec(blake2b(name, digest_size=8).digest() + encode_u32(number) for name, number in APIS.items())
    + encode_u32(3)
    + encode_u8(1)
)


def _type(index: int, definition: bytes, path: tuple[bytes, ...] = ()) -> bytes:
    return encode_compact(index) + encode_vec(map(encode_bytes, path)) + b"\x00" + definition + b"\x00"


def _pallet(index: int, name: bytes, *items: tuple[bytes, int, bytes]) -> bytes:
    entries = [
        encode_bytes(item_name) + b"\x00\x00" + encode_compact(kind) + encode_bytes(default) + b"\x00"
        for item_name, kind, default in items
    ]
    storage = encode_option(encode_bytes(name) + encode_vec(entries) if items else None)
    return encode_bytes(name) + storage + b"\x00\x00\x00\x00" + encode_u8(index)


U32, U8, BYTES, U64 = range(4)

METADATA = (
    b"meta\x0e"
    + encode_vec([_type(U32, b"\x05\x05"), _type(U8, b"\x05\x03"), _type(BYTES, b"\x02\x04"), _type(U64, b"\x05\x06")])
    + encode_vec(
        [
            _pallet(0, b"System", (b"Header", BYTES, b"\x00"), (b"Extrinsics", BYTES, b"\x00")),
            _pallet(1, b"ParachainSystem", (b"Inherent", BYTES, b"\x00"), (b"UpwardMessages", BYTES, b"\x00")),
            _pallet(2, b"Store", (b"ProofSize", U64, bytes(8)), (b"Request", BYTES, b"\x00")),
        ]
    )
    + encode_compact(BYTES)
    + b"\x04\x00"
    + encode_compact(BYTES)
)
"""Metadata of version 14 with what there is: no calls, no events."""

CONSTANTS = {
    "VERSION": VERSION,
    "METADATA": encode_bytes(METADATA),
    "HEADER": HEADER,
    "EXTRINSICS": EXTRINSICS,
    "INHERENT": INHERENT,
    "UPWARD": UPWARD,
    "PROOF_SIZE": PROOF_SIZE,
    "REQUEST": REQUEST,
    "CHILD": CHILD,
    "LOST": LOST,
    "INCLUDED": b"\x00\x00",
    "INVALID": b"\x01\x00\x00",
    "NOTHING": b"\x00",
    "NONCE": bytes(4),
    "TARGET": b"text",
    "PANIC": b"the extrinsic asked for it",
}

FIRST_CONSTANT, HEAP_BASE = 1_024, 16_384

IMPORTS = {
    "allocator_malloc_version_1": ("i32", "i32"),
    "logging_log_version_1": ("i32 i64 i64", ""),
    "storage_get_version_1": ("i64", "i64"),
    "storage_set_version_1": ("i64 i64", ""),
    "storage_clear_version_1": ("i64", ""),
    "storage_append_version_1": ("i64 i64", ""),
    "storage_clear_prefix_version_2": ("i64 i64", "i64"),
    "storage_root_version_2": ("i32", "i64"),
    "default_child_storage_set_version_1": ("i64 i64 i64", ""),
    "default_child_storage_get_version_1": ("i64 i64", "i64"),
    "trie_blake2_256_ordered_root_version_2": ("i64 i32", "i32"),
    "hashing_blake2_256_version_1": ("i64", "i32"),
    "storage_proof_size_storage_proof_size_version_1": ("", "i64"),
}

BODY = Path(__file__).with_suffix(".wat").read_text()


def escaped(value: bytes) -> str:
    """Return bytes as WebAssembly text writes them."""
    return "".join("\\" + f"{byte:02x}" for byte in value)


@cache
def text_runtime() -> bytes:
    """Return the runtime, compiled to WebAssembly."""
    spans, data, place = {}, [], FIRST_CONSTANT
    for name, value in CONSTANTS.items():
        spans[name] = f"(i64.const {len(value) << 32 | place})"
        data.append(f'(data (i32.const {place}) "{escaped(value)}")')
        place += len(value)
    assert place <= HEAP_BASE
    imports = [
        f'(import "env" "ext_{name}" (func ${name} (param {given}){f" (result {result})" if result else ""}))'
        for name, (given, result) in IMPORTS.items()
    ]
    body = BODY
    for name, span in spans.items():
        body = body.replace(f"{{{name}}}", span)
    memory = ['(import "env" "memory" (memory 1))', f'(global (export "__heap_base") i32 (i32.const {HEAP_BASE}))']
    return bytes(wasmtime.wat2wasm("\n".join(["(module", *imports, *memory, *data, body, ")"])))
