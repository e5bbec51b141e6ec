"""What the scripts of the Python clients share: an item is done and told on one line of JSON.

A script runs in its client's own environment: this module imports the standard library alone.
"""

import asyncio
import json
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

PUBLISHER = 2000
"""It publishes from block 1 on."""

READER = 3000
"""It reads every key of ``PUBLISHER``."""

NEWCOMER = 3001
"""It is no publisher until somebody registers it."""

KEY = f"0x{'07' * 32}"
"""What ``NEWCOMER`` publishes under."""

MARKER = "0x666f726b"
"""A storage key that one branch of a fork has."""

DOT = 10_000_000_000
SECONDS = 60
"""The longest that one item may take."""

Facts = dict[str, Any]


def child_key(para_id: int) -> str:
    """Return the storage key of a publisher's child trie."""
    name = b":child_storage:default:pubsub" + para_id.to_bytes(4, "little")
    return f"0x{name.hex()}"


def tell(said: Facts) -> None:
    print(json.dumps(said, default=str), flush=True)


def ask_for_a_cut() -> None:
    """Ask for the connections through the line that can be cut to be cut."""
    tell({"ask": "cut"})


def ask_for_a_restart() -> None:
    """Ask for the server to be killed and started again, and wait until it is there: it answers with a line."""
    tell({"ask": "restart"})
    sys.stdin.readline()


def do(items: Iterable[tuple[str, Callable[[], Facts]]]) -> None:
    """Do items one after another; one that fails, or takes too long, does not keep the others from their turn."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"no end after {SECONDS} s")

    signal.signal(signal.SIGALRM, give_up)
    for name, work in items:
        signal.alarm(SECONDS)
        try:
            tell({"item": name, **work()})
        except Exception:
            tell({"item": name, "error": traceback.format_exc()})
        finally:
            signal.alarm(0)


async def do_async(items: Iterable[tuple[str, Callable[[], Awaitable[Facts]]]]) -> None:
    """Do items as ``do`` does, each awaited."""
    for name, work in items:
        try:
            async with asyncio.timeout(SECONDS):
                tell({"item": name, **await work()})
        except Exception:
            tell({"item": name, "error": traceback.format_exc()})
