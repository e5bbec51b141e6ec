"""Hashes of event data: the standard's vectors, our own for trees outside it, and images that tell trees apart."""

import struct
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icrc16_values import values
from relaycast_gateway.icrc import eventdata_hash, is_icrc3
from relaycast_gateway.icrc.value_hash import TAGGED, icrc3_image, value_hash
from relaycast_gateway.icrc16 import NOTHING, Icrc16, Property, Tag, array, blob, boolean, map_of, nat, option, text

ACCOUNT = "00abcdef0012340056789a00bcdef000012345678900abcdef01"
OTHER_ACCOUNT = "00ab0def0012340056789a00bcdef000012345678900abcdef01"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (nat(42), "684888c0ebb17f374298b65ee2807526c066094c701bcc7ebbe1c1095f494fc1"),
        (Icrc16(Tag.INT, -42), "de5a6f78116eca62d7fc5ce159d23ae6b889b365a1739ad2cf36f925a140d0cc"),
        (text("Hello, World!"), "dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f"),
        (blob(bytes([1, 2, 3, 4])), "9f64a747e1b97f131fabb6b447296c9b6f0201e79fb3c5356e6c77e89b6a806a"),
        (
            array(nat(3), text("foo"), blob(bytes([5, 6]))),
            "514a04011caa503990d446b7dec5d79e19c221ae607fb08b2848c67734d468d6",
        ),
        (
            map_of(
                {
                    "from": blob(bytes.fromhex(ACCOUNT)),
                    "to": blob(bytes.fromhex(OTHER_ACCOUNT)),
                    "amount": nat(42),
                    "created_at": nat(1699218263),
                    "memo": nat(0),
                }
            ),
            "c56ece650e1de4269c5bdeff7875949e3e2033f85b2d193c2ff4f7f78bdcfc75",
        ),
    ],
)
def test_the_six_vectors_of_the_standard_hold(value: Icrc16, expected: str) -> None:
    assert is_icrc3(value)
    assert eventdata_hash(value).hex() == value_hash(value).hex() == expected


def test_a_number_of_a_million_bits_is_hashed() -> None:
    number = (1 << 1_000_000) + 5
    written = b"\x85" + b"\x80" * 142_856 + b"\x02"
    assert eventdata_hash(nat(number)) == sha256(written).digest()


def h(*parts: bytes) -> bytes:
    return sha256(b"".join(parts)).digest()


def tagged(tag: str, content: bytes) -> bytes:
    """Return the hash of a node, given the hash of its content."""
    return h(h(tag.encode()), content)


@pytest.mark.parametrize(
    ("value", "node"),
    [
        (boolean(True), tagged("Bool", h(b"\x01"))),
        (Icrc16(Tag.NAT8, 5), tagged("Nat8", h(b"\x05"))),
        (Icrc16(Tag.NAT16, 5), tagged("Nat16", h(b"\x05"))),
        (Icrc16(Tag.INT8, -1), tagged("Int8", h(b"\x7f"))),
        (Icrc16(Tag.FLOAT, 1.5), tagged("Float", h(struct.pack(">d", 1.5)))),
        (Icrc16(Tag.FLOATS, (1.5, -0.0)), tagged("Floats", h(struct.pack(">dd", 1.5, -0.0)))),
        (Icrc16(Tag.NATS, (1, 300)), tagged("Nats", h(h(b"\x01"), h(b"\xac\x02")))),
        (Icrc16(Tag.BYTES, b"ab"), tagged("Bytes", h(b"ab"))),
        (Icrc16(Tag.PRINCIPAL, b"\x04"), tagged("Principal", h(b"\x04"))),
        (NOTHING, tagged("Option", h())),
        (option(nat(5)), tagged("Option", h(tagged("Nat", h(b"\x05"))))),
        (Icrc16(Tag.SET, (text("a"),)), tagged("Set", h(tagged("Text", h(b"a"))))),
        (map_of({"k": boolean(False)}), tagged("Map", h(h(b"k"), tagged("Bool", h(b"\x00"))))),
        (
            Icrc16(Tag.VALUE_MAP, ((nat(1), text("a")),)),
            tagged("ValueMap", h(h(tagged("Nat", h(b"\x01")), tagged("Text", h(b"a"))))),
        ),
        (
            Icrc16(Tag.CLASS, (Property("n", blob(b"z"), True),)),
            tagged("Class", h(h(h(b"n"), tagged("Blob", h(b"z")), h(b"\x01")))),
        ),
    ],
)
def test_a_tree_outside_the_standard_is_hashed_by_its_image(value: Icrc16, node: bytes) -> None:
    assert not is_icrc3(value)
    assert eventdata_hash(value) == h(h(b"icrc72:tagged"), node)
    assert is_icrc3(icrc3_image(value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (boolean(True), "68d563e55bb36ad10e8bf3cc7c855ee6bf5d3661de315ebe5ae9903d894643c4"),
        (Icrc16(Tag.NAT8, 5), "2980100265e6a6fa35f1d3b41c578e205de93985b7121ee5b3c910ab588d7023"),
        (Icrc16(Tag.FLOAT, 1.5), "8f85698dc4fd92534b3c3a48bae3b003bb0f20866d817860c3eb86b74a9093d1"),
        (option(text("a")), "0c525a2c76fa4f5a9aaf630b9c865edbbab4a49bd7e7f7c3d323541397286fb9"),
        (
            map_of({"sold": boolean(False), "price": nat(42)}),
            "70263b361e0890c1b0ad77f1e67cfae0a00de07bf1e2ad192a5b457d7fd8d6d6",
        ),
    ],
)
def test_our_own_vectors_hold(value: Icrc16, expected: str) -> None:
    assert eventdata_hash(value).hex() == expected


