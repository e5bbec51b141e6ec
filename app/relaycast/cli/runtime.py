"""``relaycast runtime``: what a real runtime is, what it answers, and what changed from one to the next."""

import json as json_text
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.options import Json
from relaycast.inputs import hex_or_bytes, place_of
from relaycast.refusal import BadInput, nearest, plain, shown

if TYPE_CHECKING:
    from relaycast.genesis.chain_spec import ChainSpec
    from relaycast_wasm import OverlayedChanges, WasmRuntime
    from relaycast_wasm.metadata.model import Metadata

RuntimeFile = Annotated[
    str,
    Parameter(
        name="FILE",
        help="a runtime: Wasm, compressed or not, its 0x hex, a raw chain spec or state with :code, or - for standard "
        "input",
    ),
]
Before = Annotated[str, Parameter(name="BEFORE", help="the runtime that clients know, see runtime show --help")]
After = Annotated[str, Parameter(name="AFTER", help="the runtime that comes")]
Method = Annotated[str, Parameter(name="METHOD", help="what to call, such as Core_version")]
Arguments = Annotated[str, Parameter(name="ARGUMENTS", help="SCALE of all arguments: 0x hex, or a file of it")]
PalletName = Annotated[str | None, Parameter(name="--pallet", help="print all that this pallet has, and nothing else")]
StateVersionOfCall = Annotated[
    Literal[0, 1] | None,
    Parameter(
        name="--state-version",
        help="state version of the trie of --state; by default that of the runtime in it, or of FILE if it holds none",
    ),
]
StateFile = Annotated[
    str | None,
    Parameter(name="--state", help="the state that the call reads: a raw chain spec, or keys and values, see import"),
]

app = App(name="runtime", help="Show what a real runtime is, what it answers, and what an upgrade changes.")


@app.command
def show(file: RuntimeFile, /, *, pallet: PalletName = None, json: Json = False) -> ExitCode:
    """Print what a runtime is: versions, size, runtime APIs, and its pallets from its metadata (V9 to V16).

    It names the host functions that the runtime imports and that are missing here. The runtime runs until it calls one.
    --json has every storage item, call, event, error and constant, with their types.

    Example: relaycast runtime show my_runtime.compact.compressed.wasm --pallet Balances
    """
    from relaycast.cli.tables.runtime import print_pallet, print_runtime  # noqa: PLC0415
    from relaycast_wasm.metadata.plain_data import plain_data, plain_metadata  # noqa: PLC0415

    runtime = _loaded(file)
    metadata = _metadata_of(runtime, file)
    if pallet is not None:
        found = metadata.pallet(pallet)
        if found is None:
            names = [it.name for it in metadata.pallets]
            raise BadInput("--pallet", shown(pallet), f"a pallet of {place_of(file)}", nearest(pallet, names))
        if json:
            print(json_text.dumps(plain_data(found)))
        else:
            print_pallet(found)
        return ExitCode.FINE
    summary = _summary(runtime, metadata)
    if json:
        print(json_text.dumps({**summary, "metadata": plain_metadata(metadata)}))
    else:
        print_runtime(summary, metadata)
    return ExitCode.FINE


@app.command
def call(
    file: RuntimeFile,
    method: Method,
    arguments: Arguments = "0x",
    /,
    *,
    state: StateFile = None,
    state_version: StateVersionOfCall = None,
    json: Json = False,
) -> ExitCode:
    """Call a method of a runtime and print the SCALE bytes that it answers.

    The call reads the state of --state, or an empty one, and its writes are dropped. Lines that the runtime logs go to
    stderr. A call that traps ends with exit code 1, the runtime's own panic message, and what it logged before.

    Example: relaycast runtime call westend-genesis.json.gz Core_version --json
    """
    from relaycast_wasm.exceptions import CallFailed  # noqa: PLC0415

    runtime = _loaded(file)
    if method not in runtime.methods:
        raise BadInput("METHOD", shown(method), "a method that the runtime exports", _methods_like(runtime, method))
    _, data = hex_or_bytes(arguments, "ARGUMENTS")
    overlay = _overlay(runtime, state, state_version)
    try:
        answer = runtime.call(method, data, overlay)
    except CallFailed as error:
        if json:
            failure = {"kind": type(error).__name__, "message": error.reason}
            print(json_text.dumps({"error": failure, "log": list(error.log)}))
        else:
            _print_log(error.log)
            print(f"relaycast: {type(error).__name__}: {plain(str(error))}", file=sys.stderr)
        return ExitCode.CHECK_FAILED
    if json:
        print(json_text.dumps({"output": f"0x{answer.output.hex()}", "log": list(answer.log)}))
    else:
        _print_log(answer.log)
        print(f"0x{answer.output.hex()}")
    return ExitCode.FINE


