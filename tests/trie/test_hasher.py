"""Hash functions against vectors of Substrate's and against published digests."""

from collections.abc import Callable

import pytest

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
