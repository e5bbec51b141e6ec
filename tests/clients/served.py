"""A served network in a process of its own, and a line to it that can be cut.

The network is that of ``relaycast serve``, on a free port of the loopback. What a client says of it is compared with
the answer to a plain JSON-RPC request.
"""

import itertools
import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

ADDRESS = re.compile(r"\bws://127\.0\.0\.1:(\d+)")
SECONDS_TO_START = 60.0


class Served:
    """A network that listens on ``port``; parachain ``id`` is served at ``/para/id``."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._said: list[str] = []
        self.port = 0
        self._start()

    @classmethod
    @contextmanager
    def serving(cls, *arguments: str) -> Iterator[Self]:
        """Serve a network until the block ends; ``arguments`` go behind ``relaycast serve``."""
        network = cls(*arguments)
        try:
            yield network
        finally:
            network.stop()

    def restart(self) -> None:
        """Kill the server and start it again on the same port."""
        assert "--data" in self._arguments, "nothing is kept"
        self._process.kill()
        self._end()
        self._start()

    def stop(self) -> None:
        """Stop the server; fails where it has ended before, and where it printed a traceback."""
        ended, last = self._process.poll(), self._said[-50:]
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._end()
        assert ended is None, f"the server ended with {ended}:\n{''.join(last)}"
        errors = [line for line in self._said if "Traceback" in line]
        assert not errors, f"{errors}\n{''.join(self._said[-80:])}"

    def _start(self) -> None:
        command = [sys.executable, "-u", "-m", "relaycast", "serve", *self._arguments, "--port", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._process.stdout is not None
        late = threading.Timer(SECONDS_TO_START, self._process.kill)
        late.start()
        port = _port(self._process.stdout, self._said)
        late.cancel()
        if port is None:
            self._process.kill()
        self._rest = threading.Thread(target=self._said.extend, args=(self._process.stdout,))
        self._rest.start()
        assert port is not None, f"{' '.join(command)} says no address:\n{''.join(self._said)}"
        self.port = port

    def _end(self) -> None:
        assert self._process.stdout is not None
        self._process.wait()
        self._rest.join()
        self._process.stdout.close()

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def ask(self, method: str, *params: object, para: int | None = None) -> Any:
        """Return the result of a request over HTTP; an error fails the test."""
        place = "/" if para is None else f"/para/{para}"
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{place}", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            answer = json.loads(response.read())
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def wait_for(self, block: int) -> None:
        """Return once the relay chain's head has that number."""
        give_up = time.monotonic() + SECONDS_TO_START
        while int(self.ask("chain_getHeader")["number"], 16) < block:
            assert time.monotonic() < give_up, f"there is no block {block} after {SECONDS_TO_START:g} s"
            time.sleep(0.1)


def _port(lines: Iterator[str], said: list[str]) -> int | None:
    for line in lines:
        said.append(line)
        if found := ADDRESS.search(line):
            return int(found[1])
    return None


class Line:
    """A port in front of a network's; ``cut`` closes every connection through it, and new ones are taken at once."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._guard = threading.Lock()
        self.port: int = self._listener.getsockname()[1]
        self._start(self._listen)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def cut(self) -> None:
        with self._guard:
            for end in self._ends:
                hang_up(end)
            self._ends.clear()

    def close(self) -> None:
        hang_up(self._listener)
        self.cut()
        for thread in self._threads:
            thread.join()

    def _start(self, work: Any, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.served.port))
            except OSError:
                hang_up(near)
                continue
            with self._guard:
                self._ends += [near, far]
            for one, other in itertools.permutations((near, far)):
                self._start(pump, one, other)


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Carry bytes until either end is closed."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    hang_up(source)
    hang_up(sink)


def hang_up(end: socket.socket) -> None:
    """Close a socket, so that threads that wait on it stop waiting."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
