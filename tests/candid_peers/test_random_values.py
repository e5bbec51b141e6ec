"""Any value of any type: each peer reads our message as we meant it, and we read the peer's."""

from typing import Any

import pytest
from hypothesis import given, settings

from candid_peers.peer_process import Codec, TextCodec
from candid_peers.peer_shapes import (
    dfinity_shapes,
    dfinity_subtypes,
    didc_shapes,
    didc_subtypes,
    icp_shapes,
    read_above,
    typed,
)
from relaycast_gateway.candid import encode

pytestmark = pytest.mark.brokers


@settings(max_examples=500)
@given(typed(dfinity_shapes))
def test_dfinity_candid_and_ours_read_each_other(dfinity_candid: Codec, drawn: tuple[str, list[Any]]) -> None:
    types, values = drawn
    assert dfinity_candid.both_ways(types, values) == (values, values)


@settings(max_examples=500)
@given(typed(icp_shapes))
def test_icp_py_core_and_ours_read_each_other(icp_py_core: Codec, drawn: tuple[str, list[Any]]) -> None:
    types, values = drawn
    assert icp_py_core.both_ways(types, values) == (values, values)


@settings(max_examples=500)
@given(typed(didc_shapes))
def test_didc_and_ours_read_each_other_and_their_texts(didc: TextCodec, drawn: tuple[str, list[Any]]) -> None:
    types, values = drawn
    assert didc.both_ways(types, values) == (values, values)


@settings(max_examples=300)
@given(read_above(dfinity_subtypes))
def test_dfinity_candid_reads_our_message_at_a_supertype(
    dfinity_candid: Codec, drawn: tuple[str, list[Any], str, list[Any]]
) -> None:
    types, values, above, read = drawn
    assert dfinity_candid.decoded(above, encode(types, values)) == read


@settings(max_examples=300)
@given(read_above(didc_subtypes))
def test_didc_reads_our_message_at_a_supertype(didc: TextCodec, drawn: tuple[str, list[Any], str, list[Any]]) -> None:
    types, values, above, read = drawn
    assert didc.decoded(above, encode(types, values)) == read
