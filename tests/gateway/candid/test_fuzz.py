"""Bytes and texts that nobody wrote: a value or the one refusal, in bounded memory."""

import random
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from long_hauls import soak
from relaycast_gateway.candid import (
    CandidError,
    FuncReference,
    Present,
    Principal,
    Variant,
    decode,
    encode,
    format_values,
    parse_types,
    parse_values,
)

TREE = "type Tree = variant { leaf : nat; many : vec Tree; pair : record { Tree; opt Tree } };\n"
SEEDS: list[tuple[str, list[object]]] = [
    (TREE + "(Tree)", [Variant("pair", (Variant("leaf", 300), Variant("many", [Variant("leaf", 1)])))]),
    ("(opt opt int, vec blob, text)", [Present(-5), [b"ab", b""], "☃"]),
    ("(record { a : nat8; b : opt record { c : text } }, reserved)", [{"a": 7, "b": {"c": "x"}}, None]),
    ("(vec null, vec record { null; record {} }, float64)", [[None] * 3, [(None, {})], 0.5]),
    (
        "(func (nat, opt text) -> (service { f : () -> (bool) query }), principal)",
        [FuncReference(Principal(b"\x01"), "f"), Principal(b"")],
    ),
]
TYPES = [types for types, _ in SEEDS] + ["()", "(opt nat)", "(vec opt nat, opt bool)", "(reserved, opt empty)"]
EDGES = [0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF, 0x6F, 0x70, *range(0x67, 0x70)]


def messages(count: int, dice: random.Random) -> Iterator[tuple[bytes, str]]:
    """Yield messages with a few bytes changed, added or removed, each with types to read it at."""
    seeds = [encode(types, values) for types, values in SEEDS]
    for _ in range(count):
        data = bytearray(dice.choice(seeds))
        for _ in range(dice.choice((0, 1, 1, 2, 5))):
            at = dice.randrange(4, len(data) + 1)
            byte = dice.choice(EDGES) if dice.random() < 0.7 else dice.randrange(256)
            match dice.randrange(3):
                case 0:
                    data[at : at + 1] = bytes([byte])
                case 1:
                    data.insert(at, byte)
                case _:
                    del data[at : at + dice.choice((1, 1, 4))]
        yield bytes(data), dice.choice(TYPES)


def returns(call: Callable[..., object], *arguments: object) -> bool:
    """Tell whether a call returns; anything but the one refusal is raised."""
    try:
        call(*arguments)
    except CandidError:
        return False
    return True


def run(count: int, seed: int) -> int:
    return sum(returns(decode, data, types) for data, types in messages(count, random.Random(seed)))


def test_twenty_thousand_messages_are_read_or_refused() -> None:
    read = run(20_000, 1)
    assert 1_000 < read < 19_000


@pytest.mark.slow
def test_forty_thousand_messages_are_read_or_refused_in_bounded_memory() -> None:
    run(10_000, 2)
    tracemalloc.start()
    try:
        for seed in range(4):
            run(10_000, 100 + seed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30_000_000


@soak(rounds=10)
def test_a_million_messages_are_read_or_refused(soak_round: int) -> None:
    assert 1_000 < run(100_000, 200 + soak_round) < 95_000


def texts(seed: str, count: int, dice: random.Random) -> Iterator[str]:
    pieces = ["(", ")", "{", "}", ";", ",", ":", "=", '"', "opt ", "vec ", "0", "-1", "1e9", "\\u{", "/*", "null", "X"]
    for _ in range(count):
        text = seed
        for _ in range(dice.randrange(4)):
            at = dice.randrange(len(text) + 1)
            text = text[:at] + dice.choice(pieces) + text[at + dice.randrange(3) :]
        yield text


@pytest.mark.parametrize(("types", "values"), SEEDS, ids=range(len(SEEDS)))
def test_changed_texts_are_read_or_refused(types: str, values: list[object]) -> None:
    dice = random.Random(3)
    text = format_values(values, types)
    read = sum(returns(parse_values, changed, types) for changed in texts(text, 300, dice))
    parsed = sum(returns(parse_types, changed) for changed in texts(types, 300, dice))
    assert 30 < read < 300
    assert 30 < parsed < 300
