"""Checkpoints: a simulation put away and taken up again, and bytes that are none."""

import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from relaycast.scenario.files import load_preset
from relaycast.scenario.message_load import Bursts, Lognormal, MessageLoad, Poisson, Trace, Uniform
from relaycast.scenario.policy_choice import KINDS, PolicyTable
from relaycast.scenario.scenario import Payment, Scenario
from relaycast.simulation.batch import BatchSimulation
from relaycast_ledger.segments.checkpoint import (
    FORMAT,
    HEAD,
    MARK,
    MOST_GAIN,
    SimulationDump,
    closing_digest,
    freeze,
    packed,
    thaw,
    unpacked,
)
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import CheckpointRefused, decoded, encoded
from searches import examples
from spark.scenarios import MARKET, SCARCE, recorded


def passed(scenario: Scenario, blocks: int, *, trie_engine: Engine = "auto") -> BatchSimulation:
    batch = BatchSimulation.prepare(scenario, trie_engine=trie_engine)
    for block in range(1, blocks + 1):
        batch.advance(block)
    batch.look_ahead(scenario.blocks)
    return batch


def thawed(data: bytes, prepared: BatchSimulation) -> BatchSimulation:
    """Return the simulation in a checkpoint, in chains that were prepared as a worker prepares them."""
    again = pickle.loads(pickle.dumps(prepared.preparation()))()
    assert isinstance(again, BatchSimulation)
    thaw(data, again)
    return again


@pytest.fixture(scope="module")
def batch() -> BatchSimulation:
    return passed(MARKET, 5)


@pytest.fixture(scope="module")
def dump(batch: BatchSimulation) -> SimulationDump:
    return read(freeze(batch))


def read(checkpoint: bytes) -> SimulationDump:
    return decoded(unpacked(checkpoint), SimulationDump)


def assert_goes_on_alike(batch: BatchSimulation, again: BatchSimulation, blocks: range) -> None:
    """Compare records, events, heads and proofs block by block, and what both put away in the end."""
    for block in blocks:
        assert again.advance(block) == batch.advance(block)
        assert closing_digest(again) == closing_digest(batch)
    relay, other = batch.chains.relay_chain, again.chains.relay_chain
    assert [block.header for block in other.blocks] == [block.header for block in relay.blocks]
    keys = [bytes(32), b"\xff" * 32]
    for sealed in relay.blocks:
        assert other.prove_read(sealed, keys).nodes == relay.prove_read(sealed, keys).nodes
        for info in relay.state.children():
            proofs = [it.prove_child_read(sealed, info.storage_key, keys).nodes for it in (relay, other)]
            assert proofs[0] == proofs[1]
    for state, twin in zip(states_of(batch), states_of(again), strict=True):
        assert twin.root == state.root
        assert twin.snapshot() == state.snapshot()
    assert freeze(again) == freeze(batch)


def states_of(batch: BatchSimulation) -> list[Any]:
    return [batch.chains.relay_chain.state, *(chain.state for chain in batch.chains.parachains.values())]


def test_what_callbacks_weigh_is_put_away_too() -> None:
    """Half of the callbacks fit a block: a simulation that forgot their weights would make all of them."""
    heavy = [
        replace(chain, subscribe=[replace(it, callback_us=250_000) for it in chain.subscribe])
        for chain in MARKET.parachains
    ]
    batch = passed(replace(MARKET, parachains=heavy), 5)
    data = freeze(batch)
    again = thawed(data, batch)
    assert freeze(again) == data
    weights = [chain.kept.weights for chain in again.chains.parachains.values()]
    assert any(weights)
    assert_goes_on_alike(batch, again, range(6, 9))


@given(
    st.sampled_from([MARKET, SCARCE]),
    st.integers(1, 12),
    st.integers(1, 5),
    st.sampled_from(["plain", "array"]),
    st.sampled_from(["plain", "array"]),
    st.integers(0, 3),
)
@settings(max_examples=examples(12))
def test_a_simulation_goes_on_from_its_checkpoint_as_if_nothing_had_been(
    scenario: Scenario, before: int, after: int, engine: Engine, other_engine: Engine, seed: int
) -> None:
    scenario = replace(scenario, seed=seed)
    batch = passed(scenario, before, trie_engine=engine)
    data = freeze(batch)
    again = thawed(data, BatchSimulation.prepare(scenario, trie_engine=other_engine))
    assert freeze(again) == data
    assert_goes_on_alike(batch, again, range(before + 1, before + after + 1))


