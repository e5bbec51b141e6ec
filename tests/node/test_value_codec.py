"""SCALE values by registered types, beside another library and back again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset

from relaycast_node.metadata.declarations import declare
from relaycast_node.metadata.runtime import Runtime, RuntimeNames
from relaycast_node.metadata.rust_syntax import parse_declarations, parse_type
from relaycast_pallets.balances import InsufficientBalance
from relaycast_pallets.broadcaster.errors import NotRegistered
from relaycast_pallets.broadcaster.pallet import Broadcaster
from relaycast_pallets.frame.dispatch import BadOrigin, DispatchError, Origin
from relaycast_trie.exceptions import CodecError
from relaycast_xcm import ParaId

RUNTIME = Runtime(RuntimeNames("codec"), [], [])
CONFIGURATION = RuntimeConfigurationObject()
CONFIGURATION.update_type_registry(load_type_registry_preset("core"))


def unsigned(bits: int) -> st.SearchStrategy[Any]:
    return st.integers(0, (1 << bits) - 1)


NUMBERS = st.sampled_from([f"u{bits}" for bits in (8, 16, 32, 64, 128)])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **{f"u{bits}": unsigned(bits) for bits in (8, 16, 32, 64, 128)},
    **{f"Compact<u{bits}>": unsigned(bits) for bits in (8, 32, 64, 128)},
    "bool": st.booleans(),
}


@given(st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name])))
def test_numbers_have_the_bytes_that_another_library_gives_them(case: tuple[str, Any]) -> None:
    name, value = case
    theirs = CONFIGURATION.create_scale_object(name).encode(value)
    ours = RUNTIME.encode(name, value)
    assert ours == bytes(theirs.data)
    assert RUNTIME.decode(name, ours) == value
    assert CONFIGURATION.create_scale_object(name, data=ScaleBytes(ours)).decode() == value


@given(st.lists(st.tuples(unsigned(32), st.binary(max_size=40), st.none() | st.booleans()), max_size=5))
def test_compound_values_come_back(value: list[tuple[int, bytes, bool | None]]) -> None:
    spelling = "Vec<(u32, Vec<u8>, Option<bool>)>"
    assert RUNTIME.decode(spelling, RUNTIME.encode(spelling, value)) == value


@given(
    st.binary(max_size=60),
    st.sampled_from(["DispatchError", "MultiAddress<AccountId32, ()>", "RuntimeVersion", "Digest"]),
)
def test_bytes_that_decode_are_the_ones_that_the_value_encodes_to(data: bytes, spelling: str) -> None:
    try:
        value = RUNTIME.decode(spelling, data)
    except CodecError:
        return
    assert RUNTIME.encode(spelling, value) == data


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        ("u8", 256),
        ("u32", -1),
        ("[u8; 4]", b"123"),
        ("Vec<u8>", "text"),
        ("DispatchError", "Nothing"),
        ("Weight", {"ref_time": 1}),
        ("(u8, u8)", (1,)),
    ],
)
def test_a_value_that_does_not_fit_is_refused(spelling: str, value: object) -> None:
    with pytest.raises(CodecError, match="does not fit its type"):
        RUNTIME.encode(spelling, value)


def test_a_variant_that_there_is_not_is_named_with_its_enum() -> None:
    with pytest.raises(CodecError, match="sp_runtime::DispatchError has no variant 99"):
        RUNTIME.decode("DispatchError", b"\x63")


@pytest.mark.parametrize("text", ["Vec<u8", "Vec<>x", "[u8; ]", "(u8,, u8)", "u8 u8", "<u8>", "é"])
def test_what_spells_no_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|invalid literal"):
        RUNTIME.types.number(parse_type(text))


def test_a_type_that_nobody_declares_is_named() -> None:
    with pytest.raises(ValueError, match="no type is called Nonsense"):
        RUNTIME.types.spelled("Vec<Nonsense>")


def test_declarations_are_read_with_their_indices() -> None:
    (declared,) = parse_declarations("enum a::B<T> { First, Third(T, u8) = 2, Fourth { x: Vec<T> } }")
    assert declared.path == ("a", "B")
    assert declared.cases is not None
    assert [(it.name, it.index, len(it.fields)) for it in declared.cases] == [
        ("First", 0, 0), ("Third", 2, 2), ("Fourth", 3, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "refusal", [BadOrigin(Origin.none(), "root"), InsufficientBalance(bytes(32), 1, 2), NotRegistered(ParaId(1))]
)
def test_refusals_have_the_bytes_that_their_classes_give_themselves(refusal: DispatchError) -> None:
    broadcaster = Broadcaster()
    runtime = Runtime(RuntimeNames("refusals"), [declare("Broadcaster", 200, broadcaster)], [])
    errors = runtime.pallets[0].errors
    module = (200, errors.index(type(refusal))) if type(refusal) in errors else None
    assert runtime.encode("DispatchError", refusal) == type(refusal).encode(module=module)
