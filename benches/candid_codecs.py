"""Codecs of Candid beside each other: ours, @dfinity/candid and icp-py-core, each in a process of its own.

The message is a notification of a chain event, with its headers. All take turns, in rounds so short that hardly one is
interrupted; a figure is the median of the rounds behind the warm-up. ``.ci/peers`` installs both peers.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from relaycast_gateway.candid import Principal, decode, encode
from relaycast_gateway.icrc.interface import definitions
from relaycast_gateway.icrc.variants import pairs_of, variant_of
from relaycast_gateway.record import EventDraft

GOAL = 60.0
"""Microseconds, to encode and to decode."""

TURNS = 3
ROUNDS = 60
CALLS = 10
"""Calls in a round."""

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "tests" / "candid_peers" / "scripts"
PEERS = {
    "@dfinity/candid": ("candid", Path("node"), "dfinity_candid.mjs"),
    "icp-py-core": ("icp-py-core", ROOT / ".peers" / "icp-py-core" / "bin" / "python", "icp_codec.py"),
}
"""The folder in ``.peers``, the program and its script."""

TYPES = f"{definitions()}(EventNotification)"
INTERFACE = f"{definitions()}service : {{ take : (EventNotification) -> () }}"
OURS = "ours"

Times = Callable[[], list[list[float]]]
"""Gives microseconds of one call to encode, and to decode, in each round."""


def notification(event: EventDraft) -> dict[str, object]:
    """Return what a subscriber is sent of an event."""
    return {
        "id": 1_000,
        "eventId": 1_000,
        "prevEventId": 999,
        "timestamp": 1_700_000_000_000_000_000,
        "namespace": event.namespace,
        "data": variant_of(event.data),
        "headers": pairs_of(event.headers),
        "source": Principal(event.source),
        "filter": None,
    }


def compared(event: EventDraft, missed: list[str]) -> Iterator[str]:
    """Yield a table; what misses its goal is added to ``missed``."""
    message = encode(TYPES, [notification(event)])
    with ExitStack() as stack:
        codecs: dict[str, Times] = {OURS: lambda: _ours(message)}
        for name, (folder, program, script) in PEERS.items():
            path = shutil.which(program)
            if path is None or not (ROOT / ".peers" / folder / ".made").is_file():
                yield f"no {name} in .peers/{folder}: `.ci/peers` installs it"
            else:
                codecs[name] = _peer(stack, [path, str(SCRIPTS / script)], ROOT / ".peers" / folder, message)
        rounds: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in codecs}
        for turn in range(TURNS + 1):
            for name, times in codecs.items():
                for kept, found in zip(rounds[name], times(), strict=True):
                    kept.extend(found if turn else ())
    yield f"Candid, a notification of {len(message)} bytes, goal at most {GOAL:.0f} us each way for ours:"
    for name, (writing, reading) in rounds.items():
        yield f"  {name:<16} encode {median(writing):>6.1f} us, decode {median(reading):>6.1f} us"
    missed += [
        f"{way} takes {median(it):.1f} us, goal {GOAL:.0f}"
        for way, it in zip(("encode", "decode"), rounds[OURS], strict=True)
        if median(it) > GOAL
    ]


def _ours(message: bytes) -> list[list[float]]:
    values = decode(message, TYPES)
    return [_rounds(lambda: encode(TYPES, values)), _rounds(lambda: decode(message, TYPES))]


def _rounds(work: Callable[[], object]) -> list[float]:
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            work()
        found.append((time.perf_counter() - began) / CALLS * 1e6)
    return found


def _peer(stack: ExitStack, command: list[str], folder: Path, message: bytes) -> Times:
    pipe = subprocess.PIPE
    process = stack.enter_context(subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, text=True))
    stack.callback(process.kill)
    question = {"ask": "times", "did": INTERFACE, "message": message.hex(), "rounds": ROUNDS, "calls": CALLS}

    def times() -> list[list[float]]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        if "error" in answer:
            sys.exit(f"{command[-1]}: {answer['error']}")
        found: list[list[float]] = answer["value"]
        return found

    return times
