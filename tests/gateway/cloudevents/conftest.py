"""What the CloudEvents tests share: the cases of a vector file, and an eye on the server's log."""

from collections.abc import Iterator

import pytest

from shared_vectors import Case, Selection


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> list[Case]:
    selection = request.param
    assert isinstance(selection, Selection)
    found = selection.cases()
    assert found, f"no cases in {selection}"
    return found


@pytest.fixture(autouse=True)
def nothing_fails_inside(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which the server logged an error: that is a defect behind whatever was answered."""
    yield
    assert [
        record.getMessage() for record in caplog.get_records("call") if record.levelname in {"ERROR", "CRITICAL"}
    ] == []
