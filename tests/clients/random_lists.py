"""Random lists of what a client does, while the chains fork and the server is killed in between.

Law: what a client has read of a block stays so; a finalized block stays; every transaction that a client was told of
is in exactly one block of the best branch in the end, however many branches it was on before.
"""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from clients.conversation import ERRORS, Facts, script
from clients.served import Served

PACE = "100ms"
FINALITY = 3
STEPS = 8
SECONDS = 90.0
"""The longest that one step may take."""

CHARLIE = "5FLSigC9HGRKVhB9FiEo4Y3koPsNmBmLJbpXg2mp1hXcS59Y"
MARKER = "0x666f726b"


class StepClient:
    """A client's script that does one step after another."""

    def __init__(self, process: "subprocess.Popen[str]", errors: Path) -> None:
        self._process = process
        self._errors = errors
        assert self._answer() == {"ready": True}

    @classmethod
    @contextmanager
    def started(cls, command: Sequence[str | Path], folder: Path) -> Iterator["StepClient"]:
        """Start a script in ``folder``; it ends with the block."""
        with script(command, folder) as process:
            try:
                yield cls(process, folder / ERRORS)
            finally:
                process.kill()

    def begin(self, name: str, *values: object) -> None:
        """Ask for a step."""
        assert self._process.stdin is not None
        print(json.dumps([name, *values]), file=self._process.stdin, flush=True)

    def end(self) -> Any:
        """Wait for the step that was asked for, and return what it found; an error fails the test."""
        answer = self._answer()
        assert "error" not in answer, answer["error"]
        return answer["found"]

    def do(self, name: str, *values: object) -> Any:
        self.begin(name, *values)
        return self.end()

    def _answer(self) -> Facts:
        assert self._process.stdout is not None
        late = threading.Timer(SECONDS, self._process.kill)
        late.start()
        try:
            for text in self._process.stdout:
                if text.startswith("{"):
                    answer: Facts = json.loads(text)
                    return answer
        finally:
            late.cancel()
        raise AssertionError(f"the script has ended:\n{self._errors.read_text()[-4_000:]}")


class RandomList:
    """One list, drawn by ``draw``, for a client of a network that is kept in a folder."""

    def __init__(self, served: Served, client: StepClient, draw: Random) -> None:
        self.served = served
        self.client = client
        self.draw = draw
        self.done: list[str] = []
        self.sent = 0
        self.seen: dict[str, Facts] = {}
        self.final: dict[int, str] = {}

    def walk(self, count: int) -> None:
        """Take ``count`` steps, and see that the law holds."""
        steps: list[Callable[[], None]] = [self.send, self.read, self.read_again, self.heads, self.fork, self.restart]
        for step in self.draw.choices(steps, k=count):
            self.done.append(step.__name__)
            step()
            self.ensure_final()
        self.ensure_all_are_in_blocks()
        for at in self.seen:
            self._ensure_read(at)

    def send(self) -> None:
        """Send a transaction; the chains may fork before it is in a block, and after."""
        self.client.begin("send")
        self._maybe_fork()
        block = self.client.end()
        self.sent += 1
        assert self.served.ask("chain_getHeader", block) is not None

    def read(self) -> None:
        self._ensure_read(self.client.do("best"))

    def read_again(self) -> None:
        """Read a block that was read before: on a lost branch, or in the life of a killed server."""
        if self.seen:
            self._ensure_read(self.draw.choice(list(self.seen)))

    def heads(self) -> None:
        """Follow the best blocks; every one is built on a block that there is."""
        self.client.begin("heads", self.draw.randint(2, 6))
        self._maybe_fork()
        heads = self.client.end()
        for number, parent in heads:
            assert int(self.served.ask("chain_getHeader", parent)["number"], 16) == number - 1

    def fork(self) -> None:
        """Go back as far as final blocks allow, and leave a mark that tells the new branch from the old one."""
        self.served.ask("dev_setBlockTime", "manual")
        head, final = (int(self.served.ask("chain_getHeader", at)["number"], 16) for at in self._ends())
        if final < head:
            self.served.ask("dev_setHead", self.draw.randint(final - head, -1))
            self.served.ask("dev_setStorage", [[MARKER, f"0x{self.draw.randbytes(4).hex()}"]])
            self.served.ask("dev_newBlock")
        self.served.ask("dev_setBlockTime", PACE)

    def restart(self) -> None:
        """Kill the server, start it on what it has kept, and let the client go on."""
        self.served.restart()
        self.client.do("again")

    def ensure_final(self) -> None:
        """Assert that what was final is so still."""
        _, at = self._ends()
        number = int(self.served.ask("chain_getHeader", at)["number"], 16)
        assert self.final.setdefault(number, at) == at
        assert self.served.ask("chain_getBlockHash", list(self.final)) == list(self.final.values())

    def ensure_all_are_in_blocks(self) -> None:
        """Wait until the pool is empty, and assert that every transaction was included once."""
        give_up = time.monotonic() + SECONDS
        while self.served.ask("author_pendingExtrinsics"):
            assert time.monotonic() < give_up, "the pool does not become empty"
            time.sleep(0.05)
        assert self.client.do("read", self.client.do("best"))["nonce"] == self.sent
        assert self.served.ask("system_accountNextIndex", CHARLIE) == self.sent

    def _ensure_read(self, at: str) -> None:
        facts, header = self.client.do("read", at), self.served.ask("chain_getHeader", at)
        assert (facts["number"], facts["parent"]) == (int(header["number"], 16), header["parentHash"])
        assert facts["marker"] == self.served.ask("state_getStorage", MARKER, at)
        assert self.seen.setdefault(at, facts) == facts

    def _maybe_fork(self) -> None:
        if self.draw.random() < 0.5:
            time.sleep(self.draw.uniform(0, 0.3))
            self.fork()

    def outlook(self) -> str:
        """Return the newest block, the last final one and the waiting transactions, to explain why a client waited."""
        try:
            asked = ("chain_getHeader", "chain_getFinalizedHead", "author_pendingExtrinsics")
            return ", ".join(f"{method}: {json.dumps(self.served.ask(method))}" for method in asked)
        except (OSError, AssertionError) as error:
            return f"the server does not answer: {error}"

    def _ends(self) -> tuple[str, str]:
        return self.served.ask("chain_getBlockHash"), self.served.ask("chain_getFinalizedHead")


def walk_list(command: Sequence[str | Path], folder: Path, data: Path, *, seed: int) -> None:
    """Let a script, which is given the URL, take the steps of one list."""
    options = ("--block-time", PACE, "--finality", str(FINALITY), "--data", str(data))
    with Served.serving("oracle", *options) as served:
        served.wait_for(2 * FINALITY)
        with StepClient.started([*command, served.url], folder) as client:
            drawn = RandomList(served, client, Random(seed))
            try:
                drawn.walk(STEPS)
            except BaseException as error:
                error.add_note(f"list {seed}: {', '.join(drawn.done)}; {drawn.outlook()}")
                raise
