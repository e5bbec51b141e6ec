"""Hash functions against vectors of Substrate's and against published digests."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_trie import hasher
from shared_vectors import Case, over, unhex

NAMES: dict[str, Callable[[bytes], bytes]] = {
    "blake2_256": hasher.blake2_256,
    "blake2_128": hasher.blake2_128,
    "blake2_128_concat": hasher.blake2_128_concat,
    "twox64": hasher.twox_64,
    "twox128": hasher.twox_128,
    "twox64_concat": hasher.twox_64_concat,
    "keccak_256": hasher.keccak_256,
}


@over("trie_db/blake2b256.json")
def test_blake2b_256_agrees_with_the_crate(cases: list[Case]) -> None:
    for vector in cases:
        data = unhex(vector["data"])
        assert len(data) == vector["len"]
        assert hasher.blake2_256(data) == unhex(vector["hash"])


@over("smoldot/scale_hash_xcm.json")
def test_hashers_agree_with_substrate(cases: list[Case]) -> None:
    for name, digest in NAMES.items():
        for vector in cases[0]["hashers"][name]:
            assert digest(unhex(vector["in"])) == unhex(vector["out"]), name


@over("smoldot/scale_hash_xcm.json")
def test_pallet_and_item_prefixes_are_twox_128_of_their_names(cases: list[Case]) -> None:
    for name, prefix in cases[0]["prefixes"].items():
        assert hasher.twox_128(name.encode()) == unhex(prefix), name


@pytest.mark.parametrize(
    ("named", "of_nothing"),
    [
        (hasher.BLAKE2B_256, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"),
        (hasher.KECCAK_256, "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (hasher.BLAKE3_256, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_trie_hasher_has_a_name_and_32_bytes(named: hasher.Hasher, of_nothing: str) -> None:
    assert named.digest(b"").hex() == of_nothing
    assert hasher.HASHERS[named.name] is named


def keccak_by_hand(length: int) -> int:
    """Return the blocks of a message that is padded with a 1, zeros and a 1, to whole blocks of 136 bytes."""
    padded = length + 1
    while padded % 136:
        padded += 1
    return padded // 136


def blake3_by_hand(length: int) -> int:
    """Return the blocks of the chunks, and one parent for each time that two subtrees meet."""
    chunks = [min(1_024, length - start) for start in range(0, max(1, length), 1_024)]
    blocks = sum(len(range(0, max(1, size), 64)) for size in chunks)
    while len(chunks) > 1:
        chunks = [*chunks[:-2], chunks[-2] + chunks[-1]]
        blocks += 1
    return blocks


@given(st.integers(0, 5_000))
def test_a_hasher_says_how_many_blocks_a_message_fills(length: int) -> None:
    assert hasher.BLAKE2B_256.compressions(length) == len(range(0, max(1, length), 128))
    assert hasher.KECCAK_256.compressions(length) == keccak_by_hand(length)
    assert hasher.BLAKE3_256.compressions(length) == blake3_by_hand(length)


@pytest.mark.parametrize(
    ("length", "blocks"),
    [
        (0, (1, 1, 1)),
        (64, (1, 1, 1)),
        (65, (1, 1, 2)),
        (128, (1, 1, 2)),
        (135, (2, 1, 3)),  # room for one byte of padding
        (136, (2, 2, 3)),  # padding needs a block of its own
        (531, (5, 4, 9)),  # the largest branch without a value
        (1_024, (8, 8, 16)),
        (1_025, (9, 8, 18)),  # a second chunk, and its parent
        (2_057, (17, 16, 35)),  # the largest entry: three chunks, two parents
    ],
)
def test_blocks_of_messages_that_tries_hash(length: int, blocks: tuple[int, int, int]) -> None:
    named = (hasher.BLAKE2B_256, hasher.KECCAK_256, hasher.BLAKE3_256)
    assert tuple(it.compressions(length) for it in named) == blocks
