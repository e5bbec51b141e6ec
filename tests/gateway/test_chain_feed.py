"""Everything that chains tell is in the event log once, in order, with the time of its block."""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from collator.networks import PUBLISHER, SUBSCRIBER, key, keys, network, publish, values
from gateway.heard_chains import Heard
from relaycast.cli.command import execute
from relaycast.cli.exit_code import ExitCode
from relaycast.serve.network import living
from relaycast_collator import BlockBuilt, ChainSimulator, Pace, RelaySealed
from relaycast_gateway.chain_feed import ChainFeed
from relaycast_gateway.cloudevents.event import attributes_of
from relaycast_gateway.icrc16 import to_json
from relaycast_gateway.log import EventLog
from relaycast_gateway.pallet_event import event_name, plain
from relaycast_gateway.principal import chain_principal
from relaycast_pallets.balances import HoldReason
from relaycast_pallets.broadcaster.events import DataPublished, KeyExpired
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.frame.system import Event, Origin, System
from relaycast_pallets.subscriber.events import PublisherEnabled
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.variants.deletions import NotifyDeletions
from relaycast_pallets.sudo import RequireSudo
from relaycast_pallets.timestamp import GENESIS_MILLISECONDS
from relaycast_trie import StorageProof
from relaycast_trie.exceptions import ProofError
from relaycast_xcm import Location, ParaId, Weight
from rooms import ROOT

DIGESTS = ROOT / "tests" / "digests"

EXPIRY = """
extends = "polkadot-2026"
name = "expiry"
[[parachains]]
id = 2000
publish = { keys = 6, value_bytes = 40, every = 4, ttl = 2 }
[[parachains]]
id = 3000
subscribe = [{ publisher = 2000 }]
"""


def scenarios() -> list[Any]:
    return [
        pytest.param("oracle", 8, ["data.published", "subscriber.updated"], id="oracle"),
        pytest.param("expiry", 9, ["key.expired", "subscriber.updated"], id="expiry"),
        pytest.param(DIGESTS / "cores.toml", 6, ["publisher.registered", "subscriber.updated"], id="cores"),
        pytest.param(DIGESTS / "late-readers.toml", 14, ["subscriber.updated"], id="late readers"),
        pytest.param(DIGESTS / "publishers.toml", 8, ["data.published"], id="publishers"),
        pytest.param(DIGESTS / "policy-deletion.toml", 14, ["subscriber.deleted"], id="told deletions"),
    ]


@pytest.mark.matrix("ICRC72-98")
@pytest.mark.parametrize(("scenario", "blocks", "seen"), scenarios())
def test_each_event_callback_and_block_is_in_the_log_once(
    tmp_path: Path, scenario: str | Path, blocks: int, seen: list[str]
) -> None:
    if scenario == "expiry":
        scenario = tmp_path / "expiry.toml"
        scenario.write_text(EXPIRY)
    live = living(str(scenario), "manual").clock
    heard = Heard(live.chains)
    genesis = {"/my%20net/relay": live.relay.genesis_hash}
    genesis |= {f"/my%20net/para/{para_id}": chain.genesis_hash for para_id, chain in live.parachains.items()}
    live.new_block(blocks)
    records = heard.records()

    attributes = [attributes_of(record) for record in records]
    assert [(it["type"], it["source"], it["blockhash"]) for it in attributes] == heard.told()
    assert Counter(record.namespace for record in records).keys() >= {f"io.relaycast.{name}" for name in seen}
    last: dict[str, int] = {}
    for record, attribute in zip(records, attributes, strict=True):
        assert (record.event_id, record.prev_id) == (record.seq, last.get(record.namespace))
        last[record.namespace] = record.seq
        number = attribute["blocknumber"]
        assert isinstance(number, int)
        assert record.occurred_ns == (GENESIS_MILLISECONDS + number * 6_000) * 1_000_000
        assert record.source == chain_principal(genesis[str(attribute["source"])])
        chain = str(attribute["source"]).removeprefix("/my%20net/")
        components = [chain.replace("para/", "p")] if chain != "relay" else []
        components += [f"p{attribute['publisher']!s}"] if "publisher" in attribute else []
        assert record.topic == ".".join([record.namespace, *(components or ["relay"])])
    events = [
        event for fact in heard.facts if isinstance(fact, RelaySealed | BlockBuilt) for event in fact.block.events
    ]
    no_pallet = ("block.imported", "subscriber.updated", "subscriber.deleted")
    told = [it for it in records if not it.namespace.endswith(no_pallet)]
    for record, event in zip(told, events, strict=True):
        content = dict(record.data.content)
        assert {plain(getattr(event, name)) for name in event.__struct_fields__} <= set(content.values())