def of_all_kinds(folder: Path) -> dict[str, Scenario]:
    """Return small scenarios that hold together what any scenario may."""
    found = {"griefed": replace(load_preset("griefed-publisher"), blocks=12), "recorded": recorded(folder / "feed.csv")}
    found["default policies"] = replace(SCARCE, blocks=7)
    for kind, choices in KINDS.items():
        for name in set(choices) - {getattr(SCARCE.policies, kind)}:
            table = replace(PolicyTable(), **{kind: name})
            found[f"{kind} {name}"] = replace(SCARCE, blocks=7, policies=table)
    (folder / "load.csv").write_text("block,bytes\n1,100\n3,4000\n")
    loads = iter(
        [
            MessageLoad(horizontal=Uniform(high_bytes=900), downward=Lognormal(median_bytes=400)),
            MessageLoad(horizontal=Poisson(mean_messages=2), downward=Bursts(bytes=9_000, every=3)),
            MessageLoad(horizontal=Trace(file=str(folder / "load.csv")), downward=50),
        ]
    )
    chains = [replace(it, messages=next(loads)) if it.subscribe else it for it in MARKET.parachains]
    paid = {"deregisters_at": 6, "payment": Payment(balance=10**10)}
    chains = [replace(it, publish=replace(it.publish, **paid)) if it.publish and it.id == 2000 else it for it in chains]
    found["loads"] = replace(MARKET, parachains=chains, blocks=12)
    return found


def test_scenarios_of_all_kinds_go_on_where_their_files_do_not_lie(tmp_path: Path) -> None:
    for name, scenario in of_all_kinds(tmp_path).items():
        batch = passed(scenario, 5)
        data = freeze(batch)
        for file in tmp_path.iterdir():
            file.rename(file.with_suffix(".away"))
        again = thawed(data, batch)
        assert freeze(again) == data, name
        assert_goes_on_alike(batch, again, range(6, scenario.blocks + 1))
        for file in tmp_path.iterdir():
            file.rename(file.with_suffix(".csv"))


def test_messages_and_values_that_wait_are_put_away() -> None:
    """A budget for little, a queue that is full, and publications that no block has sent yet."""
    load = MessageLoad(downward=9_000, horizontal=30_000)
    chains = [replace(it, messages=load) if it.subscribe else it for it in SCARCE.parachains]
    scenario = replace(SCARCE, parachains=chains, blocks=8)
    batch = passed(scenario, 4)
    for number in range(300):
        batch.chains.parachains[ParaId(2_000)].publish(number.to_bytes(32, "big"), bytes(900))
    batch.advance(5)
    assert any(chain.outbox for chain in batch.chains.parachains.values())
    relay = batch.chains.relay_chain
    assert [len(found) > 1 for found in relay.inbound_messages(relay.head, ParaId(3_000))] == [True, True]
    assert_goes_on_alike(batch, thawed(freeze(batch), batch), range(6, 9))


def test_a_late_ask_for_old_states_is_answered_as_before() -> None:
    batch = passed(SCARCE, 9)
    again = thawed(freeze(batch), batch)
    for block in (10, 11):
        batch.advance(block), again.advance(block)
    assert again.chains.relay_chain.state._history.unbuilt, "nobody asked for an older state yet"
    assert_goes_on_alike(batch, again, range(12, 13))


def test_nothing_is_put_away_while_a_call_waits(batch: BatchSimulation) -> None:
    with pytest.raises(ValueError, match="calls wait for the next relay block"):
        freeze(BatchSimulation.prepare(MARKET))


def test_the_digest_tells_states_apart() -> None:
    batch = passed(SCARCE, 2)
    before = closing_digest(batch)
    batch.pass_over(3)
    assert closing_digest(batch) != before
    assert closing_digest(BatchSimulation.prepare(SCARCE)) != before


def refusal_of(data: bytes, prepared: BatchSimulation) -> str:
    with pytest.raises(CheckpointRefused) as refused:
        thawed(data, prepared)
    return refused.value.reason


