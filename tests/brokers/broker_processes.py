"""Real brokers as child processes, each on free ports of the loopback with its data in a folder of its own.

What is started is stopped: a broker gets SIGTERM, and with all of its group SIGKILL where that does not end it.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from peers import missing

SECONDS_TO_START = 90.0
SECONDS_TO_STOP = 15.0
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def program(name: str) -> str:
    """Return the path of a program; those of the system's folder count, too."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    return found or missing(f"no {name} on this machine")


@contextmanager
def child(command: list[str], folder: Path, *ports: int, env: Mapping[str, str] | None = None) -> Iterator[Path]:
    """Run a program until the block ends; wait until it listens on all ports. Yields the file of what it says."""
    said = folder / f"{Path(command[0]).name}.out"
    with said.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=None if env is None else {**os.environ, **env},
            cwd=folder,
            start_new_session=True,
        )
    try:
        for port in ports:
            wait_for(process, port, said)
        yield said
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(SECONDS_TO_STOP)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(process: subprocess.Popen[bytes], port: int, said: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"it ended with {process.returncode}: {said.read_text(errors='replace')[-2_000:]}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}: {said.read_text(errors='replace')[-2_000:]}")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate for ``localhost`` that signs itself."""

    certificate: Path
    key: Path


def certificate(folder: Path) -> Certificate:
    made = Certificate(folder / "localhost.pem", folder / "localhost.key")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    kind = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-x509"]
    files = ["-keyout", str(made.key), "-out", str(made.certificate)]
    subprocess.run([program("openssl"), "req", *kind, *names, *files], check=True, capture_output=True)
    return made


@dataclass(frozen=True, slots=True)
class Mosquitto:
    """Ports: open to all; with a password and an access list; WebSocket; TLS; WebSocket over TLS."""

    port: int
    closed_port: int
    websocket_port: int
    tls_port: int
    wss_port: int
    said: Path


@contextmanager
def mosquitto(folder: Path, of: Certificate) -> Iterator[Mosquitto]:
    """Run mosquitto. User ``user`` with password ``s3cret`` may write to ``open/#`` on the closed port."""
    ports = [free_port() for _ in range(5)]
    passwords, access = folder / "passwords", folder / "access"
    broker = program("mosquitto")
    subprocess.run([program("mosquitto_passwd"), "-b", "-c", passwords, "user", "s3cret"], check=True)
    access.write_text("user user\ntopic readwrite open/#\n")
    listeners = [
        ("allow_anonymous true",),
        ("allow_anonymous false", f"password_file {passwords}", f"acl_file {access}", "max_packet_size 100000"),
        ("protocol websockets", "allow_anonymous true"),
        (f"certfile {of.certificate}", f"keyfile {of.key}", "allow_anonymous true"),
        ("protocol websockets", f"certfile {of.certificate}", f"keyfile {of.key}", "allow_anonymous true"),
    ]
    lines = [
        "per_listener_settings true",
        "persistence false",
        "user root",
        "log_type all",
        "allow_zero_length_clientid true",
    ]
    for port, settings in zip(ports, listeners, strict=True):
        lines += [f"listener {port} 127.0.0.1", *settings]
    (folder / "mosquitto.conf").write_text("\n".join([*lines, ""]))
    with child([broker, "-c", str(folder / "mosquitto.conf")], folder, *ports) as said:
        yield Mosquitto(ports[0], ports[1], ports[2], ports[3], ports[4], said)


@contextmanager
def plain_mosquitto(folder: Path, port: int) -> Iterator[None]:
    """Run mosquitto on a port of the caller's choice, open to all."""
    file = folder / "plain.conf"
    file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n")
    with child([program("mosquitto"), "-c", str(file)], folder, port):
        yield


@contextmanager
def nats_server(folder: Path, config: str = "", *, port: int = 0, has_streams: bool = True) -> Iterator[int]:
    """Run nats-server with JetStream and further lines of configuration; yields its port."""
    port = port or free_port()
    file = folder / "nats.conf"
    streams = f'jetstream {{ store_dir: "{folder}" }}' if has_streams else ""
    lines = [f"listen: 127.0.0.1:{port}", streams, "max_payload: 200000", config, ""]
    file.write_text("\n".join(lines))
    with child([program("nats-server"), "-c", str(file)], folder, port):
        yield port


@contextmanager
def rabbitmq(folder: Path) -> Iterator[int]:
    """Run RabbitMQ with its plug-in for AMQP 1.0, and a port mapper of its own; yields the port of AMQP."""
    if not RABBITMQ.exists():
        missing("no rabbitmq-server on this machine")
    port, mapper_port, nodes_port = free_port(), free_port(), free_port()
    (folder / "rabbitmq.conf").write_text(f"listeners.tcp.default = 127.0.0.1:{port}\nloopback_users = none\n")
    (folder / "plugins").write_text("[rabbitmq_amqp1_0].")
    (folder / "home").mkdir()
    env = {
        "HOME": str(folder / "home"),
        "ERL_EPMD_PORT": str(mapper_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"relaycast{port}@localhost",
        "RABBITMQ_DIST_PORT": str(nodes_port),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }
    mapper = [program("epmd"), "-port", str(mapper_port), "-address", "127.0.0.1"]
    with child(mapper, folder, mapper_port), child([str(RABBITMQ)], folder, port, env=env):
        yield port
