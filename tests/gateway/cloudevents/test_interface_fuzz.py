"""Whatever is sent to the interface: an answer of 2xx or 4xx, a valid problem, nothing half-stored, memory bounded."""

from functools import partial

import pytest

from fresh_process import in_fresh_process
from gateway.cloudevents.interface_fuzz import fuzz, nothing_is_half_stored, weights
from gateway.cloudevents.served_gateway import Api, visit

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
def test_a_hundred_thousand_requests_are_answered_and_memory_stays_bounded() -> None:
    _, before, *rounds = in_fresh_process(partial(weights, 13, REQUESTS))
    for after in rounds:
        assert after.objects - before.objects < 2_000
    assert rounds[-1].resident - before.resident < len(rounds) * REQUESTS * MOST_BYTES_A_REQUEST
