"""Codecs and clients of Candid from elsewhere, as processes that answer a line of JSON with a line of JSON."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

from candid_peers.plain_values import plain_list, values_of
from peers import missing
from relaycast_gateway.candid import CandidTypes, decode, encode, format_values, parse_types, parse_values
from rooms import ROOT

SCRIPTS = Path(__file__).parent / "scripts"
PEERS = ROOT / ".peers"

NODE = (Path("node"), PEERS / "candid")
PYTHON = (PEERS / "icp-py-core" / "bin" / "python", PEERS / "icp-py-core")


class Refused(Exception):
    """A peer refused what it was asked."""


class PeerProcess:
    """A peer that runs: answers come in the order of questions."""

    def __init__(self, running: "Popen[str]") -> None:
        self._running = running

    def ask(self, **question: Any) -> Any:
        """Return the answer; ``Refused`` with the peer's reason."""
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        self._running.stdin.write(json.dumps(question) + "\n")
        self._running.stdin.flush()
        line = self._running.stdout.readline()
        assert line, f"the peer ended with {self._running.wait(10)}"
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["value"]


def program_of(of: tuple[Path, Path]) -> str:
    """Return the program that runs scripts with a peer; the test is skipped where the peer is missing."""
    program, folder = shutil.which(of[0]), of[1]
    if program is None or not (folder / ".made").is_file():
        missing(f"no {of[0].name} with {folder.relative_to(ROOT)}: .ci/peers installs it")
    return program


@contextmanager
def peer(of: tuple[Path, Path], script: str) -> Iterator[PeerProcess]:
    """Run a script with a peer of ``.peers`` until the block ends."""
    command = [program_of(of), str(SCRIPTS / script)]
    with Popen(command, cwd=of[1], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True, encoding="utf-8") as running:
        try:
            yield PeerProcess(running)
        finally:
            running.kill()


@lru_cache(maxsize=64)
def interface(types: str) -> str:
    """Return a `.did` text whose one method takes ``types``: definitions and a list in parentheses."""
    start = types.rindex("\n(") + 1 if "\n(" in types else 0
    return f"{types[:start]}service : {{ take : {types[start:]} -> () }}"


def arguments(types: CandidTypes) -> tuple[int, ...]:
    """Return the list of types of a text that has one."""
    assert types.arguments is not None
    return types.arguments


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec that takes and gives values as plain JSON."""

    process: PeerProcess

    def both_ways(self, types: str, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return what is read from the peer's message, and what the peer reads from ours."""
        theirs = decode(self.encoded(types, values), types)
        return theirs, self.decoded(types, encode(types, values))

    def encoded(self, types: str, values: Sequence[Any]) -> bytes:
        """Return the peer's message of values."""
        parsed = parse_types(types)
        told = plain_list(parsed.nodes, arguments(parsed), values)
        return bytes.fromhex(self.process.ask(ask="encode", did=interface(types), values=told))

    def decoded(self, types: str, message: bytes) -> list[Any]:
        """Return what the peer reads from a message."""
        parsed = parse_types(types)
        read = self.process.ask(ask="decode", did=interface(types), message=message.hex())
        return values_of(parsed.nodes, arguments(parsed), read)


@dataclass(frozen=True, slots=True)
class TextCodec:
    """didc, which takes and gives values in their textual form."""

    process: PeerProcess

    def both_ways(self, types: str, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return what is read from the peer's message, and what the peer reads from ours."""
        theirs = decode(self.encoded(types, format_values(values, types)), types)
        return theirs, self.decoded(types, encode(types, values))

    def encoded(self, types: str, text: str) -> bytes:
        """Return the peer's message of values in their textual form."""
        return bytes.fromhex(self._answer("encode", types, text))

    def decoded(self, types: str, message: bytes) -> list[Any]:
        """Return what the peer reads from a message."""
        return parse_values(self._answer("decode", types, message.hex()), types)

    def _answer(self, ask: str, types: str, given: str) -> str:
        answer = self.process.ask(ask=f"didc {ask}", did=interface(types), given=given)
        assert isinstance(answer, str)
        return answer
