"""Publishers that pay: accounts and paid publications in ``rc.Network`` and in scenarios."""

import json
from pathlib import Path
from typing import Any

import pytest

import relaycast as rc
from command_line import Command, Refused, Written
from relaycast.account import FEES, dot
from relaycast.network import Publisher

ONE_DOT = 10_000_000_000
ALONE, ANOTHER = 100_175_834, 65_809_092
"""What a publication costs that is alone in its message, and each further one, in planck.

974,220,000 and 640,000,000 picoseconds at 0.102826706 planck: the payment weighs 334,220,000 of them.
"""


def publisher(net: rc.Network, *, funds: int = ONE_DOT) -> Publisher:
    found = net.publisher(2_000)
    found.account.fund(funds)
    net.run(blocks=1)
    return found


def test_a_paid_publication_costs_its_weight_and_what_is_left_returns() -> None:
    net = rc.Network(seed=7)
    oracle = publisher(net)
    price = oracle.publish_paid("price/dot", b"5.31")
    exchange = net.subscriber(3_000, keys=[price])
    run = net.run(blocks=3)
    assert exchange[price] == b"5.31"
    assert (run.delivery.p99_blocks, run.invariants.ok) == (2, True)
    assert oracle.account.balance == ONE_DOT - ALONE


def test_publications_in_a_row_share_a_message_and_its_costs() -> None:
    net = rc.Network(seed=7)
    oracle = publisher(net)
    feeds = [oracle.publish_paid(f"price/{index}", b"5.31", ttl=20) for index in range(40)]
    exchange = net.subscriber(3_000, keys=feeds)
    run = net.run(blocks=3)
    assert (len(exchange), run.delivery.max_blocks) == (40, 2)
    assert ONE_DOT - oracle.account.balance == pytest.approx(ALONE + 39 * ANOTHER, abs=39)


def test_who_has_no_funds_publishes_nothing_unless_it_is_free() -> None:
    net = rc.Network(seed=7)
    oracle = net.publisher(2_000)
    paid, free = oracle.publish_paid("paid", b"1"), oracle.publish("free", b"2")
    exchange = net.subscriber(3_000, keys=[paid, free])
    run = net.run(blocks=3)
    assert (paid in exchange, free in exchange, run.invariants.ok) == (False, True, True)
    assert oracle.account.balance == 0


def test_of_a_message_that_fails_what_came_before_counts_as_published() -> None:
    """The first instructions of a paid message are its payment: the index of the failure counts them."""
    net = rc.Network(seed=7)
    oracle = publisher(net)
    storage = net.chains.relay_chain.broadcaster.storage
    config = net.chains.relay_chain.broadcaster.config
    storage.total_storage_size.insert(oracle._chain.para_id, config.max_total_storage_size - 33)
    feeds = [oracle.publish_paid(name, b"1") for name in ("first", "second", "third")]
    exchange = net.subscriber(3_000, keys=feeds)
    run = net.run(blocks=3)
    assert list(exchange) == feeds[:1]
    assert (run.delivery.callbacks, run.delivery.max_blocks, run.invariants.ok) == (1, 2, True)


def test_an_account_tells_what_it_has() -> None:
    net = rc.Network(seed=7)
    account = publisher(net, funds=12_345_678_901).account
    assert account.id == b"para" + (2_000).to_bytes(4, "little") + bytes(24)
    assert repr(account) == "<Account of 2000, 1.2345678901 DOT>"
    assert [dot(amount) for amount in (0, 1, ONE_DOT, 1_200 * ONE_DOT)] == [
        "0 DOT",
        "0.0000000001 DOT",
        "1 DOT",
        "1,200 DOT",
    ]


@pytest.mark.parametrize("amount", [0, -1, 2**64])
def test_an_amount_that_is_none_is_refused_at_once(amount: int) -> None:
    oracle = rc.Network().publisher(2_000)
    with pytest.raises(ValueError, match="must be from 1 to"):
        oracle.account.fund(amount)
    with pytest.raises(ValueError, match="fees must be from 1 to"):
        oracle.publish_paid("price", b"", fees=amount)
    assert repr(oracle) == "<Publisher 2000, 0 values waiting>"


