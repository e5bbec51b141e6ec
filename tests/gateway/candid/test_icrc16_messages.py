"""ICRC-16 values as Candid: every variant alone, nested and empty; what nests too deep is refused both ways."""

import pytest

from gateway.candid.icrc16_cases import ALONE, around, nested
from relaycast_gateway.candid import CandidError, decode, encode
from relaycast_gateway.candid.type_graph import DEEPEST
from relaycast_gateway.icrc.interface import definitions
from relaycast_gateway.icrc.variants import icrc16_of, variant_of
from relaycast_gateway.icrc16 import Icrc16, Tag

TYPES = f"{definitions()}(ICRC16)"


@pytest.mark.matrix("ICRC72-18")
@pytest.mark.parametrize("deep", [0, 1, 5])
def test_every_variant_comes_back(deep: int) -> None:
    assert {value.tag for value in ALONE} == set(Tag)
    assert len(Tag) == 24
    for value in nested(deep):
        (found,) = decode(encode(TYPES, [variant_of(value)]), TYPES)
        assert icrc16_of(found) == value


@pytest.mark.matrix("ICRC72-18")
def test_a_value_that_nests_too_deep_is_refused_both_ways() -> None:
    deep = Icrc16(Tag.BOOL, True)
    for _ in range(DEEPEST // 2 - 1):
        deep = around(Tag.OPTION, deep)
    message = encode(TYPES, [variant_of(deep)])
    with pytest.raises(ValueError, match="at most 64 deep"):
        icrc16_of(decode(message, TYPES)[0])
    one_more = around(Tag.OPTION, deep)
    with pytest.raises(CandidError, match=f"values nest at most {DEEPEST} deep"):
        encode(TYPES, [variant_of(one_more)])
    level = message[-4:-2]  # the case Option and the byte of an opt
    assert message.endswith(level * (DEEPEST // 2 - 1) + message[-2:])
    with pytest.raises(CandidError, match=f"values nest at most {DEEPEST} deep"):
        decode(message[:-2] + level + message[-2:], TYPES)
