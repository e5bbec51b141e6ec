"""The types of state and blocks in the registry: py-scale-codec reads and writes what the pallets and headers do."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_collator import DigestItem, Header
from relaycast_pallets import PublishedEntry, derive_child_info
from relaycast_pallets.broadcaster.storage import (
    PublishedKeys,
    PublisherInfo,
    _decode_cursor,
    _decode_ttl,
    _encode_cursor,
    _encode_ttl,
)
from relaycast_pallets.frame.account import IS_NEW_LOGIC, AccountData, AccountInfo
from relaycast_pallets.frame.well_known_keys import Child, RelayProofRequest, RelayStorageKey, Top
from relaycast_pallets.parachain_system.pallet import PersistedValidationData
from relaycast_pallets.subscriber.storage import _CURSOR, _ROOTS, TRIE_DEPTH_EXCEEDED
from relaycast_pallets.subscriber.subscription import (
    Infinite,
    SubscribedKey,
    TimedOut,
    TtlState,
    ValidFor,
)
from relaycast_trie import CodecError, CompactProof, StorageProof, build_database
from relaycast_trie.node_codec import StateVersion
from relaycast_xcm import ParaId
from relaycast_xcm.registry import scale_decode, scale_encode
from strategies import pairs_with_questions

u32, u128 = st.integers(0, 2**32 - 1), st.integers(0, 2**128 - 1)
blobs, hashes = st.binary(max_size=80), st.binary(min_size=32, max_size=32)
para_ids = u32.map(ParaId)


def hexed(data: bytes) -> str:
    return f"0x{data.hex()}"


def both_ways(name: str, described: Any, data: bytes) -> None:
    """Expect the library to write these bytes for what is described, and to read them as that."""
    assert scale_encode(name, described) == data
    assert scale_decode(name, data) == described


@given(blobs, u32, u32)
def test_an_entry(value: bytes, ttl: int, when_inserted: int) -> None:
    entry = PublishedEntry(value, ttl, when_inserted)
    both_ways("PublishedEntry", {"value": hexed(value), "ttl": ttl, "when_inserted": when_inserted}, entry.encode())
    assert (
        PublishedEntry.decode(scale_encode("PublishedEntry", scale_decode("PublishedEntry", entry.encode()))) == entry
    )


@given(st.binary(max_size=30))
def test_bytes_are_an_entry_here_and_there_or_in_neither_place(data: bytes) -> None:
    agreed("PublishedEntry", PublishedEntry.decode, data)


@given(hashes, u128)
def test_who_manages_a_publisher(manager: bytes, deposit: int) -> None:
    info = PublisherInfo(manager, deposit)
    both_ways("PublisherInfo", {"manager": hexed(manager), "deposit": deposit}, info.encode())
    assert PublisherInfo.decode(info.encode()) == info


@given(para_ids, hashes, u32, u32)
def test_a_publishers_lists_and_cursors(publisher: ParaId, key: bytes, ttl: int, when_inserted: int) -> None:
    both_ways("TtlData", {"ttl": ttl, "when_inserted": when_inserted}, _encode_ttl((ttl, when_inserted)))
    assert _decode_ttl(scale_encode("TtlData", {"ttl": ttl, "when_inserted": when_inserted})) == (ttl, when_inserted)
    cursor = {"publisher": int(publisher), "key": hexed(key)}
    both_ways("ProcessingCursor", cursor, _encode_cursor((publisher, key)))
    both_ways("ProcessingCursor", cursor, _CURSOR.encode((publisher, SubscribedKey(key))))
    assert _decode_cursor(scale_encode("ProcessingCursor", cursor)) == (publisher, key)
    assert _CURSOR.decode(scale_encode("ProcessingCursor", cursor)) == (publisher, key)
    name = {"prefix": hexed(b"pubsub"), "publisher": int(publisher)}
    both_ways("PublisherStorageKey", name, derive_child_info(publisher).storage_key)


@given(st.sets(hashes, max_size=70))
def test_the_keys_of_a_publisher(keys: set[bytes]) -> None:
    held = PublishedKeys()
    for key in keys:
        held = held.with_key(key)
    both_ways("PublishedKeys", list(map(hexed, sorted(keys))), held.encode())


@given(st.dictionaries(para_ids, hashes, max_size=5))
def test_the_roots_that_a_subscriber_remembers(roots: dict[ParaId, bytes]) -> None:
    described = [{"publisher": int(publisher), "root": hexed(root)} for publisher, root in sorted(roots.items())]
    both_ways("PreviousPublishedDataRoots", described, _ROOTS.encode(roots))
    assert _ROOTS.decode(scale_encode("PreviousPublishedDataRoots", described)) == roots


@given(u32)
def test_what_is_left_of_a_time_to_live(remaining: int) -> None:
    states: list[tuple[TtlState, Any]] = [
        (Infinite(), "Infinite"),
        (ValidFor(remaining), {"ValidFor": remaining}),
        (TimedOut(), "TimedOut"),
    ]
    for state, described in states:
        both_ways("TtlState", described, state.encode())
    both_ways("DisableReason", "TrieDepthExceeded", TRIE_DEPTH_EXCEEDED)


@given(st.lists(st.builds(Top, blobs) | st.builds(Child, blobs, blobs), max_size=5))
def test_what_a_parachain_asks_to_be_proven(keys: list[RelayStorageKey]) -> None:
    request = RelayProofRequest(tuple(keys))
    described = [
        {"Top": hexed(key.key)}
        if isinstance(key, Top)
        else {"Child": {"storage_key": hexed(key.storage_key), "key": hexed(key.key)}}
        for key in keys
    ]
    both_ways("RelayProofRequest", {"keys": described}, request.encode())
    assert RelayProofRequest.decode(scale_encode("RelayProofRequest", {"keys": described})) == request


@given(blobs, u32, hashes, u32)
def test_what_the_relay_chain_says_about_a_block(head: bytes, number: int, root: bytes, size: int) -> None:
    described = {
        "parent_head": hexed(head),
        "relay_parent_number": number,
        "relay_parent_storage_root": hexed(root),
        "max_pov_size": size,
    }
    both_ways("PersistedValidationData", described, PersistedValidationData(head, number, root, size).encode())


@given(st.tuples(u32, u32, u32, u32), st.tuples(u128, u128, u128))
def test_an_account(references: tuple[int, int, int, int], amounts: tuple[int, int, int]) -> None:
    balance = dict(zip(("free", "reserved", "frozen"), amounts, strict=True)) | {"flags": IS_NEW_LOGIC}
    counts = dict(zip(("nonce", "consumers", "providers", "sufficients"), references, strict=True))
    described = {**counts, "data": balance}
    info = AccountInfo(*references, AccountData(*amounts))
    both_ways("AccountInfo", described, info.encode())
    assert AccountInfo.decode(scale_encode("AccountInfo", described)) == info


LABELS = {0: "Other", 4: "Consensus", 5: "Seal", 6: "PreRuntime"}
engines = st.binary(min_size=4, max_size=4)
items = st.one_of(
    st.builds(DigestItem, st.sampled_from([4, 5, 6]), blobs, engines),
    st.builds(DigestItem, st.just(0), blobs),
    st.just(DigestItem(8)),
)


def described_item(item: DigestItem) -> Any:
    if item.variant == 8:
        return "RuntimeEnvironmentUpdated"
    inside = {"engine": hexed(item.engine), "data": hexed(item.data)} if item.engine else hexed(item.data)
    return {LABELS[item.variant]: inside}


headers = st.builds(Header, hashes, u32, hashes, hashes, st.lists(items, max_size=4).map(tuple))


@given(headers)
def test_a_header(header: Header) -> None:
    described = {
        "parent_hash": hexed(header.parent_hash),
        "number": header.number,
        "state_root": hexed(header.state_root),
        "extrinsics_root": hexed(header.extrinsics_root),
        "digest": list(map(described_item, header.digest)),
    }
    both_ways("Header", described, header.encode())
    assert Header.decode(scale_encode("Header", described)) == header


@given(headers, st.data())
def test_bytes_are_a_header_here_and_there_or_in_neither_place(header: Header, data: st.DataObject) -> None:
    encoded = bytearray(header.encode())
    place = data.draw(st.integers(0, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255))
    agreed("Header", Header.decode, bytes(encoded))


@given(pairs_with_questions())
def test_proofs(drawn: tuple[dict[bytes, bytes], list[bytes]]) -> None:
    held, questions = drawn
    db, root = build_database(held, state_version=StateVersion.V1)
    proof = StorageProof.generate(db, root, questions)
    both_ways("StorageProof", list(map(hexed, sorted(proof.nodes))), proof.encode())
    assert StorageProof.decode(proof.encode()) == proof
    if questions:
        compact = CompactProof.encode(proof, root)
        both_ways("CompactProof", list(map(hexed, compact.nodes)), compact.to_bytes())
        assert CompactProof.from_bytes(compact.to_bytes()) == compact


def agreed(name: str, decode: Callable[[bytes], object], data: bytes) -> None:
    """Expect both codecs to read the bytes, or neither."""
    try:
        decode(data)
    except CodecError:
        with pytest.raises(CodecError):
            scale_decode(name, data)
    else:
        assert scale_encode(name, scale_decode(name, data)) == data
