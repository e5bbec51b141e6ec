"""What ``relaycast import rpc`` tells: how far it is, and what a witness holds."""

import json as json_text
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relaycast.genesis.witness_fetch import Progress
from relaycast.genesis.witness_file import WitnessFile
from relaycast.node_client import Tell
from relaycast.refusal import one_line
from relaycast.terminal import console, counted, shows_progress


@contextmanager
def import_progress() -> Iterator[tuple[Tell, Progress]]:
    """Give what tells that a node is waited for, and how far the import is where somebody looks."""

    def tell(line: str) -> None:
        print(f"relaycast: {one_line(line)}", file=sys.stderr)

    if not shows_progress():
        yield tell, lambda _nodes, _bytes: None
        return
    with console(stderr=True).status("asking the node") as status:
        yield tell, lambda nodes, size: status.update(f"{counted(nodes, 'node')}, {size:,} bytes")


def print_witness(found: WitnessFile, out: Path, file_bytes: int, *, json: bool) -> None:
    """Print what a witness holds, and where it is; its ``values`` are those of the top trie with child roots."""
    known = found.witness.nodes
    summary: dict[str, object] = {
        "name": found.origin.name,
        "block": f"0x{found.origin.block_hash.hex()}",
        "state_root": f"0x{found.witness.root.hex()}",
        "values": len(found.top.values),
        "children": sum(not trie.gaps for trie in found.children.values()),
        "nodes": len(known),
        "node_bytes": sum(map(len, known.values())),
        "file": str(out),
        "file_bytes": file_bytes,
    }
    if json:
        print(json_text.dumps(summary))
        return
    for name, value in summary.items():
        print(f"{name:<11} {f'{value:,}' if isinstance(value, int) else value}")
