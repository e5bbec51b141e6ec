"""A disk without room: a file system of its own where this process may mount one, a limit otherwise."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

FULL = "no space left on device", "file too large"
"""How the system calls it, with and without a file system of its own."""


@contextmanager
def full_disk(folder: Path) -> Iterator[Path]:
    """Give an empty folder in which files can be made, and nothing be written into them."""
    inside = folder / "room"
    inside.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        inside.mkdir()
        with suppress(OSError), (folder / "fill").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(4_096))
        try:
            yield inside
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        yield inside
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Give an empty folder on a file system with that many bytes; skip the test where this process may mount none."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def handles(free: int) -> Iterator[int]:
    """Leave this process that many file handles; return the limit."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    top = max(int(name) for name in os.listdir("/proc/self/fd"))
    while held[-1] < top:  # gaps between handles are handles, too
        held.append(os.open(os.devnull, os.O_RDONLY))
    limit = held[-1] + 1 + free
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield limit
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for handle in held:
            os.close(handle)