@app.command
def diff(before: Before, after: After, /, *, json: Json = False) -> ExitCode:
    """Print what changed between two runtimes, and which changes break clients.

    A change breaks clients when a transaction that they encode is refused or does something else, or when state, events
    and errors that they read mean something else. Exit code 0: no change breaks them; 1: some do. Metadata before V14
    only names its types: there a change inside a type that keeps its name is not seen.

    Example: relaycast runtime diff old.wasm new.wasm
    """
    from relaycast.cli.tables.runtime import print_changes  # noqa: PLC0415
    from relaycast_wasm.metadata.plain_data import plain_data  # noqa: PLC0415
    from relaycast_wasm.metadata.upgrade import upgrade  # noqa: PLC0415

    runtimes = [_loaded(file) for file in (before, after)]
    metadata = [_metadata_of(runtime, file) for runtime, file in zip(runtimes, (before, after), strict=True)]
    old, new = (runtime.version for runtime in runtimes)
    found = upgrade((old, metadata[0]), (new, metadata[1]))
    if json:
        versions = [{"spec_name": it.spec_name, "spec_version": it.spec_version} for it in (old, new)]
        head = {"before": versions[0], "after": versions[1], "breaking": found.breaking}
        print(json_text.dumps({**head, "changes": plain_data(found.changes), "notes": list(found.notes)}))
    else:
        print_changes(found, *(f"{it.spec_name} {it.spec_version}" for it in (old, new)))
    return ExitCode.CHECK_FAILED if found.breaking else ExitCode.FINE


def _loaded(file: str) -> "WasmRuntime":
    from relaycast.genesis.runtime_code import read_runtime_code  # noqa: PLC0415
    from relaycast.simulation.wasm_sources import loaded  # noqa: PLC0415

    return loaded(read_runtime_code(file), place_of(file))


def _metadata_of(runtime: "WasmRuntime", file: str) -> "Metadata":
    from relaycast_trie.exceptions import CodecError  # noqa: PLC0415
    from relaycast_wasm.exceptions import MissingExport  # noqa: PLC0415
    from relaycast_wasm.metadata.of_runtime import metadata_of  # noqa: PLC0415

    try:
        return metadata_of(runtime)
    except CodecError as error:
        raise BadInput(f"{place_of(file)}, its metadata", str(error), "metadata of V9 to V16") from None
    except MissingExport as error:
        raise BadInput(place_of(file), f"no export {error.name}", "a runtime, which has it") from None


def _summary(runtime: "WasmRuntime", metadata: "Metadata") -> dict[str, Any]:
    from relaycast_trie.hasher import blake2_256  # noqa: PLC0415
    from relaycast_wasm.code_blob import wasm_of  # noqa: PLC0415
    from relaycast_wasm.metadata.api_names import api_names  # noqa: PLC0415

    version, names = runtime.version, api_names(metadata)
    return {
        "spec_name": version.spec_name,
        "impl_name": version.impl_name,
        "spec_version": version.spec_version,
        "impl_version": version.impl_version,
        "authoring_version": version.authoring_version,
        "transaction_version": version.transaction_version,
        "state_version": version.state_version,
        "code_bytes": len(runtime.code),
        "wasm_bytes": len(wasm_of(runtime.code)),
        "code_hash": f"0x{blake2_256(runtime.code).hex()}",
        "metadata_version": metadata.version,
        "missing_imports": list(runtime.missing_imports),
        "apis": [
            {"name": names.get(api), "id": f"0x{api.hex()}", "version": number} for api, number in version.apis.items()
        ],
    }


def _overlay(runtime: "WasmRuntime", state: str | None, state_version: int | None) -> "OverlayedChanges":
    """Return storage for a call of ``runtime``, which writes values in its own state version from then on."""
    from relaycast.genesis.chain_spec import refuse_missing_children, refuse_part  # noqa: PLC0415
    from relaycast.genesis.state_export import read_state  # noqa: PLC0415
    from relaycast_pallets.frame.state import State  # noqa: PLC0415
    from relaycast_trie import ChildInfo, StateVersion  # noqa: PLC0415
    from relaycast_wasm import OverlayedChanges, StateBacking  # noqa: PLC0415

    own_version = runtime.version.trie_version
    if state is None:
        if state_version is not None:
            raise BadInput("--state-version", str(state_version), "--state beside it")
        return OverlayedChanges(StateBacking(State(state_version=own_version, window=1, engine="plain")))
    spec = read_state(state)
    refuse_part(spec, place_of(state))
    refuse_missing_children(spec, place_of(state))
    children = {ChildInfo.new_default(name): pairs for name, pairs in spec.children.items()}
    if state_version is None:
        version = _written_by(spec, state, runtime).version.trie_version
    else:
        version = StateVersion(state_version)
    held = State(spec.top, children, state_version=version, window=1)
    held.migrate(own_version)
    return OverlayedChanges(StateBacking(held))


def _written_by(state: "ChainSpec", file: str, runtime: "WasmRuntime") -> "WasmRuntime":
    """Return the runtime in a state, or ``runtime`` if it has none; raises ``BadInput``."""
    from relaycast.genesis.chain_spec import CODE  # noqa: PLC0415
    from relaycast.genesis.runtime_code import code_of  # noqa: PLC0415
    from relaycast.simulation.wasm_sources import loaded  # noqa: PLC0415

    if state.top.get(CODE, runtime.code) == runtime.code:
        return runtime
    return loaded(code_of(state, place_of(file)), f"{place_of(file)} at :code")


def _methods_like(runtime: "WasmRuntime", method: str) -> str:
    hint = nearest(method, [name for name in runtime.methods if "_" in name.strip("_")])
    return hint if hint.startswith("did") else "runtime show lists its APIs"


def _print_log(lines: tuple[str, ...]) -> None:
    for line in lines:
        print(plain(line), file=sys.stderr)
