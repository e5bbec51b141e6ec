"""What ``relaycast import rpc`` does: a witness fetched, written whole or not at all, and summed up."""

import json as json_text
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from relaycast.cli.exit_code import ExitCode
from relaycast.genesis.node_client import Tell
from relaycast.genesis.witness_fetch import Progress, fetch_witness
from relaycast.genesis.witness_file import WitnessFile
from relaycast.genesis.witness_keys import account_keys, wanted_for
from relaycast.inputs import parse_hex
from relaycast.out_file import check_file, written
from relaycast.refusal import BadInput, one_line, shown
from relaycast.scenario.files import load_named
from relaycast.terminal import console, counted, shows_progress
from relaycast_node.rpc.account_text import account_of
from relaycast_xcm.primitives import U32_MAX

SUFFIX = ".witness.json.gz"


def import_witness(
    url: str,
    out: Path,
    *,
    at: str | None,
    scenario: str,
    para_ids: list[int],
    more: tuple[list[str], list[str]],
    json: bool,
) -> ExitCode:
    """Fetch a witness for a scenario and further ``para_ids``; ``more`` are further keys and accounts."""
    if not out.name.endswith(SUFFIX):
        raise BadInput("--out", shown(str(out)), f"a file name that ends in {SUFFIX}")
    for para_id in para_ids:
        if not 0 <= para_id <= U32_MAX:
            raise BadInput("--para-id", str(para_id), f"a number from 0 to {U32_MAX}")
    keys = [parse_hex(key, "--key") for key in more[0]]
    keys += [key for text in more[1] for key in account_keys(_account(text))]
    wanted = wanted_for(load_named(scenario, "import rpc"), para_ids=para_ids, keys=keys)
    check_file(out, "--out")
    with _progress() as (tell, progress):
        found = fetch_witness(url, wanted, at=at, tell=tell, progress=progress)
    data = found.encode()
    with written(out, "--out") as stream:
        stream.write(data)
    _print(found, out, len(data), json)
    return ExitCode.FINE


def _account(text: str) -> bytes:
    account = account_of(text)
    if account is None:
        raise BadInput("--account", shown(text), "an SS58 address, or 0x and 64 hex digits")
    return account


@contextmanager
def _progress() -> Iterator[tuple[Tell, Progress]]:
    """Give what says that a node is waited for, and how far the import is where somebody looks."""

    def tell(line: str) -> None:
        print(f"relaycast: {one_line(line)}", file=sys.stderr)

    if not shows_progress():
        yield tell, lambda _nodes, _bytes: None
        return
    with console(stderr=True).status("asking the node") as status:
        yield tell, lambda nodes, size: status.update(f"{counted(nodes, 'node')}, {size:,} bytes")


def _print(found: WitnessFile, out: Path, file_bytes: int, json: bool) -> None:
    known = found.witness.nodes
    summary: dict[str, object] = {
        "name": found.origin.name,
        "block": f"0x{found.origin.block_hash.hex()}",
        "state_root": f"0x{found.witness.root.hex()}",
        "entries": len(found.top.values),
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
