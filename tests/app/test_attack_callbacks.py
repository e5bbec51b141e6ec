"""Heavy callbacks: what they do to a reader's blocks without a limit, and to other publishers with one."""

from collections.abc import Callable
from typing import Any

import pytest

from command_line import Command, Refused
from relaycast.attacks import CallbackReport, callbacks
from relaycast.attacks.heavy_callbacks import FEWEST_BLOCKS, STRIKE_AT
from relaycast.attacks.message_flood import PUBLISHES_A_BLOCK
from relaycast_pallets.subscriber.proof_pass import CallbackMeter
from relaycast_pallets.subscriber.result import Stop
from relaycast_pallets.subscriber.walk import PublisherWalk

STRUCK = FEWEST_BLOCKS + 4 - STRIKE_AT - 1
"""Blocks of a short run that see the attack."""


@pytest.fixture(scope="module")
def limited() -> CallbackReport:
    return callbacks(blocks=FEWEST_BLOCKS + 4)


@pytest.fixture(scope="module")
def unlimited() -> CallbackReport:
    return callbacks(blocks=FEWEST_BLOCKS + 4, limit_us=0)


def test_without_a_limit_callbacks_take_longer_than_a_block_may(unlimited: CallbackReport) -> None:
    """Each block has 256 callbacks of the attacker's, and at most 21 others."""
    assert unlimited.unlimited.refused_blocks == STRUCK
    assert unlimited.unlimited.ref_time.max > 256 * 10_000_000_000 > unlimited.max_ref_time
    assert unlimited.limited == unlimited.unlimited
    assert not unlimited.contained
    assert not unlimited.harmed


def test_with_a_limit_every_block_fits_and_no_value_is_lost(limited: CallbackReport) -> None:
    assert limited.unlimited.refused_blocks == STRUCK
    assert limited.limited.refused_blocks == 0
    assert limited.limited.waiting_blocks == STRUCK
    assert limited.limited.callbacks == STRUCK * 500_000 // 10_000
    assert limited.limited.ref_time.max < limited.max_ref_time
    assert limited.lost == 0
    assert limited.violations == ()
    assert limited.contained


def test_what_others_publish_waits_with_the_rest(limited: CallbackReport) -> None:
    assert limited.alone.waiting_blocks == 0, "without the attack there is time for all"
    for it in limited.bystanders[:2]:
        assert it.attacked.conflated > it.alone.conflated == 0
        assert it.attacked.callbacks < it.alone.callbacks
    slow = limited.bystanders[2]
    assert slow.alone.latency_blocks.max == 2
    assert slow.attacked.latency_blocks.later_than(slow.alone.latency_blocks)
    assert limited.harmed


def test_light_callbacks_harm_nobody() -> None:
    report = callbacks(blocks=FEWEST_BLOCKS, callback_us=100)
    assert report.contained
    assert not report.harmed
    assert report.unlimited == report.limited


def test_a_subscriber_that_skips_what_does_not_fit_loses_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a key whose callback does not fit counts as dealt with."""
    compare = PublisherWalk._compare

    def skip(*given: Any) -> None:
        try:
            compare(*given)
        except Stop:
            return

    monkeypatch.setattr(PublisherWalk, "_compare", skip)
    report = callbacks(blocks=FEWEST_BLOCKS)
    assert report.lost > 0
    assert not report.contained


def test_a_meter_that_counts_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallbackMeter, "consume", lambda _self, _weight: None)
    assert callbacks(blocks=FEWEST_BLOCKS).limited.refused_blocks > 0


@pytest.mark.slow
def test_the_same_seed_attacks_the_same() -> None:
    first = callbacks(keys=8, blocks=FEWEST_BLOCKS, seed=3)
    assert first == callbacks(keys=8, blocks=FEWEST_BLOCKS, seed=3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: callbacks(keys=0),
        lambda: callbacks(keys=PUBLISHES_A_BLOCK + 1),
        lambda: callbacks(blocks=FEWEST_BLOCKS - 1),
        lambda: callbacks(callback_us=0),
        lambda: callbacks(limit_us=-1),
        lambda: callbacks(callback_us=20, limit_us=10),  # no block has time for one
    ],
)
def test_an_attack_that_cannot_be_is_the_callers_slip(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="got"):
        call()


def test_the_verdict_depends_on_the_limit(relaycast: Command) -> None:
    few = ("attack", "callbacks", "--blocks", str(FEWEST_BLOCKS))
    ended = relaycast(*few)
    assert (ended.code, ended.err) == (0, "")
    assert "every block fits its 2 seconds; values of others wait" in ended.out
    assert "the reader's 3 blocks that see the attack; what follows counts the whole run" in ended.out
    drafts = relaycast(*few, "--limit-us", "0")
    assert (drafts.code, drafts.err) == (1, "")
    assert "3 blocks exceed 2 seconds" in drafts.out
    shown = relaycast(*few, "--keys", "4", "--json").json
    assert (shown["attack"], shown["ok"], shown["harmed"]) == ("callbacks", True, False)


def test_what_the_whole_run_counts_beyond_the_blocks_that_see_the_attack_came_before(relaycast: Command) -> None:
    shown = relaycast("attack", "callbacks", "--blocks", str(FEWEST_BLOCKS), "--json").json
    alone = sum(it["alone"]["callbacks"] for it in shown["bystanders"])
    limited = sum(it["attacked"]["callbacks"] for it in shown["bystanders"]) + shown["target_limited"]["callbacks"]
    assert alone - shown["alone"]["callbacks"] == limited - shown["limited"]["callbacks"] > 0


@pytest.mark.parametrize(
    ("option", "value"), [("--keys", "257"), ("--blocks", "9"), ("--callback-us", "0"), ("--limit-us", "9999")]
)
def test_numbers_out_of_range_are_refused(refused: Refused, option: str, value: str) -> None:
    assert option in refused("attack", "callbacks", option, value)
