"""Whatever is sent to the interface: an answer of 2xx or 4xx, a valid problem, nothing half-stored, memory bounded."""

from functools import partial

import pytest

from fresh_process import in_fresh_process
from gateway.cloudevents.interface_fuzz import fuzz, nothing_is_half_stored, weights
from gateway.cloudevents.served_gateway import Api, visit
from long_hauls import soak

REQUESTS = 8_000
MOST_BYTES_A_REQUEST = 64


@pytest.mark.matrix("CE-100")
def test_a_thousand_requests_are_answered_in_order() -> None:
    async def work(api: Api) -> None:
        assert await fuzz(api, 1_000, seed=1) > 100
        await nothing_is_half_stored(api)

    visit(work)


@pytest.mark.slow
@pytest.mark.matrix("CE-100")
def test_forty_thousand_requests_are_answered_and_memory_stays_bounded() -> None:
    memory_stays_bounded(rounds=5, seed=2)


@soak(rounds=10)
def test_a_hundred_thousand_requests_are_answered_and_memory_stays_bounded(soak_round: int) -> None:
    memory_stays_bounded(rounds=13, seed=1_000 * (1 + soak_round))


def memory_stays_bounded(*, rounds: int, seed: int) -> None:
    _, before, *rounds_after = in_fresh_process(partial(weights, rounds, REQUESTS, seed=seed))
    for after in rounds_after:
        assert after.objects - before.objects < 2_000
    assert rounds_after[-1].resident - before.resident < len(rounds_after) * REQUESTS * MOST_BYTES_A_REQUEST