@pytest.mark.matrix("ICRC72-98")
@pytest.mark.parametrize("pace", [Pace(), Pace(cores=2), Pace(cores=3, relay_blocks=2, relay_parent_offset=3)], ids=str)
@pytest.mark.parametrize("late", [0, 5], ids=["from the start", "late"])
def test_callbacks_say_what_the_subscriber_got(pace: Pace, late: int) -> None:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, pace=pace)
    heard = Heard(net)
    for tick in range(14):
        if tick == late:
            net.subscribe(SUBSCRIBER, PUBLISHER, keys(4))
        publish(net, PUBLISHER, values(4, version=tick), ttl=3 if tick % 3 else 0)
        net.step()
    expected = []
    for fact in (it for it in heard.facts if isinstance(it, BlockBuilt)):
        for publisher, name, entry in fact.block.updates:
            left = entry.when_inserted + entry.ttl - fact.relay_parent.number
            state = "infinite" if not entry.ttl else "valid_for" if left > 0 else "timed_out"
            expected.append(
                {
                    "publisher": publisher,
                    "key": f"0x{name.hex()}",
                    "value": f"0x{entry.value.hex()}",
                    "ttlState": state,
                    "remainingBlocks": left if state == "valid_for" else None,
                    "publishedAt": entry.when_inserted,
                    "blockNumber": fact.block.header.number,
                    "blockHash": f"0x{fact.block.header.hash.hex()}",
                    "relayParent": {"number": fact.relay_parent.number, "hash": f"0x{fact.relay_parent.hash.hex()}"},
                }
            )
    records = heard.records("subscriber.updated")
    assert [to_json(record.data) for record in records] == expected
    assert len({it["ttlState"] for it in expected}) >= 2
    for record, update in zip(records, expected, strict=True):
        attributes = attributes_of(record)
        shown = ("subject", "publisher", "ttlstate", "paraid")
        wanted = [update["key"], PUBLISHER, update["ttlState"], SUBSCRIBER]
        assert [attributes[name] for name in shown] == wanted


def test_a_told_deletion_is_an_event_and_the_block_counts_it() -> None:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, policies=Policies(deletion=NotifyDeletions()))
    heard = Heard(net)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(3))
    publish(net, PUBLISHER, values(3), ttl=4)
    for _ in range(12):
        net.step()
    told = [(fact, place) for fact in heard.facts if isinstance(fact, BlockBuilt) for place in fact.block.deletions]
    assert len(told) == 3
    records = heard.records("subscriber.deleted")
    assert [to_json(record.data) for record in records] == [
        {
            "publisher": publisher,
            "key": f"0x{name.hex()}",
            "blockNumber": fact.block.header.number,
            "blockHash": f"0x{fact.block.header.hash.hex()}",
            "relayParent": {"number": fact.relay_parent.number, "hash": f"0x{fact.relay_parent.hash.hex()}"},
        }
        for fact, (publisher, name) in told
    ]
    shown = [(it["subject"], it["publisher"], it["paraid"]) for it in map(attributes_of, records)]
    assert shown == [(f"0x{name.hex()}", publisher, SUBSCRIBER) for _, (publisher, name) in told]
    assert {record.topic for record in records} == {f"io.relaycast.subscriber.deleted.p{SUBSCRIBER}.p{PUBLISHER}"}
    counts = [(it.get("callbacks"), it.get("deletions")) for it in heard.data("block.imported")]
    assert (0, 3) in counts
    assert (3, None) in counts


def test_the_topics_of_chains_name_the_chain_and_the_publisher() -> None:
    net = network()
    heard = Heard(net)
    publish(net, PUBLISHER, {key(0): b"zero"})
    net.subscribe(SUBSCRIBER, PUBLISHER, [key(0)])
    for _ in range(3):
        net.step()
    topics = {record.topic.removeprefix("io.relaycast.") for record in heard.records()}
    assert topics >= {
        f"data.published.p{PUBLISHER}",
        "block.imported.relay",
        f"block.imported.p{SUBSCRIBER}",
        f"subscriber.updated.p{SUBSCRIBER}.p{PUBLISHER}",
    }


