"""Every scenario of the specification is known, tests name only those, and the page that lists them is fresh."""

from shared_vectors import shared
from spec_coverage import PAGE, claims, page, titles, titles_in


def test_the_list_holds_each_of_the_65_scenarios_once() -> None:
    assert len(titles()) == len(set(titles())) == 65


def test_the_list_is_that_of_the_specification() -> None:
    assert titles() == titles_in(shared("specs/pubsub.md").read_text())


def test_a_test_names_scenarios_as_the_specification_does() -> None:
    unknown = {claim.scenario for claim in claims()} - set(titles())
    assert not unknown, f"unknown scenarios: {sorted(unknown)}"


def test_the_page_is_what_the_markers_say() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python docs/generators/spec_coverage.py"
