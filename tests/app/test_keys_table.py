"""``keys.parquet``: what each subscribed key took of each block, there when it is short or asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from command_line import Command
from relaycast.scenario.scenario import ParachainTable, PublishTable, RelayChainTable, Scenario, SubscriptionTable
from relaycast.simulation import simulation as run
from relaycast.simulation.run_files import simulate

MARKET = Scenario(
    name="market",
    blocks=9,
    relaychain=RelayChainTable(max_pov_bytes=8_000, pov_percent=85),
    parachains=[
        ParachainTable(id=2000, publish=PublishTable(keys=12, value_bytes=[16, 900], ttl=3)),
        ParachainTable(id=1000, publish=PublishTable(keys=5, every=4, changed=2, prefix="rate")),
        ParachainTable(id=3000, subscribe=[SubscriptionTable(publisher=2000), SubscriptionTable(publisher=1000)]),
        ParachainTable(id=3001, subscribe=[SubscriptionTable(publisher=1000, keys=2)]),
    ],
)
SUMS = ("nodes", "node_bytes", "value_nodes", "value_bytes", "cached_nodes", "cached_bytes")
ROWS = 9 * (12 + 5 + 2)

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(MARKET, out=tmp_path_factory.mktemp("market")).folder


@pytest.fixture(scope="module")
def table(folder: Path) -> Callable[[str], Rows]:
    def read(name: str) -> Rows:
        rows: Rows = pq.read_table(folder / f"{name}.parquet").to_pylist()
        return rows

    return read


def test_the_rows_of_keys_add_up_to_the_row_of_their_publisher(table: Callable[[str], Rows]) -> None:
    rows = table("keys")
    assert len(rows) == ROWS
    of_publisher: dict[tuple[int, int, int], Rows] = {}
    for row in rows:
        of_publisher.setdefault((row["block"], row["para_id"], row["publisher"]), []).append(row)
    for whole in table("proofs"):
        mine = of_publisher.pop((whole["block"], whole["para_id"], whole["publisher"]))
        assert len(mine) == whole["keys"]
        for name in (*SUMS, "pruned_nodes", "pruned_bytes", "top_bytes"):
            assert sum(row[name] for row in mine) == whole[name], name
        assert sum(row["reason"] == "changed" for row in mine) == whole["keys_changed"]
    assert not of_publisher


def test_every_byte_of_a_block_is_static_or_a_key_s(table: Callable[[str], Rows]) -> None:
    for block in table("blocks"):
        place = block["block"], block["para_id"]
        mine = [row for row in table("keys") if (row["block"], row["para_id"]) == place]
        told = sum(row["node_bytes"] + row["value_bytes"] for row in mine)
        assert block["static_bytes"] + told == block["proof_bytes"]
        assert sum(row["reason"] == "changed" for row in mine) == block["callbacks"]


def test_a_reason_says_what_became_of_a_key(table: Callable[[str], Rows]) -> None:
    rows = table("keys")
    assert {row["reason"] for row in rows} == {"changed", "unchanged", "not reached", "absent"}
    assert all(row["value_nodes"] == 0 for row in rows if row["reason"] in {"not reached", "absent"})


def without_keys(folder: Path) -> dict[str, bytes]:
    """Return the files that do not tell of single keys; the report has a table of them, or says that there is none."""
    telling = {"keys.parquet", "report.html"}
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name not in telling}


def test_nothing_else_of_a_run_depends_on_it(folder: Path, tmp_path: Path) -> None:
    other = simulate(MARKET, out=tmp_path, per_key=False).folder
    assert other.name == folder.name
    assert not (other / "keys.parquet").exists()
    assert without_keys(other) == without_keys(folder)


@pytest.mark.parametrize(("most", "per_key", "there"), [(ROWS, None, True), (ROWS - 1, None, False), (0, True, True)])
def test_long_runs_leave_it_out_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, per_key: bool | None, there: bool
) -> None:
    monkeypatch.setattr(run, "MOST_KEY_ROWS", most)
    left = simulate(MARKET, out=tmp_path, per_key=per_key).folder
    assert (left / "keys.parquet").exists() == there


@pytest.mark.parametrize(("flags", "there"), [([], True), (["--no-per-key"], False), (["--per-key"], True)])
def test_the_command_line_asks_for_it(relaycast: Command, tmp_path: Path, flags: list[str], there: bool) -> None:
    relaycast("demo", "config-sync", "--blocks", "3", "--out", str(tmp_path), *flags)
    (left,) = tmp_path.iterdir()
    assert (left / "keys.parquet").exists() == there


def test_the_first_key_carries_the_way_to_its_publisher(table: Callable[[str], Rows]) -> None:
    first: dict[tuple[int, int], bytes] = {}
    for row in table("keys"):
        place = row["para_id"], row["publisher"]
        first[place] = min(first.get(place, row["key"]), row["key"])
    carrying = [row for row in table("keys") if row["top_bytes"]]
    assert carrying
    assert all(row["key"] == first[row["para_id"], row["publisher"]] for row in carrying)
