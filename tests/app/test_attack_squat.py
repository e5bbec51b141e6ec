"""Squatting: who can have the id of others, what their readers lose, and which policy protects them."""

from collections.abc import Callable

import pytest

from command_line import Command, Refused
from relaycast.attacks import SquatReport, SquatRow, squat
from relaycast.attacks.squatted_ids import LATE, PROMPT, SLOW
from relaycast_pallets.broadcaster.config import POLKADOT, PublicParachains
from relaycast_pallets.broadcaster.pallet import Broadcaster


@pytest.fixture(scope="module")
def report() -> SquatReport:
    return squat()


def row_of(report: SquatReport, para_id: int, registration: str, *, owner_first: bool = False) -> SquatRow:
    (row,) = (
        row
        for row in report.rows
        if (row.para_id, row.registration, row.owner_first) == (para_id, registration, owner_first)
    )
    return row


@pytest.mark.parametrize(
    ("para_id", "registration", "owner_refused"), [(2_000, "public", {"AlreadyRegistered": 6}), (1_000, "open", {})]
)
def test_whoever_registers_an_id_of_others_removes_their_values(
    report: SquatReport, para_id: int, registration: str, owner_refused: dict[str, int]
) -> None:
    row = row_of(report, para_id, registration)
    assert (row.attacker_registered, row.attacker_refused) == (6, {}), "in block 1 and in every fourth after it"
    assert (row.owner_registered, row.owner_refused) == (0, owner_refused)
    assert row.removed_values == 3 + 4 * 4, "one value a block; nothing can be published before block 2"
    assert row.missing_values > row.removed_values, "a key has no value until it is published again"
    assert row.harmed
    assert report.violations == ()


@pytest.mark.parametrize(("para_id", "registration"), [(2_000, "public"), (1_000, "open")])
def test_readers_that_look_late_lose_what_was_removed(report: SquatReport, para_id: int, registration: str) -> None:
    readers = {it.subscriber: it for it in row_of(report, para_id, registration).bystanders}
    assert not readers[PROMPT].harmed, "a reader of every relay block sees each value before it is removed"
    for reader in (SLOW, LATE):
        assert readers[reader].harmed
        assert readers[reader].attacked.callbacks < readers[reader].alone.callbacks


def test_the_deposit_is_held_all_the_time_and_lost_never(report: SquatReport) -> None:
    row = row_of(report, 2_000, "public")
    assert (row.deposit_planck, row.deposit_blocks) == (POLKADOT.publisher_deposit, report.blocks)
    assert row.spent_planck == 0


@pytest.mark.parametrize(
    ("para_id", "owner_first", "refused", "owner_registered"),
    [(2_000, True, {"AlreadyRegistered": 6}, 1), (1_000, False, {"NotPublicParachain": 6}, 0)],
)
def test_a_refused_squatter_harms_nobody(
    report: SquatReport, para_id: int, owner_first: bool, refused: dict[str, int], owner_registered: int
) -> None:
    row = row_of(report, para_id, "public", owner_first=owner_first)
    assert (row.attacker_registered, row.attacker_refused) == (0, refused)
    assert (row.owner_registered, row.owner_refused) == (owner_registered, {})
    assert (row.removed_values, row.missing_values, row.deposit_planck, row.spent_planck) == (0, 0, 0, 0)
    assert all(it.alone == it.attacked and it.alone.callbacks > 0 for it in row.bystanders)
    assert not row.harmed


def test_a_policy_that_admits_system_parachains_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: registration "public" admits any id."""
    monkeypatch.setattr(PublicParachains, "admits", lambda _policy, _para_id: True)
    row = row_of(squat(blocks=8), 1_000, "public")
    assert row.attacker_registered == 2
    assert row.removed_values == 3
    assert row.harmed


def test_nothing_but_the_removal_harms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: ``deregister_publisher`` leaves the entries where they are."""
    monkeypatch.setattr(Broadcaster, "_clear", lambda _pallet, _para_id: 0)
    row = row_of(squat(blocks=8), 2_000, "public")
    assert row.missing_values == 0
    assert all(it.alone == it.attacked for it in row.bystanders)


def test_a_squatter_that_never_removes_anything_harms_nobody() -> None:
    report = squat(every=8, blocks=8)
    assert [row.attacker_registered for row in report.rows] == [1, 0, 0, 1]
    assert not report.harmed


@pytest.mark.slow
def test_the_same_seed_squats_the_same() -> None:
    assert squat(blocks=8, seed=3) == squat(blocks=8, seed=3)


@pytest.mark.parametrize("call", [lambda: squat(every=0), lambda: squat(blocks=7)])
def test_a_squat_that_cannot_be_is_the_callers_slip(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="got"):
        call()


def test_a_squat_that_harms_others_makes_the_exit_code_one(attacked_once: None, relaycast: Command) -> None:
    ended = relaycast("attack", "squat", "--blocks", "8")
    assert (ended.code, ended.err) == (1, "")
    assert "others were harmed" in ended.out
    assert "not public parachain 2x" in ended.out
    assert "Transaction fees are apart: relaycast attack price squat." in ended.out
    shown = relaycast("attack", "squat", "--blocks", "8", "--json").json
    assert (shown["schema"], shown["attack"], shown["ok"]) == (2, "squat", False)
    assert shown["harmed"] == [True, False, False, True]


def test_a_squat_that_removes_nothing_ends_well(relaycast: Command) -> None:
    ended = relaycast("attack", "squat", "--every", "8", "--blocks", "8")
    assert (ended.code, ended.err) == (0, "")
    assert "nobody else was harmed" in ended.out


@pytest.mark.parametrize(("option", "value"), [("--every", "0"), ("--blocks", "7")])
def test_numbers_out_of_range_are_refused(refused: Refused, option: str, value: str) -> None:
    assert option in refused("attack", "squat", option, value)