def test_a_value_that_was_published_is_told_with_all_that_finds_it_again() -> None:
    net = network()
    heard = Heard(net, options={"prefix": "com.example", "key_names": lambda: {(PUBLISHER, key(1)): "price/1"}})
    publish(net, PUBLISHER, {key(0): b"zero", key(1): b"one"}, ttl=5)
    for _ in range(3):
        net.step()
    heard.log.purge()
    sealed = next(it for it in heard.facts if isinstance(it, RelaySealed) and it.block.number == 2)
    first, second = heard.log.read(namespaces=["com.example.data.published"])
    child_key = b":child_storage:default:pubsub" + (2_000).to_bytes(4, "little")
    assert to_json(first.data) == {
        "publisher": 2000,
        "key": f"0x{key(0).hex()}",
        "value": "0x" + b"zero".hex(),
        "ttl": 5,
        "expiresAt": 7,
        "blockNumber": 2,
        "blockHash": f"0x{sealed.block.hash.hex()}",
        "stateRoot": f"0x{sealed.block.state_root.hex()}",
        "childStorageKey": f"0x{child_key.hex()}",
        "childRoot": to_json(second.data)["childRoot"],
        "superseded": False,
    }
    assert [first.subject, second.subject] == [f"0x{key(0).hex()}", "price/1"]
    assert attributes_of(first)["ttlstate"] == "valid_for"
    blocks = [it for it in heard.log.read(namespaces=["com.example.block.imported"]) if it.source == first.source]
    (imported,) = [
        data for data in (to_json(it.data) for it in blocks) if data["hash"] == to_json(first.data)["blockHash"]
    ]
    assert imported == {
        "number": 2,
        "hash": f"0x{sealed.block.hash.hex()}",
        "parentHash": f"0x{sealed.parent.hash.hex()}",
        "stateRoot": f"0x{sealed.block.state_root.hex()}",
        "extrinsicsRoot": f"0x{sealed.block.header.extrinsics_root.hex()}",
        "events": len(sealed.block.events),
    }


def test_a_value_that_its_own_block_replaced_is_told_as_superseded() -> None:
    net = network()
    heard = Heard(net, options={"proofs": True})
    for value in (b"first", b"second"):
        publish(net, PUBLISHER, {key(0): value})
    for _ in range(2):
        net.step()
    first, second = heard.data("data.published")
    assert (first["superseded"], first["value"], "proof" in first) == (True, None, False)
    assert (second["superseded"], second["value"], "proof" in second) == (False, "0x" + b"second".hex(), True)


def proven(event: dict[str, Any]) -> bool:
    """Check a value as a consumer does, who trusts nothing but the state root."""
    root, child_key, name, value = (
        bytes.fromhex(event[it][2:]) for it in ("stateRoot", "childStorageKey", "key", "value")
    )
    proof = StorageProof(bytes.fromhex(node[2:]) for node in event["proof"])
    try:
        child_root = proof.verify(root, [child_key]).values[child_key]
        entry = None if child_root is None else proof.verify(child_root, [name]).values[name]
    except ProofError:
        return False
    return entry == PublishedEntry(value, event["ttl"] or 0, event["blockNumber"]).encode()


@pytest.mark.matrix("X-07")
def test_the_proof_of_a_published_value_verifies_and_an_altered_one_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = living("oracle", "manual").clock
    heard = Heard(live.chains)
    live.new_block(2)
    heard.feed.proofs = True
    live.new_block(1)
    *before, event = heard.data("data.published")
    assert "proof" not in before[0]
    assert event["stateRoot"] == f"0x{live.relay.best.header.state_root.hex()}"
    file = tmp_path / "event.json"

    def verify(root: str, name: str) -> tuple[int, Any]:
        code = execute(["proof", "verify", str(file), "--root", root, "--key", name])
        return code, json.loads(capsys.readouterr().out)

    file.write_text(json.dumps(event))
    code, told = verify(event["stateRoot"], event["childStorageKey"])
    assert (code, told) == (ExitCode.FINE, {"values": {event["childStorageKey"]: event["childRoot"]}})
    code, told = verify(event["childRoot"], event["key"])
    entry = PublishedEntry(bytes.fromhex(event["value"][2:]), event["ttl"] or 0, event["blockNumber"])
    assert (code, told) == (ExitCode.FINE, {"values": {event["key"]: f"0x{entry.encode().hex()}"}})

    assert proven(event)
    for at, node in enumerate(event["proof"]):
        altered = node[:-1] + ("0" if node[-1] != "0" else "1")
        assert not proven({**event, "proof": [*event["proof"][:at], altered, *event["proof"][at + 1 :]]})
        assert not proven({**event, "proof": [*event["proof"][:at], *event["proof"][at + 1 :]]})
    assert not proven({**event, "value": "0x00"})
    assert not proven({**event, "stateRoot": before[0]["stateRoot"]})
    event["proof"][0] = event["proof"][0][:-1] + ("0" if event["proof"][0][-1] != "0" else "1")
    file.write_text(json.dumps(event))
    codes = {
        verify(event["stateRoot"], event["childStorageKey"])[0],
        verify(event["childRoot"], event["key"])[0],
    }
    assert ExitCode.CHECK_FAILED in codes


def test_a_feed_that_was_closed_hears_no_more() -> None:
    net = network()
    heard = Heard(net)
    net.step()
    count = len(heard.records())
    heard.feed.close()
    heard.feed.close()
    net.step()
    assert len(heard.records()) == count > 0


