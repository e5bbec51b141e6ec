"""A WAMP router as a process: what clients from elsewhere talk to, and what is killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rooms import ROOT

SECONDS_TO_STOP = 30.0

REALM = "com.example.shop"
PREFIX = "com.example."
TICKET, SECRET, SALTED = "the-ticket-of-tina", "the-secret-of-clara", "the-secret-of-sam"

CONFIG = f"""
[limits]
most_waiting_bytes = 1048576
handshake_seconds = 2

[[realms]]
name = "{REALM}"
anonymous_role = "anonymous"

[[realms.roles]]
name = "anonymous"
[[realms.roles.permissions]]
uri = ""
match = "prefix"
allow = ["publish", "subscribe", "call", "register"]

[[realms.roles]]
name = "user"
[[realms.roles.permissions]]
uri = ""
match = "prefix"
allow = ["publish", "subscribe", "call", "register"]

[[realms.users]]
authid = "tina"
role = "user"
ticket = "{TICKET}"

[[realms.users]]
authid = "clara"
role = "user"
secret = "{SECRET}"

[[realms.users]]
authid = "sam"
role = "user"
secret = "{SALTED}"
salt = "salt-of-sam"
iterations = 100
keylen = 32

[[realms.history]]
uri = "{PREFIX}"
match = "prefix"

[[realms.history]]
uri = "{PREFIX}many"
"""


@dataclass(frozen=True, slots=True)
class RouterProcess:
    """Ports by carrier."""

    process: subprocess.Popen[str]
    ports: dict[str, int]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def resident_bytes(self) -> int:
        import psutil  # noqa: PLC0415

        return int(psutil.Process(self.process.pid).memory_info().rss)


@contextmanager
def router(folder: Path, *, log: str = "-", config: str = CONFIG) -> Iterator[RouterProcess]:
    """Run a router until the block ends; its log is in memory or in the file ``log``."""
    file = folder / "router.toml"
    file.write_text(config)
    file.chmod(0o600)
    command = [sys.executable, str(ROOT / "benches" / "wamp_router.py"), str(file), log]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with (folder / "router.err").open("w+") as said:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=environment) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (folder / "router.err").read_text()
            websocket, rawsocket = map(int, line.split())
            try:
                yield RouterProcess(process, {"websocket": websocket, "rawsocket": rawsocket})
            finally:
                if process.poll() is None:
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(SECONDS_TO_STOP)
                    has_stopped = process.poll() is not None
                    process.kill()
                    assert has_stopped, "the router does not stop"
        said.seek(0)
        assert said.read() == ""


def given(prefix: str, serializer: str, items: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return what a client is told; ``prefix`` keeps its topics apart from those of others."""
    return {
        "realm": REALM,
        "prefix": f"{PREFIX}{prefix}.",
        "serializer": serializer,
        "ticket": ["tina", TICKET],
        "wampcra": ["clara", SECRET],
        "items": list(items),
        **more,
    }


def shown(value: object) -> str:
    return json.dumps(value, indent=1)[:2_000]
