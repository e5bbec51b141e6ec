"""Storage keys by name: items of pallets, keys of maps, and keys of nobody."""

import pytest

from relaycast_pallets.frame.typed_storage import storage_prefix
from relaycast_trie.hasher import blake2_128_concat, blake2_256, twox_64_concat
from relaycast_wasm.metadata.read import read_metadata
from relaycast_wasm.metadata.storage_names import StorageKeyName, StorageNames
from wasm.metadata.small_metadata import named_metadata, portable_metadata

WHO = bytes(range(32))
OWED = storage_prefix("BankPrefix", "Owed")
LOANS = storage_prefix("BankPrefix", "Loans")


@pytest.fixture(scope="module")
def described() -> StorageNames:
    return StorageNames(read_metadata(portable_metadata(14)))


@pytest.fixture(scope="module")
def named() -> StorageNames:
    return StorageNames(read_metadata(named_metadata(13)))


def test_an_item_is_found_by_the_hash_of_its_prefix(described: StorageNames) -> None:
    assert described.of(OWED + twox_64_concat(WHO)) == ("Bank", "Owed")
    assert described.of(storage_prefix("BankPrefix", "Flags")) == ("Bank", "Flags")


def test_the_keys_of_maps_are_read_back(described: StorageNames) -> None:
    assert described.named(OWED + twox_64_concat(WHO)) == StorageKeyName("Bank", "Owed", (WHO,))
    first, second = bytes.fromhex("07000000"), bytes.fromhex("0c616263")
    key = LOANS + twox_64_concat(first) + blake2_128_concat(second)
    assert described.named(key) == StorageKeyName("Bank", "Loans", (first, second))
    assert str(described.named(key)) == "Bank.Loans(0x07000000, 0x0c616263)"


def test_a_prefix_of_a_double_map_has_the_keys_that_are_there(described: StorageNames) -> None:
    first = bytes.fromhex("07000000")
    assert described.named(LOANS + twox_64_concat(first)) == StorageKeyName("Bank", "Loans", (first,))
    cut = LOANS + twox_64_concat(first)[:10]
    assert described.named(cut) == StorageKeyName("Bank", "Loans", (), cut[32:])
    assert described.named(LOANS) == StorageKeyName("Bank", "Loans")


def test_bytes_behind_a_key_are_told(described: StorageNames) -> None:
    assert described.named(OWED + twox_64_concat(WHO) + b"!").rest == b"!"
    assert described.named(storage_prefix("BankPrefix", "Flags") + b"!").rest == b"!"


def test_without_described_types_the_last_key_alone_has_an_end(named: StorageNames) -> None:
    assert named.named(OWED + twox_64_concat(WHO)).keys == (WHO,)
    loans = named.named(LOANS + twox_64_concat(b"\x01") + blake2_256(b"\x02\x00"))
    assert (loans.keys, loans.rest) == ((), twox_64_concat(b"\x01") + blake2_256(b"\x02\x00"))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (b":code", ("(host)", ":code")),
        (b":heappages", ("(host)", ":heappages")),
        (b":extrinsic_index", ("(host)", ":extrinsic_index")),
        (b":child_storage:default:pubsub", ("(child tries)", "0x707562737562")),
        (storage_prefix("BankPrefix", ":__STORAGE_VERSION__:"), ("Bank", ":__STORAGE_VERSION__:")),
        (storage_prefix("BankPrefix", "Gone"), ("Bank", f"0x{storage_prefix('', 'Gone')[16:].hex()}")),
        (b"\x01" * 40, ("(unknown)", f"0x{'01' * 16}")),
        (b"", ("(unknown)", "0x")),
    ],
)
def test_keys_that_no_item_has_are_named_too(described: StorageNames, key: bytes, name: tuple[str, str]) -> None:
    assert described.of(key) == name
    assert (described.named(key).pallet, described.named(key).item) == name