GOOD = packed(b"\x80")
HEAD_BYTES = len(MARK) + HEAD.size


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes that begin with 0x, expected a checkpoint"),
        (GOOD[: HEAD_BYTES - 1], "begin with 0x72656c6179636173, expected a checkpoint"),  # the head alone is cut
        (b"X" + GOOD[1:], "expected a checkpoint"),
        (pickle.dumps(["os.system"]), "expected a checkpoint"),
        (MARK + HEAD.pack(FORMAT + 1, True, 1) + GOOD[HEAD_BYTES:], f"format {FORMAT + 1}, expected {FORMAT}"),
        (GOOD[:-2], "Src size is incorrect"),  # compressed bytes that end too early
        (GOOD + b"more", "Src size is incorrect"),
        (MARK + HEAD.pack(FORMAT, True, 1) + b"nonsense", "incorrect"),
        (MARK + HEAD.pack(FORMAT, True, 2**63) + GOOD[HEAD_BYTES:], f"that announce {2**63}"),  # more than any machine
        (MARK + HEAD.pack(FORMAT, True, 2_000) + GOOD[HEAD_BYTES:], "Corrupt"),  # more than there is
        (MARK + HEAD.pack(FORMAT, False, 9) + b"\xc1", "malformed"),
        (packed(b""), "truncated"),
        (packed(b"\x90"), "Expected `object`, got `array`"),
        (packed(b"\x80"), "missing required field"),
        (packed(pickle.dumps({"chains": 1})), "missing required field `chains`"),
        (packed(b"\x81\xa6chains\xdd\xff\xff\xff\xff"), "Expected `object`, got `array`"),
    ],
)
def test_bytes_that_are_no_checkpoint_are_refused(batch: BatchSimulation, data: bytes, reason: str) -> None:
    assert reason in refusal_of(data, batch)


def test_data_that_would_compress_too_well_are_stored_uncompressed() -> None:
    """So that what is announced is bounded by what is there."""
    data = bytes(MOST_GAIN * 1_000)
    assert len(packed(data)) > len(data)
    assert unpacked(packed(data)) == data
    bomb = cast_bytes(pa.compress(bytes(1 << 24), codec="zstd", asbytes=True))
    with pytest.raises(CheckpointRefused, match="that announce 16777216"):
        unpacked(MARK + HEAD.pack(FORMAT, True, 1 << 24) + bomb)


def cast_bytes(data: Any) -> bytes:
    assert isinstance(data, bytes)
    return data


def plainly(dump: SimulationDump) -> dict[str, Any]:
    """Return a dump as what MessagePack knows: dictionaries, lists, numbers and bytes."""
    plain: dict[str, Any] = msgspec.msgpack.decode(encoded(dump))
    return plain


