"""Random sequences: registered and unregistered publishers, messages, deletions, expiry, departures."""

from collections.abc import Callable, Iterator
from random import Random

from relaycast.vectors.broadcaster.broadcaster_vector import BroadcasterVector
from relaycast.vectors.broadcaster.step_sequence import ALICE, BOB, FUNDS, StepSequence, key, with_limits
from relaycast.vectors.vector import VectorSource
from relaycast_xcm.instructions import Publish
from relaycast_xcm.primitives import Weight

HISTORIES = 55
STEPS = 12
PUBLISHERS = (1_000, 2_000, 2_001, 2_002)
NAMES = "abcdef"

Act = Callable[[StepSequence, Random], StepSequence]


def vectors(seed: int) -> Iterator[BroadcasterVector]:
    """Yield sequences that are drawn from ``seed``."""
    for number in range(HISTORIES):
        random = Random(f"broadcaster {seed} {number}")  # noqa: S311 - vectors, no secrets
        yield history(random, number)


def history(random: Random, number: int) -> BroadcasterVector:
    there = with_limits(
        max_publishers=random.choice((1, 2, 3)),
        max_stored_keys=random.choice((2, 3, 5)),
        max_total_storage_size=random.choice((120, 300, 4_096)),
        max_ttl_scans_per_idle=random.choice((1, 2, 500)),
        slash_on_force=random.random() < 0.3,
        registration=random.choice(("public", "public", "open")),
        ttl_key_hasher=random.choice(("Twox64Concat", "Twox64Concat", "Blake2_128Concat")),
    )
    there.register(2_000).publish(2_000, "a", b"\x01", ttl=random.choice((0, 4))).begin()
    for _ in range(STEPS):
        there.at(there.block + random.choice((0, 0, 1, 3)))
        random.choice(_ACTS)(there, random)
    return there.vector(
        f"history/{number}",
        f"{STEPS} random steps, number {number}",
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


_ACTS: tuple[Act, ...] = (
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
