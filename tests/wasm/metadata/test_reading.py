"""Metadata of every version: what is read, and how bytes that are none are refused."""

import random
from dataclasses import replace
from typing import Any

import pytest
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset

from long_hauls import soak
from node.chains import live_chains, modelled
from relaycast_node.metadata.runtime import Runtime
from relaycast_node.metadata.runtime_metadata import encode_metadata
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import encode_bytes, encode_compact, encode_vec
from relaycast_wasm.metadata.model import Deprecation, Metadata, NamedType, TypeRef
from relaycast_wasm.metadata.plain_data import plain_metadata
from relaycast_wasm.metadata.read import (
    MAX_BYTES,
    VERSIONS,
    metadata_versions,
    opaque_metadata,
    opaque_metadata_at_version,
    read_metadata,
)
from relaycast_wasm.metadata.type_comparison import TypeComparison
from relaycast_wasm.metadata.type_shape import MAX_CIRCULAR, TypeShapes
from relaycast_wasm.metadata.type_table import MAX_TYPES
from relaycast_wasm.metadata.type_text import MAX_CHARACTERS
from wasm.metadata.small_metadata import (
    field,
    named_metadata,
    portable,
    portable_metadata,
    small_metadata,
    text,
)

U32 = portable(0, b"\x05\x05")
REST_14 = b"\x00" + encode_compact(0) + b"\x04\x00" + encode_compact(0)
"""No pallet, and an extrinsic without extensions."""


@pytest.mark.parametrize("version", range(9, 14))
def test_types_by_name_are_read(version: int) -> None:
    metadata = read_metadata(named_metadata(version))
    empty, bank = metadata.pallets
    assert (metadata.version, metadata.types, empty.name, bank.prefix) == (version, None, "Empty", "BankPrefix")
    total, owed, loans, *many = bank.storage
    assert (total.kind, total.modifier, total.value.text, total.default) == ("plain", "Default", "Balance< T>", b"\x07")
    assert total.docs == ("All of it.",)
    assert (owed.hashers, owed.keys, owed.linked) == (("Twox64Concat",), (TypeRef("T::AccountId"),), True)
    assert owed.modifier == "Optional"
    assert loans.hashers == ("Twox64Concat", "Blake2_256")
    assert [it.text for it in (*loans.keys, loans.value)] == ["u8", "u16", "u64"]
    if version > 12:
        assert (many[0].modifier, len(many[0].keys)) == ("Required", 3)
        assert many[0].hashers == ("Twox64Concat", "Identity", "Blake2_128Concat")
    (pay,) = bank.calls
    assert (pay.name, pay.index, pay.docs) == ("pay", 0, ("Pay.",))
    assert pay.fields == (NamedType("to", TypeRef("T::AccountId")), NamedType("sum", TypeRef("u32")))
    assert [(it.name, it.type.text) for it in bank.events[0].fields] == [(None, "AccountId"), (None, "u32")]
    assert (bank.errors[0].name, bank.constants[0].value) == ("Broke", b"\x05\x00\x00\x00")
    assert [it.name for it in metadata.extrinsic.extensions] == (["CheckNonce"] if version > 10 else [])


def test_before_v12_pallets_have_an_index_of_each_kind() -> None:
    empty, bank = read_metadata(named_metadata(11)).pallets
    assert (empty.index, empty.call_index, empty.event_index) == (0, None, None)
    assert (bank.index, bank.call_index, bank.event_index) == (1, 0, 0)
    empty, bank = read_metadata(named_metadata(12)).pallets
    assert (empty.index, empty.call_index) == (9, None)
    assert (bank.index, bank.call_index, bank.event_index) == (42, 42, 42)


