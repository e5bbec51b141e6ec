"""Whatever comes in: an answer of JSON-RPC comes out, nothing fails inside, and memory stays as it was."""

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest

from app.serve_fuzz import fuzz, weights
from fresh_process import in_fresh_process
from long_hauls import soak

MOST_BYTES_A_MESSAGE = 100


@pytest.fixture(autouse=True)
def nothing_fails_inside(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [
        record.getMessage() for record in caplog.get_records("call") if record.levelname in {"ERROR", "CRITICAL"}
    ] == []


def test_eight_hundred_wild_messages_are_answered() -> None:
    asyncio.run(fuzz(800, seed=1))


@pytest.mark.slow
def test_forty_thousand_wild_messages_are_answered_in_flat_memory() -> None:
    memory_stays_flat(40_000, seed=2)


@soak(rounds=10)
def test_a_hundred_thousand_wild_messages_are_answered_in_flat_memory(soak_round: int) -> None:
    memory_stays_flat(100_000, seed=1_000 + soak_round)


def memory_stays_flat(messages: int, *, seed: int) -> None:
    _, half, _, end = in_fresh_process(partial(weights, messages, seed=seed, weighings=4))
    assert end.objects - half.objects < 2_000
    assert end.resident - half.resident < messages // 2 * MOST_BYTES_A_MESSAGE
