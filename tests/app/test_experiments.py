"""The experiments: sentences come from rows, rows from a seed, and the page from the last full runs."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

import experiments_page
from command_line import Command, Refused
from relaycast.experiments import REGISTRY, chart_files, load, questions
from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.chart_files import specification
from relaycast.experiments.e17_spark_scaling import Scaling
from relaycast.experiments.experiment import Result, Scale, digest_of
from relaycast.experiments.result_files import write
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_trie import warm_up

_RESULTS: dict[str, Result] = {}

MOST_WORDS = 30
"""Nobody quotes a longer sentence."""

ON_SPARK = "E17"
"""Takes a minute to start; the verb that it stands on has tests of its own."""

LONG = {"E3", "E4", "E5", "E6", "E7", "E9", "E11", "E12", "E14", "E15", "E18", "E19", "E20", "E21", "E22", ON_SPARK}
"""Even their quick runs take a second and more. What they measure, digests of runs hold with every check."""

LONGEST = {"E4", "E5", "E7", "E18", "E19", "E20", "E21", "E22"}
"""Full runs of a minute and more are a long haul; the slow suite holds their quick runs."""

ALL = [pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in REGISTRY]


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """The kernels announce a first compilation on standard error: let that be over before anything is looked at."""
    warm_up()


def quick(name: str) -> Result:
    """Run an experiment once for all tests."""
    if name not in _RESULTS:
        _RESULTS[name] = load(name).run(Scale(quick=True))
    return _RESULTS[name]


def held(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("name", ALL)
def test_a_quick_run_gives_what_is_on_record(name: str) -> None:
    assert experiments_page.recorded(quick(name)) == experiments_page.on_record()[name]["quick"]


FULL = [
    pytest.param(name, marks=pytest.mark.soak if name in LONGEST else pytest.mark.slow)
    for name in REGISTRY
    if name != ON_SPARK
]


@pytest.mark.parametrize("name", FULL)
def test_a_full_run_gives_what_is_on_record(name: str) -> None:
    """A run that measures time is full when it is quick."""
    full, record = load(name).run(Scale()), experiments_page.on_record()[name]
    assert experiments_page.recorded(full) == record["full"]
    assert experiments_page.table_of(full.chart) == record["table"]


def test_a_table_of_a_chart_has_a_line_for_each_series_and_of_panels_the_middle_one() -> None:
    def chart(panels: int) -> Chart:
        return Chart(
            title="Bytes",
            mark="line",
            x=Axis(field="keys", title="keys", log=True),
            y=Axis(field="bytes", title="bytes read", percent=True),
            colour=Axis(field="who", title="reader", names=True, order=("b", "a")),
            panel=Axis(field="of", title="value", names=True, order=tuple("xyz")),
            points=[
                {"keys": keys, "bytes": keys / 7, "who": who, "of": of}
                for keys in (1_000, 10, 100)
                for who in ("a", "b")
                for of in "xyz"[:panels]
                if (keys, who) != (100, "b")
            ],
        )

    whole = ["| value | reader | 10 | 100 | 1,000 |", "|---|---|--:|--:|--:|"]
    lines = ["| x | b | 143% |  | 14,286% |", "| x | a | 143% | 1,429% | 14,286% |"]
    assert experiments_page.table_of(chart(1)) == ["Bytes read, by keys:", "", *whole, *lines]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(experiments_page, "MOST_LINES", 5)
        assert experiments_page.table_of(chart(3)) == [
            "Bytes read, by keys, value y:",
            "",
            *(line.replace("| value ", "").replace("|---|---|", "|---|").replace("| x ", "") for line in whole + lines),
        ]


def test_the_page_is_fresh_and_shows_every_chart() -> None:
    page = experiments_page.page()
    assert experiments_page.PAGE.read_text() == page
    charts = {f"{load(name).stem}.svg" for name in REGISTRY}
    assert {file.name for file in experiments_page.CHARTS.iterdir()} == charts | {"results.json"}
    assert all(f"(experiments/{chart})" in page for chart in charts)


def test_the_first_finding_is_to_be_quoted_the_others_are_a_list_and_nothing_is_lost() -> None:
    several = "One (a; b) costs 5%; 6% for two; three cost more (of four; none (c) else)."
    assert experiments_page.told(several) == [
        "> One (a; b) costs 5%; 6% for two.",
        "",
        "- Three cost more.",
        "",
        "Conditions:",
        "",
        "- Of four.",
        "- None (c) else.",
    ]
    assert experiments_page.told("One thing alone (of one).") == ["> One thing alone.", "", "Conditions: of one."]
    for name, record in experiments_page.on_record().items():
        answer = record["full"].get("answer") or record["answer"]
        told = " ".join(experiments_page.told(answer)).lower()
        assert all(word in told for word in re.findall(r"[a-z0-9][a-z0-9,.%]*[a-z0-9%]", answer.lower())), name


@pytest.mark.parametrize("name", REGISTRY)
def test_a_finding_is_a_sentence_of_at_most_thirty_words_and_the_first_has_a_figure(name: str) -> None:
    record = experiments_page.on_record()[name]
    for answer in {record[scale].get("answer") or record["answer"] for scale in ("full", "quick")}:
        first, *others = experiments_page.told(answer)
        assert re.search(r"\d", first)
        assert [it for it in (first, *others) if len(it[2:].split()) > MOST_WORDS] == []


@pytest.mark.parametrize("name", ALL)
def test_an_answer_is_one_sentence_that_names_its_conditions(name: str) -> None:
    answer = quick(name).answer
    assert answer.endswith(".")
    assert "\n" not in answer
    assert ". " not in answer
    assert "(" in answer


@pytest.mark.parametrize("name", ALL)
def test_a_chart_draws_fields_that_its_points_have(name: str) -> None:
    chart = quick(name).chart
    axes = [axis for axis in (chart.x, chart.y, chart.colour, chart.dash, chart.panel) if axis is not None]
    assert chart.points
    for point in chart.points:
        assert {axis.field for axis in axes} <= point.keys()
    for axis in axes:
        assert not axis.order or {point[axis.field] for point in chart.points} <= set(axis.order)


@pytest.mark.parametrize("name", [pytest.param("E1", marks=pytest.mark.slow), "E16"])  # a line chart in panels, cells
def test_files_hold_the_rows_and_are_the_same_bytes_whatever_was_drawn_before(name: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    names = write(quick(name), first)
    write(quick("E2"), tmp_path)
    assert write(quick(name), second) == names
    assert held(first) == held(second)
    assert {Path(file).suffix for file in names} == {".parquet", ".txt", ".svg", ".html"}
    table = pq.read_table(first / names[0])
    assert table.to_pylist() == quick(name).rows
    assert table.schema.metadata[b"relaycast.command"].decode() == f"relaycast bench {name} --seed 1 --quick"


def test_a_chart_is_one_file_without_a_network(tmp_path: Path) -> None:
    _, _, svg, html = write(quick("E16"), tmp_path)
    assert "http" not in (tmp_path / svg).read_text().replace("http://www.w3.org/", "")
    assert "<script src=" not in (tmp_path / html).read_text()


def scaling(**changes: Any) -> list[Scaling]:
    """Return rows of E17 as a run might give them."""
    times = {("processes", 1): 3.0, ("Spark", 1): 4.0, ("processes", 2): 2.0, ("Spark", 2): 2.5}
    rows = [
        Scaling(
            what=what,
            cores=cores,
            trie_keys=100,
            keys_a_proof=2,
            proofs=600,
            proof_bytes=9_000,
            seconds=seconds,
            session_seconds=4.0,
            proofs_per_second=600 / seconds,
        )
        for (what, cores), seconds in times.items()
    ]
    return [*rows[:-1], msgspec.structs.replace(rows[-1], **changes)]


def test_times_stand_apart_from_what_is_the_same_each_time(tmp_path: Path) -> None:
    spark = load(ON_SPARK)

    def finished(rows: list[Scaling]) -> Result:
        return replace(spark, measure=lambda _: rows).run(Scale())

    first, later = finished(scaling()), finished(scaling(seconds=5.0))
    assert first.digest == later.digest != finished(scaling(proof_bytes=9_001)).digest
    assert "1.60 times as many as on one" in first.answer
    assert "0.80 times as many as on one" in later.answer
    assert "the same 9,000 bytes" in first.answer
    assert "NOT the same" in finished(scaling(proof_bytes=9_001)).answer
    for result, name in ((first, "first"), (later, "later")):
        (tmp_path / name).mkdir()
        write(result, tmp_path / name)
    before, after = held(tmp_path / "first"), held(tmp_path / "later")
    table, times = "e17-spark-scaling.parquet", "e17-spark-scaling-measured.parquet"
    assert before[table] == after[table]
    assert before[times] != after[times]
    assert "seconds" not in pq.read_table(tmp_path / "first" / table).column_names
    assert pq.read_table(tmp_path / "first" / times).to_pylist() == first.rows


def test_without_spark_the_other_experiments_run(relaycast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    first = quick("E1")

    def run(self: object, scale: Scale) -> Result:
        if self.name == ON_SPARK:  # type: ignore[attr-defined]
            raise SparkUnavailable("no Java", "install Java 17")
        return first

    monkeypatch.setattr("relaycast.experiments.experiment.Experiment.run", run)
    ended = relaycast("bench", "E1", ON_SPARK)
    assert (ended.code, ended.err.count("\n")) == (0, 1)
    assert ended.err.startswith("relaycast: bench: E17 is left out: ")
    assert relaycast("bench", ON_SPARK).code == 2


def test_another_seed_gives_other_rows_and_the_digest_tells_them_apart() -> None:
    other = load("E1").run(Scale(2, quick=True))
    assert other.digest != quick("E1").digest
    rows = [dict(row) for row in quick("E1").rows]
    rows[0]["nodes"] += 1
    assert digest_of(rows) != digest_of(quick("E1").rows)


def test_without_the_charting_libraries_table_and_sentence_are_written(
    relaycast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chart_files, "can_draw", lambda: False)
    monkeypatch.setattr("relaycast.experiments.result_files.can_draw", lambda: False)
    ended = relaycast("bench", "E1", "--quick", "--out", "here")
    assert ended.code == 0
    assert ended.err.startswith("relaycast: bench: no charts: ")
    assert "pip install" in ended.err
    assert sorted(held(tmp_path / "here")) == ["e01-proof-bytes.parquet", "e01-proof-bytes.txt"]


def test_names_in_any_case_and_order_run_once_each(relaycast: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    first = quick("E1")

    def run(self: object, scale: Scale) -> Result:
        ran.append(self.name)  # type: ignore[attr-defined]
        return first

    monkeypatch.setattr("relaycast.experiments.experiment.Experiment.run", run)
    monkeypatch.setattr("relaycast.experiments.result_files.can_draw", lambda: False)
    ended = relaycast("bench", "e16", "E1", "E1", "--json")
    assert ran == ["E1", "E16"]
    assert [told["answer"] for told in ended.json["experiments"]] == [quick("E1").answer] * 2
    assert ended.json["experiments"][0]["rows"] == quick("E1").rows
    ran.clear()
    assert relaycast("bench", "ALL", "--quick").code == 0
    assert ran == list(REGISTRY)


def test_without_names_the_questions_are_listed(relaycast: Command) -> None:
    listed = relaycast("bench")
    assert listed.code == 0
    for name, question in questions().items():
        assert f"{name:4} {question}" in listed.out
    assert list(relaycast("bench", "--json").json["experiments"]) == list(REGISTRY)


def test_a_name_that_is_none_and_a_folder_that_cannot_be(refused: Refused, tmp_path: Path) -> None:
    assert "'E99'" in refused("bench", "E1", "E99")
    (tmp_path / "file").write_text("")
    assert "--out file" in refused("bench", "E1", "--out", "file")
    assert "--out file" in refused("bench", "E1", "--out", "file/below")
    assert "--seed" in refused("bench", "E1", "--seed", "-1")


def test_neither_listing_nor_help_loads_what_is_slow() -> None:
    program = (
        "import sys; from relaycast.cli.command import execute; execute(['bench']);"
        "print([name for name in ('altair', 'numba', 'pyarrow', 'numpy') if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"


def test_a_log_axis_that_begins_at_0_shows_0_as_0() -> None:
    x = Axis(field="x", title="x")
    y = Axis(field="y", title="y", log_from_zero=True)
    points = [{"x": 1, "y": 0.0}, {"x": 2, "y": 900.0}]
    encoding = specification(Chart(title="t", mark="line", x=x, y=y, points=points))["encoding"]
    assert encoding["y"]["scale"] == {"constant": 1, "domain": [0, 1000], "type": "symlog"}
    assert encoding["y"]["axis"]["values"] == [0, 1, 10, 100, 1000]


def test_lines_that_may_coincide_get_thinner_one_by_one() -> None:
    x, y = (Axis(field=name, title=name) for name in "xy")
    colour = Axis(field="line", title="line", names=True, order=("a", "b", "c"))
    points = [{"x": 1, "y": 1, "line": name} for name in "abc"]
    chart = Chart(title="t", mark="line", x=x, y=y, points=points, colour=colour, nested=True)
    scale = specification(chart)["encoding"]["strokeWidth"]["scale"]
    assert scale["domain"] == ["a", "b", "c"]
    assert scale["range"] == sorted(set(scale["range"]), reverse=True)
