"""Which blocks a report sets apart as start-up, and that paper shows the costliest rows of a long table."""

import re

import msgspec
import pytest

from relaycast.report.charts import Band, band_chart
from relaycast.report.page import PRINTED_ROWS, render_report
from relaycast.report.start_up import StartUp, start_up, start_up_of
from relaycast.report.verdicts import verdicts
from relaycast.scenario.files import load_preset
from relaycast.simulation.simulation import Simulation
from relaycast_ledger.outcome import Point


def block(number: int, *, callbacks: int = 0, warm_up: bool = True) -> Point:
    return Point(number, 100, 50, 0, callbacks, warm_up=warm_up)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], None),
        ([block(3), block(4)], None),  # nothing is ever delivered
        ([block(3, callbacks=1)], None),  # it ends with the run: nothing follows to be set apart from
        ([block(3, callbacks=1), block(4, callbacks=1, warm_up=False)], StartUp(3, 4)),
        ([block(1), block(2), block(3, callbacks=1), block(4), block(5, warm_up=False)], StartUp(1, 5)),
    ],
)
def test_start_up_lasts_from_the_first_block_to_the_last_of_the_first_values(
    points: list[Point], expected: StartUp | None
) -> None:
    assert start_up_of(points) == expected


def test_the_start_up_of_a_run_ends_with_that_of_its_last_reader() -> None:
    run = Simulation.prepare(load_preset("oracle")).run()
    assert start_up(run) == StartUp(3, 4)
    page = render_report(run, load_preset("oracle"))
    assert page.count('<rect class="start"') == 2  # proofs, and what passes were charged
    assert [it.summary.count(". ") for it in verdicts(run)] == [0, 0, 0]
    assert len(re.findall('<ul class="summary">.*</ul>', page)) == 1


def test_a_chart_without_start_up_has_no_shade() -> None:
    band = Band("x", [(1, 1, 1, 1), (2, 2, 2, 2)])
    assert "start" not in band_chart([band], unit="u", x_name="x", label="x")


def test_rows_of_tables_stand_costliest_first_so_that_paper_shows_those() -> None:
    scenario = msgspec.structs.replace(load_preset("hundred-subscribers"), blocks=6)
    page = render_report(Simulation.prepare(scenario).run(), scenario)
    table = page[page.index('<h2 id="readers">') :]
    rows = table[: table.index("</table>")].split("<tr>")[2:]
    whole = [int(re.findall("<td[^>]*>([^<]*)</td>", row)[7].replace(",", "")) for row in rows]
    assert len(whole) == 100
    assert whole == sorted(whole, reverse=True)
    assert f"Printed are the {PRINTED_ROWS} costliest of 100 rows." in table
    assert f"nth-child(n+{PRINTED_ROWS + 1})" in page
