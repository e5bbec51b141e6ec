"""Churn: what moving nodes costs readers, whom it harms under a tight budget, and that it is no update."""

from collections.abc import Callable

import pytest

from command_line import Command, Refused
from relaycast.attacks import ChurnReport, churn
from relaycast.attacks.churned_paths import CHURN_AT, TARGETS
from relaycast.attacks.message_flood import PUBLISHES_A_BLOCK
from relaycast_pallets.subscriber import walk
from relaycast_pallets.subscriber.proof_pass import PublisherPass
from relaycast_pallets.subscriber.subscription import SubscribedKey


@pytest.fixture(scope="module")
def ample() -> ChurnReport:
    return churn(blocks=12)


@pytest.fixture(scope="module")
def tight() -> ChurnReport:
    return churn(blocks=12, budget_bytes=10_000)


def test_churn_grows_proofs_and_own_state_without_a_callback(ample: ChurnReport) -> None:
    """The mutant: keys put in far from the subscribed ones, where they change no more than the trie's root."""
    assert ample.target_attacked == ample.target_alone
    assert ample.target_attacked.callbacks == len(TARGETS)
    assert ample.carried_attacked.proof_bytes.p50 > 1.4 * ample.carried_alone.proof_bytes.p50
    assert ample.own_attacked.p50 > 1.8 * ample.own_alone.p50
    assert ample.violations == ()


def test_with_an_ample_budget_churn_harms_nobody_else(ample: ChurnReport) -> None:
    assert ample.carried_attacked.incomplete_blocks == 0
    assert all(it.alone == it.attacked and it.alone.callbacks == 100 for it in ample.bystanders)
    assert not ample.harmed


def test_with_a_tight_budget_others_get_less(tight: ChurnReport) -> None:
    assert tight.carried_alone.incomplete_blocks == 0, "without churn the budget is enough"
    assert tight.carried_attacked.incomplete_blocks > 0
    for it in tight.bystanders:
        assert it.attacked.callbacks < it.alone.callbacks
        assert it.attacked.conflated > it.alone.conflated == 0
    assert tight.harmed


@pytest.mark.parametrize("budget_bytes", [3_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_churn_loses_no_value(budget_bytes: int) -> None:
    report = churn(blocks=10, budget_bytes=budget_bytes)
    assert (report.lost_alone, report.lost_attacked) == (0, 0)
    assert report.target_attacked.callbacks == len(TARGETS)
    assert report.violations == ()


def test_a_subscriber_that_takes_an_interrupted_pass_for_a_whole_one_loses_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant: keys that a pass did not reach count as dealt with against the new root."""

    def all_processed(self: PublisherPass) -> dict[SubscribedKey, bytes | None]:
        return dict.fromkeys(self._view.subscribed.keys, self.found.root)

    monkeypatch.setattr(PublisherPass, "_processed_roots", all_processed)
    report = churn(blocks=10, budget_bytes=3_000)
    assert report.lost_attacked > 0
    assert report.violations


def test_a_walk_that_hands_on_all_that_it_meets_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a value counts as new because the leaf around it is."""
    monkeypatch.setattr(walk, "is_same", lambda _new, _old: False)
    report = churn(blocks=10)
    assert report.target_attacked.callbacks > report.target_alone.callbacks
    assert report.violations


def test_more_keys_cost_the_attacker_and_the_reader_more(ample: ChurnReport) -> None:
    most = churn(keys=PUBLISHES_A_BLOCK, blocks=12)
    churned_blocks = most.blocks - CHURN_AT
    assert ample.sent_messages == 4 * churned_blocks
    assert most.sent_messages == 16 * churned_blocks
    assert most.sent_bytes == 4 * ample.sent_bytes
    assert most.carried_attacked.proof_bytes.p50 > ample.carried_attacked.proof_bytes.p50
    assert most.target_attacked.callbacks == len(TARGETS)


@pytest.mark.slow
def test_the_same_seed_churns_the_same() -> None:
    churned = churn(keys=2, blocks=10, seed=3)
    assert churned == churn(keys=2, blocks=10, seed=3)
    assert churned != churn(keys=2, blocks=10, seed=4)


@pytest.mark.parametrize(
    "call", [lambda: churn(keys=0), lambda: churn(keys=257), lambda: churn(blocks=9), lambda: churn(budget_bytes=0)]
)
def test_a_churn_that_cannot_be_is_the_callers_slip(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="got"):
        call()


def test_a_churn_within_the_budget_ends_well(attacked_once: None, relaycast: Command) -> None:
    ended = relaycast("attack", "churn", "--keys", "16", "--blocks", "10")
    assert (ended.code, ended.err) == (0, "")
    assert "nobody else was harmed" in ended.out
    shown = relaycast("attack", "churn", "--keys", "16", "--blocks", "10", "--json").json
    assert (shown["schema"], shown["attack"], shown["ok"], shown["harmed"]) == (2, "churn", True, False)


def test_a_churn_that_harms_others_makes_the_exit_code_one(relaycast: Command) -> None:
    ended = relaycast("attack", "churn", "--blocks", "10", "--budget", "10000")
    assert (ended.code, ended.err) == (1, "")
    assert "a budget of 10,000 bytes" in ended.out
    assert "others were harmed" in ended.out


@pytest.mark.parametrize(("option", "value"), [("--keys", "257"), ("--blocks", "9"), ("--budget", "0")])
def test_numbers_out_of_range_are_refused(refused: Refused, option: str, value: str) -> None:
    assert option in refused("attack", "churn", option, value)
