"""A client that a compiler makes from a `.did` text, with @dfinity/candid, in a process of its own."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from candid_peers.peer_process import NODE, SCRIPTS, PeerProcess, peer, program_of
from candid_peers.plain_values import plain_list, values_of
from relaycast_gateway.candid import parse_types
from relaycast_gateway.candid.type_graph import FuncType, ServiceType


class CallFailed(Exception):
    """An answer whose status is not 2xx: the status and the body."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(status, body)
        self.status, self.body = status, body


class DidClient:
    """Calls methods of one canister over HTTP; ``methods`` are the names that the compiler found."""

    def __init__(self, process: PeerProcess, did: str, url: str, canister: str, caller: str) -> None:
        self._process = process
        types = parse_types(did)
        assert types.service is not None
        service = types.nodes[types.service]
        assert isinstance(service, ServiceType)
        self._nodes = types.nodes
        self._functions = {name: types.nodes[of] for name, of in service.methods}
        self.methods: list[str] = process.ask(did=did, url=url, canister=canister, caller=caller)

    def call(self, method: str, values: Sequence[Any]) -> list[Any]:
        """Return the results for a list of arguments; ``CallFailed`` where the call is refused."""
        function = self._functions[method]
        assert isinstance(function, FuncType)
        answer = self._process.ask(method=method, values=plain_list(self._nodes, function.arguments, values))
        if "refusal" in answer:
            raise CallFailed(answer["status"], answer["refusal"])
        assert answer["type"] == "application/candid"
        return values_of(self._nodes, function.results, answer["results"])


@contextmanager
def did_client(did: str, url: str, canister: str, caller: str) -> Iterator[DidClient]:
    """Make a client of a canister at ``url``; its requests name ``caller``."""
    with peer(NODE, "did_client.mjs") as process:
        yield DidClient(process, did, url, canister, caller)


def typed_client(did_file: Path, url: str, canister: str, caller: str) -> Any:
    """Compile the client in TypeScript of a broadcaster, strictly, and return what came of its calls as JSON."""
    command = [program_of(NODE), str(SCRIPTS / "typed_client.mjs"), str(did_file), url, canister, caller]
    ended = subprocess.run(command, cwd=NODE[1], capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)
