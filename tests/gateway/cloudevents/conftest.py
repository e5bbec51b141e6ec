"""What the CloudEvents tests share: the cases of a vector file."""

import pytest

from shared_vectors import Case, Selection


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> list[Case]:
    selection = request.param
    assert isinstance(selection, Selection)
    found = selection.cases()
    assert found, f"no cases in {selection}"
    return found
