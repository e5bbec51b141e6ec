"""Origins, events that roll back, calls with their weight, and storage items under real keys."""

from typing import ClassVar

import pytest

from pallets.relay import ALICE, PARA
from relaycast_pallets import (
    BadOrigin,
    DispatchError,
    Event,
    Events,
    ExhaustsResources,
    Origin,
    State,
    System,
    ensure_parachain,
    ensure_root,
    ensure_signed,
)
from relaycast_pallets.frame.system import (
    BLAKE2_128_CONCAT,
    BLAKE2_256,
    BOOL,
    BYTES32,
    IDENTITY,
    PARA_ID,
    TWOX_64_CONCAT,
    U32,
    U64,
    U128,
    StorageCodec,
    StorageDoubleMap,
    StorageHasher,
    StorageMap,
    StorageValue,
    storage_prefix,
)
from relaycast_trie import CodecError, twox_128
from relaycast_xcm.primitives import ParaId, Weight
from shared_vectors import Case, over, unhex

ORIGINS = [Origin.root(), Origin.signed(ALICE), Origin.parachain(PARA), Origin.none()]


class Counted(Event, frozen=True):
    pallet: ClassVar[str] = "Test"
    number: int


class Ended(Event, frozen=True):
    pallet: ClassVar[str] = "Test"


def test_each_check_lets_one_kind_of_origin_through() -> None:
    for origin in ORIGINS:
        for check, kind in ((ensure_root, "root"), (ensure_signed, "signed"), (ensure_parachain, "parachain")):
            if origin.kind == kind:
                check(origin)
            else:
                with pytest.raises(BadOrigin, match="expected"):
                    check(origin)
    assert ensure_signed(Origin.signed(ALICE)) == ALICE
    assert ensure_parachain(Origin.parachain(2_000)) == PARA


def test_origins_are_built_from_what_they_are() -> None:
    assert [str(origin) for origin in ORIGINS] == ["root", f"account 0x{ALICE.hex()}", "parachain 2000", "none"]
    with pytest.raises(ValueError, match="32 bytes"):
        Origin.signed(b"short")
    with pytest.raises(ValueError, match="u32"):
        Origin.parachain(-1)


def test_events_keep_their_order_and_roll_back_with_the_state() -> None:
    system = System(State())
    system.deposit_event(Counted(1))

    def fail() -> None:
        with system.state.transaction():
            system.deposit_event(Counted(2))
            with system.state.transaction():
                system.deposit_event(Ended())
            raise DispatchError

    with pytest.raises(DispatchError):
        fail()
    with system.state.transaction():
        system.deposit_event(Ended())
    assert list(system.events) == [Counted(1), Ended()]
    assert system.events.of(Counted) == [Counted(1)]
    assert system.events.take() == [Counted(1), Ended()]
    assert len(system.events) == 0
    assert Counted(1).name == "Test.Counted"
    assert repr(Events()) == "Events([])"


def test_a_block_begins_with_its_number_and_without_events() -> None:
    system = System(State())
    assert (system.block_number, system.parent_hash) == (0, bytes(32))
    system.deposit_event(Ended())
    system.meter.consume(Weight(5))
    system.initialize(7, parent_hash=b"\x01" * 32)
    assert (system.block_number, system.parent_hash, len(system.events)) == (7, b"\x01" * 32, 0)
    assert system.meter.consumed == Weight.ZERO


def test_a_call_is_charged_what_it_used_and_a_refused_one_what_it_declared() -> None:
    system = System(State(), max_block=Weight(100))

    def succeed() -> Weight:
        system.state.put(b"key", b"value")
        return Weight(30)

    def fail() -> Weight:
        system.state.put(b"other", b"value")
        system.deposit_event(Ended())
        raise DispatchError

    assert system.apply(succeed, declared=Weight(60)).ok
    refused = system.apply(fail, declared=Weight(60))
    assert isinstance(refused.error, DispatchError)
    assert refused.weight == Weight(60)
    assert system.meter.consumed == Weight(90)
    full = system.apply(succeed, declared=Weight(11))
    assert isinstance(full.error, ExhaustsResources)
    assert full.weight == Weight.ZERO
    assert system.state.snapshot()[0] == {b"key": b"value"}
    assert len(system.events) == 0


@over("smoldot/scale_hash_xcm.json")
def test_the_vectors_of_prefixes(cases: list[Case]) -> None:
    for name, prefix in cases[0]["prefixes"].items():
        assert twox_128(name.encode()) == unhex(prefix)
    assert storage_prefix("System", "Number") == unhex(cases[0]["prefixes"]["System"]) + unhex(
        cases[0]["prefixes"]["Number"]
    )


