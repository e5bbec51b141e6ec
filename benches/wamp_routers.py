"""Routers of WAMP as child processes, for benchmarks: ours, and crossbar from an environment of its own.

``.ci/peers crossbar`` makes that environment. Both serve the realm ``bench`` to anonymous clients and to tickets, over
WebSocket and RawSocket, and keep the history of all topics below ``com.example.``.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

REALM = "bench"
TOPICS = "com.example."
USERS = {"ada": ("the-ticket-of-ada", "admin"), "uma": ("the-ticket-of-uma", "user")}
"""Ticket and role by authid."""

CROSSBAR = Path(__file__).parents[1] / ".peers" / "crossbar" / "bin" / "crossbar"
SECONDS_TO_START = 120.0
LIMIT = 10_000_000
"""Events that crossbar keeps in memory; its default is 100."""


@dataclass(frozen=True, slots=True)
class RunningRouter:
    """Ports of a router, and the process that was started; crossbar works in a child of it."""

    name: str
    websocket_port: int
    rawsocket_port: int
    path: str
    process: int

    def processes(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process)
        return [parent, *parent.children(recursive=True)]

    def cpu_seconds(self) -> float:
        return sum(times.user + times.system for times in (it.cpu_times() for it in self.processes()))

    def resident_bytes(self) -> int:
        return sum(it.memory_info().rss for it in self.processes())


def pattern_of(router: RunningRouter) -> str:
    """Return the prefix whose history is configured; crossbar takes none that ends with a dot."""
    return TOPICS.removesuffix(".") if router.name == "crossbar" else TOPICS


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def crossbar_config(websocket_port: int, rawsocket_port: int) -> dict[str, object]:
    everything = {
        "uri": "",
        "match": "prefix",
        "allow": {"call": True, "register": True, "publish": True, "subscribe": True},
        "disclose": {"caller": False, "publisher": False},
        "cache": True,
    }
    roles = [{"name": name, "permissions": [everything]} for name in ("anonymous", "admin", "user")]
    tickets = {"type": "static", "principals": {it: {"ticket": t, "role": r} for it, (t, r) in USERS.items()}}
    auth = {"anonymous": {"type": "static", "role": "anonymous"}, "ticket": tickets}
    store = {
        "type": "memory",
        "limit": LIMIT,
        "event-history": [{"uri": TOPICS[:-1], "match": "prefix", "limit": LIMIT}],
    }
    websocket = {
        "type": "websocket",
        "endpoint": {"type": "tcp", "port": websocket_port, "interface": "127.0.0.1"},
        "serializers": ["json", "msgpack", "cbor"],
        "auth": auth,
    }
    rawsocket = {
        "type": "rawsocket",
        "endpoint": {"type": "tcp", "port": rawsocket_port, "interface": "127.0.0.1"},
        "serializers": ["json", "msgpack", "cbor"],
        "auth": auth,
    }
    worker = {
        "type": "router",
        "realms": [{"name": REALM, "roles": roles, "store": store}],
        "transports": [websocket, rawsocket],
    }
    return {"version": 2, "controller": {}, "workers": [worker]}


def router_config() -> str:
    lines = ["[[realms]]", f'name = "{REALM}"', 'anonymous_role = "anonymous"']
    for role in ("anonymous", "admin", "user"):
        lines += [
            "[[realms.roles]]",
            f'name = "{role}"',
            "[[realms.roles.permissions]]",
            'uri = ""',
            'match = "prefix"',
        ]
        lines += ['allow = ["publish", "subscribe", "call", "register"]']
    for authid, (ticket, role) in USERS.items():
        lines += ["[[realms.users]]", f'authid = "{authid}"', f'role = "{role}"', f'ticket = "{ticket}"']
    lines += ["[[realms.history]]", f'uri = "{TOPICS}"', 'match = "prefix"']
    return "\n".join([*lines, ""])


@contextmanager
def crossbar(folder: Path) -> Iterator[RunningRouter]:
    """Run crossbar with its history in memory, the only place that it has for one."""
    node = folder / "node" / ".crossbar"
    node.mkdir(parents=True)
    websocket_port, rawsocket_port = free_port(), free_port()
    (node / "config.json").write_text(json.dumps(crossbar_config(websocket_port, rawsocket_port)))
    command = [str(CROSSBAR), "start", "--cbdir", str(node), "--loglevel", "warn"]
    with child(command, folder, websocket_port, rawsocket_port) as process:
        yield RunningRouter("crossbar", websocket_port, rawsocket_port, "/", process)


@contextmanager
def relaycast(folder: Path, *, durable: bool) -> Iterator[RunningRouter]:
    """Run a router of ours, its log in a file or in memory."""
    websocket_port, rawsocket_port = free_port(), free_port()
    config = folder / "router.toml"
    config.write_text(router_config())
    config.chmod(0o600)
    log = str(folder / "events.sqlite") if durable else "-"
    script = Path(__file__).with_name("wamp_router.py")
    ports = ["--websocket", str(websocket_port), "--rawsocket", str(rawsocket_port)]
    command = [sys.executable, str(script), str(config), log, *ports]
    with child(command, folder, websocket_port, rawsocket_port) as process:
        yield RunningRouter("relaycast", websocket_port, rawsocket_port, "/wamp", process)


@contextmanager
def child(command: list[str], folder: Path, *ports: int) -> Iterator[int]:
    """Run a program until the block ends, and wait until it listens on all ports; yields its process."""
    said = folder / "router.out"
    with said.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        deadline = time.monotonic() + SECONDS_TO_START
        while not all(map(listens, ports)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} does not listen: {said.read_text(errors='replace')[-2_000:]}")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