def comparable(value: Icrc16) -> object:  # noqa: PLR0911 - one for each form
    """Return what tells trees apart: the entries of a Map without their order, floats by their bits."""
    tag, content = value
    match tag:
        case Tag.FLOAT:
            return tag, struct.pack(">d", content)
        case Tag.FLOATS:
            return tag, tuple(struct.pack(">d", each) for each in content)
        case Tag.ARRAY | Tag.SET:
            return tag, tuple(map(comparable, content))
        case Tag.MAP:
            return tag, tuple(sorted((key, repr(comparable(each))) for key, each in content))
        case Tag.VALUE_MAP:
            return tag, tuple((comparable(key), comparable(each)) for key, each in content)
        case Tag.OPTION:
            return tag, None if content is None else comparable(content)
        case Tag.CLASS:
            return tag, tuple((name, comparable(each), immutable) for name, each, immutable in content)
    return tag, content


@given(values, values)
def test_two_trees_have_one_image_only_if_they_are_equal(left: Icrc16, right: Icrc16) -> None:
    one_image = comparable(icrc3_image(left)) == comparable(icrc3_image(right))
    assert one_image == (comparable(left) == comparable(right))
    assert one_image <= (eventdata_hash(left) == eventdata_hash(right))


@given(values)
def test_no_tree_has_the_image_of_another_as_its_own(value: Icrc16) -> None:
    image = icrc3_image(value)
    if image != value:
        assert icrc3_image(image) != image
        assert eventdata_hash(image) != eventdata_hash(value)


@given(values, values)
def test_trees_outside_the_standard_share_no_hash(left: Icrc16, right: Icrc16) -> None:
    if not is_icrc3(left) and not is_icrc3(right):
        assert (eventdata_hash(left) == eventdata_hash(right)) == (comparable(left) == comparable(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (boolean(True), array(text("Bool"), nat(1))),
        (boolean(True), nat(1)),
        (Icrc16(Tag.NAT8, 5), Icrc16(Tag.NAT16, 5)),
        (option(option(nat(1))), option(nat(1))),
        (option(nat(1)), array(nat(1))),
        (Icrc16(Tag.SET, ()), NOTHING),
        (Icrc16(Tag.FLOAT, 0.0), Icrc16(Tag.FLOAT, -0.0)),
        (Icrc16(Tag.BYTES, b"a"), Icrc16(Tag.PRINCIPAL, b"a")),
        (array(text("a"), boolean(True)), array(blob(b"a"), boolean(True))),
        (Icrc16(Tag.CLASS, (Property("n", nat(1), True),)), Icrc16(Tag.CLASS, (Property("n", nat(1), False),))),
    ],
)
def test_trees_that_look_alike_have_different_hashes(left: Icrc16, right: Icrc16) -> None:
    assert eventdata_hash(left) != eventdata_hash(right)


@given(st.lists(st.tuples(st.text(max_size=2), values), max_size=4), st.data())
def test_the_order_of_entries_of_a_map_does_not_count(entries: list[tuple[str, Icrc16]], data: st.DataObject) -> None:
    moved = data.draw(st.permutations(entries))
    assert eventdata_hash(Icrc16(Tag.MAP, tuple(entries))) == eventdata_hash(Icrc16(Tag.MAP, tuple(moved)))


def test_a_value_of_the_standard_that_starts_as_an_image_is_tagged() -> None:
    imitation = array(text(TAGGED), array(text("Bool"), nat(1)))
    assert icrc3_image(boolean(True)) == imitation
    assert eventdata_hash(imitation) not in (value_hash(imitation), eventdata_hash(boolean(True)))


@pytest.mark.parametrize("innermost", [nat(1), boolean(True)])
def test_trees_are_hashed_64_deep_and_no_deeper(innermost: Icrc16) -> None:
    value = innermost
    for _ in range(63):
        value = array(value)
    assert len(eventdata_hash(value)) == 32
    for _ in range(2_000):
        value = array(value)
    with pytest.raises(ValueError, match="at most 64 values deep"):
        eventdata_hash(value)


def test_the_standard_hashes_its_six_types_alone() -> None:
    with pytest.raises(ValueError, match="expected a type of ICRC-3, got Bool"):
        value_hash(boolean(True))
