"""The log of a server: how many entries it takes of one place, and what is said of those left out."""

import io
import logging

import pytest

from relaycast.serve.request_log import limited_log


def test_entries_of_one_place_are_limited_and_the_next_says_how_many_were_left_out() -> None:
    stream, seconds, log = io.StringIO(), [0.0], logging.getLogger("a room")

    def fail(text: str) -> None:
        log.error("%s failed", text)

    with limited_log(stream, entries=3, clock=lambda: seconds[0]):
        for number in range(1_000):
            fail(f"call {number}")
        log.warning("another place")
        seconds[0] = 60
        fail("later")
        fail("again")
        seconds[0] = 240
        fail("at last")
    fail("behind the server")
    assert stream.getvalue().splitlines() == [
        "call 0 failed",
        "call 1 failed",
        "call 2 failed",
        "another place",
        "later failed (997 lines before it left out)",
        "again failed",
        "at last failed",
    ]


def test_tracebacks_count_as_one_entry_and_details_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    stream, log = io.StringIO(), logging.getLogger("a room")
    with caplog.at_level(logging.DEBUG), limited_log(stream, entries=2, clock=lambda: 0):
        for _ in range(5):
            try:
                raise RuntimeError("a defect")
            except RuntimeError:
                log.exception("it failed")
            log.info("fine print")
    assert stream.getvalue().count("RuntimeError: a defect") == 2
    assert "fine print" not in stream.getvalue()
