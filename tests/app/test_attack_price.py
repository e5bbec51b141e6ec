"""Prices of attacks: harm is what a run has beyond one without the attack, fees are what left an account."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from command_line import Command, Refused
from relaycast.attacks import churn, crafted_keys
from relaycast.attacks.price import MEASURED, Bill, Harm, PriceReport, price
from relaycast.attacks.price.bills import BLOCKS_A_DAY, LABELS, priced, registration_fee, renewal_fee
from relaycast.attacks.price.griefers import CALLBACK_MS, GRIEFERS, SPAMMERS, Griefer
from relaycast.attacks.price.ground import FIRST_READER, PriceGround, Terms
from relaycast.attacks.price.table import Measuring, price_griefer
from relaycast.cli.exit_code import ExitCode
from relaycast_collator.relay_chain import BLOCK_AUTHOR
from relaycast_pallets.balances import Balances
from relaycast_pallets.broadcaster.config import POLKADOT, UNITS
from relaycast_pallets.broadcaster.pallet import Broadcaster
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.system import System
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_pallets.transaction_payment import TransactionPayment
from relaycast_pallets.xcm import WeightToFee
from relaycast_trie import StateVersion, StorageProof, build_database
from relaycast_xcm import ParaId, Weight

ALONE, ANOTHER = 100_175_834, 65_809_092
"""Fees of a publication alone in its message, and of each further one, in planck; see the paying publishers."""

BY_BLOCKS = ("depth", "deep-paths", "churn", "heartbeat", "large-values", "deletion")
"""Attacks by one publisher on its readers."""

TERMS = Terms(keys=8, blocks=2)


@pytest.fixture(scope="module")
def report() -> PriceReport:
    return price(TERMS, [*BY_BLOCKS, "squat", "lies"])


def griefer(name: str) -> Griefer:
    return {it.name: it for it in GRIEFERS}[name]


def test_every_attack_of_publications_has_a_line_and_so_have_squatting_and_lies() -> None:
    assert list(MEASURED) == ["spam", *BY_BLOCKS, "callbacks", "metered-callbacks", "squat", "lies"]


@pytest.mark.parametrize("attack", BY_BLOCKS)
def test_free_execution_costs_a_deposit_that_is_held_and_no_fee(report: PriceReport, attack: str) -> None:
    row = report.of(attack)
    assert row.deposit_planck == POLKADOT.publisher_deposit
    assert row.free.day_planck == 0
    assert row.free.once_planck == registration_fee()
    assert row.free_planck_a_byte in (0, None)


@pytest.mark.parametrize(
    ("attack", "publications"), [("churn", 8), ("heartbeat", 8), ("large-values", 8), ("deep-paths", 8)]
)
def test_fees_of_a_day_are_those_of_its_messages(report: PriceReport, attack: str, publications: int) -> None:
    """One paid message holds eight publications: the first pays for the payment, too."""
    row = report.of(attack)
    assert row.free.publications == row.paid.publications == publications * BLOCKS_A_DAY
    assert row.free.messages == row.paid.messages == BLOCKS_A_DAY
    fee = ALONE + (publications - 1) * ANOTHER
    assert row.paid.day_planck == pytest.approx(fee * BLOCKS_A_DAY, abs=publications * BLOCKS_A_DAY)
    assert row.paid_planck_a_byte == round(row.paid.day_planck / row.harm.pov_bytes)  # type: ignore[operator]


def test_a_publisher_pays_by_the_publication_and_not_by_the_byte(report: PriceReport) -> None:
    short, long = report.of("heartbeat"), report.of("large-values")
    assert long.paid.day_planck == short.paid.day_planck
    assert long.free.message_bytes > 30 * short.free.message_bytes
    assert long.paid_planck_a_byte < short.paid_planck_a_byte / 4  # type: ignore[operator]


def test_harm_is_what_each_attack_is_for(report: PriceReport) -> None:
    harms = {row.attack: row.harm for row in report.rows}
    assert (harms["heartbeat"].callbacks, harms["large-values"].callbacks) == (8, 8)
    assert harms["deletion"].callbacks == 4, "keys come back in every second block"
    assert harms["churn"].callbacks == 0, "no subscribed value changes"
    assert harms["depth"].disabled == (2_001,)
    assert all(not harm.disabled for attack, harm in harms.items() if attack != "depth")
    for attack in ("deep-paths", "churn", "heartbeat", "large-values", "deletion"):
        harm = harms[attack]
        assert harm.own_bytes > 0  # type: ignore[operator]
        between_nodes = harm.pov_bytes - harm.relay_bytes - harm.own_bytes  # type: ignore[operator]
        assert 0 <= between_nodes < 0.05 * harm.pov_bytes  # type: ignore[operator]
    assert harms["large-values"].relay_bytes > 8 * 2_000  # type: ignore[operator]
    assert harms["squat"].missing_values > 0
    assert harms["lies"].delay_blocks == 1
    assert all(not (harm.missed_callbacks or harm.incomplete_blocks) for harm in map(harms.get, BY_BLOCKS) if harm)


def test_a_deep_path_is_cheapest_and_within_what_readers_tolerate(report: PriceReport) -> None:
    row = report.of("deep-paths")
    assert row.harm.disabled == ()
    assert row.harm.pov_bytes > 5 * report.of("heartbeat").harm.pov_bytes  # type: ignore[operator]
    prices = {it.attack: it.paid_planck_a_byte for it in report.rows if it.paid_planck_a_byte is not None}
    assert min(prices, key=prices.__getitem__) == "deep-paths"


def test_deep_paths_are_full_branches_down_to_the_limit() -> None:
    """The mutant: keys that part from the target one nibble deeper disable the attacker."""
    limit = SubscriberConfig().max_trie_depth
    (attacker,) = PriceGround(TERMS, griefer("deep-paths")).attackers
    beside = [key for key, _, _ in griefer("deep-paths").prepare(attacker)]
    target = attacker.keys[0]
    db, root = build_database([(key, bytes(9)) for key in {*beside, *attacker.keys}], state_version=StateVersion.V1)
    path = StorageProof.generate(db, root, [target])
    assert len(path) == limit
    assert sum(len(node) > 500 for node in path) == limit - 1
    deeper = {*beside, *attacker.keys, crafted_keys(target, limit)[-1]}
    db, root = build_database([(key, bytes(9)) for key in deeper], state_version=StateVersion.V1)
    assert len(StorageProof.generate(db, root, [target])) == limit + 1


def test_every_subscriber_carries_the_same_bytes_for_one_payment() -> None:
    """The mutant: a price divided by the number of readers."""
    one, three = (price(Terms(keys=4, blocks=3, readers=readers), ["heartbeat"]).rows[0] for readers in (1, 3))
    assert three.harm.pov_bytes == one.harm.pov_bytes
    assert (three.free, three.paid, three.deposit_planck) == (one.free, one.paid, one.deposit_planck)
    ground = PriceGround(replace(TERMS, readers=3), griefer("heartbeat"))
    course = ground.course(0)
    carried = [[len(it.deliveries) for it in course.of(FIRST_READER + number)] for number in range(3)]
    assert carried == [[8 + 30] * TERMS.blocks] * 3


def test_an_attacker_that_sends_nothing_harms_nobody_and_pays_nothing() -> None:
    row = price_griefer(Griefer(name="idle", meaning="sends nothing"), Measuring(TERMS))
    assert row.harm == Harm()
    assert (row.free.messages, row.free.day_planck, row.paid.day_planck) == (0, 0, 0)
    assert row.paid_planck_a_byte is None


def test_what_the_attacker_pays_is_what_the_blocks_author_earns() -> None:
    ground = PriceGround(TERMS, griefer("heartbeat"), pays=True)
    relay_chain = ground.network.relay_chain
    course = ground.course(0)
    assert course.struck.publications == 8 * TERMS.blocks
    assert course.struck.fees_planck == relay_chain.balances.free(BLOCK_AUTHOR) > 0
    assert course.once.fees_planck == 0


def test_the_price_of_weight_decides_the_fees(monkeypatch: pytest.MonkeyPatch, report: PriceReport) -> None:
    """The mutant: a relay chain that sells its time for nothing."""
    monkeypatch.setattr(WeightToFee, "fee", lambda _prices, _weight: 0)
    row = price(TERMS, ["heartbeat"]).rows[0]
    assert row.paid.day_planck == 0
    assert row.harm == report.of("heartbeat").harm


def test_entries_that_never_expire_are_found_out(monkeypatch: pytest.MonkeyPatch, report: PriceReport) -> None:
    """The mutant: the relay chain expires nothing, so that subscribed keys stay and change in every second block."""

    monkeypatch.setattr(Broadcaster, "on_idle", lambda _pallet, _remaining: Weight.ZERO)
    row = price(TERMS, ["deletion"]).rows[0]
    assert row.harm.pov_bytes < 0.9 * report.of("deletion").harm.pov_bytes  # type: ignore[operator]


def test_a_tight_budget_turns_bytes_into_delay() -> None:
    row = price(Terms(keys=32, blocks=6, budget_bytes=12_000), ["large-values"]).rows[0]
    assert row.harm.incomplete_blocks > 0
    assert row.harm.missed_callbacks > 0


def test_readers_with_a_tight_budget_know_every_value_before_the_attack() -> None:
    """The mutant: an attack that begins while readers still catch up, whose harm is that of a first sight."""
    ground = PriceGround(Terms(keys=256, blocks=2, budget_bytes=5_000))
    ground.course(0)
    assert len(ground.network.parachains[ParaId(FIRST_READER)].kept.values) == 256 + 30


def test_a_flood_fills_the_relay_chain_and_pays_for_every_parachain() -> None:
    row = price(Terms(keys=1, blocks=2), ["spam"]).rows[0]
    assert row.deposit_planck == SPAMMERS * POLKADOT.publisher_deposit == 1_300 * UNITS
    assert row.harm.relay_share > 0.9
    assert row.free.once_planck == SPAMMERS * registration_fee()
    assert row.free.day_planck == 0
    assert row.paid.day_planck / BLOCKS_A_DAY == pytest.approx(3_100 * ANOTHER, rel=0.02)


def test_heavy_callbacks_exceed_a_blocks_time_unless_they_are_limited() -> None:
    keys, milliseconds = 64, 1_000
    rows = price(Terms(keys=keys, blocks=2), ["callbacks", "metered-callbacks"])
    free, metered = rows.of("callbacks").harm, rows.of("metered-callbacks").harm
    assert (free.callbacks, free.oversize_blocks, free.missed_callbacks) == (keys, 2, 0)
    assert free.ref_time_us > keys * CALLBACK_MS * milliseconds > 2_000 * milliseconds
    assert (metered.callbacks, metered.oversize_blocks) == (500 // CALLBACK_MS, 0)
    assert metered.incomplete_blocks == 2
    assert metered.ref_time_us < 500 * milliseconds
    assert rows.of("callbacks").deposit_planck == POLKADOT.publisher_deposit
    assert rows.violations == ()


def test_transactions_are_paid_for_whatever_messages_cost(report: PriceReport) -> None:
    row = report.of("squat")
    assert row.free == row.paid
    assert row.free.day_planck == renewal_fee(10) * BLOCKS_A_DAY // 4
    longer = renewal_fee(11) - renewal_fee(10)
    assert longer == pytest.approx(
        WeightToFee().fee(POLKADOT.weight("deregister_publisher", k=1)) * 205 / 940, rel=0.01
    )
    payment = TransactionPayment(Balances(System(State())))
    assert registration_fee() == payment.fee_details(112, POLKADOT.weight("register_publisher")).total


@pytest.mark.parametrize(
    ("harm", "messages", "a_byte"),
    [
        (Harm(pov_bytes=50.0), 1, 2),
        (Harm(pov_bytes=1.0), 1, 100),
        (Harm(), 1, None),  # blocks stay as they are
        (Harm(pov_bytes=-40.0), 1, None),  # readers get less
        (Harm(pov_bytes=0.9), 1, None),  # less than a byte
        (Harm(pov_bytes=None), 1, None),  # not measured
        (Harm(pov_bytes=50.0), 0, None),  # nothing is sent in a day
    ],
)
def test_a_byte_has_a_price_where_messages_add_bytes(harm: Harm, messages: int, a_byte: int | None) -> None:
    bill = Bill(publications=messages, messages=messages, message_bytes=99, once_planck=7, day_planck=100)
    row = priced("attack", "it attacks", harm, free=bill, paid=bill, deposit_planck=0)
    assert (row.free_planck_a_byte, row.paid_planck_a_byte) == (a_byte, a_byte)


def test_churn_sends_what_the_attack_of_that_name_sends() -> None:
    """Ten targets and 64 keys beside them cost as many messages and bytes a block in both."""
    alone = churn(keys=64, blocks=10)
    course = PriceGround(replace(TERMS, keys=64), griefer("churn")).course(0)
    blocks = alone.blocks - alone.churned_at
    assert course.struck.messages * blocks == alone.sent_messages * TERMS.blocks
    assert course.struck.message_bytes * blocks == alone.sent_bytes * TERMS.blocks


@pytest.mark.slow
def test_the_same_seed_prices_the_same() -> None:
    first, again, other = (price(Terms(keys=2, blocks=2, seed=seed), ["churn"]) for seed in (3, 3, 4))
    assert first == again
    assert first.rows[0].harm != other.rows[0].harm


def test_a_violated_invariant_and_a_lie_that_passes_are_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrackedProof, "ensure_no_unused_nodes", lambda _proof: None)
    report = price(Terms(keys=1, blocks=2), ["lies"])
    assert any(violation.startswith("undetected: add_foreign") for violation in report.violations)


@pytest.mark.parametrize(
    "call",
    [
        lambda: price(Terms(keys=0)),
        lambda: price(Terms(keys=257)),
        lambda: price(Terms(blocks=1)),
        lambda: price(Terms(readers=0)),
        lambda: price(Terms(budget_bytes=0)),
        lambda: price(Terms(), ["spam", "squirt"]),
    ],
)
def test_a_price_that_cannot_be_is_the_callers_slip(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="got"):
        call()


def test_the_table_shows_harm_cost_and_how_both_are_known(relaycast: Command) -> None:
    ended = relaycast("attack", "price", "deep-paths", "heartbeat", "--keys", "4", "--blocks", "2")
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split() for line in ended.out.splitlines() if line.startswith("deep-paths ")]
    assert len(lines) == 3, "what it is, its harm, its cost"
    assert lines[2][1:5] == ["publisher", "57,600", "3", "100"]
    assert all(word in ended.out for word in ("exact", "modelled", "assumed", "left out", "however many there are"))
    shown = relaycast("attack", "price", "heartbeat", "--keys", "4", "--blocks", "2", "--json").json
    assert (shown["schema"], shown["attack"], shown["ok"]) == (2, "price", True)
    assert shown["rows"][0]["deposit_planck"] == 100 * UNITS
    assert set(shown["labels"]) == set(LABELS)
    assert "deposit: exact under" in ended.out
    assert not any(name in ended.out for name in ("deposit_planck", "message_bytes")), "those are names in the JSON"


def test_what_rounds_to_nothing_is_no_harm(relaycast: Command) -> None:
    ended = relaycast("attack", "price", "depth", "--keys", "4", "--blocks", "2")
    assert "-0.0" not in ended.out


def test_a_broken_invariant_makes_the_exit_code_three(monkeypatch: pytest.MonkeyPatch, relaycast: Command) -> None:
    monkeypatch.setattr(TrackedProof, "ensure_no_unused_nodes", lambda _proof: None)
    ended = relaycast("attack", "price", "lies", "--keys", "1", "--blocks", "2")
    assert ended.code == ExitCode.INVARIANT_VIOLATED
    assert "violated: undetected" in ended.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("churrn",), "ATTACK: got 'churrn', expected an attack (did you mean churn?)"),
        (("xyz",), "ATTACK: got 'xyz', expected an attack (known: callbacks, churn, deep-paths,"),
        (("--keys", "257"), "--keys"),
        (("--blocks", "1"), "--blocks"),
        (("--budget", "0"), "--budget"),
    ],
)
def test_what_cannot_be_priced_is_refused(refused: Refused, arguments: tuple[str, ...], says: str) -> None:
    assert says in refused("attack", "price", *arguments)


def test_help_names_every_attack_that_has_a_price(relaycast: Command) -> None:
    shown = relaycast("attack", "price", "--help").out.replace("│", " ")
    assert f"by default all: {', '.join(MEASURED)} " in " ".join(shown.split())