@pytest.mark.parametrize("amount", [1.5, True, "10", None])
def test_what_is_no_number_is_refused_at_once(amount: Any) -> None:
    oracle = rc.Network().publisher(2_000)
    with pytest.raises(TypeError, match="whole number of planck"):
        oracle.account.fund(amount)
    with pytest.raises(TypeError, match="whole number of planck"):
        oracle.publish_paid("price", b"", fees=amount)


def test_the_fee_is_enough_unless_said_otherwise() -> None:
    assert ALONE < FEES < 2 * ALONE


SCENARIO = """
extends = "polkadot-2026"
blocks = 6
[[parachains]]
id = 2000
publish = {{ keys = 10{payment} }}
[[parachains]]
id = 3000
subscribe = [{{ publisher = 2000 }}]
"""


def events_of(folder: Path) -> list[str]:
    (log,) = folder.rglob("events.jsonl")
    lines = map(json.loads, log.read_text().splitlines()[1:])
    return [f"{line['pallet']}.{line['event']}" for line in lines if line["chain"] == "relay" and line["block"] > 1]


def test_a_scenario_pays_and_its_log_tells_where_the_fees_went(
    relaycast: Command, file: Written, tmp_path: Path
) -> None:
    paid = SCENARIO.format(payment=", payment = { balance = 100_000_000_000 }")
    told = relaycast("run", file(paid, "paid.toml"), "--json", "--out", "paid").json
    free = relaycast("run", file(SCENARIO.format(payment=""), "free.toml"), "--json", "--out", "free").json
    for run in (told, free):
        assert (run["publishers"][0]["published"], run["invariants"]["ok"]) == (50, True)
        assert run["subscribers"][0]["latency_blocks"]["p99"] == 2
    assert told["publishers"][0]["spent_planck"] == 5 * (ALONE + 9 * ANOTHER - 2)
    assert "spent_planck" not in free["publishers"][0]
    assert told["relaychain"]["state_root"] != free["relaychain"]["state_root"], "accounts are part of the state"
    message = ["Balances.Burned", *["Broadcaster.DataPublished"] * 10]
    message += ["Balances.Minted", "Balances.Issued", "Balances.Deposited", "MessageQueue.MessageProcessed"]
    assert events_of(tmp_path / "paid") == message * 5
    (echo,) = (tmp_path / "free").rglob("run.json")
    assert "payment" not in echo.read_text(), "what a scenario does not say does not change its run id"
    assert set(events_of(tmp_path / "free")) == {"Broadcaster.DataPublished", "MessageQueue.MessageProcessed"}


def test_a_publisher_whose_account_is_empty_publishes_no_more(relaycast: Command, file: Written) -> None:
    paid = SCENARIO.format(payment=", payment = { balance = 2_200_000_000 }")
    told = relaycast("run", file(paid, "paid.toml"), "--json").json
    assert (told["publishers"][0]["published"], told["publishers"][0]["refused_messages"]) == (10, 4)
    assert told["invariants"]["ok"]


def test_a_run_that_pays_says_what_a_value_cost(relaycast: Command, file: Written) -> None:
    paid = SCENARIO.format(payment=", payment = { balance = 100_000_000_000 }")
    told = relaycast("run", file(paid, "paid.toml")).out
    assert "1 parachain spent 0.3462 DOT on fees for 50 published values, 0.0069 DOT a value, trapped" in " ".join(
        told.split()
    )


@pytest.mark.parametrize(
    ("payment", "line"),
    [
        ("{ balance = 5 }", "publish.payment.balance: got 5, expected at least what one publication may cost, fees"),
        ("{ balance = 0 }", "publish.payment.balance: got 0, expected a whole number >= 1"),
        ("{ balance = 5, fees = 0 }", "publish.payment.fees: got 0, expected a whole number >= 1"),
        ("{ fees = 5 }", "publish.payment: got no balance, expected balance = ..."),
        ("{ balance = 5, fee = 5 }", "publish.payment: got the name 'fee', expected a known name (did you mean fees?)"),
        ("true", "publish.payment: got true, expected a table"),
    ],
)
def test_a_payment_that_is_none_is_refused_with_its_place(
    refused: Refused, file: Written, payment: str, line: str
) -> None:
    text = SCENARIO.format(payment=f", payment = {payment}")
    assert refused("run", file(text, "s.toml")).startswith(f"s.toml at parachains[0].{line}")
