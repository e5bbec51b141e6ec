"""What a run says of its proof bytes: tables, ``run.json``, the report, the terminal and the snapshot agree."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import Command, Written
from relaycast.pov.snapshot import SNAPSHOT_VERSION, render_snapshot
from relaycast.report.charts import MAX_COLUMNS, Series, stacked_chart
from relaycast.scenario.policy_choice import PolicyTable
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast.simulation.run_files import simulate
from relaycast_ledger.accounting import IN_THE_PROOF, PRUNED
from relaycast_ledger.arrow_columns import column
from relaycast_ledger.outcome import SCHEMA_VERSION
from relaycast_ledger.run_tables import ROWS_A_GROUP, RunTables, TableRows

TABLES = ("blocks", "proofs", "keys", "deliveries")

MARKET = Scenario(
    name="market",
    blocks=9,
    relaychain=RelayChainTable(max_pov_bytes=8_000, pov_percent=85),
    parachains=[
        ParachainTable(id=2000, publish=PublishTable(keys=12, value_bytes=[16, 900], ttl=3)),
        ParachainTable(id=1000, publish=PublishTable(keys=5, every=4, changed=2, prefix="rate")),
        ParachainTable(
            id=3000, name="both", subscribe=[SubscriptionTable(publisher=2000), SubscriptionTable(publisher=1000)]
        ),
        ParachainTable(id=3001, name="one", subscribe=[SubscriptionTable(publisher=1000, keys=2)]),
    ],
)
"""Two publishers of which one is large, and a budget that cuts their reader short."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(MARKET, out=tmp_path_factory.mktemp("market")).folder


@pytest.fixture(scope="module")
def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: pq.read_table(folder / f"{name}.parquet").to_pylist() for name in TABLES}


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    run: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return run


Rows = dict[str, list[dict[str, Any]]]


def test_every_file_of_a_run_names_its_schema_and_its_run(folder: Path, told: dict[str, Any]) -> None:
    for name in TABLES:
        about = pq.read_schema(folder / f"{name}.parquet").metadata
        assert about[b"relaycast.schema"] == b"%d" % SCHEMA_VERSION
        assert about[b"relaycast.run_id"] == told["run_id"].encode()
    snapshot = tomllib.loads((folder / "pov.snapshot.toml").read_text())
    assert told["schema"] == SCHEMA_VERSION
    assert (snapshot["schema"], snapshot["run_id"]) == (SNAPSHOT_VERSION, told["run_id"])


def test_every_byte_of_every_block_has_its_row(rows: Rows) -> None:
    assert len(rows["blocks"]) == 2 * MARKET.blocks
    for block in rows["blocks"]:
        place = block["block"], block["para_id"]
        publishers = [row for row in rows["proofs"] if (row["block"], row["para_id"]) == place]
        assert len(publishers) == (2 if block["para_id"] == 3000 else 1)
        proof = sum(row[f"{cause}_bytes"] for row in publishers for cause in IN_THE_PROOF)
        assert block["static_bytes"] + proof == block["proof_bytes"]
        assert proof == sum(row["node_bytes"] + row["value_bytes"] for row in publishers)
        pruned = sum(row[f"{name}_bytes"] for row in publishers for name in PRUNED)
        assert pruned == sum(row["pruned_bytes"] for row in publishers)
        assert block["proof_bytes"] + pruned + block["pruned_unsubscribed_bytes"] == block["collected_bytes"]
        nodes = sum(row["nodes"] + row["value_nodes"] for row in publishers)
        assert block["static_nodes"] + nodes == block["proof_nodes"]
        assert sum(row["proof_size"] for row in publishers) == block["proof_size"] <= block["budget_bytes"]
        assert (block["cursor_key"] is None) == block["complete"]


def test_a_reason_says_why_a_publisher_s_part_ends(rows: Rows) -> None:
    reasons = {row["reason"] for row in rows["proofs"]}
    assert {"absent", "finished", "unchanged", "cut short"} <= reasons
    for row in rows["proofs"]:
        assert row["pruned_beyond_budget_nodes"] == 0 or row["reason"] in {"cut short", "not reached"}, row
        assert row["keys_walked"] == row["keys"] or row["reason"] != "finished"


