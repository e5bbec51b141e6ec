"""Patterns of namespaces: which ones they select, and that they never reach the system's."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.icrc.registry_office import ANN, BOB, CLEO, FIRST, ORCHESTRATOR, RegistryOffice, err, ok
from relaycast_gateway.matching.namespaces import NamespacePattern

TABLE = [
    ("*.category.*", "com.category.sports", True),
    ("*.category.*", "com.foo.category.sports.ball", True),  # each end is one component or more
    ("*.category.*", "category.sports", False),  # not none
    ("*.category.*", "com.category", False),
    ("*.category.*", "com.categories.sports", False),
    ("*.category.*", "com.Category.sports", False),
    ("*.topic.*", "com.category.topic.x", True),
    ("*.icrc1.transfer", "com.foo.icrc1.transfer", True),
    ("*.icrc1.transfer", "icrc1.transfer", False),
    ("*.icrc1.transfer", "com.foo.icrc1.transfer.late", False),
    ("com.*", "com.foo", True),
    ("com.*", "com.foo.bar", True),
    ("com.*", "com", False),
    ("com.*", "comet.foo", False),
    ("com.*.transfer", "com.foo.transfer", True),
    ("com.*.transfer", "com.foo.bar.transfer", False),  # inside it is exactly one
    ("com.*.*.transfer", "com.foo.bar.transfer", True),
    ("*.*", "com.foo.bar", True),
    ("*.*", "com", False),
    ("*", "com.foo.bar", True),
    ("*", "icrc72:news", False),
    ("*.x", "icrc72:a.x", False),
    ("com.foo", "com.foo", True),
    ("com.foo", "com.foo.bar", False),
]


@pytest.mark.matrix("ICRC72-16", "ICRC72-102")
@pytest.mark.parametrize(("pattern", "namespace", "is_selected"), TABLE)
def test_a_pattern_selects(pattern: str, namespace: str, is_selected: bool) -> None:
    office = RegistryOffice()
    office.publish(ORCHESTRATOR, namespace)
    expected = ok(1) if is_selected or "*" in pattern else err("PublicationNotFound")
    assert office.subscribe(BOB, pattern) == [expected]
    assert bool(office.orchestrator.registry.subscriptions_to(namespace, FIRST)) is is_selected


@pytest.mark.matrix("ICRC72-16")
@pytest.mark.parametrize(
    "pattern",
    ["", ".", "com..foo", ".com", "com.", "com.**", "**", "*com.foo", "com.f*o", "com. foo", "a\tb", "x" * 1_025],
)
def test_a_text_that_is_no_pattern_is_refused(pattern: str) -> None:
    office = RegistryOffice()
    before = office.state()
    reason = f"namespace: got {pattern[:80]!r}, expected components between dots, each a word or *"
    assert office.subscribe(BOB, pattern) == [err("ImproperConfig", reason)]
    assert office.state() == before


@pytest.mark.matrix("ICRC72-102")
@pytest.mark.parametrize("pattern", ["icrc72:broadcaster.*", "icrc3:*", "icrc72:a.*.b"])
def test_no_pattern_reaches_into_the_systems_namespaces(pattern: str) -> None:
    (answer,) = RegistryOffice().subscribe(BOB, pattern)
    assert answer in (
        err("ImproperConfig", "namespace: a pattern never selects the system's namespaces, expected one of them"),
        err("ImproperConfig", f"namespace: got {pattern!r}, expected components between dots, each a word or *"),
    )


def naive_match(pattern: list[str], names: list[str], *, is_first: bool = True) -> bool:
    """The rule, component by component: at an end a star takes one or more, inside exactly one."""
    if not pattern or not names:
        return not pattern and not names
    head, rest = pattern[0], pattern[1:]
    if head != "*":
        return head == names[0] and naive_match(rest, names[1:], is_first=False)
    takes = range(1, len(names) + 1) if is_first or not rest else (1,)
    return any(naive_match(rest, names[count:], is_first=False) for count in takes)


@pytest.mark.matrix("ICRC72-16")
@given(
    st.lists(st.sampled_from("ab*"), min_size=1, max_size=5), st.lists(st.sampled_from("ab"), min_size=1, max_size=6)
)
def test_patterns_agree_with_the_rule_read_word_by_word(pattern: list[str], names: list[str]) -> None:
    assert NamespacePattern(".".join(pattern)).matches(".".join(names)) == naive_match(pattern, names)


@pytest.mark.matrix("ICRC72-48")
def test_several_patterns_of_one_subscriber_select_by_themselves() -> None:
    office = RegistryOffice()
    names = [".".join(parts) for parts in product("ab", "ab", "ab")]
    office.publish(ANN, *names)
    patterns = ["a.*", "*.b", "a.*.b", "a.b.a"]
    assert office.subscribe(CLEO, *patterns) == [ok(number) for number in range(1, 5)]
    for name in names:
        found = [it.id for it in office.orchestrator.registry.subscriptions_to(name, FIRST)]
        expected = [
            number
            for number, pattern in enumerate(patterns, 1)
            if re.fullmatch(pattern.replace(".", r"\.").replace("*", ".+" if pattern != "a.*.b" else "[^.]+"), name)
        ]
        assert found == expected, name


def test_running_subscriptions_of_a_namespace_are_counted_with_patterns_and_without_stopped_ones() -> None:
    office = RegistryOffice()
    office.publish(ANN, "a.a", "a.b", "b.b")
    office.subscribe(CLEO, "a.a", "a.*", "*.b")
    office.subscribe(BOB, "a.a")
    office.subscribe(BOB, "a.b", stopped=True)
    registry = office.orchestrator.registry
    names = ["b.b", "a.a", "a.b", "c.c"]
    assert list(registry.running_in(names).items()) == [("b.b", 1), ("a.a", 3), ("a.b", 2), ("c.c", 0)]
    assert [len(registry.subscriptions_to(it, FIRST)) for it in names] == [1, 3, 2, 0]
