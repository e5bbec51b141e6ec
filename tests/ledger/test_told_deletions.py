"""Deletions told from end to end: from expiry, calls and off-boarding to events, records and rows."""

import io
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from collator.networks import OTHER_PUBLISHER, PUBLISHER, SUBSCRIBER, kept, key, keys, network, publish, run, values
from ledger.watched import Watched
from relaycast_collator import Pace
from relaycast_collator.upgrades import ParachainUpgrade
from relaycast_ledger import Accounts, BlockRecord, KeyEnding
from relaycast_ledger.event_lines import EventLines
from relaycast_ledger.run_part import PartInTheMaking, RunPart
from relaycast_ledger.run_statistics import RunStatistics
from relaycast_ledger.run_tables import RunTables, TableRows
from relaycast_pallets import DataDeleted, Origin, Policies, SubscriberConfig
from relaycast_pallets.subscriber.policies import IgnoreDeletions
from relaycast_pallets.subscriber.proof_pass import PublisherPass
from relaycast_pallets.subscriber.subscription import Subscriptions
from relaycast_pallets.subscriber.variants.deletions import NotifyDeletions
from relaycast_xcm import Weight
from relaycast_xcm.checkpoint import decoded, encoded

PACES = [Pace(), Pace(cores=2), Pace(cores=3, relay_blocks=2, relay_parent_offset=3)]


class TakenBack(Exception):
    """Ends a transaction."""


def told_network(*, pace: Pace | None = None, ttl: int = 0, policies: Policies | None = None) -> Watched:
    """Return a network whose subscriber has the values of two publishers and is told of deletions."""
    net = network(publishers=(PUBLISHER, OTHER_PUBLISHER), subscribers=())
    net.ledger.accounts = Accounts.BY_KEY
    net.add_parachain(SUBSCRIBER, policies=policies or Policies(deletion=NotifyDeletions()), pace=pace)
    for publisher in (PUBLISHER, OTHER_PUBLISHER):
        net.subscribe(SUBSCRIBER, publisher, keys(6))
    publish(net, PUBLISHER, values(6), ttl=ttl)
    publish(net, OTHER_PUBLISHER, values(6, version=1))
    return net


def deleted(records: list[BlockRecord]) -> list[tuple[int, bytes]]:
    return [(int(it.publisher), it.key) for record in records for it in record.deletions]


def delete_some(net: Watched) -> int:
    broadcaster = net.relay_chain.broadcaster
    net.call(lambda: broadcaster.delete_keys(Origin.parachain(PUBLISHER), [key(2), key(4)]), declared=Weight.ZERO)
    return 2


def deregister(net: Watched) -> int:
    net.deregister_publisher(PUBLISHER)
    return 6


def offboard(net: Watched) -> int:
    net.offboard(PUBLISHER)
    return 6


@pytest.mark.parametrize("pace", PACES, ids=str)
@pytest.mark.parametrize("happens", [delete_some, deregister, offboard])
def test_what_goes_by_a_call_is_told_once(happens: Callable[[Watched], int], pace: Pace) -> None:
    net = told_network(pace=pace)
    run(net, 12)
    assert len(kept(net, SUBSCRIBER)) == 6
    gone = happens(net)
    told = deleted(run(net, 14))
    assert len(told) == len(set(told)) == gone
    assert {publisher for publisher, _ in told} == {PUBLISHER}
    assert len(kept(net, SUBSCRIBER)) == 6 - gone
    assert len(kept(net, SUBSCRIBER, OTHER_PUBLISHER)) == 6
    assert net.invariants.ok, net.invariants.violations


@pytest.mark.parametrize("pace", PACES, ids=str)
def test_what_expires_is_told_once_and_anew_when_it_was_published_again(pace: Pace) -> None:
    net = told_network(pace=pace, ttl=9)
    first = deleted(run(net, 26))
    assert sorted(first) == sorted((PUBLISHER, name) for name in keys(6))
    publish(net, PUBLISHER, values(2, version=3), ttl=9)
    second = deleted(run(net, 26))
    assert sorted(second) == sorted((PUBLISHER, name) for name in keys(2))
    assert not kept(net, SUBSCRIBER)
    assert net.invariants.ok, net.invariants.violations


def test_a_silent_subscriber_keeps_what_is_gone() -> None:
    net = told_network(policies=Policies(deletion=IgnoreDeletions()))
    run(net, 8)
    deregister(net)
    assert not deleted(run(net, 8))
    assert len(kept(net, SUBSCRIBER)) == 6


def test_an_upgrade_tells_of_deletions_from_then_on_until_another_ceases_to() -> None:
    net = told_network(policies=Policies(deletion=IgnoreDeletions()))
    run(net, 8)
    told, silent = (Policies(deletion=policy) for policy in (NotifyDeletions(), IgnoreDeletions()))
    now = net.relay_chain.head.number
    upgrades = [ParachainUpgrade(at=now + 2, policies=told), ParachainUpgrade(at=now + 12, policies=silent)]
    net.upgrades.schedule(parachains={SUBSCRIBER: upgrades})
    run(net, 4)
    delete_some(net)
    assert sorted(deleted(run(net, 5))) == sorted((PUBLISHER, bytes(name)) for name in (key(2), key(4)))
    run(net, 6)
    storage = net.parachains[SUBSCRIBER].subscriber.storage
    assert not list(storage.delivered_keys.items())
    deregister(net)
    assert not deleted(run(net, 6))
    assert net.invariants.ok, net.invariants.violations


