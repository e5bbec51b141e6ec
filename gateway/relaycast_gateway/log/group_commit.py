"""One thread commits for all callers: those that wait during a commit share the next one.

Law: what is submitted is committed in that order. A thread that submits faster than the disk writes is held back.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Condition, Lock, Thread, get_ident
from typing import Any

from relaycast_gateway.clock import Clock
from relaycast_gateway.log.unusable import LogClosed
from relaycast_gateway.record import EventDraft

MOST_WAITING_BYTES = 64 * 1024 * 1024
MOST_ROWS_A_COMMIT = 10_000
BYTES_OF_A_DRAFT = 500
"""What a waiting draft takes beside its stored form, about."""


class Append:
    """Drafts of one caller, with their stored forms; they are committed together."""

    __slots__ = ("bodies", "drafts", "future", "received_ns", "weight")

    def __init__(self, drafts: Sequence[EventDraft], bodies: Sequence[bytes], future: Future[Any]) -> None:
        self.drafts = drafts
        self.bodies = bodies
        self.future = future
        self.received_ns = 0
        self.weight = sum(map(len, bodies)) + BYTES_OF_A_DRAFT * len(bodies)
        """Bytes that it takes while it waits, about."""


@dataclass(slots=True)
class Purge:
    """A wish that retention runs now; the future tells how many events went."""

    future: Future[int]


class GroupCommit:
    """Calls ``commit`` with all that waits, in a thread that starts with the first submission."""

    def __init__(self, commit: Callable[[list[Append | Purge]], None], *, clock: Clock) -> None:
        self._commit = commit
        self._clock = clock
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._waiting: deque[Append | Purge] = deque()
        self._waiting_bytes = 0
        self._closed = False
        self._is_idle = False
        self._thread: Thread | None = None
        self._writing: int | None = None
        """The thread's number."""

    def submit(self, job: Append | Purge) -> None:
        """Queue a job, and stamp it with the time; blocks while more than 64 MiB wait. Raises ``LogClosed``."""
        assert get_ident() != self._writing, "a callback of the log appends to it: that would wait for itself"
        with self._lock:
            while self._waiting_bytes >= MOST_WAITING_BYTES and not self._closed:
                self._changed.wait()
            if self._closed:
                raise LogClosed
            if isinstance(job, Append):
                job.received_ns = self._clock.now_ns()
                self._waiting_bytes += job.weight
            self._waiting.append(job)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="relaycast event log", daemon=True)
                self._thread.start()
            if self._is_idle:
                self._is_idle = False
                self._changed.notify_all()

    def close(self) -> None:
        """Commit what waits and end the thread."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and get_ident() != self._writing:
            self._thread.join()

    def _run(self) -> None:
        self._writing = get_ident()
        while jobs := self._next():
            self._commit(jobs)

    def _next(self) -> list[Append | Purge]:
        """Return the jobs of the next commit, none at the end."""
        jobs: list[Append | Purge] = []
        rows = 0
        with self._lock:
            while not self._waiting and not self._closed:
                self._is_idle = True
                self._changed.wait()
            while self._waiting and rows < MOST_ROWS_A_COMMIT:
                jobs.append(job := self._waiting.popleft())
                if isinstance(job, Append):
                    rows += len(job.drafts)
                    self._waiting_bytes -= job.weight
            self._changed.notify_all()
        return jobs