def test_parachains_that_come_later_have_their_own_source() -> None:
    net = network()
    heard = Heard(net)
    net.step()
    net.add_parachain(3_001)
    genesis = net.parachains[ParaId(3_001)].head.hash
    net.step()
    newest = heard.records("block.imported")[-1]
    assert attributes_of(newest)["source"] == "/my%20net/para/3001"
    assert newest.source == chain_principal(genesis)


def test_a_feed_of_chains_that_have_gone_on_wants_their_genesis() -> None:
    net = network()
    genesis = {int(para_id): chain.head.hash for para_id, chain in net.parachains.items()}
    net.step()
    with EventLog.open() as log:
        with pytest.raises(ValueError, match="genesis_hashes: got none of parachain 2000, which is at #1"):
            ChainFeed(log, chains=net, network_name="n")
        ChainFeed(log, chains=net, network_name="n", genesis_hashes=genesis)
        net.step()
        log.purge()
        _, *parachains = log.read(namespaces=["io.relaycast.block.imported"])
        assert [it.source for it in parachains] == [chain_principal(found) for found in genesis.values()]


def test_events_that_could_not_be_stored_are_reported_and_the_chains_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net = network()
    heard = Heard(net, log=EventLog.open(tmp_path / "log"))
    with sqlite3.connect(tmp_path / "log") as file:
        file.execute("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
    net.step()
    with suppress(sqlite3.IntegrityError):  # in one commit with the events
        heard.log.purge()
    assert heard.log.read() == []
    lost, trouble = heard.feed.lost, heard.feed.error
    assert lost > 0
    assert trouble == "the disk is full"
    net.step()
    with suppress(sqlite3.IntegrityError):
        heard.log.purge()
    assert heard.feed.lost > lost
    assert caplog.messages == ["events are being lost: the disk is full"]  # once, however many blocks
    with sqlite3.connect(tmp_path / "log") as file:
        file.execute("DROP TRIGGER full")
    net.step()
    assert heard.records() != []
    assert heard.feed.error is None
    assert caplog.messages[1:] == [f"events are kept again; lost since the start: {heard.feed.lost}"]
    heard.log.close()


def test_a_tick_that_is_taken_back_leaves_no_event() -> None:
    heard = Heard(ChainSimulator(), options={"by_tick": True})
    heard.chains.step()
    heard.feed.tick_passed()
    heard.chains.step()
    heard.feed.take_back()
    heard.feed.tick_passed()
    assert (len(heard.records("block.imported")), heard.feed.told) == (1, 1)
    heard.chains.step()
    heard.feed.tick_passed()
    assert (len(heard.records("block.imported")), heard.feed.told) == (2, 2)


def test_a_feed_that_fails_loses_its_events_and_ends_no_block(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_system: System, number: int) -> int:
        return 1 // (number - 2)

    heard = Heard(ChainSimulator(), options={"block_time": broken})
    for _ in range(3):
        heard.chains.step()
    heard.log.purge()
    assert [it["number"] for it in heard.data("block.imported")] == [1, 3]
    assert (heard.feed.lost, heard.feed.error) == (1, None)
    assert "events are being lost" in caplog.text


def test_a_feed_of_a_log_that_is_closed_loses_its_events_and_ends_no_block() -> None:
    heard = Heard(ChainSimulator())
    heard.log.close()
    heard.chains.step()
    assert (heard.chains.tick, heard.feed.lost > 0) == (1, True)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(DataPublished, "data.published"), (KeyExpired, "key.expired"), (PublisherEnabled, "publisher.enabled")],
)
def test_well_known_events_have_short_names(kind: type[Event], name: str) -> None:
    assert event_name(kind) == name


def test_fields_of_any_kind_become_values() -> None:
    reason = HoldReason("Broadcaster", "PublisherDeposit", 200, 0)
    found = [plain(it) for it in (None, True, -5, "a", b"\x01", Weight(1, 2), (ParaId(7), None), reason)]
    told: list[Any] = [None, True, -5, "a", "0x01", {"refTime": 1, "proofSize": 2}, [7, None]]
    told.append({"pallet": "Broadcaster", "name": "PublisherDeposit", "palletIndex": 200, "index": 0})
    assert [to_json(it) for it in found] == told
    assert to_json(plain(RequireSudo(Origin.root()))).startswith("RequireSudo: the origin is ")
    assert to_json(plain(Location.parachain(ParaId(2_000)))) == str(Location.parachain(ParaId(2_000)))


def test_a_gateway_without_a_router_loads_nothing_of_wamp() -> None:
    code = (
        "import sys, relaycast_gateway.gateway, relaycast_gateway.wamp_routes\n"
        "print([it for it in sys.modules if it == 'cbor2' or it.startswith('relaycast_gateway.wamp.')])"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout == "[]\n"
