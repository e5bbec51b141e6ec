"""Metadata of real runtimes, V9 to V16, as polkadot.js reads it (run with ``-m oracle``).

The metadata comes with npm's ``@polkadot/types-support``, and out of three runtimes: Westend and Kusama of the first
day, Rococo Asset Hub of ``@substrate/connect-known-chains``.
"""

import json
import re
import subprocess
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from clients.conversation import PEERS, node_packages
from genesis_states import genesis
from relaycast_wasm import WasmRuntime
from relaycast_wasm.metadata.api_names import KNOWN_APIS, api_id
from relaycast_wasm.metadata.difference import differences
from relaycast_wasm.metadata.model import Metadata, NamedType, StorageEntry, TypeRef
from relaycast_wasm.metadata.read import read_metadata
from relaycast_wasm.metadata.storage_names import StorageNames
from relaycast_wasm.metadata.type_table import DescribedType, TypeTable
from relaycast_wasm.metadata.type_text import CUT

pytestmark = pytest.mark.oracle

SCRIPT = Path(__file__).parent / "polkadot_js.mjs"
SINCE_15 = ("apis", "outer_enums", "custom")
SINCE_14 = (*SINCE_15, "types")


@pytest.fixture(scope="module")
def packages() -> Path:
    return node_packages("@polkadot/types-support")


@pytest.fixture(scope="module")
def runtimes(packages: Path) -> dict[str, bytes]:
    spec = packages / "@substrate/connect-known-chains/dist/esm/specs/rococo_v2_2_asset_hub.js"
    code = re.search(r'0x3a636f6465\\?":\s*\\?"0x([0-9a-f]+)', spec.read_text())
    assert code is not None
    first_day = {chain: genesis(chain)[b":code"] for chain in ("westend", "kusama")}
    return {**first_day, "rococo-asset-hub": bytes.fromhex(code[1])}


@pytest.fixture(scope="module")
def answers(packages: Path, runtimes: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    files = sorted((packages / "@polkadot/types-support/metadata").glob("v*/*-hex.js"))
    for name, code in runtimes.items():
        files.append(tmp_path_factory.mktemp(name) / f"{name}.metadata")
        files[-1].write_bytes(WasmRuntime.load(code).metadata())
    command: list[str | Path] = ["node", SCRIPT, PEERS / "clients", *files]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found: list[Any] = json.loads(run.stdout)
    assert len(found) == len(files)
    return found


def plain(value: object, *, numbers: bool) -> Any:  # noqa: PLR0911 - one for each kind
    """Return a part of the model as polkadot.js's script prints it: types by number where they have one."""
    match value:
        case TypeRef():
            return value.number if numbers else value.text
        case bytes():
            return f"0x{value.hex()}"
        case tuple() | list():
            return [plain(it, numbers=numbers) for it in value]
        case StorageEntry():
            return {**members(value, numbers=numbers), "kind": value.kind}
        case TypeTable():
            return [type_members(it) for it in value]
        case _ if hasattr(value, "__dataclass_fields__"):
            return members(value, numbers=numbers)
        case _:
            return value


def members(value: Any, *, numbers: bool) -> dict[str, Any]:
    return {name: plain(getattr(value, name), numbers=numbers) for name in value.__dataclass_fields__}


def type_members(described: DescribedType) -> Any:
    return json.loads(json.dumps(asdict(described)))


def as_polkadot_js_has_it(metadata: Metadata) -> dict[str, Any]:
    """Return the metadata without what its version does not have."""
    found = members(metadata, numbers=metadata.version > 13)
    if metadata.version < 14:
        found["extrinsic"] = {
            "versions": list(metadata.extrinsic.versions),
            "extensions": [it.name for it in metadata.extrinsic.extensions],
        }
        later = ("view_functions", "associated_types", "docs", "deprecation")
        found["pallets"] = [{k: v for k, v in it.items() if k not in later} for it in found["pallets"]]
    gone = SINCE_14 if metadata.version < 14 else SINCE_15 if metadata.version < 15 else ()
    return {name: value for name, value in found.items() if name not in gone}


def test_every_item_of_real_metadata_is_what_polkadot_js_reads(answers: list[Any]) -> None:
    counts: Counter[str] = Counter()
    for answer in answers:
        file, data = Path(answer.pop("file")), bytes.fromhex(answer.pop("hex"))
        metadata = read_metadata(data)
        ours = as_polkadot_js_has_it(metadata)
        assert ours.keys() == answer.keys(), file
        for name, value in ours.items():
            if name == "pallets":
                assert [it["name"] for it in value] == [it["name"] for it in answer[name]], file
                for pallet, theirs in zip(value, answer[name], strict=True):
                    for part, items in pallet.items():
                        assert items == theirs[part], f"{file}: {pallet['name']} {part}"
                        counts[part] += len(items) if isinstance(items, list) else 1
            else:
                assert value == answer[name], f"{file}: {name}"
                counts[name] += len(value) if isinstance(value, list) else 1
        counts["functions"] += sum(len(it.functions) for it in metadata.apis)
        counts["pallets"] += len(metadata.pallets)
        assert not differences(metadata, metadata)
        assert CUT not in " ".join(texts(metadata)), file
    print(dict(counts))
    assert {answer["version"] for answer in answers} == set(range(9, 17))
    assert counts["pallets"] > 800
    assert counts["storage"] > 4_000
    assert counts["calls"] > 5_000
    assert counts["types"] > 10_000


def texts(metadata: Metadata) -> list[str]:
    found: list[str] = []

    def walk(value: Any) -> None:
        match value:
            case TypeRef(number=int()):
                found.append(value.text)
            case NamedType():
                walk(value.type)
            case tuple():
                for it in value:
                    walk(it)
            case TypeTable():
                pass
            case _ if hasattr(value, "__dataclass_fields__"):
                for name in value.__dataclass_fields__:
                    walk(getattr(value, name))

    walk(metadata)
    return found


def test_every_key_of_a_real_genesis_has_a_pallet(runtimes: dict[str, bytes]) -> None:
    for chain in ("westend", "kusama"):
        names = StorageNames(read_metadata(WasmRuntime.load(runtimes[chain]).metadata()))
        found = [names.named(key) for key in genesis(chain)]
        assert not [it for it in found if it.pallet == "(unknown)"]
        undeclared = [it for it in found if it.item.startswith("0x")]
        assert [it.pallet for it in undeclared] == ["AuthorityDiscovery"], "it has an item that metadata leaves out"
        assert len({(it.pallet, it.item) for it in found}) > 35
        if chain == "westend":
            balances = [it for it in found if (it.pallet, it.item) == ("System", "Account")]
            assert {len(it.keys[0]) for it in balances} == {32}


def test_the_apis_of_real_runtimes_are_known_by_name(packages: Path) -> None:
    listed: set[str] = set()
    for file in (packages / "@polkadot/types-support/metadata").glob("v*/*-ver.js"):
        listed |= set(re.findall(r"0x([0-9a-f]{16})\b", file.read_text()))
    known = {api_id(name).hex() for name in KNOWN_APIS}
    assert len(listed) > 30
    assert listed <= known