@pytest.mark.parametrize("version", range(14, 17))
def test_described_types_are_read(version: int) -> None:
    metadata = read_metadata(portable_metadata(version))
    (bank,) = metadata.pallets
    owed, loans, flags = bank.storage
    assert (owed.kind, owed.keys, owed.value.text) == ("map", (TypeRef("AccountId32", 5),), "u32")
    assert [(it.text, it.number) for it in loans.keys] == [("u32", 0), ("Vec<u8>", 9)]
    assert (loans.hashers, loans.value.text) == (("Twox64Concat", "Blake2_128Concat"), "Batch<RuntimeCall>")
    assert flags.value.text == "BitVec<u8, Lsb0>"
    (pay,) = bank.calls
    assert (pay.name, pay.index, bank.call_index) == ("pay", 3, 42)
    assert [(it.name, it.type.text) for it in pay.fields] == [("to", "AccountId32"), ("sum", "Compact<u32>")]
    assert (bank.errors[0].index, bank.events[0].fields[0].name) == (7, None)
    (extension,) = metadata.extrinsic.extensions
    assert (extension.type, extension.additional) == (TypeRef("Compact<u32>", 2), TypeRef("()", 10))
    if version > 14:
        assert bank.docs == ("A bank.",)
        assert metadata.apis[0].functions[0].inputs == (NamedType("at", TypeRef("u32", 0)),)
        assert metadata.outer_enums is not None
        assert metadata.outer_enums.call.text == "RuntimeCall"
        assert (metadata.custom[0].name, metadata.custom[0].value) == ("motto", b"\x04a")


def test_v16_has_views_versions_and_deprecations() -> None:
    metadata = read_metadata(portable_metadata(16))
    (bank,) = metadata.pallets
    assert bank.storage[0].deprecation == Deprecation("Use Loans.", "7")
    assert bank.calls[0].deprecation == Deprecation()
    assert bank.events[0].deprecation is None
    (view,) = bank.view_functions
    assert (view.name, view.id, view.inputs[0].type.text) == ("balance", bytes(32), "AccountId32")
    assert bank.associated_types == (NamedType("Currency", TypeRef("u32", 0)),)
    assert metadata.extrinsic.versions == (4, 5)
    assert metadata.extrinsic.extensions_by_version == ((0, (0,)),)
    assert metadata.apis[0].version == 3


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return modelled(live_chains().relay).runtime


@pytest.mark.parametrize("version", [14, 15])
def test_what_the_modelled_chains_write_is_read_back(runtime: Runtime, version: int) -> None:
    metadata = read_metadata(encode_metadata(runtime, version))
    assert [(it.name, it.index) for it in metadata.pallets] == [(it.name, it.index) for it in runtime.pallets]
    for pallet, declared in zip(metadata.pallets, runtime.pallets, strict=True):
        assert [it.name for it in pallet.storage] == [it.item.name[1] for it in declared.storage]
        assert [it.name for it in pallet.calls] == [it.name for it in declared.calls]
        assert [[it.name for it in call.fields] for call in pallet.calls] == [
            list(it.arguments) for it in declared.calls
        ]
        assert [it.name for it in pallet.constants] == [it.name for it in declared.constants]
        for item, storage in zip(pallet.storage, declared.storage, strict=True):
            assert item.value.number == runtime.types.spelled(storage.item.codec.name)
            assert item.docs == storage.docs
    assert metadata.types is not None
    assert len(metadata.types) == len(runtime.registry)


def test_another_library_reads_the_same(runtime: Runtime) -> None:
    data = encode_metadata(runtime, 14)
    configuration = RuntimeConfigurationObject()
    configuration.update_type_registry(load_type_registry_preset("core"))
    theirs = configuration.create_scale_object("MetadataVersioned", data=ScaleBytes(data))
    theirs.decode()
    for pallet, other in zip(read_metadata(data).pallets, (it.value for it in theirs.pallets), strict=True):
        assert (pallet.name, pallet.index) == (other["name"], other["index"])
        entries = [] if other["storage"] is None else other["storage"]["entries"]
        assert [(it.name, it.modifier) for it in pallet.storage] == [(it["name"], it["modifier"]) for it in entries]
        numbers = [it["type"].get("Plain") if "Plain" in it["type"] else it["type"]["Map"]["value"] for it in entries]
        assert [it.value.number for it in pallet.storage] == numbers
        constants = [(it["name"], it["type"]) for it in other["constants"]]
        assert [(it.name, it.type.number) for it in pallet.constants] == constants