@over("smoldot/scale_hash_xcm.json")
@pytest.mark.parametrize(
    ("name", "hasher"),
    [("blake2_128_concat", BLAKE2_128_CONCAT), ("twox64_concat", TWOX_64_CONCAT), ("blake2_256", BLAKE2_256)],
)
def test_the_vectors_of_hashers(cases: list[Case], name: str, hasher: StorageHasher) -> None:
    for vector in cases[0]["hashers"][name]:
        hashed = hasher.digest(unhex(vector["in"]))
        assert hashed == unhex(vector["out"])
        if hasher.keeps_key:
            assert hasher.key_in(hashed) == unhex(vector["in"])
        else:
            with pytest.raises(TypeError, match="read back"):
                hasher.key_in(hashed)


@pytest.mark.parametrize(
    ("hasher", "para", "expected"),
    [
        (TWOX_64_CONCAT, 1_000, "b6ff6f7d467b87a9e8030000"),
        (TWOX_64_CONCAT, 1_999, "df72991607ae524acf070000"),
        (TWOX_64_CONCAT, 2_000, "63f5a4efb16ffa83d0070000"),
        (BLAKE2_128_CONCAT, 1_000, "c7dbc61cef6887665a6a2ee94e39c5f7e8030000"),
        (IDENTITY, 1_000, "e8030000"),
    ],
)
def test_parachains_are_hashed_like_this(hasher: StorageHasher, para: int, expected: str) -> None:
    assert hasher.digest(PARA_ID.encode(ParaId(para))).hex() == expected


@pytest.mark.parametrize(
    ("codec", "value", "encoded"),
    [
        (U32, 1_000, "e8030000"),
        (U64, 1, "0100000000000000"),
        (U128, 100, "64" + "00" * 15),
        (BOOL, True, "01"),
        (BOOL, False, "00"),
        (PARA_ID, PARA, "d0070000"),
        (BYTES32, ALICE, ALICE.hex()),
    ],
)
def test_values_have_their_scale_bytes(codec: StorageCodec[object], value: object, encoded: str) -> None:
    assert codec.encode(value).hex() == encoded
    assert codec.decode(bytes.fromhex(encoded)) == value
    for wrong in (b"", bytes.fromhex(encoded) + b"\x00", b"\x02"):
        with pytest.raises(CodecError):
            codec.decode(wrong)


def test_a_value_is_there_or_not() -> None:
    value = StorageValue(State(), "Test", "Value", U32)
    assert (value.get(), value.exists()) == (None, False)
    value.put(0)
    assert (value.get(), value.exists(), value.storage_key()) == (0, True, storage_prefix("Test", "Value"))
    value.kill()
    assert value.get() is None


def test_a_map_gives_its_entries_back_in_the_order_of_hashes() -> None:
    state = State({b"before": b"", b"\xff": b""})
    numbers = StorageMap(state, "Test", "Map", (TWOX_64_CONCAT, PARA_ID), U32)
    for para in range(10):
        numbers.insert(ParaId(para), para)
    numbers.remove(ParaId(3))
    assert (numbers.get(ParaId(3)), numbers.get(ParaId(4)), numbers.count()) == (None, 4, 9)
    assert (ParaId(3) in numbers, ParaId(4) in numbers) == (False, True)
    by_hash = sorted(set(range(10)) - {3}, key=lambda para: TWOX_64_CONCAT.digest(ParaId(para).encode()))
    assert list(numbers.items()) == [(para, para) for para in by_hash]


def test_a_double_map_gives_both_keys_back() -> None:
    state = State()
    table = StorageDoubleMap(state, "Test", "Double", ((TWOX_64_CONCAT, PARA_ID), (BLAKE2_128_CONCAT, BYTES32)), U32)
    entries = {(ParaId(para), bytes([key]) * 32): para * key for para in (1, 2, 3) for key in (4, 5)}
    for (para, key), number in entries.items():
        table.insert(para, key, number)
    found = list(table.items())
    assert {(para, key): number for para, key, number in found} == entries
    para, key, _ = found[3]
    assert list(table.items(start_after=table.storage_key(para, key))) == found[4:]
    assert dict(table.items_of(ParaId(2))) == {b"\x04" * 32: 8, b"\x05" * 32: 10}
    table.remove(ParaId(2), b"\x04" * 32)
    assert (table.exists(ParaId(2), b"\x04" * 32), table.get(ParaId(2), b"\x05" * 32)) == (False, 10)
    assert (table.clear_prefix(ParaId(3)), table.count()) == (2, 3)


def test_the_first_key_of_a_double_map_has_a_fixed_size() -> None:
    names: StorageCodec[str] = StorageCodec("str", str.encode, bytes.decode)
    with pytest.raises(TypeError, match="fixed size"):
        StorageDoubleMap(State(), "Test", "Double", ((IDENTITY, names), (IDENTITY, U32)), U32)
