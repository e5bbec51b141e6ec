"""Charts: few points however long the run, peaks kept, labels that cannot become markup."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast.report.charts import (
    HALF_DIGIT,
    MAX_COLUMNS,
    WIDTH,
    Series,
    across,
    band_chart,
    banded,
    bar_chart,
    nice_ceiling,
    round_ticks,
    side_by_side,
    stacked_chart,
    thinned,
)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=3_000))
def test_thinning_keeps_the_peak_and_the_order(values: list[int]) -> None:
    points = list(enumerate(values))
    kept = thinned(points)
    assert len(kept) <= MAX_COLUMNS
    assert max(value for _, value in kept) == max(values)
    assert kept == sorted(kept)
    assert set(kept) <= set(points)


@given(st.integers(0, 10**12))
def test_a_scale_ends_close_above_the_largest_value(value: int) -> None:
    top = nice_ceiling(value)
    assert top >= value
    assert top % 4 == 0
    assert top <= max(4, 2 * value)


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_ticks_are_few_and_hold_both_ends(low: int, length: int) -> None:
    ticks = round_ticks(low, low + length)
    assert ticks == sorted(set(ticks))
    assert (ticks[0], ticks[-1]) == (low, low + length)
    assert len(ticks) <= 10


def test_ticks_are_round() -> None:
    assert round_ticks(1, 60) == [1, 10, 20, 30, 40, 50, 60]
    assert round_ticks(1, 10_000) == [1, 2_000, 4_000, 6_000, 8_000, 10_000]
    assert round_ticks(30, 50) == [30, 35, 40, 45, 50]
    assert round_ticks(7, 7) == [7]


def test_the_last_number_below_ends_inside_the_chart() -> None:
    for high in (60, 10_339, 8_912_896):
        drawn = band_chart([banded(Series("up", [(1, 1), (high, 4)]))], unit="bytes", x_name="block", label="x")
        (x,) = re.findall(rf'<text x="([\d.]+)" y="[\d.]+" text-anchor="middle">{high:,}<', drawn)
        assert float(x) + HALF_DIGIT * len(f"{high:,}") <= WIDTH + 0.1


def test_lines_keep_their_height_from_block_to_block() -> None:
    drawn = band_chart([banded(Series("steps", [(0, 0), (1, 4)]))], unit="bytes", x_name="block", label="x")
    assert 'points="80.0,224.0 844.0,224.0 844.0,12.0"' in drawn


def test_blocks_of_one_relay_block_stand_side_by_side() -> None:
    assert side_by_side([1, 2, 2, 2, 2, 5]) == [1, 2, 2.25, 2.5, 2.75, 5]
    band = banded(Series("three", [(1, 9), (1, 5), (2, 9), (2, 5)]))
    assert band.points == [(1, 9, 9, 9), (1.5, 5, 5, 5), (2, 9, 9, 9), (2.5, 5, 5, 5)]


def test_a_stack_shows_every_block_that_shares_a_relay_block() -> None:
    alone, shared = (
        stacked_chart([Series("static", points)], unit="bytes", x_name="block", label="x")
        for points in ([(1, 20), (2, 20)], [(1, 20), (1, 4), (2, 20), (2, 4)])
    )
    assert 'd="M80.0,12.0L844.0,12.0L' in alone, "one height from the first block to the end of the last"
    corners = "80.0,12.0L271.0,12.0L271.0,181.6L462.0,181.6L462.0,12.0L653.0,12.0L653.0,181.6L844.0,181.6L"
    assert f'd="M{corners}' in shared
    assert shared.count(">1</text>") == shared.count(">2</text>") == 1


def test_a_long_line_has_the_median_of_each_column_and_a_band_around_it() -> None:
    band = banded(Series("long", [(x, x % 10) for x in range(4_000)]))
    assert len(band.points) == MAX_COLUMNS
    assert band.points == [(x, 0, 4, 9) for x in [*range(0, 3_990, 10), 3_999]]
    assert banded(Series("short", [(0, 5), (1, 6)])).points == [(0, 5, 5, 5), (1, 6, 6, 6)]


def test_many_lines_are_one_band_across_them() -> None:
    lines = [Series(str(value), [(x, value + x) for x in range(2)]) for value in (10, 20, 30)]
    assert across("all", lines).points == [(0, 10, 20, 30), (1, 11, 21, 31)]


def test_a_chart_of_a_long_run_is_small() -> None:
    line = Series("long", [(block, block % 1_000) for block in range(100_000)])
    assert len(band_chart([banded(line)], unit="bytes", x_name="block", label="x")) < 20_000


@pytest.mark.parametrize("name", ["<script>", 'a"b'])
def test_names_are_escaped(name: str) -> None:
    drawn = band_chart([banded(Series(name, [(1, 1)]))], unit=name, x_name=name, label=name)
    drawn += bar_chart({name: {1: 1}}, unit=name, x_name=name, label=name)
    assert name not in drawn


def test_nothing_to_draw_is_no_chart() -> None:
    assert band_chart([], unit="", x_name="", label="") == bar_chart({}, unit="", x_name="", label="") == ""