def test_an_upgrade_that_tells_a_handler_that_does_not_hear_is_refused() -> None:
    class Deaf:
        def subscriptions(self) -> tuple[Subscriptions, Weight]:
            return [], Weight.ZERO

        def on_data_updated(self, *_: object) -> Weight:
            raise AssertionError("never called")

    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, handler=Deaf())
    told = ParachainUpgrade(at=5, policies=Policies(deletion=NotifyDeletions()))
    with pytest.raises(ValueError, match=r"^deletions are told to handlers with on_data_deleted, got Deaf$"):
        net.upgrades.schedule(parachains={SUBSCRIBER: [told]})
    assert not net.parachains[SUBSCRIBER].upgrades.scheduled


def test_deletions_weigh_what_was_declared_and_wait_for_the_blocks_that_hold_them() -> None:
    net = network(subscribers=())
    config = SubscriberConfig(callback_limit=Weight(30, 0))
    net.add_parachain(SUBSCRIBER, policies=Policies(deletion=NotifyDeletions()), config=config)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(6))
    publish(net, PUBLISHER, values(6))
    run(net, 8)
    net.parachains[SUBSCRIBER].declare(PUBLISHER, keys(6), Weight(10, 0))
    deregister(net)
    blocks = [record for record in run(net, 6) if record.deletions]
    assert [len(record.deletions) for record in blocks] == [3, 3]
    assert [record.callback_weight for record in blocks] == [Weight(30, 0)] * 2
    assert not kept(net, SUBSCRIBER)


def test_events_records_rows_and_figures_are_the_same_deletions(tmp_path: Path) -> None:
    net, stream = told_network(), io.BytesIO()
    net.listeners.append(EventLines(stream).on_fact)
    records = run(net, 8)
    delete_some(net)
    records += run(net, 6)
    wanted = sorted((int(PUBLISHER), bytes(name)) for name in (key(2), key(4)))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    events = [it["data"] for it in lines if it["event"] == DataDeleted.__name__]
    assert sorted((it["publisher"], bytes.fromhex(it["key"][2:])) for it in events) == wanted
    assert sorted(deleted(records)) == wanted
    with RunTables(tmp_path, "run", TableRows()) as tables:
        tally = RunStatistics(tables=tables)
        for record in records:
            tally.add(record)
    rows = [row for row in pq.read_table(tmp_path / "deliveries.parquet").to_pylist() if row["value_bytes"] is None]
    assert sorted((row["publisher"], row["key"]) for row in rows) == wanted
    assert {row["latency_blocks"] for row in rows} == {None}
    assert tally.of(SUBSCRIBER).deletions == 2
    assert tally.of(SUBSCRIBER).callbacks == 12
    endings = [it for record in records if record.account for it in record.account.keys]
    assert sorted((int(it.publisher), bytes(it.key)) for it in endings if it.ending is KeyEnding.DELETED) == wanted


def test_told_deletions_survive_the_way_from_a_worker() -> None:
    net = told_network()
    run(net, 8)
    deregister(net)
    records = [record for record in run(net, 6) if record.deletions]
    assert records
    part = PartInTheMaking(TableRows())
    for record in records:
        part.add(record)
    told = part.take()
    come = decoded(encoded(told), RunPart)
    assert come == told
    assert come.batches()["deliveries"].num_rows == sum(len(it.deletions) + len(it.deliveries) for it in records)
    assert come.tallies[SUBSCRIBER].deletions == sum(len(it.deletions) for it in records)


def test_what_is_taken_back_leaves_the_values_as_they_were_in_their_order() -> None:
    net = told_network()
    run(net, 8)
    chain = net.parachains[SUBSCRIBER]
    before = chain.dump()
    values_before = list(chain.kept.values.items())

    with suppress(TakenBack), chain.state.transaction():
        for place in [values_before[0][0], values_before[5][0], values_before[3][0]]:
            chain.kept.on_data_deleted(*place)
        chain.kept.on_data_updated(*values_before[5][0], b"new", values_before[5][1][1])
        assert len(chain.kept.values) == len(values_before) - 2
        raise TakenBack
    assert list(chain.kept.values.items()) == values_before
    assert chain.dump() == before


def test_a_deletion_told_of_what_is_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    change = PublisherPass.change

    def telling(self: PublisherPass) -> object:
        found = change(self)
        if found is not None:
            found.deleted = [name for name, _ in found.changed]
        return found

    monkeypatch.setattr(PublisherPass, "change", telling)
    net = told_network()
    run(net, 6)
    assert {violation.invariant for violation in net.invariants.violations} == {
        "a key that is told as deleted is not published",
        "no key is delivered and told as deleted in one block",
    }
