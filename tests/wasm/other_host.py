"""Another host for the same runtimes: smoldot's executor, from npm, in a process of its own."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import missing
from rooms import ROOT

PACKAGE = "@acala-network/chopsticks-executor"
SCRIPT = Path(__file__).parent / "other_host.mjs"

Diff = dict[bytes, bytes | None]


class Failed(Exception):
    """A call that the other host gave no answer to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave there."""

    result: bytes
    diff: Diff
    milliseconds: float
    cpu_milliseconds: float


class OtherHost:
    """A runtime over storage that stays the same between calls, but for what is kept."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def set_up(self, code: bytes, storage: Mapping[bytes, bytes]) -> None:
        pairs = [[_hex(key), _hex(value)] for key, value in storage.items()]
        self._ask({"wasm": _hex(code), "storage": pairs})

    def call(self, method: str, data: bytes) -> Answer:
        return self.call_all([(method, data)])

    def call_all(self, calls: Sequence[tuple[str, bytes]]) -> Answer:
        """Call one method after the other, each over what those before it wrote; the result is the last one's."""
        answer = self._ask({"calls": [(method, _hex(data)) for method, data in calls]})
        if "error" in answer:
            raise Failed(answer["error"])
        diff = {_bytes(key): None if value is None else _bytes(value) for key, value in answer["diff"]}
        return Answer(_bytes(answer["result"]), diff, answer["milliseconds"], answer["cpu_milliseconds"])

    def keep(self) -> None:
        """Write what the last call changed into the storage."""
        self._ask({"keep": True})

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the other host ended"
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def other_host() -> Iterator[OtherHost]:
    """Run the other host; skips the test where it is not there."""
    folder = ROOT / ".peers" / "oracle"
    node = shutil.which("node")
    if node is None:
        missing("node is not installed")
    if not (folder / "node_modules" / PACKAGE).is_dir():
        missing(f"{PACKAGE} is not in .peers/oracle: .ci/peers installs it")
    command = [node, str(SCRIPT), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield OtherHost(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def _hex(data: bytes) -> str:
    return "0x" + data.hex()


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
