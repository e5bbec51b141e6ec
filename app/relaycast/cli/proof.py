"""``relaycast proof``: make, verify and look into storage proofs."""

import json as json_text
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import AlwaysJson, Compact, File, Json, Keys, Limit, ProofFile, Root, Version
from relaycast.genesis.state_export import read_pairs
from relaycast.inputs import (
    compact_proof,
    is_compact,
    parse_keys,
    parse_root,
    place_of,
    read_proof_nodes,
)
from relaycast.out_file import write_text
from relaycast.refusal import BadInput
from relaycast.terminal import counted

Html = Annotated[Path | None, Parameter(name="--html", help="a page to write: the trie view, path by path")]

Statement = Annotated[
    bool,
    Parameter(name="--statement", help="for a reader who has the values: leave them out, and every hash above them"),
]
Claimed = Annotated[
    str | None,
    Parameter(
        name="--statement",
        help="the proof is a statement proof, and this file of pairs says what the keys hold; what it lacks is absent",
    ),
]
StatementVersion = Annotated[
    Literal[0, 1] | None, Parameter(name="--state-version", help="of the trie, beside --statement: 1 unless given")
]

app = App(name="proof", help="Make, verify and show storage proofs.")


@app.command
def make(
    file: File,
    /,
    *,
    key: Keys,
    state_version: Version = 1,
    compact: Compact = False,
    statement: Statement = False,
    json: AlwaysJson = False,  # noqa: ARG001
) -> ExitCode:
    """Print the proof of the keys in the trie that holds the pairs of FILE, as JSON {"root": .., "nodes": [..]}.

    A key that the trie does not hold is proven absent. Nodes come in the order of their bytes, those of a compact
    or a statement proof as a walk through the trie meets them.

    Example: echo '[["0x01", "0x02"]]' | relaycast proof make --key 0x01 -
    """
    from relaycast_trie import CompactProof, StateVersion, StorageProof, build_database, generate_proof  # noqa: PLC0415

    if compact and statement:
        raise BadInput("proof make", "--compact and --statement", "one of them")
    keys = parse_keys(key)
    db, root = build_database(read_pairs(file), state_version=StateVersion(state_version))
    if statement:
        nodes: Iterable[bytes] = generate_proof(db, root, keys)
    else:
        proof = StorageProof.generate(db, root, keys)
        nodes = CompactProof.encode(proof, root).nodes if compact else proof
    print(json_text.dumps({"root": f"0x{root.hex()}", "nodes": [f"0x{node.hex()}" for node in nodes]}))
    return ExitCode.FINE


@app.command
def verify(
    file: ProofFile,
    /,
    *,
    root: Root,
    key: Keys,
    strict: bool = False,
    compact: Compact = False,
    statement: Claimed = None,
    state_version: StatementVersion = None,
    json: AlwaysJson = False,  # noqa: ARG001
) -> ExitCode:
    """Print the values that the proof in FILE proves, null for absence, as JSON {"values": {..}}.

    FILE is JSON: a list of nodes, {"nodes": [..]}, the answer of state_getReadProof, or one SCALE hex string.
    FILE may be SCALE as bytes, too; with --compact it holds Substrate's CompactProof in one of these shapes, such as
    a parachain block brings along. A statement proof holds no values: --statement names the file that has them. A proof
    that does not hold ends with exit code 1 and {"error": {"kind": .., "message": ..}}.

    Example: relaycast proof verify --root 0x.. --key 0x.. proof.json

    Parameters
    ----------
    strict
        refuse nodes that no key needs, and nodes that come twice
    """
    from relaycast_trie import CompactProof, ProofError, StateVersion, StorageProof, verify_proof  # noqa: PLC0415

    if compact and statement is not None:
        raise BadInput("proof verify", "--compact and --statement", "one of them")
    if state_version is not None and statement is None:
        raise BadInput("--state-version", str(state_version), "it beside --statement: other proofs need none")
    expected, keys = parse_root(root), parse_keys(key)
    claimed = {} if statement is None else read_pairs(statement)
    nodes = read_proof_nodes(file)
    values: Mapping[bytes, bytes | None]
    try:
        if statement is None:
            proof = CompactProof(tuple(nodes)).decode(expected)[0] if compact else StorageProof(nodes)
            values = proof.verify(expected, keys, strict=strict).values
        else:
            values = {key: claimed.get(key) for key in keys}
            verify_proof(
                expected, nodes, values, state_version=StateVersion(1 if state_version is None else state_version)
            )
    except ProofError as error:
        print(json_text.dumps({"error": _described(error)}))
        return ExitCode.CHECK_FAILED
    shown = {f"0x{name.hex()}": None if value is None else f"0x{value.hex()}" for name, value in values.items()}
    print(json_text.dumps({"values": shown}))
    return ExitCode.FINE


