"""``relaycast import``: real chain data, checked by its state root."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import File, Json
from relaycast.inputs import parse_hex
from relaycast.refusal import BadInput, shown

if TYPE_CHECKING:
    from relaycast.genesis.chain_spec import ChainSpec
    from relaycast.genesis.witness_keys import Wanted

SUFFIX = ".witness.json.gz"

OwnVersion = Annotated[
    Literal[0, 1] | None,
    Parameter(name="--state-version", help="by default that of a chain spec's own runtime, and 1 for an export"),
]

app = App(name="import", help="Read real chain data and check it by its state root.")

KnownRoot = Annotated[
    str | None, Parameter(name="--root", help="the state root that a node gives; another one makes the exit code 1")
]

NodeUrl = Annotated[str, Parameter(help="the node: http://, https://, ws:// or wss://")]
Out = Annotated[Path, Parameter(name="--out", help="the file to write; its name ends in .witness.json.gz")]
At = Annotated[str | None, Parameter(name="--at", help="hash or number of the block; by default the newest final one")]
ForScenario = Annotated[
    str, Parameter(name="--scenario", help="the preset or scenario file whose chains will start from it")
]
ParaIds = Annotated[
    list[int] | None, Parameter(name="--para-id", help="a further parachain; may be given several times")
]
MoreKeys = Annotated[
    list[str] | None,
    Parameter(name=["--keys", "--key"], help="a further key, 0x and hex digits; may be given several times"),
]
Accounts = Annotated[
    list[str] | None,
    Parameter(name="--account", help="a further account, as SS58 or in hex; may be given several times"),
]


@app.command(name="chain-spec")
def chain_spec(
    file: File, /, *, state_version: OwnVersion = None, root: KnownRoot = None, json: Json = False
) -> ExitCode:
    """Read a raw chain spec, gzipped or not, and print what it holds and its state root.

    `relaycast run --genesis FILE` starts the relay chain from it, as does genesis in a scenario's [relaychain].
    The entries are those of the top trie, without the roots of the child tries.

    Example: relaycast import chain-spec kusama-genesis.json.gz
    """
    from relaycast.genesis.chain_spec import read_chain_spec  # noqa: PLC0415

    found = read_chain_spec(file)
    return _told(found, found.state_version if state_version is None else state_version, root, json)


@app.command
def state(file: File, /, *, state_version: OwnVersion = None, root: KnownRoot = None, json: Json = False) -> ExitCode:
    """Read keys and values of a state, gzipped or not, and print what they hold and their state root.

    FILE is JSON: [["0xkey", "0xvalue"], ...] or {"0xkey": "0xvalue"}, the answer of state_getPairs, or both kinds of
    tries as {"top": .., "childrenDefault": {"0xname": ..}}. Or CSV or Parquet with the columns key and value, as hex or
    bytes, and child (the child trie's name) where there are children. `relaycast run --genesis FILE` starts from it.

    Example: relaycast import state pairs.parquet --root 0x..
    """
    from relaycast.genesis.state_export import read_state  # noqa: PLC0415

    found = read_state(file)
    return _told(found, found.state_version if state_version is None else state_version, root, json)


@app.command
def rpc(
    url: NodeUrl,
    /,
    *,
    out: Out,
    at: At = None,
    scenario: ForScenario = "oracle",
    para_id: ParaIds = None,
    keys: MoreKeys = None,
    account: Accounts = None,
    json: Json = False,
) -> ExitCode:
    """Fetch a part of a real relay chain's state from a node, as a witness that relay chains start from.

    `relaycast run --genesis FILE` starts the relay chain from it, as does genesis in a scenario's [relaychain]. The
    witness holds what the chains of the scenario read and write, and the development accounts. Every trie node is
    checked by its hash against the block's state root. All else is a gap: reading it is an error by name. The values
    that are counted are those of the top trie, with the roots of its child tries.

    The node needs state_getReadProof, and the block's state: without --at, that of its newest final block.

    Example: relaycast import rpc wss://rpc.example.org --scenario scenario.toml --out fork.witness.json.gz
    """
    from relaycast.cli.tables.witness import import_progress, print_witness  # noqa: PLC0415
    from relaycast.genesis.witness_fetch import fetch_witness  # noqa: PLC0415
    from relaycast.out_file import check_file, written  # noqa: PLC0415

    if not out.name.endswith(SUFFIX):
        raise BadInput("--out", shown(str(out)), f"a file name that ends in {SUFFIX}")
    wanted = _wanted(scenario, para_id or [], keys or [], account or [])
    check_file(out, "--out")
    with import_progress() as (tell, progress):
        found = fetch_witness(url, wanted, at=at, tell=tell, progress=progress)
    data = found.encode()
    with written(out, "--out") as stream:
        stream.write(data)
    print_witness(found, out, len(data), json=json)
    return ExitCode.FINE


def _wanted(scenario: str, para_ids: list[int], keys: list[str], accounts: list[str]) -> "Wanted":
    """Return what a scenario needs and what is asked for beside it; raises ``BadInput``."""
    from relaycast.genesis.witness_keys import account_keys, wanted_for  # noqa: PLC0415
    from relaycast.scenario.files import load_named  # noqa: PLC0415
    from relaycast_node.rpc.account_text import account_of  # noqa: PLC0415
    from relaycast_xcm.primitives import U32_MAX  # noqa: PLC0415

    more = [parse_hex(key, "--key") for key in keys]
    for para_id in para_ids:
        if not 0 <= para_id <= U32_MAX:
            raise BadInput("--para-id", str(para_id), f"a number from 0 to {U32_MAX}")
    for text in accounts:
        account = account_of(text)
        if account is None:
            raise BadInput("--account", shown(text), "an SS58 address, or 0x and 64 hex digits")
        more += account_keys(account)
    return wanted_for(load_named(scenario, "import rpc"), para_ids=para_ids, keys=more)


def _told(state: "ChainSpec", version: int, root: str | None, json: bool) -> ExitCode:
    from relaycast.genesis.chain_spec import missing_children  # noqa: PLC0415
    from relaycast_trie import StateVersion  # noqa: PLC0415

    expected = None if root is None else parse_hex(root, "--root", size=32)
    found = state.state_root(state_version=StateVersion(version))
    missing = missing_children(state)
    summary: dict[str, object] = {
        "name": state.name,
        "entries": len(state.top),
        "children": len(state.children),
        "state_root": f"0x{found.hex()}",
    }
    if missing:
        summary["missing_children"] = [f"0x{name.hex()}" for name in missing]
    if expected is not None:
        summary["matches"] = found == expected
    if json:
        print(json_text.dumps(summary))
    else:
        _print(summary, expected)
    return ExitCode.FINE if expected in (None, found) else ExitCode.CHECK_FAILED


def _print(summary: dict[str, object], expected: bytes | None) -> None:
    shown = {**summary}
    if missing := shown.pop("missing_children", None):
        assert isinstance(missing, list)
        shown["children"] = f"{shown['children']}, and {len(missing)} in the top trie of which no entry is here"
    if expected is not None:
        shown["matches"] = "yes" if shown["matches"] else f"no, expected 0x{expected.hex()}"
    for name, value in shown.items():
        print(f"{name:<11} {value}")
