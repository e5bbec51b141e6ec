"""The event log: every event of every block once, however many blocks a parachain builds in one relay block."""

import io
import json
from collections import Counter
from typing import Any

import pytest

from collator.hand_made_parachain import PANIC, HandMadeParachain
from collator.networks import PUBLISHER, SUBSCRIBER, keys, network, publish, values
from ledger.watched import Watched
from relaycast_collator import BlockBuilt, BlockPanicked, Fact, Pace, RelaySealed
from relaycast_ledger import BlockRecord
from relaycast_ledger.event_lines import NAMES, EventLines, lines
from relaycast_pallets import PUBLISHER_DEPOSIT, Event
from relaycast_pallets.balances import BurnedHeld, Deposit, Transfer

PACES = [
    Pace(),
    Pace(cores=2),  # two blocks of one tick: the second must not hide the events of the first
    Pace(cores=3, relay_blocks=2, relay_parent_offset=3),
]


class Heard:
    """A run with everything that was told in it: facts, lines of the log, records."""

    def __init__(self, net: Watched, *, ticks: int, late: int = 0) -> None:
        stream = io.BytesIO()
        self.facts: list[Fact] = []
        self.records: list[BlockRecord] = []
        net.listeners += [EventLines(stream).on_fact, self.facts.append]
        for tick in range(ticks):
            if tick == late:
                net.subscribe(SUBSCRIBER, PUBLISHER, keys(4))
            publish(net, PUBLISHER, values(4, version=tick))
            self.records += net.recorded_step()
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("pace", PACES, ids=str)
@pytest.mark.parametrize("late", [0, 5], ids=["from the start", "late"])
def test_events_callbacks_and_deliveries_are_the_same_ones(pace: Pace, late: int) -> None:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, pace=pace)
    heard = Heard(net, ticks=16, late=late)

    updates = Counter(
        (fact.tick, int(publisher), key.hex())
        for fact in heard.facts
        if isinstance(fact, BlockBuilt)
        for publisher, key, _ in fact.block.updates
    )
    delivered = Counter(
        (record.tick, int(it.publisher), it.key.hex()) for record in heard.records for it in record.deliveries
    )
    processed = Counter(
        (line["block"], line["data"]["publisher"], line["data"]["key"].removeprefix("0x"))
        for line in heard.lines
        if line["event"] == "DataProcessed"
    )
    assert updates == delivered == processed
    assert len(updates) >= 16


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_every_event_of_every_block_is_a_line(pace: Pace) -> None:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, pace=pace)
    heard = Heard(net, ticks=10)
    events = [
        type(event).__name__
        for fact in heard.facts
        if isinstance(fact, BlockBuilt | RelaySealed)
        for event in fact.block.events
    ]
    assert [line["event"] for line in heard.lines] == events


def test_a_block_that_panics_is_a_line_with_its_reason() -> None:
    net = network()
    net.collators[SUBSCRIBER].tamper = lambda inherent: type(inherent)(inherent.validation_data, ())
    heard = Heard(net, ticks=3)
    reasons = [fact.reason for fact in heard.facts if isinstance(fact, BlockPanicked)]
    lines = [line for line in heard.lines if line["event"] == "BlockPanicked"]
    assert [line["data"]["reason"] for line in lines] == reasons
    assert len(reasons) == 3
    assert {(line["pallet"], line["chain"]) for line in lines} == {("Collator", int(SUBSCRIBER))}


def test_a_wasm_block_that_is_refused_keeps_its_name_in_the_log() -> None:
    net = Watched(seed=7)
    net.add_wasm_parachain(parachain := HandMadeParachain(2_500))
    parachain.submit(PANIC + b"divided by zero")
    stream = io.BytesIO()
    net.listeners.append(EventLines(stream).on_fact)
    net.step()
    *_, line = map(json.loads, stream.getvalue().splitlines())
    assert (line["pallet"], line["event"], line["chain"]) == ("Collator", "GuestRefusedBlock", 2_500)
    assert line["data"] == {"reason": "divided by zero", "log": ["runtime: about to panic"]}


def test_the_log_keeps_its_own_names_for_balances() -> None:
    account = b"\x01" * 32
    events = (Transfer(account, account, 5), Deposit(account, 6), BurnedHeld(PUBLISHER_DEPOSIT, account, 7))
    told = [(line["pallet"], line["event"], line["data"]) for line in lines(events, block=1, chain="relay")]
    shown = f"0x{account.hex()}"
    assert told == [
        ("Balances", "Transferred", {"source": shown, "destination": shown, "amount": 5}),
        ("Balances", "Deposited", {"account": shown, "amount": 6}),
        ("Balances", "Slashed", {"reason": "Broadcaster::PublisherDeposit", "account": shown, "amount": 7}),
    ]


@pytest.mark.parametrize("kind", NAMES)
def test_every_field_of_a_renamed_event_has_a_name(kind: type[Event]) -> None:
    assert len(kind.__struct_fields__) == len(NAMES[kind][1])


def test_a_part_of_a_log_has_no_first_line_of_its_own() -> None:
    whole, part = io.BytesIO(), io.BytesIO()
    EventLines(whole, "0123")
    EventLines(part)
    assert json.loads(whole.getvalue()) == {"schema": 2, "run_id": "0123"}
    assert part.getvalue() == b""
