"""Charts: few points however long the run, peaks kept, labels that cannot become markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast.charts import MAX_COLUMNS, Series, bar_chart, line_chart, nice_ceiling, thinned


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


def test_a_chart_of_a_long_run_is_small() -> None:
    line = Series("long", [(block, block % 1_000) for block in range(100_000)])
    assert len(line_chart([line], unit="bytes", x_name="block", label="x")) < 20_000


@pytest.mark.parametrize("name", ["<script>", 'a"b'])
def test_names_are_escaped(name: str) -> None:
    drawn = line_chart([Series(name, [(1, 1)])], unit=name, x_name=name, label=name)
    drawn += bar_chart({name: {1: 1}}, unit=name, x_name=name, label=name)
    assert name not in drawn


def test_nothing_to_draw_is_no_chart() -> None:
    assert line_chart([], unit="", x_name="", label="") == bar_chart({}, unit="", x_name="", label="") == ""
