"""Appends single events for a caller who does not wait, and tells of all that a commit ended at once.

A future costs three times as much as the rest of an append, and waking an event loop for each more than that.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from relaycast_gateway.log.group_commit import GroupCommit, SingleAppend
from relaycast_gateway.log.record_codec import encode_body
from relaycast_gateway.record import EventDraft, EventRecord

Token = TypeVar("Token")

Ended = tuple[Token, EventRecord | BaseException]
"""What the caller knows an append by, and its record, or why nothing was appended."""


class Appender(Generic[Token]):
    """One caller's way into a log; ``EventLog.appender`` makes one."""

    def __init__(self, writer: GroupCommit, told: Callable[[list[Ended[Token]]], None]) -> None:
        self._writer = writer
        self._told = told
        self._ended: list[Ended[Token]] = []

    def append(self, draft: EventDraft, token: Token) -> None:
        """Append an event without waiting, after all that was appended before.

        ``ValueError`` for a draft that cannot be stored, ``LogClosed`` after the log was closed.
        """
        self._writer.submit(SingleAppend(draft, encode_body(draft), token, self._ended))

    def tell(self) -> None:
        """Tell of appends that a commit ended; in the writing thread."""
        if self._ended:
            ended = self._ended[:]
            self._ended.clear()
            self._told(ended)
