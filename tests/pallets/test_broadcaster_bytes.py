"""The broadcaster's storage as a node would give it: raw keys, raw values, and the errors and weights beside it."""

import pickle

import pytest

from pallets.relay import ALICE, BOB, PARA, SYSTEM_PARA, A, B, Relay, refused
from relaycast_pallets import (
    POLKADOT,
    PRESETS,
    AlreadyRegistered,
    BadOrigin,
    BroadcasterConfig,
    BroadcasterError,
    DispatchError,
    ExhaustsResources,
    InsufficientBalance,
    NoDataToCleanup,
    NotManager,
    NotOwner,
    NotPublicParachain,
    NotRegistered,
    Origin,
    PublishedEntry,
    StateDiscarded,
    TooManyKeys,
    TooManyPublishers,
    TooManyPublishes,
    TotalStorageSizeExceeded,
    ValueTooLarge,
    derive_child_info,
    parse_weights,
)
from relaycast_pallets.broadcaster.storage import PublisherInfo, value_bytes
from relaycast_pallets.frame.typed_storage import BLAKE2_128_CONCAT, BLAKE2_256
from relaycast_trie import CodecError, RelaycastError, StorageProof, TrieDB, twox_64_concat
from relaycast_xcm.primitives import ZERO_DB, Weight
from shared_vectors import Case, over, unhex

PREFIX = "6aca18c1f7576767ccb238db4ccaedf2"
PARA_1000 = "b6ff6f7d467b87a9e8030000"
PARA_2000 = "63f5a4efb16ffa83d0070000"


@over("smoldot/scale_hash_xcm.json")
def test_the_vectors_of_published_entries(cases: list[Case]) -> None:
    """The layout is the vectors': bytes, then two u32; they give the second one's role to the first."""
    for vector in cases[0]["published"]:
        entry = PublishedEntry(unhex(vector["data"]), vector["at"], vector["ttl"])
        assert entry.encode() == unhex(vector["enc"])
        assert PublishedEntry.decode(entry.encode()) == entry


@pytest.mark.parametrize(
    ("entry", "encoded"),
    [
        (PublishedEntry(b"\x01\x02\x03", 0, 1), "0c0102030000000001000000"),
        (PublishedEntry(b"\xaa\xbb", 100, 1_000), "08aabb64000000e8030000"),
    ],
)
def test_an_entry_has_these_bytes(entry: PublishedEntry, encoded: str) -> None:
    assert entry.encode().hex() == encoded
    assert PublishedEntry.decode(bytes.fromhex(encoded)) == entry
    assert value_bytes(bytes.fromhex(encoded)) == len(entry.value)


@pytest.mark.parametrize("data", ["", "04", "0401", "0c01020300000000010000", "0c010203000000000100000000", "fe"])
def test_bytes_that_are_no_entry_are_refused(data: str) -> None:
    with pytest.raises(CodecError):
        PublishedEntry.decode(bytes.fromhex(data))
    with pytest.raises(CodecError):
        value_bytes(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("length", "entry_bytes", "external"), [(19, 28, False), (23, 32, False), (24, 33, True), (32, 41, True)]
)
def test_a_value_stays_in_its_node_up_to_23_bytes(relay: Relay, length: int, entry_bytes: int, external: bool) -> None:
    relay.publish(A, bytes(length), publisher=SYSTEM_PARA)
    relay.state.commit()
    root = relay.state.get(derive_child_info(SYSTEM_PARA).prefixed_storage_key())
    assert root is not None
    stored = TrieDB(relay.state.db, root).get(A)
    assert stored is not None
    assert len(stored) == entry_bytes
    assert len(StorageProof.generate(relay.state.db, root, [A]).nodes) == 1 + external


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("registered_publishers", PREFIX + "99d056af5c52e608e236346291993238"),
        ("publisher_exists", PREFIX + "d70f04593982930ec5f294176d977ed4"),
        ("published_keys", PREFIX + "cca7a6c5d0de8bcf143b5f199afc6f0a"),
        ("total_storage_size", PREFIX + "f75dd06f81720c8b98a5b79e271d6867"),
        ("ttl_data", PREFIX + "38b38e90a4cacdace7c8586d48d37067"),
        ("ttl_scan_cursor", PREFIX + "9e4ab9ab95f8f6775e28779ef5bd62d2"),
    ],
)
def test_storage_items_stand_under_these_prefixes(relay: Relay, item: str, expected: str) -> None:
    assert getattr(relay.storage, item).prefix.hex() == expected


def test_raw_keys_and_values_are_those_of_a_node(relay: Relay) -> None:
    relay.register(PARA, ALICE)
    relay.at(100)
    low, high = sorted((A, B))
    relay.publish(high, b"xy", ttl=500)
    relay.publish(low, b"x")
    raw = relay.state.snapshot()[0]
    para = bytes.fromhex(PARA_2000)

    def at(item: str, *rest: bytes) -> bytes | None:
        return raw.get(bytes.fromhex(PREFIX + item) + b"".join(rest))

    assert at("99d056af5c52e608e236346291993238", para) == ALICE + (100).to_bytes(16, "little")
    assert at("d70f04593982930ec5f294176d977ed4", para) == b"\x01"
    assert at("cca7a6c5d0de8bcf143b5f199afc6f0a", para) == b"\x08" + low + high
    assert at("f75dd06f81720c8b98a5b79e271d6867", para) == (67).to_bytes(4, "little")
    assert at("38b38e90a4cacdace7c8586d48d37067", para, twox_64_concat(high)) == bytes.fromhex("f401000064000000")
    assert relay.storage.registered_publishers.storage_key(SYSTEM_PARA).hex().endswith(PARA_1000)