def test_deliveries_are_the_callbacks(rows: Rows, told: dict[str, Any]) -> None:
    for subscriber in told["subscribers"]:
        mine = [row for row in rows["deliveries"] if row["para_id"] == subscriber["para_id"]]
        assert len(mine) == subscriber["callbacks"] > 0
        assert len(mine) + sum(row["conflated"] for row in mine) == subscriber["deliveries"]
        assert max(row["latency_blocks"] for row in mine) == subscriber["latency_blocks"]["max"]
    for row in rows["deliveries"]:
        assert row["delivered_at"] - row["published_at"] == row["latency_blocks"]


def test_run_json_has_the_sums_by_publisher(rows: Rows, told: dict[str, Any]) -> None:
    for subscriber in told["subscribers"]:
        total = subscriber["static_bytes"]["total"] + sum(it["proof_bytes"] for it in subscriber["publishers"])
        assert total == subscriber["proof_bytes"]["total"]
        assert sum(it["callbacks"] for it in subscriber["publishers"]) == subscriber["callbacks"]
        for it in subscriber["publishers"]:
            place = subscriber["para_id"], it["para_id"]
            mine = [row for row in rows["proofs"] if (row["para_id"], row["publisher"]) == place]
            for cause, sums in it["by_cause"].items():
                assert sums["node_bytes"] == sum(row[f"{cause}_bytes"] for row in mine)
            for reason, sums in it["pruned"].items():
                assert sums["nodes"] == sum(row[f"pruned_{reason}_nodes"] for row in mine)
            assert it["keys_changed"] == sum(row["keys_changed"] for row in mine)
            assert sum(it["endings"].values()) == MARKET.blocks


def test_the_snapshot_has_the_sums_too(folder: Path, told: dict[str, Any]) -> None:
    snapshot = tomllib.loads((folder / "pov.snapshot.toml").read_text())
    for subscriber in told["subscribers"]:
        mine = snapshot["subscribers"][str(subscriber["para_id"])]
        assert mine["proof_bytes"] == subscriber["proof_bytes"]
        for it in subscriber["publishers"]:
            causes = mine["publishers"][str(it["para_id"])]
            assert {cause: causes[cause] for cause in IN_THE_PROOF} == {
                cause: sums["node_bytes"] for cause, sums in it["by_cause"].items()
            }


@pytest.mark.parametrize("name", ['quo"ted', "tab\t", "del\x7f", "ünï🦊", "back\\slash"])
def test_any_name_makes_a_snapshot_that_can_be_read(name: str, tmp_path: Path) -> None:
    run = simulate(Scenario(name=name, blocks=1, parachains=MARKET.parachains), out=tmp_path).outcome
    assert tomllib.loads(render_snapshot(run))["name"] == name


def test_the_tables_are_the_same_bytes_each_time(folder: Path, tmp_path: Path) -> None:
    again = simulate(MARKET, out=tmp_path).folder
    for name in (*(f"{table}.parquet" for table in TABLES), "pov.snapshot.toml"):
        assert (folder / name).read_bytes() == (again / name).read_bytes()


def test_tables_are_written_in_groups_of_a_fixed_number(tmp_path: Path) -> None:
    class Ticks:
        """A record with nothing in it but its tick."""

        account = cursor = panic = pov = None
        complete = True
        deliveries = disabled = deletions = ()

        def __init__(self, tick: int) -> None:
            self.tick = tick

        def __getattr__(self, name: str) -> Any:
            return self if name == "consumed" else 0

    with RunTables(tmp_path, "id", TableRows()) as tables:
        for tick in range(ROWS_A_GROUP + 3):
            tables.add(Ticks(tick))  # type: ignore[arg-type]
    file = pq.ParquetFile(tmp_path / "blocks.parquet")
    groups = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    assert groups == [ROWS_A_GROUP, 3]
    assert pq.read_table(tmp_path / "proofs.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [1, None, -(2**63), 2**63 - 1]),
        (pa.bool_(), [True, False, None] * 7),  # more than a byte of bits
        (pa.float64(), [0.1, None, -1e300]),
        (pa.binary(), [b"", None, b"ab", bytes(300)]),
        (pa.string(), ["", "ünï", None]),
        (pa.list_(pa.int64()), [[], [1, 2], None, [3]]),
        (pa.int64(), []),
    ],
)
def test_columns_are_what_arrow_makes_of_the_values(kind: pa.DataType, values: list[Any]) -> None:
    made = column(kind, values)
    made.validate(full=True)
    assert made.to_pylist() == values
    assert made == pa.array(values, kind)


