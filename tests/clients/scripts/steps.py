"""What the Python clients' scripts of steps share: ``[NAME, ...VALUES]`` on a line asks for a step, a line answers it.

A script runs in its client's own environment: this module imports the standard library alone.
"""

import asyncio
import json
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from clients.scripts.items import SECONDS, tell


def do_steps(steps: Mapping[str, Callable[..., Any]]) -> None:
    """Do the steps that are asked for, one after another, until there is nothing more to read."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"no end after {SECONDS} s")

    signal.signal(signal.SIGALRM, give_up)
    tell({"ready": True})
    for line in sys.stdin:
        name, *values = json.loads(line)
        signal.alarm(SECONDS)
        try:
            tell({"found": steps[name](*values)})
        except Exception:
            tell({"error": traceback.format_exc()})
        finally:
            signal.alarm(0)


async def do_async_steps(steps: Mapping[str, Callable[..., Awaitable[Any]]]) -> None:
    """Do steps as ``do_steps`` does, each awaited."""
    tell({"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *values = json.loads(line)
        try:
            async with asyncio.timeout(SECONDS):
                tell({"found": await steps[name](*values)})
        except Exception:
            tell({"error": traceback.format_exc()})