def test_json_has_every_member() -> None:
    plain = plain_metadata(read_metadata(portable_metadata(16)))
    assert plain["types"] == 16
    owed = plain["pallets"][0]["storage"][0]
    assert owed["kind"] == "map"
    assert owed["default"] == "0x"
    assert owed["deprecation"] == {"note": "Use Loans.", "since": "7"}


def test_answers_of_a_runtime_are_unwrapped() -> None:
    data = named_metadata(11)
    assert opaque_metadata(encode_bytes(data)) == data
    assert opaque_metadata_at_version(b"\x01" + encode_bytes(data)) == data
    assert opaque_metadata_at_version(b"\x00") is None
    assert metadata_versions(bytes.fromhex("080e0000000f000000")) == (14, 15)
    with pytest.raises(CodecError, match="1 bytes left over at byte 1"):
        opaque_metadata_at_version(b"\x00\x00")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", r"metadata starts with 0x6d657461 \(meta\), got 0x at byte 0"),
        (b"mota\x0e", r"metadata starts with 0x6d657461 \(meta\), got 0x6d6f7461 at byte 0"),
        (b"meta\x08", "metadata of version 9 to 16 expected, got 8 at byte 4"),
        (b"meta\x11", "metadata of version 9 to 16 expected, got 17 at byte 4"),
        (b"meta" + bytes(MAX_BYTES), f"metadata has at most {MAX_BYTES:,} bytes, got {MAX_BYTES + 4:,} at byte 0"),
        (b"meta\x0b\xfe\xff\xff\xff", "1073741823 items announced, 0 bytes left at byte 5"),
        (b"meta\x0b\x04\x04\xff", "text in UTF-8 expected, got 0xff at byte 6"),
        (named_metadata(11) + b"\x00", "1 bytes left over at byte 228"),
        (b"meta\x0e" + encode_vec([U32]) + REST_14[:1] + b"\x04", "a type below 1 expected, got 1 at byte 13"),
        (b"meta\x0e" + encode_vec([portable(1, b"\x05\x05")]), "type 0 expected, got 1 at byte 6"),
        (b"meta\x0e" + encode_vec([portable(0, b"\x02\x0c")]), "a type below 1 expected, got 3 at byte 6"),
        (b"meta\x0e" + encode_vec([portable(0, b"\x05\x0f")]), "a primitive is one of 15, got index 15 at byte 10"),
        (b"meta\x0e" + encode_vec([portable(0, b"\x08")]), "a type's kind is one of 8, got index 8 at byte 9"),
        (b"meta\x0e" + encode_compact(MAX_TYPES + 1) + bytes(MAX_TYPES + 1), "at most 16,384 types"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_metadata_are_refused_where_they_fail(data: bytes, line: str) -> None:
    with pytest.raises(CodecError, match=line):
        read_metadata(data)


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_that_ends_early_is_refused(version: int) -> None:
    data = small_metadata(version)
    for size in range(len(data)):
        with pytest.raises(CodecError):
            read_metadata(data[:size])


def damaged(chance: random.Random, count: int) -> None:
    """Change bytes at random: what comes is metadata that can be compared, or a refusal."""
    whole = {version: read_metadata(small_metadata(version)) for version in VERSIONS}
    for _ in range(count):
        version = chance.choice(VERSIONS)
        data = bytearray(small_metadata(version))
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            found = read_metadata(bytes(data))
        except CodecError as error:
            assert 0 <= error.offset <= len(data)  # noqa: PT017 - some damage leaves metadata
        else:
            assert plain_metadata(found)
            compare_everything(found, whole[version])


def test_damaged_metadata_is_refused_or_read() -> None:
    damaged(random.Random(160), 3_000)


@soak(rounds=50)
def test_much_more_damaged_metadata_is_refused_or_read(soak_round: int) -> None:
    damaged(random.Random(1_000 + soak_round), 20_000)


def compare_everything(before: Metadata, after: Metadata) -> None:
    types = TypeComparison(before, after)
    for old, new in zip(before.pallets, after.pallets, strict=False):
        for item, other in zip(old.storage, new.storage, strict=False):
            types.relation(item.value, other.value)


def with_types(*types: bytes) -> Metadata:
    return read_metadata(b"meta\x0e" + encode_vec(types) + REST_14)


def ref(number: int) -> TypeRef:
    return TypeRef("", number)


def hostile_types() -> dict[str, tuple[bytes, ...]]:
    count = 2_000
    double = [portable(it, b"\x04" + encode_vec([encode_compact(it + 1)] * 2)) for it in range(count)]
    deep = [portable(it, b"\x02" + encode_compact(it + 1)) for it in range(count)]
    wrapped = [portable(it, b"\x00" + encode_vec([field("it", it + 1)]), ("W",)) for it in range(count)]
    last = portable(count, b"\x05\x05")
    return {
        "a struct around itself": (portable(0, b"\x00" + encode_vec([field("me", 0)]), ("Me",)),),
        "two structs around one another": (
            portable(0, b"\x00" + encode_vec([field("you", 1)]), ("Me",)),
            portable(1, b"\x00" + encode_vec([field("me", 0)]), ("You",)),
        ),
        "a type that is its own parameter": (portable(0, b"\x00\x00", ("Me",), (0,)),),
        "a list of itself": (portable(0, b"\x02\x00"),),
        "tuples that double": (*double, last),
        "lists in lists": (*deep, last),
        "structs in structs": (*wrapped, last),
        "a name without end": (portable(0, b"\x00\x00", ("x" * 100_000,)),),
    }


@pytest.mark.parametrize("name", hostile_types())
def test_hostile_types_have_a_text_and_can_be_compared(name: str) -> None:
    types = hostile_types()[name]
    rest = REST_14.replace(b"\x04\x00", b"\x04\x04" + text("X") + encode_compact(0) * 2)
    metadata = read_metadata(b"meta\x0e" + encode_vec(types) + rest)
    extension = metadata.extrinsic.extensions[0].type
    assert extension is not None
    assert len(extension.text) <= MAX_CHARACTERS + 2
    assert metadata.types is not None
    assert len(TypeShapes(metadata.types, {}).digest(0) or b"") == 16
    same = TypeComparison(metadata, metadata)
    assert same.relation(ref(0), ref(0)).same
    other = TypeComparison(metadata, with_types(portable(0, b"\x05\x00")))
    assert other.relation(ref(0), ref(0)).broken


def test_circles_of_many_types_are_compared_without_digests() -> None:
    def circle(count: int, leaf: bytes) -> Metadata:
        types = [b"\x00" + encode_vec([field(None, (it + 1) % count), field(None, count)]) for it in range(count)]
        return with_types(*(portable(it, kind) for it, kind in enumerate(types)), portable(count, leaf))

    before = circle(MAX_CIRCULAR + 1, b"\x05\x05")
    assert before.types is not None
    assert TypeShapes(before.types, {}).digest(0) is None
    assert TypeComparison(before, circle(MAX_CIRCULAR + 1, b"\x05\x05")).relation(ref(0), ref(1)).same
    assert TypeComparison(before, circle(MAX_CIRCULAR + 1, b"\x05\x06")).relation(ref(0), ref(1)).broken
    endless = TypeComparison(before, circle(MAX_CIRCULAR + 2, b"\x05\x05")).relation(ref(0), ref(1))
    assert endless.broken == "more than 200,000 fields and variants to compare"


def test_types_that_contain_themselves_are_compared_to_the_end() -> None:
    def chain(leaf: bytes) -> Metadata:
        node = b"\x00" + encode_vec([field("next", 1), field("value", 2)])
        option = portable(1, b"\x02" + encode_compact(0), ("Vec",))
        return with_types(portable(0, node, ("Node",)), option, portable(2, leaf))

    same, other = chain(b"\x05\x05"), chain(b"\x05\x06")
    assert TypeComparison(same, chain(b"\x05\x05")).relation(ref(0), ref(0)).same
    assert TypeComparison(same, other).relation(ref(0), ref(0)).broken == "at value: u32 became u64"


def test_metadata_is_a_value() -> None:
    first, again = (read_metadata(named_metadata(13)) for _ in range(2))
    assert first == again
    assert hash(first.pallets) == hash(again.pallets)
    assert replace(first, pallets=()) != first
    unknown: Any = first.pallet("Nobody")
    assert unknown is None
