"""Recorded publications: a trace replays as it was, and what is none is refused by row and column."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from command_line import Command, Refused, Written
from file_contents import contents
from relaycast.compare.comparison import compare_runs
from relaycast.refusal import BadInput
from relaycast.scenario.files import load_scenario
from relaycast.scenario.recording import Playback, Recording
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.scenario.workload import publications
from relaycast.scenario.workload_dump import PlaybackDump, RecordedDump
from relaycast.simulation.simulation import Simulation
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm.checkpoint import CheckpointRefused

HEADER = "block,para_id,key,value,ttl\n"
KEY = "0x" + "11" * 32

FEED = f"""{HEADER}1,2000,price/eth,0x01,0
1,2000,price/dot,0x0203,5
1,2001,{KEY},0x,0
2,2000,price/eth,0x04,0
4,2000,price/eth,0x05,4294967295
4,2000,price/eth,0x06,0
"""

SCENARIO = """
publications = "feed.csv"
[[parachains]]
id = 2000
[[parachains]]
id = 2001
[[parachains]]
id = 3000
subscribe = [{ publisher = 2000, keys = ["price/eth"] }, { publisher = 2001 }]
"""

Loaded = Callable[..., Scenario]


@pytest.fixture
def loaded(file: Written, relaycast: Command) -> Loaded:
    def load(feed: str = FEED, text: str = SCENARIO) -> Scenario:
        file(feed, "feed.csv")
        return load_scenario(file(text, "scenario.toml"))

    return load


@pytest.fixture
def refusal(file: Written, refused: Refused) -> Callable[..., str]:
    """Run a scenario with a bad trace and return what is said."""

    def run(feed: str | bytes, text: str = SCENARIO, name: str = "feed.csv") -> str:
        file(feed, name)
        return refused("run", file(text, "scenario.toml"))

    return run


def test_a_trace_replays_block_by_block(loaded: Loaded) -> None:
    simulation = Simulation.prepare(loaded())
    ether, other = bytes(SubscribedKey.from_data(b"price/eth")), bytes(SubscribedKey.from_data(b"price/dot"))
    assert list(simulation.due(1)) == [
        (2000, ether, b"\x01", 0),
        (2000, other, b"\x02\x03", 5),
        (2001, b"\x11" * 32, b"", 0),
    ]
    assert list(simulation.due(2)) == [(2000, ether, b"\x04", 0)]
    assert list(simulation.due(3)) == []
    assert list(simulation.due(4)) == [(2000, ether, b"\x05", 2**32 - 1), (2000, ether, b"\x06", 0)]
    assert list(simulation.due(5)) == []


def test_a_run_goes_on_until_the_last_values_have_arrived(loaded: Loaded, relaycast: Command) -> None:
    assert loaded().blocks == 6
    ended = relaycast("run", "scenario.toml", "--json")
    assert ended.code == 0
    (reader,) = ended.json["subscribers"]
    assert (reader["keys"], reader["callbacks"], reader["deliveries"]) == (2, 4, 5)
    publishers = [(it["para_id"], it["keys"], it["sent"], it["published"]) for it in ended.json["publishers"]]
    assert publishers == [(2000, 2, 5, 5), (2001, 1, 1, 1)]
    recorded = ended.json["recorded"]
    assert (recorded["file"], recorded["rows"], recorded["last_block"]) == ("feed.csv", 6, 4)


def test_blocks_of_the_scenario_stand_before_those_of_the_trace(loaded: Loaded) -> None:
    assert loaded(text="blocks = 3\n" + SCENARIO).blocks == 3


def test_a_recorded_rule_comes_to_the_same_figures(relaycast: Command, file: Written) -> None:
    rule = Scenario(
        blocks=9,
        parachains=[
            ParachainTable(id=2000, publish=PublishTable(keys=7, value_bytes=[16, 900], every=2, changed=3, ttl=4)),
            ParachainTable(id=3000, subscribe=[SubscriptionTable(publisher=2000)]),
        ],
    )
    rows = [
        f"{block},{para_id},{name!s},0x{value.hex()},{ttl}"
        for block in range(1, 10)
        for para_id, name, value, ttl in publications(rule, block)
    ]
    file(HEADER + "\n".join(rows), "rule.csv")
    base = json.loads('{"blocks": 9, "parachains": [{"id": 3000, "subscribe": [{"publisher": 2000}]}]}')
    recorded = {**base, "publications": "rule.csv", "parachains": [{"id": 2000}, *base["parachains"]]}
    ruled = {**base, "parachains": [*_publish_table(), *base["parachains"]]}
    ran = [relaycast("run", file(it, name), "--json").json for it, name in ((recorded, "a.json"), (ruled, "b.json"))]
    for cost in (cost for run in ran for reader in run["subscribers"] for cost in reader["publishers"]):
        del cost["formula_bytes"]  # there is a formula for rules alone
    for publisher in (publisher for run in ran for publisher in run["publishers"]):
        del publisher["sizes"]  # only a rule says them
    assert ran[0]["subscribers"] == ran[1]["subscribers"]
    assert ran[0]["publishers"] == ran[1]["publishers"]
    assert ran[0]["relaychain"]["state_root"] == ran[1]["relaychain"]["state_root"]


def _publish_table() -> list[dict[str, Any]]:
    publish = {"keys": 7, "value_bytes": [16, 900], "every": 2, "changed": 3, "ttl": 4}
    return [{"id": 2000, "publish": publish}]


def test_csv_and_parquet_of_the_same_rows_are_the_same_trace(loaded: Loaded, tmp_path: Path) -> None:
    csv = _recording(loaded())
    played = list(csv.blocks())
    rows = [line.split(",") for line in FEED.splitlines()[1:]]
    typed = pa.table(
        {
            "ttl": pa.array([int(row[4]) for row in rows], pa.uint32()),
            "block": pa.array([int(row[0]) for row in rows], pa.int32()),
            "para_id": pa.array([int(row[1]) for row in rows], pa.uint64()),
            "key": pa.array([row[2] for row in rows]).dictionary_encode(),
            "value": pa.array([bytes.fromhex(row[3][2:]) for row in rows], pa.large_binary()),
        }
    )
    (tmp_path / "parts").mkdir()
    pq.write_table(typed.slice(0, 2), tmp_path / "parts" / "part-0.parquet")
    pq.write_table(typed.slice(2), tmp_path / "parts" / "part-1.parquet")
    parquet = _recording(loaded(text=SCENARIO.replace("feed.csv", "parts")))
    assert (csv.digest, csv.keys, csv.rows) == (parquet.digest, parquet.keys, parquet.rows)
    assert list(parquet.blocks()) == played


def test_where_batches_end_does_not_matter(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _recording(loaded())
    played = list(whole.blocks())
    monkeypatch.setattr("relaycast.scenario.trace_file.ROWS_A_BATCH", 1)
    single = _recording(loaded(FEED + "\n"))
    assert (single.digest, single.keys) == (whole.digest, whole.keys)
    assert list(single.blocks()) == played
    assert list(single.blocks(after=2)) == played[2:]


def _recording(scenario: Scenario) -> Recording:
    recorded = scenario.recording()
    assert recorded is not None
    return recorded


@pytest.mark.parametrize(
    ("old", "new"),
    [("0x04,0", "0x14,0"), ("0x04,0", "0x04,1"), ("2,2000", "3,2000"), (KEY, KEY[:-1] + "2"), ("eth,0x04", "dot,0x04")],
)
def test_the_run_id_follows_what_is_recorded(loaded: Loaded, old: str, new: str) -> None:
    before = Simulation.prepare(loaded()).run_id
    assert Simulation.prepare(loaded()).run_id == before
    assert Simulation.prepare(loaded(FEED.replace(old, new, 1))).run_id != before


def test_values_that_are_cut_elsewhere_are_another_trace(loaded: Loaded) -> None:
    cut = FEED.replace("0x01,0", "0x0102,0").replace("0x0203,5", "0x03,5")
    assert _recording(loaded()).digest != _recording(loaded(cut)).digest


def test_a_trace_without_ttl_never_expires(loaded: Loaded) -> None:
    feed = "value,block,key,para_id\n0x01,1,price/eth,2000\n0x,1,k,2001\n"
    assert [row[3] for row in Simulation.prepare(loaded(feed)).due(1)] == [0, 0]


def test_a_playback_is_put_away_with_the_blocks_at_hand(loaded: Loaded) -> None:
    recorded = _recording(loaded())
    playback = Playback(recorded)
    playback.look_ahead(2)
    elsewhere, again = Playback(recorded.without_keys_but(set())), Playback(recorded)
    elsewhere.load(playback.dump())
    Path(recorded.path).rename("elsewhere.csv")
    assert [len(elsewhere.take(block)) for block in (1, 2)] == [3, 1]
    with pytest.raises(BadInput, match=r"feed\.csv"):
        elsewhere.take(3)
    Path("elsewhere.csv").rename(recorded.path)
    again.load(playback.dump())
    assert again.dump() == playback.dump()
    assert [len(again.take(block)) for block in range(1, 6)] == [3, 1, 0, 2, 0]


def test_publications_of_parachains_that_record_nothing_are_refused(loaded: Loaded) -> None:
    playback = Playback(_recording(loaded()))
    foreign = PlaybackDump(2, [RecordedDump(1, 2_009, bytes(32), b"", 0)])
    with pytest.raises(CheckpointRefused, match="a publication of 2009, of which nothing is recorded"):
        playback.load(foreign)


def test_compare_knows_recorded_traces_apart(loaded: Loaded, file: Written) -> None:
    file(FEED.replace("0x04", "0x07"), "other.csv")
    first = loaded()
    assert compare_runs(first, replace(first, name="again")).comparison.same_trace
    assert not compare_runs(first, replace(first, publications="other.csv")).comparison.same_trace


def test_a_file_that_changes_after_it_was_checked_is_refused(loaded: Loaded, file: Written) -> None:
    recorded = _recording(loaded())
    file(FEED + "5,2000,late,0x00,0\n", "feed.csv")
    with pytest.raises(Exception, match=r"feed\.csv: got a file that was changed meanwhile"):
        next(recorded.blocks())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("0,2000,k,0x,0", "row 7 column block: got 0, expected a whole number from 1 to 1,000,000"),
        ("x,2000,k,0x,0", "row 7 column block: got 'x', expected a whole number from 1 to 1,000,000"),
        ("99999999999999999999,2000,k,0x,0", "row 7 column block: got '99999999999999999999', expected a whole"),
        ("-1,2000,k,0x,0", "row 7 column block: got '-1', expected a whole number"),
        ("3,2000,k,0x,0", "row 7 column block: got 3 after 4, expected rows in the order of their blocks"),
        (
            "4,2002,k,0x,0",
            "row 7 column para_id: got 2002, expected the id of one of the scenario's parachains (did you",
        ),
        ("4,,k,0x,0", "row 7 column para_id: got '', expected a whole number from 0 to 4,294,967,295"),
        ("4,2000,,0x,0", "row 7 column key: got '', expected a name, or 0x and 64 hex digits"),
        ("4,2000,0x12,0x,0", "row 7 column key: got '0x12', expected a name, or 0x and 64 hex digits"),
        (f"4,2000,{KEY}00,0x,0", f"row 7 column key: got '{KEY}00', expected a name, or 0x and 64 hex digits"),
        (f"4,2000,0x{'zz' * 32},0x,0", "expected a name, or 0x and 64 hex digits"),
        ("4,2000,k,12,0", "row 7 column value: got '12', expected 0x and an even number of hex digits"),
        ("4,2000,k,0x123,0", "row 7 column value: got '0x123', expected 0x and an even number of hex digits"),
        ("4,2000,k,0x12\x0034,0", "expected 0x and an even number of hex digits"),
        (f"4,2000,k,0x{'00' * 2049},0", "row 7 column value: got 2,049 bytes, expected at most relaychain.max_value_b"),
        ("4,2000,k,0x,4294967296", "row 7 column ttl: got 4294967296, expected a whole number from 0 to 4,294,967,295"),
        ("4,2000,k,0x,1.5", "row 7 column ttl: got '1.5', expected a whole number from 0 to 4,294,967,295"),
        ("4,2000,k,0x", "feed.csv line 8: got 4 columns, '4,2000,k,0x', expected the 5 of the header"),
        ("4,2000,k,0x,0,0", "feed.csv line 8: got 6 columns, '4,2000,k,0x,0,0', expected the 5 of the header"),
    ],
)
def test_a_row_that_is_no_publication_is_named(refusal: Callable[..., str], row: str, said: str) -> None:
    assert said in refusal(FEED + row + "\n")


@pytest.mark.parametrize(
    ("feed", "said"),
    [
        ("", "feed.csv: got what does not read as CSV (Empty CSV file), expected a whole CSV file"),
        (HEADER, "feed.csv: got no rows, expected at least one publication"),
        (
            "block,para,key,value\n",
            "expected block, para_id, key, value, ttl; ttl may be missing (did you mean para_id?)",
        ),
        (
            "block,para_id,key\n",
            "feed.csv: got the columns block, para_id, key, expected block, para_id, key, value, ttl",
        ),
        ("block,block,para_id,key,value\n", "feed.csv: got the columns block, block, para_id, key, value, expected"),
        (b"block,para_id,key,value\n1,2000,\xff,0x\n", "feed.csv: got what does not read as CSV"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(refusal: Callable[..., str], feed: str | bytes, said: str) -> None:
    assert said in refusal(feed)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"price/eth"', '"price/ether"', "a key that feed.csv has of 2000 (did you mean price/eth?)"),
        ('"price/eth"', '"zzz"', "a key that feed.csv has of 2000 (known: price/dot, price/eth)"),
        ('["price/eth"]', "3", "subscribe[0].keys: got 3, expected at most the 2 keys that feed.csv has of 2000"),
        ("publisher = 2001", "publisher = 2002", "the id of a parachain that publishes (2000, 2001)"),
        ("id = 2001", "id = 2005", "feed.csv row 3 column para_id: got 2001, expected the id of one of the scenario's"),
        ("id = 2001\n", "id = 2001\n[[parachains]]\nid = 9\n", "parachains[2]: got parachain 9 with nothing to do"),
        ("id = 2001\n", "id = 2001\npublish = { keys = 1 }\n", "got 2001, which has publish in the scenario"),
        (
            "feed.csv",
            "feed.txt",
            "feed.txt: got a file that ends with '.txt', expected a .csv, .csv.gz or .parquet file",
        ),
        ("feed.csv", "fed.csv", "fed.csv: got no such file, expected recorded publications in CSV or Parquet"),
    ],
)
def test_a_scenario_that_its_trace_does_not_fit_is_refused(
    refusal: Callable[..., str], old: str, new: str, said: str
) -> None:
    assert said in refusal(FEED, SCENARIO.replace(old, new, 1))


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("block", pa.array([1, None]), "row 2 column block: got null, expected a value in every row"),
        (
            "block",
            pa.array([1, 2**64 - 1], pa.uint64()),
            "row 2 column block: got 18446744073709551615, expected a whole",
        ),
        ("block", pa.array([1.0, 2.0]), "got the columns block as double, expected block as whole numbers"),
        ("key", pa.array([b"\x01" * 32, b"short"]), "row 2 column key: got 5 bytes, 0x73686f7274, expected 32 bytes"),
        ("key", pa.array([[1], [2]]), "got the columns key as list"),
        ("ttl", pa.array([0, -1]), "row 2 column ttl: got -1, expected a whole number from 0 to 4,294,967,295"),
    ],
)
def test_a_parquet_row_that_is_no_publication_is_named(
    refused: Refused, file: Written, tmp_path: Path, column: str, values: pa.Array, said: str
) -> None:
    columns = {"block": pa.array([1, 2]), "para_id": pa.array([2000, 2001]), "key": pa.array(["a", "b"])}
    columns |= {"value": pa.array([b"", b""]), "ttl": pa.array([0, 0]), column: values}
    pq.write_table(pa.table(columns), tmp_path / "feed.parquet")
    scenario = SCENARIO.replace("feed.csv", "feed.parquet")
    assert said in refused("run", file(scenario, "scenario.toml"))


def test_what_only_looks_like_parquet_is_refused(refusal: Callable[..., str]) -> None:
    said = refusal(b"PAR1 and no more", SCENARIO.replace("feed.csv", "feed.parquet"), "feed.parquet")
    assert said == "feed.parquet: got 16 bytes without a footer at their end, expected whole Parquet"


def test_a_trace_lies_beside_the_scenario_that_names_it(file: Written, relaycast: Command, tmp_path: Path) -> None:
    (tmp_path / "farfolder").mkdir()
    file(FEED, "farfolder/feed.csv")
    file(SCENARIO, "farfolder/scenario.toml")
    assert relaycast("run", "farfolder/scenario.toml", "--out", "a").code == 0
    (folder,) = (tmp_path / "a").iterdir()
    assert not [name for name, data in contents(folder).items() if b"farfolder" in (data or b"")]
    assert json.loads((folder / "run.json").read_bytes())["scenario"]["publications"] == "feed.csv"
