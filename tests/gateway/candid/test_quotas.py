"""A message of a few bytes cannot cost much: quotas bound what is kept and what is skipped."""

import sys
import tracemalloc

import pytest

from gateway.candid.test_assertions import official
from relaycast_gateway.candid import CandidError, decode, encode

MANY = "8094ebdc03"  # 1,000,000,000
TREE = "4449444c" + "15" + "6c02017f027f" + "".join(f"6c0200{at:02x}01{at:02x}" for at in range(20)) + "0114"

BOMBS = [
    # the message, the types it is read at, the quota that ends it
    (f"4449444c016d7f0100{MANY}", "(vec null)", "decoding"),
    (f"4449444c016d7f0100{MANY}", "(vec opt nat)", "decoding"),
    (f"4449444c016d700100{MANY}", "(vec reserved)", "decoding"),
    (f"4449444c016d7f0100{MANY}", "()", "skipping"),
    (f"4449444c016d7f0100{MANY}", "(opt nat)", "skipping"),
    (f"4449444c026d016c000100{MANY}", "(vec record { a : opt nat })", "decoding"),
    (TREE, "()", "skipping"),  # a record of two records of two records ...
    (TREE, "(reserved)", "skipping"),
]


MOST_STEPS = 300_000
"""Calls and returns: 110,000 of them take about 10 ms, and a bomb has 100 ms."""


def costs(data: bytes, types: str) -> tuple[int, int]:
    """Return the bytes and the steps that a refusal takes, once the types are known."""
    steps = 0

    def step(*_: object) -> None:
        nonlocal steps
        steps += 1

    def refuse() -> None:
        with pytest.raises(CandidError):
            decode(data, types)

    refuse()
    tracemalloc.start()
    try:
        refuse()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    sys.setprofile(step)
    try:
        refuse()
    finally:
        sys.setprofile(None)
    return peak, steps


@pytest.mark.matrix("ICRC72-96")
@pytest.mark.parametrize(("message", "types", "quota"), BOMBS)
def test_a_bomb_ends_early(message: str, types: str, quota: str) -> None:
    data = bytes.fromhex(message)
    with pytest.raises(CandidError, match=f"the {quota} quota is used up"):
        decode(data, types)
    peak, steps = costs(data, types)
    assert peak < 1_000_000
    assert steps < MOST_STEPS


@pytest.mark.matrix("ICRC72-96")
def test_official_bombs_end_early() -> None:
    for case in official("spacebomb"):
        peak, steps = costs(bytes.fromhex(case["input"]["blob"]), case["types"])
        assert peak < 1_000_000, case["says"]
        assert steps < MOST_STEPS, case["says"]


def test_the_worst_that_a_quota_lets_through_is_small() -> None:
    types = "(vec record { record {}; record {} })"
    head = encode(types, [[]])[:-1]
    data = head + b"\xf0\x2e"  # 6,000 records of no byte
    tracemalloc.start()
    try:
        assert decode(data, types) == [[{0: {}, 1: {}}] * 6_000]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_honest_messages_are_within_the_quotas() -> None:
    types = "(vec record { nat; text; opt nat })"
    rows = [{0: 1, 1: "", 2: None}] * 50_000
    message = encode(types, [rows])
    assert decode(message, types) == [rows]
    assert decode(message, "()") == []
    assert decode(message, "(vec record { 1 : text; 9 : opt nat })") == [[{1: "", 9: None}] * 50_000]


def test_quotas_can_be_set() -> None:
    message = encode("(vec bool)", [[True] * 100])
    assert decode(message, "(vec bool)", decoding_quota=103) == [[True] * 100]
    with pytest.raises(CandidError, match="the decoding quota is used up"):
        decode(message, "(vec bool)", decoding_quota=100)
    with pytest.raises(CandidError, match="the skipping quota is used up"):
        decode(message, "()", skipping_quota=100)


def test_what_an_opt_tried_in_vain_is_paid_too() -> None:
    message = encode("(vec opt bool)", [[True] * 1_000])
    assert decode(message, "(vec opt nat)") == [[None] * 1_000]
    with pytest.raises(CandidError, match="the decoding quota is used up"):
        decode(message, "(vec opt nat)", decoding_quota=5_000)
