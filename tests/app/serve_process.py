"""``relaycast serve`` as a process of its own, which a test can kill."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen


class ServeProcess:
    """Serves a scenario on a free port; ``with`` waits until it is ready, and kills it at the end."""

    def __init__(self, scenario: str, *options: str) -> None:
        self.command = [sys.executable, "-m", "relaycast", "serve", scenario, "--port", "0", *options]
        self.lines: list[str] = []
        self.port = 0

    def __enter__(self) -> "ServeProcess":
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith("ready"):
                break
        else:
            raise AssertionError(f"not ready: {self.lines}, {self.process.communicate()}")
        found = re.search(r"//127\.0\.0\.1:(\d+)", "".join(self.lines))
        assert found is not None
        self.port = int(found[1])
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End the process at once, wherever it is."""
        self.process.kill()
        self.process.communicate()

    def stop(self) -> None:
        """Stop it as a user does."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert (self.process.returncode, out, err) == (0, "stopped\n", "")

    def ask(self, method: str, *params: object, para_id: int | None = None) -> Any:
        path = "" if para_id is None else f"/para/{para_id}"
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = Request(f"http://127.0.0.1:{self.port}{path}", body, {"content-type": "application/json"})
        with urlopen(request, timeout=60) as response:
            return json.load(response)["result"]


def journal_in(folder: Path) -> Path:
    """Return the newest journal of a folder."""
    return max((folder / "chains").glob("*.journal"))
