"""Points of charts as plain numbers, and latencies as counts: both say what lists would."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_ledger.outcome import Point, counted_latency, latency
from relaycast_ledger.run_statistics import FLAGS, NAMES, Line, Points

SIZES = st.integers(0, 2**40)
POINTS = st.builds(
    lambda values, causes: Point(
        **{name: bool(value % 2) if name in FLAGS else value for name, value in zip(NAMES, values, strict=True)},
        by_cause=tuple(causes),
    ),
    st.lists(SIZES, min_size=len(NAMES), max_size=len(NAMES)),
    st.lists(SIZES, max_size=6),
)


@given(st.lists(POINTS, max_size=20))
def test_points_come_back_as_they_went_in(given: list[Point]) -> None:
    points = Points()
    for point in given:
        points.append(point)
    assert list(points) == given
    assert points == given
    assert points[2:5] == given[2:5]
    assert points[-1:] == given[-1:]
    assert list(points.column("proof_bytes")) == [point.proof_bytes for point in given]


@given(st.lists(POINTS, max_size=20), st.sampled_from(["proof_bytes", "own_bytes"]))
def test_a_line_is_the_same_of_points_and_of_a_list_of_them(given: list[Point], name: str) -> None:
    points = Points()
    for point in given:
        points.append(point)
    pairs = [(point.block, getattr(point, name)) for point in given]
    for line in (Line.of(points, name), Line.of(given, name)):
        assert list(line) == pairs
        assert line[1:3] == pairs[1:3]
        assert [line[index] for index in range(len(line))] == pairs


def test_there_is_no_point_beyond_the_last() -> None:
    points = Points()
    with pytest.raises(IndexError):
        points[0]
    points.append(Point(1, 2, 3, 4, 5))
    assert points[-1] == points[0] == Point(1, 2, 3, 4, 5)
    with pytest.raises(IndexError):
        points[-2]


@given(st.lists(st.integers(0, 300)))
def test_counted_latencies_have_the_spread_of_the_list(values: list[int]) -> None:
    assert counted_latency(Counter(values)) == latency(values)
