"""A webhook on loopback that keeps what it is sent, and answers as a test wants."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Request:
    """One POST; names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = tuple[int, Mapping[str, str]]


@contextmanager
def webhook(answer: Callable[[Request], Answer] = lambda _: (204, {})) -> Iterator[tuple[str, list[Request]]]:
    """Yield the address, which ends with ``/``, and what came."""
    came: list[Request] = []

    class Hook(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            headers = {name.lower(): it for name, it in self.headers.items()}
            request = Request(self.path, headers, self.rfile.read(int(self.headers["Content-Length"])))
            came.append(request)
            status, more = answer(request)
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", came
        finally:
            server.shutdown()
            thread.join()