def test_the_designs_hasher_keys_ttl_data_by_blake2(relay: Relay) -> None:
    other = Relay(BroadcasterConfig(publisher_deposit=0, ttl_key_hasher=BLAKE2_128_CONCAT))
    key = other.storage.ttl_data.storage_key(SYSTEM_PARA, A)
    assert key == relay.storage.ttl_data.prefix_of(SYSTEM_PARA) + BLAKE2_128_CONCAT.digest(A)
    assert other.storage.ttl_data.keys_in(key) == (SYSTEM_PARA, A)


def test_ttl_data_must_be_keyed_so_that_keys_can_be_read_back() -> None:
    with pytest.raises(ValueError, match="does not keep them"):
        BroadcasterConfig(ttl_key_hasher=BLAKE2_256)


def test_the_cursor_is_a_parachain_and_a_key(relay: Relay) -> None:
    relay.storage.ttl_scan_cursor.put((SYSTEM_PARA, A))
    assert relay.state.get(relay.storage.ttl_scan_cursor.storage_key()) == bytes.fromhex("e8030000") + A
    assert relay.storage.ttl_scan_cursor.get() == (SYSTEM_PARA, A)


@pytest.mark.parametrize("size", [0, 47, 49])
def test_a_publisher_info_has_48_bytes(size: int) -> None:
    with pytest.raises(CodecError):
        PublisherInfo.decode(bytes(size))


ERRORS: list[tuple[RelaycastError, str]] = [
    (NotRegistered(PARA), "2000"),
    (NotPublicParachain(SYSTEM_PARA), "from 2000 on, got 1000"),
    (AlreadyRegistered(PARA), "2000"),
    (TooManyPublishers(1_000), "1000"),
    (NotManager(PARA, BOB), BOB.hex()),
    (NotOwner(PARA, SYSTEM_PARA), "1000"),
    (NoDataToCleanup(PARA), "2000"),
    (ValueTooLarge(1_025, 1_024), "1025"),
    (TooManyKeys(PARA, 50), "50"),
    (TotalStorageSizeExceeded(PARA, 2_112, 2_048), "2112"),
    (TooManyPublishes(PARA, 10), "parachain 2000 has published 10 times"),
    (BadOrigin(Origin.signed(ALICE), "root"), ALICE.hex()),
    (InsufficientBalance(ALICE, 50, 100), "50"),
    (ExhaustsResources(Weight(2), Weight(1)), "2 ps"),
    (StateDiscarded(bytes(32)), "00" * 32),
]


@pytest.mark.parametrize(("error", "told"), ERRORS, ids=lambda value: type(value).__name__)
def test_errors_keep_their_fields_say_them_and_pickle(error: RelaycastError, told: str) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))
    assert told in str(error)


def test_every_error_of_the_broadcaster_knows_its_upstream_name() -> None:
    assert {kind.__name__: kind.upstream for kind in BroadcasterError.__subclasses__()} == {
        "NotRegistered": "NotRegistered",
        "NotPublicParachain": "",  # the drafts let anyone register any id
        "AlreadyRegistered": "AlreadyRegistered",
        "TooManyPublishers": "TooManyPublishers",
        "NotManager": "NotAuthorized",
        "NotOwner": "NotAuthorized",
        "NoDataToCleanup": "NoDataToCleanup",
        "ValueTooLarge": "ValueTooLong",
        "TooManyKeys": "TooManyStoredKeys",
        "TotalStorageSizeExceeded": "TotalStorageSizeExceeded",
        "TooManyPublishes": "",  # no draft limits publications in a block
    }
    assert issubclass(BroadcasterError, DispatchError)


@pytest.mark.parametrize("config", PRESETS.values(), ids=lambda config: config.name)
def test_every_preset_works_and_names_its_source(config: BroadcasterConfig) -> None:
    limit = {"polkadot": 2_048, "draft-mock": 1_024, "rococo": 1_024, "spec": 2_048}[config.name]
    relay = Relay(config, funds=10**15)
    relay.register()
    relay.publish(A, bytes(limit))
    assert relay.value(A) == bytes(limit)
    with refused(relay, ValueTooLarge):
        relay.publish(A, bytes(limit + 1))
    assert config.source != "chosen by the user"


@pytest.mark.parametrize(
    ("field", "value"), [("max_publishers", -1), ("max_stored_keys", 2**32), ("publisher_deposit", 2**128)]
)
def test_a_limit_out_of_reach_is_a_slip_of_the_caller(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=field):
        BroadcasterConfig(**{field: value})  # type: ignore[arg-type]


def test_benchmarked_weights_take_the_place_of_the_placeholders() -> None:
    table = parse_weights(
        "fn delete_keys(n: u32) -> Weight { Weight::from_parts(7, 9).saturating_add(Weight::from_parts(5, 1)"
        ".saturating_mul(n.into())) }\nfn cleanup_published_data() -> Weight { Weight::from_parts(11, 0) }"
    )
    config = BroadcasterConfig(weights=table, db_weight=ZERO_DB)
    assert config.weight("delete_keys", n=3) == Weight(22, 12)
    assert config.weight("cleanup_published_data", k=100) == Weight(11)
    assert config.weight("register_publisher") == POLKADOT.weights["register_publisher"].at(ZERO_DB)
    assert config.weights["delete_keys"].source == "weights.rs:1"
