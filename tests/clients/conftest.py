"""A network in a process of its own for each client, and a line to it that can be cut."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("clients.whole_list")

from clients.served import Line, Served, serving  # noqa: E402 - rewritten assertions come first


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Serve the oracle of the presets, a block every half second."""
    with serving("oracle", "--block-time", "500ms") as network:
        yield network


@pytest.fixture(scope="module")
def line(served: Served) -> Iterator[Line]:
    line = Line(served.port)
    yield line
    line.close()
