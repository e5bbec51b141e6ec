"""Every line of the matrix is known, tests name only those, and the page that lists them is fresh."""

import re

from gateway_coverage import PAGE, claims, matrix, page, reason
from shared_vectors import shared


def test_the_matrix_holds_every_line_of_the_design() -> None:
    ids = [line.id for line in matrix()]
    assert len(ids) == len(set(ids)) == 359
    assert set(ids) == set(
        re.findall(r"\b(?:CE|WAMP|ICRC72|ICRC77|X)-\d+\b", shared("design/gateway-tests.md").read_text())
    )


def test_a_test_names_lines_that_there_are() -> None:
    assert not set(claims()) - {line.id for line in matrix()}


def test_every_line_of_an_offered_face_has_a_test_or_a_reason() -> None:
    tested = claims()
    open_lines = [line.id for line in matrix() if line.id not in tested and reason(line) is None]
    assert not open_lines
    assert all(line.id in tested or len(reason(line) or "") > 20 for line in matrix())


def test_the_page_is_what_the_markers_say() -> None:
    assert PAGE.read_text() == page(), "run .venv/bin/python docs/generators/gateway_coverage.py"
