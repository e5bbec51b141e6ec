"""The files and folders that a process has synced, in order."""

import os

import pytest


def synced_places(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each ``os.fsync``: the path that the handle then had."""
    found: list[str] = []
    sync = os.fsync

    def note(handle: int) -> None:
        found.append(os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    monkeypatch.setattr(os, "fsync", note)
    return found
