"""What many subscriptions look at is made once for each record."""

from gateway.matching.records import Noting, record
from relaycast_gateway.matching.predicate import SharedView


def test_a_view_is_made_once_for_a_record() -> None:
    make = Noting(lambda one: f"view of {one.seq}")
    view = SharedView(make, kept=4)
    for _ in range(3):
        assert [view(record(seq)) for seq in (1, 2, 3, 4)] == [f"view of {seq}" for seq in (1, 2, 3, 4)]
    assert make.seqs == [1, 2, 3, 4]


def test_a_later_record_takes_the_place_of_an_earlier_one() -> None:
    make = Noting(lambda one: one.seq)
    view = SharedView(make, kept=4)
    assert [view(record(seq)) for seq in (1, 5, 1, 5, 2)] == [1, 5, 1, 5, 2]
    assert make.seqs == [1, 5, 1, 5, 2]


def test_few_views_are_kept_however_many_records_come() -> None:
    view = SharedView(lambda one: one, kept=8)
    for seq in range(1, 1_000):
        assert view(record(seq)).seq == seq
    assert len(view._places) == 8
