"""``relaycast vectors``: the conformance suite, written and checked."""

import json as json_text
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.refusal import one_line
from relaycast.terminal import counted, say

app = App(name="vectors", help="Write and check a conformance suite for implementations of pub-sub.")

Folder = Annotated[str, Parameter(name="DIR", help="the suite's folder")]
Seed = Annotated[
    int,
    Parameter(name="--seed", help="seed of the random vectors", validator=validators.Number(gte=0, lt=1 << 53)),
]


@app.command
def export(folder: Folder, /, *, seed: Seed = 7, json: Json = False) -> ExitCode:
    """Write the suite into DIR: README.md, schema.json, suite.json and the vectors of every kind.

    DIR is new, empty, or holds a suite, which is replaced. The same seed and version give the same bytes.

    Example: relaycast vectors export suite
    """
    from relaycast.vectors.suite import MANIFEST, encoded_manifest, export  # noqa: PLC0415
    from relaycast_trie import blake2_256  # noqa: PLC0415

    manifest = export(Path(folder), seed=seed)
    digest = f"0x{blake2_256(encoded_manifest(manifest)).hex()}"
    if json:
        told = {"vectors": manifest.by_kind(), "bytes": manifest.size, "blake2_256": digest, "out": folder}
        print(json_text.dumps(told))
        return ExitCode.FINE
    for kind, count in manifest.by_kind().items():
        print(f"{kind:<12} {counted(count, 'vector')}")
    say(f"{manifest.vectors:,} vectors, {manifest.size:,} bytes, {MANIFEST} has the Blake2b-256 hash {digest}")
    return ExitCode.FINE


@app.command
def check(folder: Folder, /, *, json: Json = False) -> ExitCode:
    """Verify the digests of the suite in DIR, and compute every vector anew.

    The first file or vector that differs is named, and the exit code is 1.

    Example: relaycast vectors check suite
    """
    from relaycast.vectors.suite import SuiteFault, check  # noqa: PLC0415

    try:
        manifest = check(Path(folder))
    except SuiteFault as fault:
        if json:
            print(json_text.dumps({"path": fault.path, "vector": fault.vector, "reason": fault.reason}))
        else:
            print(one_line(f"{folder}/{fault}"))
        return ExitCode.CHECK_FAILED
    if json:
        print(json_text.dumps({"vectors": manifest.by_kind(), "bytes": manifest.size}))
    else:
        print(f"{manifest.vectors:,} vectors are as computed here")
    return ExitCode.FINE