def test_a_type_that_no_column_has_is_refused() -> None:
    with pytest.raises(TypeError, match="got float"):
        column(pa.float32(), [1.0])


def test_pandas_is_not_loaded_for_the_tables(tmp_path: Path) -> None:
    code = (
        "import sys; from relaycast.cli.command import execute\n"
        "execute(['demo', 'config-sync', '--blocks', '4']); print('pandas' in sys.modules)"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout.splitlines()[-1] == "False"


def test_columns_hold_numbers_bytes_and_few_words(folder: Path) -> None:
    kinds = [field.type for name in TABLES for field in pq.read_schema(folder / f"{name}.parquet")]
    plain = {kind.value_type if pa.types.is_list(kind) else kind for kind in kinds}
    assert plain == {pa.int64(), pa.binary(), pa.string(), pa.bool_()}


def test_the_report_stacks_the_causes_of_each_subscriber(folder: Path, told: dict[str, Any]) -> None:
    page = (folder / "report.html").read_text()
    for name in ("3000 both", "3001 one"):
        assert f'aria-label="Proof bytes of {name} over the relay blocks, by cause"' in page
    for cause in ("static", "top", "new", "changed", "value"):
        assert f"<title>{cause}</title>" in page
    changed = told["subscribers"][0]["publishers"][0]["by_cause"]["changed"]["node_bytes"]
    assert f"<td>{changed:,}</td>" in page


def test_the_terminal_tells_publishers_apart_where_there_are_several(relaycast: Command, file: Written) -> None:
    text = """
        blocks = 6
        name = "two"
        [[parachains]]
        id = 2000
        publish = { keys = 3 }
        [[parachains]]
        id = 2001
        publish = { keys = 3 }
        [[parachains]]
        id = 3000
        subscribe = [{ publisher = 2000 }, { publisher = 2001 }]
    """
    told = relaycast("run", file(text, "two.toml"))
    table = told.out[told.out.index("publisher") :]
    assert re.search(r"3000 +2000 +12 ", table)
    assert re.search(r"3000 +2001 +12 ", table)


def test_the_terminal_tells_causes_when_it_is_asked_to(relaycast: Command) -> None:
    assert "siblings" not in relaycast("demo", "config-sync", "--blocks", "4").out
    assert "siblings" in relaycast("demo", "config-sync", "--blocks", "4", "--verbose").out


def test_what_a_cache_that_keeps_too_little_costs_is_named(tmp_path: Path) -> None:
    def scenario(**policies: Any) -> Scenario:
        parachains = [
            ParachainTable(id=2000, publish=PublishTable(keys=80, every=5, changed=1)),
            ParachainTable(id=3000, subscribe=[SubscriptionTable(publisher=2000)]),
        ]
        return Scenario(name="full", blocks=12, parachains=parachains, policies=PolicyTable(**policies))

    (kept,) = simulate(scenario(), out=tmp_path).outcome.subscribers[0].publishers
    (lost,) = simulate(scenario(max_cached_node=512), out=tmp_path).outcome.subscribers[0].publishers
    assert kept.uncacheable.nodes == kept.by_cause["unseen"].nodes == 0
    assert lost.uncacheable.nodes > 0
    assert lost.by_cause["unseen"].node_bytes > 0
    assert lost.callbacks > kept.callbacks


def test_a_stack_is_drawn_from_few_columns_and_keeps_the_highest() -> None:
    low = Series("low", [(number, 1) for number in range(20_000)])
    high = Series("high", [(number, 900 if number == 7_777 else 1) for number in range(20_000)])
    drawn = stacked_chart([low, high], unit="bytes", x_name="block", label="x")
    assert len(drawn) < 40 * MAX_COLUMNS
    assert "<title>high</title>" in drawn
    heights = [float(y) for y in re.findall(r",(\d+\.\d)", drawn)]
    assert min(heights) < 70, "the one high column is there"


def test_a_layer_of_nothing_and_a_stack_of_nothing_are_not_drawn() -> None:
    layers = [Series("some", [(1, 5), (2, 6)]), Series("none", [(1, 0), (2, 0)])]
    assert "<title>none</title>" not in stacked_chart(layers, unit="", x_name="", label="")
    assert stacked_chart([Series("empty", [])], unit="", x_name="", label="") == ""
