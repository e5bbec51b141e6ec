"""Transactions by tags, in the cases that sc-transaction-pool's own tests name."""

import pytest

from relaycast_node.extrinsic.pool_errors import AlreadyImported, CycleDetected, TooLowPriority
from relaycast_node.extrinsic.tag_graph import Imported, PooledTransaction, QueueLimit, TagGraph

UNLIMITED = QueueLimit(1_000, 1_000_000)


def tx(
    name: str,
    *,
    requires: tuple[str, ...] = (),
    provides: tuple[str, ...] = (),
    priority: int = 5,
    valid_till: int = 64,
    size: int = 1,
) -> PooledTransaction:
    wanted, given = ([tag.encode() for tag in tags] for tags in (requires, provides))
    return PooledTransaction(name.encode(), bytes(size), priority, tuple(wanted), tuple(given), valid_till)


def graph_of(*transactions: PooledTransaction) -> TagGraph:
    graph = TagGraph()
    for transaction in transactions:
        graph.import_(transaction)
    return graph


def ready(graph: TagGraph) -> list[str]:
    return [transaction.hash.decode() for transaction in graph.ready()]


def future(graph: TagGraph) -> list[str]:
    return [one.decode() for one in graph.future_queue.members]


def test_one_that_requires_nothing_is_ready() -> None:
    graph = TagGraph()
    assert graph.import_(tx("a", provides=("1",))) == Imported(b"a", is_ready=True)
    assert (ready(graph), graph.provides(b"1")) == (["a"], True)


def test_one_that_requires_a_tag_waits_for_it() -> None:
    graph = graph_of(tx("b", requires=("0",), provides=("1",)))
    assert (ready(graph), future(graph)) == ([], ["b"])
    assert graph.import_(tx("a", provides=("0",))) == Imported(b"a", True, promoted=(b"b",))
    assert (ready(graph), future(graph)) == (["a", "b"], [])


@pytest.mark.parametrize("first", [tx("a", provides=("1",)), tx("a", requires=("0",), provides=("1",))])
def test_the_same_one_does_not_come_twice(first: PooledTransaction) -> None:
    graph = graph_of(first)
    with pytest.raises(AlreadyImported, match="0x61"):
        graph.import_(first)


def test_a_whole_graph_is_promoted() -> None:
    graph = graph_of(
        tx("1", requires=("0",), provides=("1",)),
        tx("3", requires=("2",)),
        tx("2", requires=("1",), provides=("3", "2")),
        tx("4", requires=("3", "4"), priority=1_000),
    )
    imported = graph.import_(tx("5", provides=("0", "4")))
    assert sorted(imported.promoted) == [b"1", b"2", b"3", b"4"]
    assert ready(graph) == ["5", "1", "2", "4", "3"]


def test_order_is_by_dependency_then_priority_then_validity_then_arrival() -> None:
    graph = graph_of(
        tx("late", provides=("a",), priority=7, valid_till=90),
        tx("soon", provides=("b",), priority=7, valid_till=80),
        tx("later", provides=("c",), priority=7, valid_till=90),
        tx("child", requires=("d",), provides=("e",), priority=99),
        tx("low", provides=("d",), priority=1),
        tx("high", provides=("f",), priority=8),
    )
    assert ready(graph) == ["high", "soon", "late", "later", "low", "child"]


def test_one_with_a_higher_priority_replaces_and_what_depended_on_it_stays() -> None:
    graph = graph_of(tx("a", provides=("1",)), tx("b", requires=("1",), provides=("2",)))
    assert graph.import_(tx("A", provides=("1",), priority=6)).replaced == (b"a",)
    assert ready(graph) == ["A", "b"]


@pytest.mark.parametrize("priority", [4, 5])
def test_one_with_the_same_priority_or_less_does_not_replace(priority: int) -> None:
    graph = graph_of(tx("a", provides=("1",)))
    with pytest.raises(TooLowPriority, match=rf"\(5 vs {priority}\)"):
        graph.import_(tx("A", provides=("1",), priority=priority))
    assert ready(graph) == ["a"]


def test_those_that_are_replaced_count_together() -> None:
    graph = graph_of(tx("a", provides=("1",)), tx("b", provides=("2",)))
    with pytest.raises(TooLowPriority, match=r"\(10 vs 10\)"):
        graph.import_(tx("c", provides=("1", "2"), priority=10))
    assert set(graph.import_(tx("d", provides=("1", "2"), priority=11)).replaced) == {b"a", b"b"}
    assert ready(graph) == ["d"]


def test_a_replacement_that_provides_less_takes_dependents_with_it() -> None:
    graph = graph_of(
        tx("0", provides=("0",)),
        tx("1", provides=("1",)),
        tx("2", requires=("0", "1"), provides=("2", "3")),
        tx("3", requires=("2",), provides=("4",)),
        tx("4", requires=("3",), provides=("5",)),
    )
    graph.import_(tx("5", requires=("0", "1"), provides=("2",), priority=10))
    assert ready(graph) == ["0", "1", "5"]


def test_of_two_that_wait_with_one_tag_the_better_becomes_ready() -> None:
    better, worse = tx("3", requires=("1",), provides=("3",), priority=50), tx("2", requires=("1",), provides=("3",))
    for first, second in ((better, worse), (worse, better)):
        graph = graph_of(first, second)
        assert graph.import_(tx("1", provides=("1",))) == Imported(b"1", True, (b"3",), (b"2",))
        assert (ready(graph), future(graph)) == (["1", "3"], [])


