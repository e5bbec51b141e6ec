"""What faces delivered: the table, and the figures by hand."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from relaycast_ledger.face_deliveries import (
    FACE_DELIVERIES,
    FaceDelivery,
    FaceFigures,
    LoggedEvent,
    face_figures,
    write_face_deliveries,
)

PRICES = [
    LoggedEvent("a", seq, "price", str(seq), subject, 10 * seq)
    for seq, subject in enumerate(("dot", "ksm", "dot", "dot", None), start=1)
]


def row(event: int, delivered_ns: int | None, face: str = "push", subscription: str = "s") -> FaceDelivery:
    return FaceDelivery("a", face, subscription, "price", str(event), delivered_ns)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row(1, 15)], (1, 1, 0, 0, 5, 5, 5)),
        ([row(1, 30)], (1, 1, 0, 0, 20, 20, 20)),  # seen at the moment of the next value, not after it
        ([row(1, 31)], (1, 1, 0, 1, 21, 21, 21)),  # the key was published again at 30
        ([row(1, None)], (1, 0, 1, 1, None, None, None)),  # never seen, and overtaken
        ([row(4, None)], (1, 0, 1, 0, None, None, None)),  # the newest of its key: lost, not overtaken
        ([row(5, 1_000)], (1, 1, 0, 0, 950, 950, 950)),  # an event without a key is never overtaken
        ([row(2, 29), row(2, 24), row(2, None)], (1, 1, 0, 0, 4, 4, 4)),  # the first arrival counts
        ([row(2, 21), row(2, 23, subscription="t")], (2, 2, 0, 0, 1, 3, 3)),  # two subscriptions
        ([row(9, 21)], (1, 1, 0, 0, None, None, None)),  # the log no longer knows it
    ],
)
def test_what_a_face_did(rows: list[FaceDelivery], expected: tuple[int | None, ...]) -> None:
    assert face_figures(PRICES, rows) == [FaceFigures("a", "push", *expected)]  # type: ignore[arg-type]


def test_runs_and_faces_are_told_apart() -> None:
    rows = [row(1, 12), row(1, 14, face="live"), row(2, 21)._replace(run="b")]
    assert [(it.run, it.face, it.p50_ns) for it in face_figures(PRICES, rows)] == [
        ("a", "live", 4),
        ("a", "push", 2),
        ("b", "push", None),
    ]


def test_the_table_holds_the_rows(tmp_path: Path) -> None:
    rows = [row(1, 12), row(2, None)]
    write_face_deliveries(tmp_path / "deliveries.parquet", rows)
    table = pq.read_table(tmp_path / "deliveries.parquet")
    assert table.schema.equals(FACE_DELIVERIES)
    assert [FaceDelivery(**it) for it in table.to_pylist()] == rows
