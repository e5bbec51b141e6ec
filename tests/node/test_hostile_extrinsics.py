"""Extrinsics that were cut, changed or lengthened on their way: none gets in, each is refused in one line."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.small_chain import ALICE, SmallChain, remark, signed
from relaycast_node.extrinsic.era import Mortal
from relaycast_node.extrinsic.pool import PoolStatus, TransactionPool
from relaycast_node.extrinsic.pool_errors import (
    PoolError,
)
from relaycast_trie.scale import encode_bytes

CHAIN = SmallChain()


Harm = Callable[[bytes, st.DataObject], bytes]


def cut(encoded: bytes, data: st.DataObject) -> bytes:
    return encoded[: data.draw(st.integers(0, len(encoded) - 1))]


def cut_under_a_right_length(encoded: bytes, data: st.DataObject) -> bytes:
    return encode_bytes(cut(encoded[2:], data))


def changed(encoded: bytes, data: st.DataObject) -> bytes:
    at = data.draw(st.integers(0, len(encoded) - 1))
    return encoded[:at] + bytes([encoded[at] ^ data.draw(st.integers(1, 255))]) + encoded[at + 1 :]


def lengthened(encoded: bytes, data: st.DataObject) -> bytes:
    return encode_bytes(encoded[2:] + data.draw(st.binary(min_size=1, max_size=4)))


@pytest.mark.parametrize("harm", [cut, cut_under_a_right_length, changed, lengthened])
@given(st.data())
def test_no_harmed_extrinsic_gets_in_and_each_is_refused_in_one_line(harm: Harm, data: st.DataObject) -> None:
    era = Mortal.starting_at(10, period=64)
    whole = signed(CHAIN, ALICE, 0, era=era, tip=5, call=remark(b"hello"))
    TransactionPool(CHAIN).submit(whole)
    pool = TransactionPool(CHAIN)
    with pytest.raises(PoolError) as refusal:
        pool.submit(harm(whole, data))
    assert refusal.value.code in {1001, 1002, 1010, 1011}
    assert "\n" not in str(refusal.value)
    assert pool.status() == PoolStatus(0, 0, 0, 0)
