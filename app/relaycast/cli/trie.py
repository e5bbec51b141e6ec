"""``relaycast trie``: the root of key-value pairs, and the trie that they make."""

import json as json_text

from cyclopts import App

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import EngineName, File, HasherName, Json, Limit, Version
from relaycast.genesis.state_export import read_pairs
from relaycast.refusal import BadInput

app = App(name="trie", help="Compute the root of key-value pairs, and draw the trie that they make.")


@app.command
def root(
    file: File,
    /,
    *,
    state_version: Version = 1,
    engine: EngineName = "auto",
    hasher: HasherName = "blake2b-256",
    json: Json = False,
) -> ExitCode:
    """Print the 0x root of the trie that holds the pairs of FILE.

    Pairs are JSON [["0xkey", "0xvalue"], ...], CSV whose first line is key,value, or Parquet with these columns.

    Another hasher gives another root: nodes have the same bytes but for the hashes in them, and keep their sizes.

    Example: echo '[["0x01", "0x02"]]' | relaycast trie root -
    """
    from relaycast_trie import BLAKE2B_256, HASHERS, StateVersion, trie_root  # noqa: PLC0415
    from relaycast_trie.plain.build import build_root  # noqa: PLC0415

    version, chosen = StateVersion(state_version), HASHERS[hasher]
    if chosen is not BLAKE2B_256 and engine == "array":
        raise BadInput(
            "--engine", f"array with {hasher}", f"plain or auto: compiled tries hash with {BLAKE2B_256.name}"
        )
    pairs = read_pairs(file)
    if chosen is BLAKE2B_256:
        computed = trie_root(pairs, state_version=version, engine=engine)
    else:
        computed = build_root(pairs, state_version=version, hasher=chosen)
    found = f"0x{computed.hex()}"
    print(json_text.dumps({"root": found}) if json else found)
    return ExitCode.FINE


@app.command
def show(
    file: File,
    /,
    *,
    state_version: Version = 1,
    hasher: HasherName = "blake2b-256",
    limit: Limit = 200,
    json: Json = False,
) -> ExitCode:
    """Print the trie that holds the pairs of FILE node by node: kind, partial key, children, value, bytes, hash.

    Example: echo '[["0x01", "0x02"], ["0x11", "0x03"]]' | relaycast trie show -
    """
    from relaycast.cli.tables.xray import print_json, print_text  # noqa: PLC0415
    from relaycast.xray.nodes import xray  # noqa: PLC0415
    from relaycast_trie import HASHERS, StateVersion, StorageProof  # noqa: PLC0415
    from relaycast_trie.node_codec import EMPTY_NODE  # noqa: PLC0415
    from relaycast_trie.plain.build import build_trie  # noqa: PLC0415

    nodes: dict[bytes, bytes] = {}
    version, chosen = StateVersion(state_version), HASHERS[hasher]
    trie_root = build_trie(read_pairs(file), nodes.__setitem__, state_version=version, hasher=chosen)
    if not nodes:
        nodes[trie_root] = EMPTY_NODE
    picture = xray(StorageProof(nodes.values()), root=trie_root, hasher=chosen)
    if json:
        print_json(picture)
    else:
        print_text(picture, limit=limit, notes=[])
    return ExitCode.FINE
