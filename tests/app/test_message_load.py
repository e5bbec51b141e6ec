"""Message loads: what arrives in which block, that it fills blocks before pub-sub does, and what is refused."""

import json
from pathlib import Path
from statistics import mean, median

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from command_line import Command, Refused, Written
from relaycast.cli.tables.summary import print_summary
from relaycast.scenario.message_load import Arrivals, Bursts, Load, Lognormal, MessageLoad, Poisson, Trace, Uniform
from relaycast.scenario.policy_choice import PolicyTable
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast.simulation.run_files import simulate
from relaycast.simulation.simulation import Simulation
from relaycast_pallets.messaging.inbound_message import HASHED_DOWNWARD_BYTES, HASHED_HORIZONTAL_BYTES

POV = 100_000

TRACED = """
extends = "oracle"
[[parachains]]
id = 3000
messages = { downward = { shape = "trace", file = "load.csv" } }
"""


def arrivals(load: Load, *, seed: int = 1, para_id: int = 3_000, message_bytes: int = 1_024) -> Arrivals:
    return Arrivals.of(MessageLoad(horizontal=load, message_bytes=message_bytes), seed=seed, para_id=para_id)


def drawn(load: Load, blocks: int, *, seed: int = 1, para_id: int = 3_000) -> list[int]:
    source = arrivals(load, seed=seed, para_id=para_id)
    return [sum(map(len, source(block)[1])) for block in range(1, blocks + 1)]


def test_a_constant_is_cut_into_messages() -> None:
    downward, horizontal = arrivals(2_500)(7)
    assert downward == ()
    assert list(map(len, horizontal)) == [1_024, 1_024, 452]


def test_uniform_loads_lie_between_their_bounds_and_reach_both() -> None:
    sizes = drawn(Uniform(low_bytes=10, high_bytes=13), 200)
    assert set(sizes) == {10, 11, 12, 13}


def test_lognormal_loads_have_their_median_and_a_tail() -> None:
    sizes = drawn(Lognormal(median_bytes=10_000, sigma=1.0), 2_000)
    assert median(sizes) == pytest.approx(10_000, rel=0.1)
    assert 0.01 < sum(size > 70_000 for size in sizes) / len(sizes) < 0.05


def test_poisson_loads_are_whole_messages_with_their_mean() -> None:
    counts = [size // 1_024 for size in drawn(Poisson(mean_messages=20), 2_000)]
    assert {size % 1_024 for size in drawn(Poisson(mean_messages=20), 50)} == {0}
    assert mean(counts) == pytest.approx(20, rel=0.03)
    assert mean((count - 20) ** 2 for count in counts) == pytest.approx(20, rel=0.15)


def test_the_largest_poisson_mean_does_not_underflow() -> None:
    assert mean(drawn(Poisson(mean_messages=700), 200)) == pytest.approx(700 * 1_024, rel=0.03)


def test_bursts_come_at_the_beginning_of_each_round() -> None:
    assert drawn(Bursts(bytes=9, every=4, length=2, otherwise_bytes=1), 9) == [9, 9, 1, 1, 9, 9, 1, 1, 9]


def test_what_is_drawn_follows_from_seed_parachain_and_block_alone() -> None:
    load = Uniform(high_bytes=1 << 20)
    assert drawn(load, 5) == drawn(load, 9)[:5]
    assert len({tuple(drawn(load, 5, seed=seed, para_id=para_id)) for seed in (1, 2) for para_id in (1, 2)}) == 4


def test_a_trace_says_its_blocks_and_may_begin_anew(tmp_path: Path) -> None:
    csv, parquet = tmp_path / "load.csv", tmp_path / "load.parquet"
    csv.write_text("bytes,block\n30,3\n10, 1\n\n")
    pq.write_table(pa.table({"block": [1, 3], "bytes": [10, 30]}), parquet)
    for file in (csv, parquet):
        assert drawn(Trace(file=str(file)), 5) == [10, 0, 30, 0, 0]
        assert drawn(Trace(file=str(file), repeats=True), 7) == [10, 0, 30, 10, 0, 30, 10]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("block;bytes\n", "load.csv: got the columns 'block;bytes', expected the columns block and bytes"),
        ("block,bytes\n", "load.csv: got no rows, expected a row for each block in which messages arrive"),
        ("block,bytes\n1,2\n1,3\n", "load.csv line 3, block: got 1 again, expected every block once"),
        ("block,bytes\n0,2\n", "load.csv line 2, block: got '0', expected a whole number from 1 to 10,000,000"),
        ("block,bytes\n1,-2\n", "load.csv line 2, bytes: got '-2', expected a whole number from 0 to 33,554,432"),
        ("block,bytes\n1\n", "load.csv line 2: got 1 fields, expected a block and its bytes"),
        ("block,bytes\n1,\xb2\n", "load.csv line 2, bytes: got '\\xb2', expected a whole number"),
    ],
)
def test_a_trace_that_is_none_is_refused_by_its_row(refused: Refused, file: Written, content: str, line: str) -> None:
    file(content, "load.csv")
    assert refused("run", file(TRACED, "a.toml")).startswith(line)


