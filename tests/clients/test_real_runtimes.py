"""@polkadot/api 16.5.6 and polkadot-api 2.2.2 use chains that real runtimes run (run with ``-m clients``)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.conversation import SCRIPTS, Said, listen_to, node_packages, npm_project
from clients.served import Line, Served

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from wasm.real_chains import FUNDS, runtime_of, top_of

pytestmark = pytest.mark.clients

WESTEND_SCENARIO = """
name = "westend"
[relaychain]
genesis = "spec.json"
wasm = "runtime.wasm"
[[parachains]]
id = 2000
publish = { every = 1, keys = 2 }
[[parachains]]
id = 3000
subscribe = [{ publisher = 2000 }]
"""

ASSET_HUB_SCENARIO = """
name = "hub"
[[parachains]]
id = 2000
publish = { every = 1, keys = 2 }
[[parachains]]
id = 1000
genesis = "spec.json"
relay_blocks_per_block = 2
"""

INHERENTS = {
    "westend": ["timestamp.set", "finalityTracker.finalHint", "parachains.setHeads"],
    "asset-hub": ["parachainSystem.setValidationData", "timestamp.set"],
}

IN_FRONT = {"westend": [], "asset-hub": ["balances.Withdraw"]}
"""What happens first when a transfer is applied: Westend of 2020 has no event for it."""

SPECS = {
    "westend": ("Westend", {"ss58Format": 42, "tokenDecimals": 12, "tokenSymbol": "WND"}, WESTEND_SCENARIO),
    "asset-hub": ("Rococo Asset Hub", {"tokenDecimals": 12, "tokenSymbol": "ROC"}, ASSET_HUB_SCENARIO),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with both scripts; skips before anything is served where packages are missing."""
    folder = tmp_path_factory.mktemp("real-runtimes")
    sources = [SCRIPTS / name for name in ("real_runtime.mjs", "real_runtime_papi.mjs", "items.mjs")]
    npm_project(folder, node_packages("@polkadot/api"), sources)
    return folder


def scenario_of(chain: str, folder: Path) -> Path:
    """Write a scenario in which a chain has its real runtime and the genesis in which Alice has funds."""
    name, properties, scenario = SPECS[chain]
    top = {f"0x{key.hex()}": f"0x{value.hex()}" for key, value in top_of(chain).items()}
    spec = {"name": name, "id": chain, "properties": properties, "genesis": {"raw": {"top": top}}}
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "runtime.wasm").write_bytes(top_of(chain)[b":code"])
    file = folder / "scenario.toml"
    file.write_text(scenario)
    return file


@pytest.fixture(scope="module", params=["westend", "asset-hub"])
def chain(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def served(project: Path, chain: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    scenario = scenario_of(chain, tmp_path_factory.mktemp(chain))
    with Served.serving(str(scenario), "--block-time", "500ms") as network:
        network.ask("dev_newBlock", 4)  # authors tell the runtime of 2020 which block is final as soon as one is
        yield network


@pytest.fixture(scope="module")
def place(served: Served, chain: str) -> str:
    return f"{served.url}/para/1000" if chain == "asset-hub" else served.url


@pytest.fixture(scope="module")
def said(project: Path, served: Served, place: str) -> Iterator[Said]:
    line = Line(served)
    yield listen_to(["node", "real_runtime.mjs", place], line, project)
    line.close()


def test_polkadot_js_connects_to_the_very_runtime(said: Said, served: Served, chain: str) -> None:
    seen, version = said("connect"), runtime_of(chain).version
    assert (seen["spec_name"], seen["spec_version"]) == (version.spec_name, version.spec_version)
    name, properties, _ = SPECS[chain]
    assert (seen["chain"], seen["token"]) == (name, properties["tokenSymbol"])
    metadata = served.ask("state_getMetadata", para=1000 if chain == "asset-hub" else None)
    assert metadata == f"0x{runtime_of(chain).metadata().hex()}"
    assert seen["metadata_version"] == runtime_of(chain).metadata()[4]


def test_it_reads_typed_storage(said: Said, chain: str) -> None:
    """Westend of 2020 removes its number when a block ends."""
    seen = said("storage")
    assert seen["number"] == (0 if chain == "westend" else seen["header_number"])
    assert int(seen["alice"]["data"]["free"], 16) == FUNDS
    assert seen["accounts"] > 0
    assert seen["proof"] > 0


def test_it_sends_a_transfer_and_sees_it_in_a_block_with_events(said: Said, chain: str) -> None:
    seen = said("transfer")
    assert seen["body"] == [*INHERENTS[chain], "balances.transferKeepAlive"]
    assert seen["signed"] == [False] * len(INHERENTS[chain]) + [True]
    assert set(seen["events"]) >= {"system.NewAccount", "balances.Endowed", "balances.Transfer", *IN_FRONT[chain]}
    assert seen["events"][-1] == "system.ExtrinsicSuccess"
    assert int(seen["bob_got"]) == 5 * int(seen["unit"])
    assert seen["nonce"] == 1


def test_the_fee_that_it_asked_for_is_what_was_paid(said: Said) -> None:
    """The fee follows the load of blocks: it moves by less than one part in a thousand meanwhile."""
    seen = said("transfer")
    paid = int(seen["alice_gave"]) - int(seen["bob_got"])
    assert abs(paid - int(seen["fee"])) * 1_000 < paid


def test_a_call_that_fails_comes_with_the_runtime_s_error(said: Said) -> None:
    seen = said("failed")
    assert seen["events"][-1] == "system.ExtrinsicFailed"
    assert seen["reason"] == "InsufficientBalance"


def test_a_stale_nonce_is_refused_as_the_runtime_says(said: Said) -> None:
    seen = said("stale")
    assert seen["message"] == "1010: Invalid Transaction: Transaction is outdated"
    assert seen["dry"] == "0x010003"


@pytest.mark.parametrize("chain", ["asset-hub"], indirect=True, scope="module")
def test_polkadot_api_reads_its_metadata_and_sends_a_transfer(
    project: Path, served: Served, place: str, chain: str
) -> None:
    line = Line(served)
    said = listen_to(["node", "real_runtime_papi.mjs", place], line, project)
    line.close()
    assert said("metadata")["bytes"] == f"0x{runtime_of(chain).metadata().hex()}"
    assert said("metadata")["version"] == runtime_of(chain).version.spec_version
    seen = said("transfer")
    assert seen["ok"] is True
    assert "Balances.Transfer" in seen["events"]
    assert int(seen["free"]) == 3 * 10**12
