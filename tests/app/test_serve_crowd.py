"""A crowd that connects and says nothing: others are served, blocks come, the log stays short, slots are free again."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from app import serve_crowd
from app.serve_process import ServeProcess
from relaycast_gateway.listener import OTHER_FILES, GateLimits

SECONDS = 60
MOST_LINES = 4
"""Of the log in the time of a test: one a minute about connections."""


def asked_from(address: str, port: int, method: str) -> Any:
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS, source_address=(address, 0))
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": []})
    connection.request("POST", "/", body, {"content-type": "application/json"})
    answer = json.load(connection.getresponse())
    connection.close()
    return answer["result"]


def best(port: int, address: str) -> int:
    return int(asked_from(address, port, "chain_getHeader")["number"], 16)


@contextmanager
def crowd(port: int, count: int) -> Iterator[None]:
    command = [sys.executable, serve_crowd.__file__, str(port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield
        process.communicate("leave\n", timeout=SECONDS)


def wait_for(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


def files_of(process: "subprocess.Popen[str]") -> int:
    return len(os.listdir(f"/proc/{process.pid}/fd"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts file handles in /proc")
@pytest.mark.parametrize(("files", "count"), [(None, 10_000), (300, 2_000)])
def test_a_silent_crowd_holds_nobody(files: int | None, count: int, tmp_path: Path) -> None:
    """With few file handles the crowd comes before the first block, too."""
    server = ServeProcess("oracle", "--block-time", "2s", "--data", str(tmp_path / "data"))
    if files is not None:
        server.command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *server.command]
    with server:
        before = files_of(server.process)
        with crowd(server.port, min(count, serve_crowd.room())):
            first = best(server.port, "127.0.0.2")
            wait_for(lambda: best(server.port, "127.0.0.2") >= first + 3)
            assert best(server.port, "127.0.0.1") >= first + 3, "the crowd's own address is served, too"
            assert files_of(server.process) <= before + GateLimits().most_new_of_one + OTHER_FILES
        wait_for(lambda: files_of(server.process) <= before)
        assert best(server.port, "127.0.0.1") >= first + 3
        server.process.terminate()
        out, err = server.process.communicate(timeout=SECONDS)
    assert (server.process.returncode, out) == (0, "stopped\n")
    lines = err.splitlines()
    assert 1 <= len(lines) <= MOST_LINES
    assert all(line.startswith("connections: ") for line in lines)