def scenario(load: MessageLoad | None, *, budget: str = "remaining", pov: int = POV) -> Scenario:
    reader = ParachainTable(id=3_000, subscribe=[SubscriptionTable(publisher=2_000)], messages=load)
    publisher = ParachainTable(id=2_000, publish=PublishTable(keys=20, value_bytes=100))
    relay = RelayChainTable(max_pov_bytes=pov, pov_percent=80)
    return Scenario(parachains=[publisher, reader], blocks=12, relaychain=relay, policies=PolicyTable(budget=budget))


def budgets(scenario: Scenario) -> list[tuple[int, int, int]]:
    """Return bytes of messages, of the budget and of what waits, by block of the reader."""
    simulation = Simulation.prepare(scenario)
    records = [record for passed in simulation.blocks() for record in passed.records]
    assert simulation.network.ledger.invariants.ok
    return [(record.message_bytes, record.budget_bytes, record.waiting_bytes) for record in records]


def test_messages_fill_a_block_before_the_relay_proof_gets_anything() -> None:
    """The first block finds no messages: those of a relay block can be proven on it, and not before."""
    first, *others = budgets(scenario(MessageLoad(downward=1_000, horizontal=29_000)))
    assert first == (0, 80_000, 0)
    assert set(others) == {(30_000, 50_000, 0)}


