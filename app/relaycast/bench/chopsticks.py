"""smoldot's trie, compiled to WebAssembly, through node (npm ``@acala-network/chopsticks-executor``).

It takes and gives hex text, and times itself, so that starting node is not in the figures. Found, never installed: in
the folder that the environment variable ``RELAYCAST_ORACLE`` names, or in the one that the bench is started in.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from relaycast.bench.sheet import Sheet, blocks_of
from relaycast_trie import ArrayTrie, StorageProof

NAME = "chopsticks"
MOST_KEYS = 100_000
PACKAGE = "@acala-network/chopsticks-executor"
SCRIPT = Path(__file__).with_name("chopsticks.mjs")


def missing() -> str:
    """Return why it cannot run."""
    if shutil.which("node") is None:
        return "node is not installed"
    if not (_folder() / "node_modules" / PACKAGE).is_dir():
        return f"{PACKAGE} is not in {_folder()}/node_modules, expected RELAYCAST_ORACLE to name a folder that has it"
    return ""


def run(sheet: Sheet) -> None:
    """Let it compute a root, read proofs, and change one value in a proof; its root must be ours."""
    trie = ArrayTrie.from_arrays(sheet.keys, sheet.values)
    root = trie.root
    answer = _ask({"entries": [[_hex(key), _hex(value)] for key, value in sheet.pairs.items()]})
    assert answer["result"] == _hex(root), "smoldot finds another root"
    sheet.add(NAME, "bulk root, ns/key", answer["seconds"], units=sheet.count)
    for k in (100, 1_000):
        asked = sheet.some_keys(k)
        proof = StorageProof(trie.prove(asked).nodes)
        nodes = [_hex(node) for node in proof]
        answer = _ask({"root": _hex(root), "nodes": nodes})
        assert len(answer["result"]) == len(asked), "smoldot reads another number of values"
        sheet.add(NAME, f"verify k={k}, us", answer["seconds"], blocks=blocks_of(proof))
        answer = _ask({"nodes": nodes, "updates": [[_hex(asked[0]), _hex(bytes(sheet.width))]]})
        sheet.add(NAME, f"one value changed in a proof k={k}, us", answer["seconds"])


def _folder() -> Path:
    return Path(os.environ.get("RELAYCAST_ORACLE", ".")).resolve()


def _ask(question: dict[str, Any]) -> dict[str, Any]:
    node = shutil.which("node")
    assert node is not None
    command = [node, str(SCRIPT), str(_folder())]
    run = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, check=False)  # noqa: S603
    if run.returncode:
        raise OSError(run.returncode, run.stderr.strip().rpartition("\n")[2] or "no message", PACKAGE)
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


def _hex(data: bytes) -> str:
    return "0x" + data.hex()
