"""``relaycast import``: real chain data, checked by its state root."""

import json as json_text

from cyclopts import App

from relaycast.exit_code import ExitCode
from relaycast.verbs.options import File, Json, Version

app = App(name="import", help="Read real chain data and check it by its state root.")


@app.command(name="chain-spec")
def chain_spec(file: File, /, *, state_version: Version = 0, json: Json = False) -> ExitCode:
    """Read a raw chain spec, gzipped or not, and print what it holds and its state root.

    Example: relaycast import chain-spec kusama-genesis.json.gz
    """
    from relaycast.chain_spec import read_chain_spec  # noqa: PLC0415
    from relaycast_trie import StateVersion  # noqa: PLC0415

    spec = read_chain_spec(file)
    root = spec.state_root(state_version=StateVersion(state_version))
    summary = {
        "name": spec.name,
        "entries": len(spec.top),
        "children": len(spec.children),
        "state_root": f"0x{root.hex()}",
    }
    if json:
        print(json_text.dumps(summary))
    else:
        for name, value in summary.items():
            print(f"{name:<11} {value}")
    return ExitCode.FINE
