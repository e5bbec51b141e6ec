"""Griefers: publishers that harm readers or others, by what they send once and in every block.

A griefer is an entry of ``GRIEFERS``, run by ``PriceGround``. It sends the same whether or not its messages pay.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random

from relaycast.attacks.churned_paths import parting_key, sibling_keys
from relaycast.attacks.message_flood import PUBLISHES_A_BLOCK
from relaycast.scenario.workload import crafted_keys, value_of
from relaycast_collator.relay_chain import BLOCK_WEIGHT
from relaycast_pallets.broadcaster.config import POLKADOT
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId

VALUE_BYTES = 16

CHURNED_TARGETS = 10
"""Subscribed keys beside which ``churn`` puts others, as ``relaycast attack churn`` does."""

MAX_DEEP_TARGETS = 16
"""Subscribed keys with a path of full branches: 16 of them take 3,600 of the 4,000 keys of a publisher."""

SPAMMERS = BLOCK_WEIGHT.ref_time // (POLKADOT.weight("publish").ref_time * PUBLISHES_A_BLOCK) + 1
"""Parachains at their limits that send more than a relay block has weight for."""

SPAMMED_KEYS = 15 * PUBLISHES_A_BLOCK
"""Keys that a spammer writes in turns: within the limit of 4,000."""

CALLBACK_MS = 40
"""Milliseconds that a heavy callback takes; assumed. 50 of them fill a block."""

Publishing = tuple[SubscribedKey, bytes, int]
"""A key, its value and its time to live."""


@dataclass(frozen=True, slots=True)
class Attacker:
    """One attacking parachain: the ``keys`` that readers subscribe to, and the depth that they tolerate."""

    para_id: ParaId
    seed: int
    keys: tuple[SubscribedKey, ...]
    depth_limit: int

    def value(self, index: int, turn: int, size: int = VALUE_BYTES) -> bytes:
        """Return the value of a key in a turn; the same turn gives the same value."""
        return value_of(self.seed, int(self.para_id), index, turn, size)


def _nothing_once(_sender: Attacker) -> Iterable[Publishing]:
    return ()


def _nothing(_sender: Attacker, _block: int) -> Iterable[Publishing]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Griefer:
    """An attack by publishers: each of ``publishers`` sends ``prepare`` once, then ``strike`` in blocks 0, 1, ..."""

    name: str
    meaning: str
    prepare: Callable[[Attacker], Iterable[Publishing]] = _nothing_once
    strike: Callable[[Attacker, int], Iterable[Publishing]] = _nothing
    publishers: int = 1
    is_read: bool = True
    """Whether readers subscribe to the attacker: otherwise the attack hits the relay chain's blocks alone."""

    callback_ms: int = 0
    """Time that readers' callbacks for the attacker's keys declare and take."""

    limits_callbacks: bool = True
    """Whether readers keep the default limit of callbacks in a block; the drafts have none."""


def _beat(attacker: Attacker, _block: int) -> Iterator[Publishing]:
    for index, key in enumerate(attacker.keys):
        yield key, attacker.value(index, 0), 0


def _beat_large(attacker: Attacker, _block: int) -> Iterator[Publishing]:
    for index, key in enumerate(attacker.keys):
        yield key, attacker.value(index, 0, POLKADOT.max_value_length), 0


def _come_and_go(attacker: Attacker, block: int) -> Iterator[Publishing]:
    if block % 2 == 0:
        for index, key in enumerate(attacker.keys):
            yield key, attacker.value(index, 0), 1


def _churn(attacker: Attacker, block: int) -> Iterator[Publishing]:
    draw = Random(f"churn {attacker.seed} {block}")  # noqa: S311 - no secret
    for key in sibling_keys(draw, attacker.keys[:CHURNED_TARGETS], len(attacker.keys)):
        yield key, b"", 1


def _exceed_depth(attacker: Attacker) -> Iterator[Publishing]:
    for index, key in enumerate(crafted_keys(attacker.keys[0], attacker.depth_limit)):
        yield key, attacker.value(index, 1, 32), 0


def _fill_paths(attacker: Attacker) -> Iterator[Publishing]:
    """Yield keys that make every node of the targets' paths a full branch, down to the depth that is tolerated.

    Their values differ, so that their hashes do: equal hashes would be compressed.
    """
    for target in attacker.keys[:MAX_DEEP_TARGETS]:
        for depth in range(attacker.depth_limit - 1):
            for change in range(1, 16):
                yield parting_key(target, depth, change), bytes([change]), 0


def _update_deep(attacker: Attacker, block: int) -> Iterator[Publishing]:
    for index, key in enumerate(attacker.keys[:MAX_DEEP_TARGETS]):
        yield key, attacker.value(index, block + 1), 0


def _update(attacker: Attacker, block: int) -> Iterator[Publishing]:
    for index, key in enumerate(attacker.keys):
        yield key, attacker.value(index, block + 1), 0


def _flood(attacker: Attacker, block: int) -> Iterator[Publishing]:
    first = block * PUBLISHES_A_BLOCK % SPAMMED_KEYS
    for index in range(first, first + PUBLISHES_A_BLOCK):
        yield SubscribedKey.from_data(b"spam/%d" % index), attacker.value(index, block), 0


GRIEFERS = (
    Griefer(
        name="spam",
        meaning=f"{SPAMMERS} parachains send all that they may, none of which has readers",
        strike=_flood,
        publishers=SPAMMERS,
        is_read=False,
    ),
    Griefer(
        name="depth",
        meaning="crafted keys make a path deeper than readers tolerate, once",
        prepare=_exceed_depth,
    ),
    Griefer(
        name="deep-paths",
        meaning="new values at the ends of paths that are as deep as readers tolerate, of full branches",
        prepare=_fill_paths,
        strike=_update_deep,
    ),
    Griefer(
        name="churn",
        meaning="keys beside subscribed ones come and go in every block",
        strike=_churn,
    ),
    Griefer(
        name="heartbeat",
        meaning=f"the subscribed keys get the same {VALUE_BYTES} bytes again in every block",
        strike=_beat,
    ),
    Griefer(
        name="large-values",
        meaning=f"the subscribed keys get the same {POLKADOT.max_value_length:,} bytes again in every block",
        strike=_beat_large,
    ),
    Griefer(
        name="deletion",
        meaning="the subscribed keys expire in every second block and come back in the others",
        strike=_come_and_go,
    ),
    Griefer(
        name="callbacks",
        meaning=f"the subscribed keys get new values in every block, of which each callback takes {CALLBACK_MS} ms",
        strike=_update,
        callback_ms=CALLBACK_MS,
        limits_callbacks=False,
    ),
    Griefer(
        name="metered-callbacks",
        meaning="the same, where readers limit the callbacks of a block to 500 ms",
        strike=_update,
        callback_ms=CALLBACK_MS,
    ),
)
"""Every attack that is made of publications; each becomes one line of the table of prices."""
