"""Sinks over HTTP that take events apart with an SDK of CloudEvents, in Python and in JavaScript."""

import base64
import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from peers import missing
from rooms import ROOT

SCRIPT = Path(__file__).parent / "scripts" / "receive.mjs"
MODULES = ROOT / ".peers" / "cloudevents" / "node_modules"


@dataclass(frozen=True, slots=True)
class Understood:
    """An event as an SDK understood it; binary data are ``bytes``."""

    attributes: dict[str, Any]
    data: Any


class Receiver:
    """A sink on ``port``."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.events: queue.Queue[Understood | str] = queue.Queue()

    def take(self) -> Understood:
        event = self.events.get(timeout=20)
        assert isinstance(event, Understood), event
        return event


@contextmanager
def python_receiver() -> Iterator[Receiver]:
    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                event = from_http_event(HTTPMessage(headers, body))
                shown = {name: _shown(value) for name, value in event.get_attributes().items()}
                receiver.events.put(Understood(shown, event.get_data()))
                self.send_response(204)
            except Exception as error:
                receiver.events.put(repr(error))
                self.send_response(400)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Taking)
    receiver = Receiver(server.server_address[1])
    running = threading.Thread(target=server.serve_forever, daemon=True)
    running.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        running.join()


@contextmanager
def javascript_receiver(folder: Path) -> Iterator[Receiver]:
    if shutil.which("node") is None:
        missing("node is not installed")
    if not MODULES.is_dir():
        missing("cloudevents is not in .peers/cloudevents: .ci/peers installs it")
    (folder / "node_modules").symlink_to(MODULES)
    shutil.copy(SCRIPT, folder)
    with subprocess.Popen(
        ["node", SCRIPT.name], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        receiver = Receiver(json.loads(process.stdout.readline())["port"])

        def listen() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                said = json.loads(line)
                data = base64.b64decode(said["bytes"]) if said.get("bytes") is not None else said.get("data")
                for name, value in said.get("attributes", {}).items():
                    if isinstance(value, str):  # this SDK leaves percent-encoding to its users
                        said["attributes"][name] = unquote(value) if said["isbinary"] else value
                receiver.events.put(said["error"] if "error" in said else Understood(said["attributes"], data))

        listening = threading.Thread(target=listen, daemon=True)
        listening.start()
        try:
            yield receiver
        finally:
            process.stdin.close()
            process.wait(10)
            listening.join()


def _shown(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
