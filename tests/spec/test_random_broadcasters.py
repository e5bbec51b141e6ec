"""Random steps of a broadcaster: whatever the pallets make of them, the specification computes the same.

A step is compared whole: its result, events and weight, and the root of the state after it. Some of the sequences ship
with the specification.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from long_hauls import soak
from pallets.broadcaster_vectors import (
    ALICE,
    BOB,
    FUNDS,
    ORIGINS,
    BroadcasterVector,
    RelayPallets,
    StepSequence,
    key,
    parachain,
    signed,
    with_limits,
)
from relaycast_spec.vectors import mismatches
from relaycast_xcm.instructions import Publish
from relaycast_xcm.primitives import U32_MAX, Weight
from searches import examples
from vector_fields import Vector, VectorSource
from yielded_vectors import yields

PUBLISHERS = (1_000, 2_000, 2_001, 2_002)
NAMES = "abcdef"

Act = Callable[[StepSequence, Random], StepSequence]


def history(random: Random, number: int, *, steps: int = 12, ships: bool = False) -> BroadcasterVector:
    """Return random steps: registered and unregistered publishers, messages, deletions, expiry, departures."""
    there = with_limits(
        max_publishers=random.choice((1, 2, 3)),
        max_value_length=2_048 if ships else 40,
        max_stored_keys=random.choice((2, 3, 5)),
        max_total_storage_size=random.choice((120, 300, 4_096)),
        max_ttl_scans_per_idle=random.choice((1, 2, 500)),
        slash_on_force=random.random() < 0.3,
        registration=random.choice(("public", "public", "open")),
        ttl_key_hasher=random.choice(("Twox64Concat", "Twox64Concat", "Blake2_128Concat")),
    )
    there.register(2_000).publish(2_000, "a", b"\x01", ttl=random.choice((0, 4))).begin()
    for _ in range(steps):
        there.at(there.block + random.choice((0, 0, 1, 3)))
        random.choice(SHIPPED if ships else ALL)(there, random)
    return there.vector(
        f"history/{number}",
        f"{steps} random steps, number {number}",
        VectorSource(trap="a refused call leaves no trace"),
    )


def _publish(there: StepSequence, random: Random) -> StepSequence:
    count = random.choice((1, 1, 2, 4))
    sent = [
        Publish(
            key(random.choice(NAMES)), random.randbytes(random.choice((0, 3, 23, 24, 60))), random.choice((0, 2, 6))
        )
        for _ in range(count)
    ]
    return there.message(random.choice(PUBLISHERS), *sent)


def _delete(there: StepSequence, random: Random) -> StepSequence:
    return there.delete(random.choice(PUBLISHERS), *random.choices(NAMES, k=random.choice((1, 2, 3))))


def _idle(there: StepSequence, random: Random) -> StepSequence:
    return there.on_idle(random.choice((Weight.MAX, Weight(25_000_000 + 900_000_000), Weight(475_000_000))))


def _account(random: Random) -> bytes:
    return random.choice((ALICE, ALICE, BOB))


SHIPPED: tuple[Act, ...] = (
    _publish,
    _publish,
    _publish,
    _publish,
    _delete,
    _idle,
    _idle,
    lambda there, random: there.register(random.choice(PUBLISHERS), ALICE),
    lambda there, random: there.deregister(random.choice(PUBLISHERS), _account(random)),
    lambda there, random: there.clean_up(random.choice(PUBLISHERS), _account(random)),
    lambda there, random: there.force_deregister(random.choice(PUBLISHERS)),
    lambda there, random: there.force_delete(random.choice(PUBLISHERS), random.choice(NAMES)),
    lambda there, random: there.force_register(random.choice(PUBLISHERS), deposit=random.choice((0, 7, FUNDS))),
    lambda there, random: there.offboard(random.choice(PUBLISHERS)),
)
"""What happens in the sequences that ship."""


def _origin(random: Random) -> Any:
    return random.choice((*ORIGINS.values(), signed(BOB), parachain(1_000)))


def _at_the_limit(there: StepSequence, random: Random) -> StepSequence:
    value, ttl = bytes(random.choice((40, 41))), random.choice((0, U32_MAX))
    return there.publish(random.choice(PUBLISHERS), random.choice(NAMES), value, ttl=ttl)


def _delete_of(there: StepSequence, random: Random) -> StepSequence:
    delete = random.choice((there.delete_of, there.force_delete))
    return delete(random.choice(PUBLISHERS), *random.choices(NAMES, k=random.randrange(9)), origin=_origin(random))


def _call(there: StepSequence, random: Random) -> StepSequence:
    calls = ("register_publisher", "deregister_publisher", "cleanup_published_data", "force_deregister_publisher")
    return there.call(random.choice(calls), _origin(random), para_id=random.choice(PUBLISHERS))


def _force_register(there: StepSequence, random: Random) -> StepSequence:
    deposit = random.choice((0, FUNDS - 150, FUNDS - 1))
    return there.force_register(random.choice(PUBLISHERS), random.choice((ALICE, BOB)), deposit=deposit)


ALL: tuple[Act, ...] = (
    *SHIPPED,
    _at_the_limit,
    _delete_of,
    _delete_of,
    _call,
    _call,
    _force_register,
    lambda there, random: there.message(random.choice(PUBLISHERS), *[Publish(key("a"), b"")] * 17),
)
"""The same, calls by whoever has no right to them, other managers, and what is too large or too much."""


@pytest.mark.parametrize("number", range(55))
@yields("broadcaster/histories")
def test_random_steps_are_those_that_ship(number: int) -> Iterator[Vector]:
    yield history(Random(f"broadcaster 7 {number}"), number, ships=True)


def differences(vector: BroadcasterVector) -> list[str]:
    return list(mismatches("broadcaster", msgspec.json.decode(msgspec.json.encode(vector))))


seeds = st.integers(0, 2**64 - 1)


@settings(max_examples=examples(500))
@given(seed=seeds)
def test_random_steps_are_what_the_specification_computes(seed: int) -> None:
    assert not differences(history(Random(seed), 0))


@soak(rounds=40)
def test_many_random_steps_are_what_the_specification_computes(soak_round: int) -> None:
    for number in range(500):
        assert not differences(history(Random(f"{soak_round} {number}"), number, steps=100))


@settings(max_examples=examples(200))
@given(seed=seeds)
def test_the_pallets_know_no_more_than_their_storage(seed: int) -> None:
    vector = history(Random(seed), 0)
    state = vector.before
    for step in vector.steps:
        relay = RelayPallets(vector.config, state)
        assert relay.run(step) == step.expect
        state = relay.entries()
    assert state == vector.after