def test_a_cycle_is_broken_by_a_better_one() -> None:
    graph = graph_of(
        tx("1", requires=("0",), provides=("1",)),
        tx("3", requires=("1",), provides=("2",)),
        tx("2", requires=("2",), provides=("0",)),
    )
    assert future(graph) == ["1", "3", "2"]
    imported = graph.import_(tx("4", provides=("0",), priority=50))
    assert imported == Imported(b"4", True, (b"1", b"3"), (b"2",))
    assert (ready(graph), future(graph)) == (["4", "1", "3"], [])


def test_a_cycle_that_a_worse_one_closes_loses_all() -> None:
    graph = graph_of(
        tx("1", requires=("0",), provides=("1",)),
        tx("3", requires=("1",), provides=("2",)),
        tx("2", requires=("2",), provides=("0",)),
    )
    with pytest.raises(CycleDetected) as cycle:
        graph.import_(tx("4", provides=("0",), priority=1))
    assert set(cycle.value.lost) == {b"1", b"2", b"3", b"4"}
    assert (ready(graph), future(graph)) == ([], [])


def test_removing_takes_all_that_depend_on_it() -> None:
    graph = graph_of(
        tx("5", provides=("0", "4")),
        tx("1", requires=("0",), provides=("1",)),
        tx("3", requires=("2",)),
        tx("2", requires=("1",), provides=("3", "2")),
        tx("4", requires=("3", "4"), priority=1_000),
        tx("6", requires=("11",)),
    )
    assert {gone.hash for gone in graph.remove([b"6", b"1", b"unknown"])} == {b"1", b"2", b"3", b"4", b"6"}
    assert (ready(graph), future(graph)) == (["5"], [])


def test_tags_of_a_block_prune_their_providers_and_what_led_to_them() -> None:
    graph = graph_of(
        tx("5", requires=("0",), provides=("100",)),
        tx("1", provides=("1",)),
        tx("2", requires=("2",), provides=("3",)),
        tx("3", requires=("1",), provides=("2",)),
        tx("4", requires=("3", "2"), provides=("4",), priority=1_000),
    )
    result = graph.prune([b"0", b"2"])
    assert {one.hash for one in result.pruned} == {b"1", b"3"}
    assert (result.promoted, result.obsolete) == ((Imported(b"5", is_ready=True),), ())
    assert (ready(graph), future(graph)) == (["2", "4", "5"], [])


def test_tags_of_a_block_spare_what_something_else_depends_on() -> None:
    graph = graph_of(
        tx("root", provides=("r",)),
        tx("included", requires=("r",), provides=("i",)),
        tx("other", requires=("r",), provides=("o",)),
    )
    assert [one.hash for one in graph.prune([b"i"]).pruned] == [b"included"]
    assert ready(graph) == ["root", "other"]


def test_tags_of_a_block_make_what_waits_with_them_obsolete() -> None:
    graph = graph_of(tx("a", requires=("1",), provides=("2",)))
    assert graph.prune([b"2"]).obsolete == (b"a",)
    assert (ready(graph), future(graph)) == ([], [])


def test_a_tag_of_a_block_counts_until_the_other_tags_come() -> None:
    graph = graph_of(tx("a", requires=("1", "2"), provides=("3",)))
    assert graph.prune([b"1"]).promoted == ()
    assert graph.import_(tx("b", provides=("2",))).promoted == (b"a",)


def test_a_tag_that_was_withdrawn_does_not_count() -> None:
    graph = graph_of(tx("a", requires=("1", "2"), provides=("3",)), tx("b", provides=("1",)))
    graph.remove([b"b"])
    assert graph.import_(tx("c", provides=("2",))).promoted == ()
    assert future(graph) == ["a"]


def test_a_full_ready_queue_loses_the_lowest_priority_and_of_equals_the_oldest() -> None:
    graph = graph_of(
        tx("a", provides=("1",), priority=2),
        tx("b", provides=("2",), priority=1),
        tx("c", provides=("3",), priority=1),
        tx("b2", requires=("2",), provides=("4",), priority=9),
    )
    assert [gone.hash for gone in graph.enforce(QueueLimit(3, 1_000), UNLIMITED)] == [b"b", b"b2"]
    assert ready(graph) == ["a", "c"]


def test_a_full_future_queue_loses_the_oldest_until_bytes_and_count_fit() -> None:
    graph = graph_of(*(tx(name, requires=("x",), provides=(name,), size=10) for name in "abcd"))
    assert [gone.hash for gone in graph.enforce(UNLIMITED, QueueLimit(3, 25))] == [b"a", b"b"]
    assert (graph.future_queue.total_bytes, future(graph)) == (20, ["c", "d"])


def test_clearing_leaves_nothing_and_returns_all_in_order() -> None:
    graph = graph_of(tx("w", requires=("x",)), tx("b", requires=("1",), provides=("2",)), tx("a", provides=("1",)))
    assert [one.hash for one in graph.clear()] == [b"a", b"b", b"w"]
    assert (ready(graph), future(graph), graph.ready_queue.total_bytes) == ([], [], 0)
    assert not graph.provides(b"1")
