"""``relaycast trie``: the root of key-value pairs, and the trie that they make."""

import json as json_text

from cyclopts import App

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import EngineName, File, Json, Limit, Version
from relaycast.inputs import read_pairs

app = App(name="trie", help="The root of key-value pairs, and the trie that they make.")


@app.command
def root(file: File, /, *, state_version: Version = 1, engine: EngineName = "auto", json: Json = False) -> ExitCode:
    """Print the 0x root of the trie that holds the pairs of FILE: JSON [["0xkey", "0xvalue"], ...].

    Example: echo '[["0x01", "0x02"]]' | relaycast trie root -
    """
    from relaycast_trie import StateVersion, trie_root  # noqa: PLC0415

    pairs = read_pairs(file)
    found = f"0x{trie_root(pairs, state_version=StateVersion(state_version), engine=engine).hex()}"
    print(json_text.dumps({"root": found}) if json else found)
    return ExitCode.FINE


@app.command
def show(file: File, /, *, state_version: Version = 1, limit: Limit = 200, json: Json = False) -> ExitCode:
    """Print the trie that holds the pairs of FILE node by node: kind, partial key, children, value, bytes, hash.

    Example: echo '[["0x01", "0x02"], ["0x11", "0x03"]]' | relaycast trie show -
    """
    from relaycast.cli.xray_table import print_json, print_text  # noqa: PLC0415
    from relaycast.xray.nodes import xray  # noqa: PLC0415
    from relaycast_trie import EMPTY_ROOT, StateVersion, StorageProof  # noqa: PLC0415
    from relaycast_trie.node_codec import EMPTY_NODE  # noqa: PLC0415
    from relaycast_trie.plain.build import build_trie  # noqa: PLC0415

    nodes: dict[bytes, bytes] = {}
    version = StateVersion(state_version)
    trie_root = build_trie(read_pairs(file), nodes.__setitem__, state_version=version)
    if trie_root == EMPTY_ROOT:
        nodes[EMPTY_ROOT] = EMPTY_NODE
    picture = xray(StorageProof(nodes.values()), root=trie_root)
    if json:
        print_json(picture)
    else:
        print_text(picture, limit=limit, notes=[])
    return ExitCode.FINE