Change = Callable[[dict[str, Any]], object]
RELAY, PARAS = "relay_chain", "parachains"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda it: it["chains"].update(version=2), "Invalid enum value 2 - at `$.chains.version`"),
        (lambda it: it["ledger"].update(version=0), "`$.ledger.version`"),
        (lambda it: it["chains"][PARAS][0].update(version="1"), "`$.chains.parachains[0].version`"),
        (lambda it: it["chains"][RELAY].pop("version"), "missing required field `version` - at `$.chains.relay_chain`"),
        (lambda it: it["chains"].update(code="os.system"), "unknown field `code` - at `$.chains`"),
        (lambda it: it["chains"].update(tick=-1), ">= 0 - at `$.chains.tick`"),
        (lambda it: it["chains"].update(tick=1.5), "Expected `int`, got `float`"),
        (lambda it: it["chains"][RELAY]["state"].update(oldest=bytes(32)), "the state of block 0 is missing"),
        (lambda it: it["chains"][PARAS][0].update(para_id=2**32), "<= 4294967295"),
        (lambda it: it["chains"][RELAY].update(genesis_root=bytes(31)), "`$.chains.relay_chain.genesis_root`"),
        (lambda it: it.update(workload="text"), "`$.workload`"),
        (lambda it: it.update(workload=b"\x80"), "missing required field `version`"),
        (
            lambda it: it["chains"][PARAS].pop(),
            "the parachains, got [3000, 3001, 3002, 2000] with messages of 5, expected",
        ),
        (lambda it: it["chains"][PARAS].reverse(), "the parachains, got [1000, 2000, 3002"),
        (lambda it: it["chains"]["inbound"].pop(), "with messages of 4, expected"),
        (lambda it: it["chains"]["inbound"][0].pop(), "`$.chains.inbound[0]`"),
        (lambda it: swap(it["chains"][PARAS], "state"), "parachain 3000, its head has the state root"),
        (lambda it: swap(it["chains"][PARAS], "head"), "parachain 3000, its head has the state root"),
        (lambda it: it["chains"][PARAS][0].update(head=b"\x00"), "parachain 3000: "),
        (lambda it: it["chains"][RELAY].update(state=it["chains"][PARAS][0]["state"]), "its last header has another"),
        (lambda it: it["chains"][RELAY]["headers"].clear(), "its last header has another state root"),
        (lambda it: it["chains"][RELAY]["headers"].pop(), "its last header has another state root"),
        (lambda it: it["chains"][RELAY]["headers"].pop(-2), "block 5 does not follow on block 3"),
        (lambda it: it["chains"][RELAY]["headers"].append(b"\x00"), "the relay chain: "),
        (lambda it: it["chains"][RELAY]["state"]["blocks"].clear(), "a state has the root"),
        (lambda it: queue(it, [[2000, []]]), "no queue or two, expected one queue with messages for each"),
        (lambda it: queue(it, [[2000, [b"a"]], [2000, [b"b"]]]), "no queue or two"),
        (lambda it: it["chains"].update(sent=[[9, []]]), "messages under way: there is no parachain 9"),
        (lambda it: it["chains"].update(sent=[[2000, [[[[bytes(32), bytes(9_000), 0, 1, 0]]]]]]), "at most"),
        (
            lambda it: it["chains"][PARAS][0].update(outbox=[[bytes(32), bytes(9_000), 0, 1, 0]]),
            "a published value has at most 2048 bytes, got 9000 - at `$.chains.parachains[0].outbox[0]`",
        ),
        (
            lambda it: it["chains"][PARAS][0].update(wanted=[[2000, [bytes(31)]]]),
            "32 bytes, got 31 - at `$.chains.parachains[0]",
        ),
        (lambda it: downward(it, [], [1], [0]), "downward messages for parachain 3000: list index out of range"),
        (lambda it: downward(it, [b""], [1, 2], [0]), "downward messages for parachain 3000: zip()"),
        (lambda it: downward(it, [bytes(1 << 20)], [1] * 33, [0] * 33), "more than a queue takes"),
        (lambda it: downward(it, [b"", b"a"], [2, 1], [0, 1]), "in another order than they came"),
        (lambda it: channel(it, 1, 3_000), "messages from parachain 1 to 3000, <WaitingMessages 1, 1 bytes>, which"),
        (
            lambda it: deliveries(it)["published"].append([9, [bytes(32)], [2], [1], [1]]),
            "2 publications of 9",
        ),
        (lambda it: deliveries(it)["published"].append([9, [bytes(32)], [0], [], []]), "deliveries: 0 publications"),
        (lambda it: deliveries(it)["published"].append([9, [], [1], [1], [1]]), "deliveries: zip()"),
        (lambda it: deliveries(it)["seen"].append([1, 2, [bytes(32)], []]), "deliveries: zip()"),
    ],
)
def test_a_forged_part_is_refused_by_its_name(
    batch: BatchSimulation, dump: SimulationDump, change: Change, reason: str
) -> None:
    plain = plainly(dump)
    change(plain)
    assert reason in refusal_of(packed(msgspec.msgpack.encode(plain)), batch)


def swap(chains: list[dict[str, Any]], part: str) -> None:
    chains[0][part], chains[1][part] = chains[1][part], chains[0][part]


def queue(plain: dict[str, Any], queues: list[Any]) -> None:
    plain["chains"][RELAY]["upward"]["queues"] = queues


def downward(plain: dict[str, Any], messages: list[bytes], relay_blocks: list[int], places: list[int]) -> None:
    waiting = {"messages": messages, "relay_blocks": relay_blocks, "places": places}
    plain["chains"][RELAY]["downward"] = [{"para_id": 3_000, "waiting": waiting}]


def channel(plain: dict[str, Any], sender: int, recipient: int) -> None:
    waiting = {"messages": [b"a"], "relay_blocks": [1], "places": [0]}
    plain["chains"][RELAY]["channels"] = [{"sender": sender, "recipient": recipient, "waiting": waiting}]


def deliveries(plain: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = plain["ledger"]["deliveries"]
    return found


def test_a_checkpoint_of_another_scenario_is_refused(batch: BatchSimulation) -> None:
    assert "the parachains, got" in refusal_of(freeze(passed(SCARCE, 3)), batch)


@given(st.data())
@settings(max_examples=examples(60))
def test_flipped_bytes_are_refused_or_give_other_values(data: st.DataObject) -> None:
    """Whatever stands in a checkpoint, it loads or is refused, and a block after it does not leave this process."""
    batch = small()
    plain = bytearray(unpacked(freeze(batch)))
    for place in data.draw(st.lists(st.integers(0, len(plain) - 1), min_size=1, max_size=4)):
        plain[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(plain)) | st.just(len(plain)))
    try:
        again = thawed(packed(bytes(plain[:cut])), batch)
    except CheckpointRefused:
        return
    assert [chain.para_id for chain in again.chains.parachains.values()] == list(batch.chains.parachains)


@cache
def small() -> BatchSimulation:
    return passed(replace(SCARCE, blocks=5), 3)
