"""What a run says at its end: what a block costs, whether it fits, what would be cheaper; and how that ends."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from command_line import Command, Written
from relaycast.report.page import render_report
from relaycast.report.story import why
from relaycast.report.templates import percent
from relaycast.report.trie_view import CAUSES
from relaycast.report.verdicts import Severity, by_cause, median_block, verdicts
from relaycast.scenario.files import load_preset
from relaycast.scenario.message_load import MessageLoad
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast.simulation.alternative import Probing, probed, with_alternative
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.outcome import Outcome, rank

CROWDED = """
blocks = 9
[relaychain]
max_pov_bytes = 16_000
[[parachains]]
id = 2000
publish = { keys = 200, value_bytes = 40, changed = 30 }
[[parachains]]
id = 3000
name = "reader"
subscribe = [{ publisher = 2000 }]
"""
"""A budget that is kept, and blocks that are larger than the largest PoV all the same: by their own state."""

FITTING = CROWDED.replace("16_000", "200_000")


def ran(scenario: Scenario) -> Outcome:
    simulation = Simulation.prepare(scenario)
    simulation.keep_accounts()
    return simulation.run()


ORACLE = msgspec.structs.replace(load_preset("oracle"), blocks=28)
"""Some blocks more than an alternative is measured in."""


@cache
def oracle() -> Outcome:
    """Run the oracle once for all that looks at what came of it."""
    return ran(ORACLE)


def reader(**relay: Any) -> Scenario:
    return Scenario(
        parachains=[
            ParachainTable(id=2_000, publish=PublishTable(keys=20)),
            ParachainTable(id=3_000, subscribe=[SubscriptionTable(publisher=2_000)]),
        ],
        blocks=12,
        relaychain=RelayChainTable(**relay),
    )


def test_blocks_that_do_not_fit_fail_a_run_by_cause(relaycast: Command, file: Written) -> None:
    ended = relaycast("run", file(CROWDED, "crowded.toml"))
    assert ended.code == 1
    (verdict,) = [line for line in ended.out.splitlines() if line.startswith("Does not fit: ")]
    assert "the relay chain would refuse 7 of 9 blocks. Of 3000 reader, relay block" in verdict
    assert "of 16,000 bytes compressed" in verdict
    assert "own state" in verdict
    assert "every invariant held" in ended.out


def test_studies_of_blocks_that_do_not_fit_are_allowed(relaycast: Command, file: Written) -> None:
    name = file(CROWDED, "crowded.toml")
    ended = relaycast("run", name, "--allow-oversize", "--json")
    assert ended.code == 0
    told = ended.json
    assert told["oversize_blocks"] == told["subscribers"][0]["oversize_blocks"] == 7
    fullest = told["subscribers"][0]["fullest_block"]
    assert fullest["compressed_bytes"] > fullest["max_pov_bytes"] == 16_000
    assert sum(fullest["by_cause"].values()) == fullest["pov_bytes"]
    assert max(fullest["by_cause"], key=fullest["by_cause"].get) == "own"


def test_tables_and_report_say_which_blocks_do_not_fit(relaycast: Command, file: Written) -> None:
    told = relaycast("run", file(CROWDED, "crowded.toml"), "--json").json
    folder = Path("out") / told["run_id"]
    rows = pq.read_table(folder / "blocks.parquet").to_pylist()
    assert [row["oversize"] for row in rows].count(True) == told["oversize_blocks"]
    assert all((row["compressed_bytes"] > row["max_pov_bytes"]) == row["oversize"] for row in rows)
    assert all(row["own_pov_bytes"] <= row["own_bytes"] + 300 for row in rows)
    assert '<li class="bad">Does not fit: ' in (folder / "report.html").read_text()
    assert json.loads((folder / "run.json").read_text())["verdicts"]["fits"].startswith("Does not fit")


def test_a_comparison_says_in_red_which_side_does_not_fit(relaycast: Command, file: Written) -> None:
    ended = relaycast("compare", file(CROWDED, "crowded.toml"), file(FITTING, "fitting.toml"))
    assert "first: 7 of 9 blocks of 3000 do not fit: relay block" in ended.out
    assert "second: " not in ended.out.partition("do not fit:")[2].replace("second: every invariant held", "")
    assert "blocks that do not fit" in ended.out


STARVING = """
blocks = 30
[[parachains]]
id = 2000
publish = { keys = 40, value_bytes = 16 }
[[parachains]]
id = 3000
name = "hungry"
subscribe = [{ publisher = 2000 }]
[policies]
budget = "remaining:1KiB"
"""
"""A budget below what a key takes: the reader is given next to nothing."""


def test_a_reader_that_starves_fails_a_run_in_red_and_in_every_file(relaycast: Command, file: Written) -> None:
    name = file(STARVING, "starving.toml")
    ended = relaycast("run", name)
    assert ended.code == 1
    (line,) = [line for line in ended.out.splitlines() if line.startswith("Starved: ")]
    assert "3000 hungry had something to receive in 28 blocks, of which 28 were cut short" in line
    assert "no reader starved" not in ended.out
    told = relaycast("run", name, "--json", "--allow-starved")
    assert told.code == 0
    assert told.json["verdicts"]["starved"] == line
    assert told.json["subscribers"][0]["starvation"]["is_starved"]
    report = (Path("out") / told.json["run_id"] / "report.html").read_text()
    assert '<li class="bad">Starved: ' in report
    assert "Every block fits" in report


def test_a_run_that_feeds_its_readers_says_so_beside_what_fits(relaycast: Command, file: Written) -> None:
    ended = relaycast("run", file(STARVING.replace("1KiB", "64KiB"), "fed.toml"))
    assert ended.code == 0
    assert "every invariant held\nno reader starved\n" in ended.out
    assert "Starved" not in ended.out
    short = relaycast("run", "fed.toml", "--set", "policies.budget=remaining:1KiB", "--blocks", "8")
    assert short.code == 0
    assert "The run is too short to tell whether 3000 hungry starves: that takes 10 blocks" in short.out
    assert "no reader starved" not in short.out


def test_a_violated_invariant_goes_before_a_reader_that_starves(relaycast: Command, file: Written) -> None:
    lossy = STARVING.replace("value_bytes = 16", "value_bytes = 16, every = 3") + 'root_commit = "after-first-key"\n'
    ended = relaycast("run", file(lossy, "lossy.toml"))
    assert ended.code == 3
    assert 0 < ended.out.index("violated: no update is lost") < ended.out.index("Starved: 3000 hungry")


def test_sweeps_snapshots_and_comparisons_name_readers_that_starve(relaycast: Command, file: Written) -> None:
    name = file(STARVING, "starving.toml")
    sweep = file('scenarios = ["starving.toml"]\nblocks = 20\n', "sweep.toml")
    ended = relaycast("sweep", sweep, "--out", "sweep.parquet", "--workers", "1")
    assert ended.code == 1
    assert "starved readers in 1 row, first in cell 0" in ended.out
    assert pq.read_table("sweep.parquet").column("starved").to_pylist() == [True]
    assert relaycast("sweep", sweep, "--out", "again.parquet", "--workers", "1", "--allow-starved").code == 0
    snapshot = relaycast("pov", "snapshot", name, "--json")
    assert snapshot.code == 1
    assert [line.partition(" had ")[0] for line in snapshot.json["starved"]] == ["scenario: Starved: 3000 hungry"]
    assert relaycast("pov", "snapshot", "--check", "--allow-starved").code == 0
    assert "starved: 3000 had something to receive" in relaycast("compare", name, "--policy", "cache=none").out


def test_a_block_that_fits_only_compressed_is_a_warning() -> None:
    free = ran(reader()).subscribers[0]
    run = ran(reader(max_pov_bytes=(free.compressed_bytes.max + free.pov_bytes.max) // 2))
    assert run.oversize_blocks == 0
    assert run.subscribers[0].large_blocks > 0
    _, fits, _ = verdicts(run)
    assert fits.ending is Severity.WARNING
    assert "fit only because they are compressed" in fits.text


def test_what_a_block_costs_adds_up_to_one_block() -> None:
    run = oracle()
    (cost, fits, _) = verdicts(run)
    point = median_block(run.series[3_000])
    assert point is not None
    assert sum(by_cause(point).values()) == point.pov_bytes
    assert f"carries {point.pov_bytes:,} bytes in the median" in cost.text
    numbers = [
        int(word.replace(",", ""))
        for word in cost.text.replace(", ", " ").split()
        if word[0].isdigit() and "%" not in word and "." not in word
    ]
    total, *parts = [number for number in numbers if number != 3_000]
    assert sum(parts) == total
    assert f"own state as a compact proof ({point.own_bytes:,} as whole nodes)" in cost.text
    assert "No pass used more than" in fits.text


def test_the_fullest_block_is_told_by_the_limit_that_decides() -> None:
    run = oracle()
    block = max((it.fullest_block for it in run.subscribers if it.fullest_block), key=lambda it: it.load)
    assert block.ref_time / block.max_ref_time == block.load > block.sent_bytes / block.max_pov_bytes
    assert f"takes {percent(block.load)} of the 2 seconds that it may compute; and " in verdicts(run)[1].text
    large = ran(reader(max_pov_bytes=100_000))
    largest = large.subscribers[0].fullest_block
    assert largest is not None
    share = percent(largest.sent_bytes / 100_000)
    taken = f"takes {share} of the largest PoV, {largest.sent_bytes:,} of 100,000 bytes compressed. "
    assert taken in verdicts(large)[1].text


def test_what_messages_take_of_the_budget_is_said() -> None:
    run = ran(msgspec.structs.replace(load_preset("heavy-messages"), blocks=8))
    assert "What messages left of the budget cut " in verdicts(run)[1].text
    messages = MessageLoad(horizontal=500)
    chains = [reader().parachains[0], msgspec.structs.replace(reader().parachains[1], messages=messages)]
    free = verdicts(ran(Scenario(parachains=chains, blocks=8)))[1].text
    assert " bytes beside the messages; relaycast budget finds" in free


def test_of_pov_is_everything_that_a_block_carries() -> None:
    scenario = reader(max_pov_bytes=1_000_000)
    loaded = [
        scenario.parachains[0],
        ParachainTable(id=3_000, subscribe=scenario.parachains[1].subscribe, messages=MessageLoad(horizontal=500_000)),
    ]
    (it,) = ran(Scenario(parachains=loaded, blocks=12, relaychain=scenario.relaychain)).subscribers
    assert 0.5 < it.pov_share.p50 < 0.53
    assert 0.5 < it.pov_parts["messages"].p50 < 0.51
    assert list(it.pov_parts) == ["static", "top", "proof", "own", "messages"]
    assert it.compressed_share.p50 > 0.5, "contents of messages are not known: they do not compress"


def test_the_alternative_is_measured_in_the_same_blocks() -> None:
    run = with_alternative(oracle(), Simulation.prepare(ORACLE))
    it = run.alternative
    assert it is not None
    assert (it.policy, it.first_block, it.last_block) == ("cache=none", 3, 24)
    points = [point for subscriber in run.subscribers for point in run.series[subscriber.para_id]]
    assert it.pov_bytes == sum(point.pov_bytes for point in points if 3 <= point.block <= 24)
    assert it.its_pov_bytes < it.pov_bytes
    assert verdicts(run)[2].text.startswith("Cheaper: cache=none saves ")


def test_the_alternative_is_judged_for_each_reader() -> None:
    run = with_alternative(oracle(), Simulation.prepare(ORACLE))
    assert run.alternative is not None
    it = run.alternative
    assert [one.para_id for one in it.readers] == [3000, 3001]
    assert sum(one.pov_bytes for one in it.readers) == it.pov_bytes
    assert sum(one.its_pov_bytes for one in it.readers) == it.its_pov_bytes

    def told(*saved: float) -> str:
        readers = [
            msgspec.structs.replace(one, pov_bytes=1_000, its_pov_bytes=round(1_000 * (1 - part)))
            for one, part in zip(it.readers, saved, strict=True)
        ]
        changed = msgspec.structs.replace(it, readers=readers)
        return verdicts(msgspec.structs.replace(run, alternative=changed))[-1].text.partition(" (measured")[0]

    assert told(0.1, 0.132) == "Cheaper: cache=none saves 10.0 to 13.2% of what blocks carry for each of 2 readers"
    assert told(0.2, 0.0) == "Cheaper: cache=none saves 20.0% of what blocks carry for 3000 exchange"
    assert told(-0.261, 0.107) == (
        "Cheaper for some: cache=none saves 10.7% of what blocks carry for 3001 lender "
        "and costs 26.1% more for 3000 exchange"
    )
    assert (
        told(-0.3, -0.3)
        == "Alternative: none is cheaper; with cache=none blocks carry 30.0% more for each of 2 readers"
    )
    assert told(0.0, -0.3) == "Alternative: none is cheaper; with cache=none blocks carry 30.0% more for 3001 lender"
    assert told(0.0, 0.001) == "Alternative: none is cheaper; with cache=none blocks carry about as much"


def test_of_many_readers_some_are_measured_and_the_verdict_says_so() -> None:
    """They carry what they would if all were measured: other chains see nothing of a reader but its head."""
    publisher = ParachainTable(id=2000, publish=PublishTable(keys=4, changed=1))
    wanted = [SubscriptionTable(publisher=2000, keys=2)]
    more = ParachainTable(id=3990, name="more", subscribe=[SubscriptionTable(publisher=2000)])
    readers = [ParachainTable(id=3000 + it, subscribe=wanted) for it in range(22)]
    scenario = Scenario(parachains=[publisher, *readers, more], blocks=10)
    simulation = Simulation.prepare(scenario)
    run = with_alternative(simulation.run(), simulation)
    assert run.alternative is not None
    measured = [it.para_id for it in run.alternative.readers]
    assert measured == [*range(3000, 3019), 3990], "twenty, those with most keys first"
    text = verdicts(run)[-1].text
    assert "measured readers" in text
    assert text.endswith("(measured in relay blocks 3 to 10, before compression, of 20 of 23 readers).")
    every = probed(simulation, Probing([*measured, 3019, 3020, 3021], 10))
    assert [every.points[it] for it in measured] == list(probed(simulation, Probing(measured, 10)).points.values())


def test_nothing_is_said_of_an_alternative_after_too_few_blocks() -> None:
    scenario = Scenario(parachains=reader().parachains, blocks=6)
    run = with_alternative(ran(scenario), Simulation.prepare(scenario))
    assert run.alternative is None
    assert "not measured" in verdicts(run)[2].text


def test_percentiles_leave_out_the_warm_up_and_say_so() -> None:
    run = ran(reader())
    assert run.subscribers[0].warm_up_blocks == 3
    assert run.series[3_000][0].block == 3
    assert "leave out the warm-up" in render_report(run, reader())
    whole = ran(Scenario(parachains=reader().parachains, blocks=12, warm_up=0))
    assert whole.subscribers[0].warm_up_blocks == 0
    assert whole.series[3_000][0].block == 1
    assert whole.subscribers[0].proof_bytes.total == run.subscribers[0].proof_bytes.total
    assert "warm-up" not in verdicts(whole)[0].text


def test_percentiles_of_the_tables_rows_are_those_of_the_run(relaycast: Command) -> None:
    told = relaycast("run", "late-subscriber", "--blocks", "45", "--json").json
    rows = pq.read_table(Path("out") / told["run_id"] / "blocks.parquet").to_pylist()
    for it in told["subscribers"]:
        of_reader = [row for row in rows if row["para_id"] == it["para_id"]]
        steady = [row for row in of_reader if not row["warm_up"]]
        assert len(of_reader) - len(steady) == it["warm_up_blocks"] > 0
        for name in ("proof_bytes", "own_bytes", "pov_bytes"):
            assert it[name]["p50"] == rank(sorted(row[name] for row in steady), 50)
            assert it[name]["max"] == max(row[name] for row in steady)
        assert it["first_proof_bytes"] == max(row["proof_bytes"] for row in of_reader if row["warm_up"])


@pytest.mark.parametrize("warm_up", ["-1", '"later"', "1.5"])
def test_a_warm_up_is_a_number_of_blocks_or_auto(relaycast: Command, file: Written, warm_up: str) -> None:
    ended = relaycast("run", file(f"warm_up = {warm_up}\n{FITTING}", "warm.toml"))
    assert ended.code == 2
    assert "warm_up" in ended.err
    assert ended.err.count("\n") == 1


def test_an_entry_that_no_charge_covers_is_named_until_a_migration_moves_it_out(
    relaycast: Command, file: Written
) -> None:
    """Before its first publication a publisher is proven absent beside ``:code``, which a version 0 node holds."""
    top = {"0x3a636f6465": "0x" + "07" * 9_000, "0x3a72": "0x01", "0x01": "0x02"}
    raw = {"name": "small", "id": "small", "genesis": {"raw": {"top": top, "childrenDefault": {}}}}
    call = ("run", "oracle", "--blocks", "6", "--genesis", file(json.dumps(raw), "small.json"))
    (it,) = relaycast(*call, "--json").json["subscribers"][0]["uncharged"]
    assert (it["name"], it["blocks"]) == (":code", 2)
    assert 2 * (9_000 - 2_058) < it["excess_bytes"] < 2 * (9_100 - 2_058)
    said = f":code is longer than any read is charged for: 3000 exchange carries {it['excess_bytes']:,} bytes of it"
    assert said in relaycast(*call).out
    migrated = relaycast(*call, "--state-version", "1", "--json").json["subscribers"]
    assert [reader["uncharged"] for reader in migrated] == [[], []]


def test_legends_name_the_longest_value_that_stays_in_its_node() -> None:
    at, beyond = (
        ran(
            msgspec.structs.replace(
                reader(),
                parachains=[
                    ParachainTable(id=2_000, publish=PublishTable(keys=20, value_bytes=size)),
                    ParachainTable(id=3_000, subscribe=[SubscriptionTable(publisher=2_000)]),
                ],
            )
        )
        for size in (23, 24)
    )
    values = [run.subscribers[0].publishers[0].by_cause["value"].nodes for run in (at, beyond)]
    assert values[0] == 0 < values[1]
    assert "more than 23 bytes" in CAUSES["value"]
    assert "more than 23 bytes" in why(beyond)