@app.command
def show(
    file: ProofFile,
    /,
    *,
    root: Root | None = None,
    key: Keys | None = None,
    compact: Compact = False,
    limit: Limit = 200,
    html: Html = None,
    json: Json = False,
) -> ExitCode:
    """Print a proof node by node, what its bytes are spent on, and what a compact or a statement proof would save.

    FILE as in `proof verify`. A statement proof is for a reader who has the values already: of the keys, or of all that
    are in the proof. With --key it also names the nodes that reading the keys does not need; --root may be
    left out where the proof has one root, as a compact one has. A root node that is missing or does not decode, and a
    key that is not proven, end with exit code 1.

    Example: relaycast proof make --key 0x01 pairs.json | relaycast proof show - --html proof.html
    """
    from relaycast.cli.tables.xray import print_json, print_text  # noqa: PLC0415
    from relaycast.xray.nodes import check_root, unused_nodes, xray  # noqa: PLC0415
    from relaycast_trie import ProofError, StorageProof  # noqa: PLC0415

    expected = None if root is None else parse_root(root)
    keys = parse_keys(key or [])
    nodes, note = read_proof_nodes(file), []
    if compact:
        proof, expected = compact_proof(nodes, expected, place_of(file))
        note = [
            f"read from  {counted(sum(map(len, nodes)), 'byte')} in {counted(len(nodes), 'node')} of a compact proof"
        ]
    else:
        proof = StorageProof(nodes)
    may_be_compact = not compact and is_compact(nodes, expected)
    picture = xray(proof, root=expected, statement=keys)
    if keys and expected is None:
        if len(picture.roots) != 1:
            raise BadInput(place_of(file), f"a proof with {len(picture.roots)} roots", "--root beside --key")
        expected = bytes.fromhex(picture.roots[0][2:])
    verdict: dict[str, Any] = {}
    if may_be_compact:
        note += ["compact?   there are nodes without their children's hashes, as compact proofs have: try --compact"]
    if not compact and len(nodes) > len(proof):
        verdict["repeated_nodes"] = len(nodes) - len(proof)
        note += [f"repeated   {verdict['repeated_nodes']:,} of the nodes came before, they are counted once"]
    try:
        if not compact:
            check_root(nodes, expected)
        if expected is not None and keys:
            verdict["unused"] = [f"0x{node_hash.hex()}" for node_hash in unused_nodes(proof, expected, keys)]
            note += [f"unused     {', '.join(verdict['unused']) or 'none'}"]
    except ProofError as error:
        verdict["error"] = _described(error)
        note += [f"not proven {type(error).__name__}: {error}"]
    if html is not None:
        from relaycast.xray.page import render_xray  # noqa: PLC0415 - the template engine is slow to load

        unused = [bytes.fromhex(it[2:]) for it in verdict.get("unused", [])]
        failure = verdict["error"]["message"] if "error" in verdict else ""
        page = render_xray(place_of(file), proof, picture, keys=keys, unused=unused, error=failure)
        write_text(html, page, "--html")
    if json:
        print_json(picture, **verdict)
    else:
        print_text(picture, limit=limit, notes=note)
    return ExitCode.CHECK_FAILED if "error" in verdict else ExitCode.FINE


def _described(error: Exception) -> dict[str, str]:
    return {"kind": type(error).__name__, "message": str(error)}
