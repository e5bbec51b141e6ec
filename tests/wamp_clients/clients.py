"""Clients of WAMP from elsewhere, each as a process that does one item after the other."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import missing
from rooms import ROOT

SCRIPTS = Path(__file__).parent / "scripts"
PEERS = ROOT / ".peers"
SECONDS = 100


@dataclass(frozen=True, slots=True)
class WampClientProgram:
    """A client, with the carriers and serializers that it knows."""

    name: str
    script: str
    program: Path
    carriers: Mapping[str, Sequence[str]]
    folder: Path = PEERS
    raw_scheme: str = "rs"

    def command(self) -> list[str]:
        program = shutil.which(str(self.program))
        if program is None:
            missing(f"no {self.program.name} for {self.name}: .ci/peers installs it")
        if not self.folder.is_dir():
            missing(f"{self.name} is not in {self.folder.relative_to(ROOT)}: .ci/peers installs it")
        return [program, str(SCRIPTS / self.script)]


BINARY = ("json", "msgpack", "cbor")

CLIENTS = {
    it.name: it
    for it in (
        WampClientProgram(
            "autobahn-python",
            "autobahn_client.py",
            PEERS / "autobahn" / "bin" / "python",
            {"websocket": BINARY, "rawsocket": BINARY},
        ),
        WampClientProgram(
            "swampyer",
            "swampyer_client.py",
            PEERS / "swampyer" / "bin" / "python",
            {"websocket": BINARY, "rawsocket": BINARY},
            raw_scheme="tcpip",
        ),
        WampClientProgram(
            "autobahn-js",
            "autobahn_js.mjs",
            Path("node"),
            {"websocket": BINARY, "rawsocket": ("json",)},
            PEERS / "wamp",
        ),
        WampClientProgram("wampy", "wampy.mjs", Path("node"), {"websocket": BINARY}, PEERS / "wamp"),
    )
}

MATRIX = [
    (name, carrier, serializer)
    for name, client in CLIENTS.items()
    for carrier, serializers in client.carriers.items()
    for serializer in serializers
]


def done(name: str, carrier: str, ports: Mapping[str, int], given: Mapping[str, Any]) -> dict[str, Any]:
    """Let a client do its items; return what came of each. An item that failed is an ``AssertionError``."""
    client = CLIENTS[name]
    scheme, path = ("ws", "/wamp") if carrier == "websocket" else (client.raw_scheme, "")
    given = {**given, "transport": carrier, "url": f"{scheme}://127.0.0.1:{ports[carrier]}{path}"}
    ended = subprocess.run(
        [*client.command(), json.dumps(given)],
        cwd=client.folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"item":')]
    failed = "\n".join(f"{it['item']}: {it['error']}" for it in said if "error" in it)
    assert not failed, failed
    assert [it["item"] for it in said] == given["items"], ended.stdout[-2_000:] + ended.stderr[-4_000:]
    return {it["item"]: it["value"] for it in said}