def test_large_messages_leave_more_of_a_full_block_than_small_ones() -> None:
    """The first message that does not fit ends it: the gap is pub-sub's, but for hashes of those that wait."""
    small, large = (
        budgets(scenario(MessageLoad(horizontal=210_000, message_bytes=size)))[1:] for size in (100, 30_000)
    )
    assert {budget for _, budget, _ in small} == {0}
    assert [20_000 - budget for _, budget, _ in large] == [
        HASHED_HORIZONTAL_BYTES * (waiting // 30_000) for _, _, waiting in large
    ]


def test_messages_beyond_the_budget_wait_for_the_next_blocks() -> None:
    """A burst of three blocks' worth takes four blocks, although it came in one: who waits is there as a hash."""
    load = MessageLoad(horizontal=Bursts(bytes=240_000, every=100), message_bytes=1_000)
    assert budgets(scenario(load))[:6] == [
        (0, 80_000, 0),
        (73_000 + 167 * HASHED_HORIZONTAL_BYTES, 320, 167_000),
        (76_000 + 91 * HASHED_HORIZONTAL_BYTES, 360, 91_000),
        (79_000 + 12 * HASHED_HORIZONTAL_BYTES, 520, 12_000),
        (12_000, 68_000, 0),
        (0, 80_000, 0),
    ]


def test_a_floor_keeps_its_bytes_from_messages() -> None:
    load = MessageLoad(horizontal=200_000, message_bytes=1_000)
    _, *blocks = budgets(scenario(load, budget="floor:20000"))
    assert all(left >= 20_000 for _, left, _ in blocks)
    assert {taken + left for taken, left, _ in blocks[:8]} == {80_000}
    assert blocks[-1][:2] == (1_000 + blocks[-1][2] // 1_000 * HASHED_HORIZONTAL_BYTES, 20_000)


def test_a_sixth_of_the_block_is_for_downward_messages_where_cumulus_shares_out() -> None:
    load = MessageLoad(downward=50_000, horizontal=50_000, message_bytes=100)
    for taken, left, waiting in budgets(scenario(load, budget="cumulus", pov=60_000))[1:]:
        hashed_bytes = (HASHED_DOWNWARD_BYTES + HASHED_HORIZONTAL_BYTES) * (waiting // 200)
        assert (taken - hashed_bytes, left) == (20_000, 0)


def test_a_run_tells_what_its_messages_took(tmp_path: Path) -> None:
    outcome = simulate(scenario(MessageLoad(horizontal=90_000, message_bytes=1_000)), out=tmp_path).outcome
    reader = outcome.subscribers[0]
    table = pq.read_table(tmp_path / outcome.run_id / "blocks.parquet")
    taken, waiting = table["message_bytes"].to_pylist(), table["waiting_bytes"].to_pylist()
    assert (reader.message_bytes.max, reader.message_bytes.total) == (max(taken[reader.warm_up_blocks :]), sum(taken))
    hashed_bytes = sum(waiting) // 1_000 * HASHED_HORIZONTAL_BYTES
    assert sum(taken) - hashed_bytes + waiting[-1] == 11 * 90_000
    assert reader.waiting_bytes_max == waiting[-1] == 147_000


def test_a_run_tells_what_was_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three times 24 MiB come, each block takes one message of 102,400 bytes, and 32 MiB may wait."""
    load = MessageLoad(horizontal=24 << 20, message_bytes=102_400)
    flooded = replace(scenario(load, pov=200_000), blocks=3)
    simulated = simulate(flooded, out=tmp_path)
    (reader,) = simulated.outcome.subscribers
    assert reader.refused_bytes > 0
    table = pq.read_table(simulated.folder / "blocks.parquet")
    assert (1 << 25) - 3 * 102_400 < table["waiting_bytes"].to_pylist()[-1] <= 1 << 25
    assert table["refused_bytes"].to_pylist()[0] == 0
    assert table["refused_bytes"].to_pylist()[-1] == reader.refused_bytes
    assert json.loads((simulated.folder / "run.json").read_bytes())["subscribers"][0]["refused_bytes"] == (
        reader.refused_bytes
    )
    assert "refused</th>" in (simulated.folder / "report.html").read_text()
    print_summary(simulated)
    assert f"{reader.refused_bytes:,} were refused" in " ".join(capsys.readouterr().out.split())


def test_the_run_id_follows_a_trace_and_not_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    contents = {"load.csv": "block,bytes\n1,5\n", "elsewhere/load.csv": "block,bytes\n01,5\n"}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    same = {run_id(tmp_path / name) for name in contents}
    (tmp_path / "load.csv").write_text("block,bytes\n1,6\n")
    assert len(same) == 1
    assert run_id(tmp_path / "load.csv") not in same


def run_id(file: Path) -> str:
    simulation = Simulation.prepare(scenario(MessageLoad(horizontal=Trace(file=str(file)))))
    assert simulation.echo().parachains[1].messages == MessageLoad(horizontal=Trace(file="load.csv"))
    return simulation.run_id


def test_a_trace_lies_beside_the_scenario_that_names_it(relaycast: Command, file: Written, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    file("block,bytes\n1,1000\n", "below/load.csv")
    file(TRACED, "below/a.toml")
    shown = relaycast("run", file('extends = "below/a.toml"\nblocks = 3', "b.toml"), "--json").json
    assert shown["subscribers"][0]["message_bytes"]["total"] == 1_000


@pytest.mark.parametrize(
    ("messages", "line"),
    [
        (
            '{ horizontal = { shape = "unifrom" } }',
            "horizontal.shape: got 'unifrom', expected one of the known names (did you mean uniform?)",
        ),
        (
            "{ horizontal = { low_bytes = 1 } }",
            "horizontal: got no shape, expected shape = uniform, lognormal, poisson, bursts, trace",
        ),
        (
            '{ horizontal = { shape = "bursts", bytes = 1, every = 2, lenght = 1 } }',
            "horizontal: got the name 'lenght', expected a known name (did you mean length?)",
        ),
        ('{ horizontal = "much" }', "horizontal: got 'much', expected a whole number or a table"),
        ("{ horizontal = -1 }", "horizontal: got -1, expected a whole number >= 0"),
        (
            '{ horizontal = { shape = "uniform", low_bytes = 2, high_bytes = 1 } }',
            "horizontal.low_bytes: got 2, expected at most high_bytes = 1",
        ),
        (
            '{ downward = { shape = "bursts", bytes = 1, every = 2, length = 3 } }',
            "downward.length: got 3, expected at most every = 2",
        ),
        ("{ downward = 1, message_bytes = 3 }", "message_bytes: got 3, expected a whole number >= 64"),
    ],
)
def test_a_load_that_cannot_be_is_refused_by_name(refused: Refused, file: Written, messages: str, line: str) -> None:
    text = f'extends = "oracle"\n[[parachains]]\nid = 3000\nmessages = {messages}'
    assert refused("run", file(text, "a.toml")) == f"a.toml at parachains[1].messages.{line}"


def test_a_message_that_no_block_could_ever_take_is_refused(refused: Refused, file: Written) -> None:
    text = (
        'extends = "oracle"\n[relaychain]\nmax_pov_bytes = 100_000\n[policies]\nbudget = "cumulus"\n'
        "[[parachains]]\nid = 3000\nmessages = { downward = 1, message_bytes = 34_000 }"
    )
    assert refused("run", file(text, "a.toml")).startswith(
        "a.toml at parachains[1].messages.message_bytes: got 34000, more than a block has room for"
    )


def test_a_load_makes_another_run() -> None:
    ids = {Simulation.prepare(scenario(load)).run_id for load in (None, MessageLoad(), MessageLoad(downward=1))}
    assert len(ids) == 3
    plain = scenario(None)
    assert Simulation.prepare(replace(plain, name="other")).run_id not in ids
