"""The set of published keys, searched and changed as bytes, agrees with a set of Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_pallets.broadcaster.storage import PublishedKeys
from relaycast_trie import CodecError
from relaycast_trie.scale import encode_vec

KEYS = [bytes([number]) * 32 for number in range(9)]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(KEYS)), max_size=40))
def test_the_set_agrees_with_its_twin(steps: list[tuple[bool, bytes]]) -> None:
    keys, twin = PublishedKeys(), set[bytes]()
    for insert, key in steps:
        before = keys.encoded
        changed = keys.with_key(key) if insert else keys.without_key(key)
        (twin.add if insert else twin.discard)(key)
        assert keys.encoded == before
        keys = changed
        assert keys.encode() == encode_vec(sorted(twin))
        assert list(keys) == sorted(twin)
        assert len(keys) == len(twin)
        assert [key in keys for key in KEYS] == [key in twin for key in KEYS]
    assert PublishedKeys(keys.encoded) == keys
    assert hash(PublishedKeys(keys.encoded)) == hash(keys)


@pytest.mark.parametrize("count", [63, 64, 65])
def test_the_count_changes_its_width(count: int) -> None:
    keys = PublishedKeys()
    for number in range(count):
        keys = keys.with_key(number.to_bytes(32, "big"))
    assert keys.encoded == encode_vec(number.to_bytes(32, "big") for number in range(count))
    for number in range(count):
        keys = keys.without_key(number.to_bytes(32, "big"))
    assert keys.encoded == b"\x00"


@pytest.mark.parametrize("data", [b"", b"\x04", b"\x04" + bytes(31), b"\x04" + bytes(33), b"\x00\x00", b"\x01\x00"])
def test_bytes_that_are_no_set_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        PublishedKeys(data)
