"""What changed between real runtimes, and what PAPI's checksums say of it (run with ``-m oracle``).

The two must agree item by item, but for what each is about. A checksum of PAPI covers all calls and errors of the
runtime wherever one stands in a type; here they are compared once, where their pallets declare them. PAPI knows
variants by their names, and no defaults.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.conversation import PEERS, node_packages
from relaycast_wasm.metadata.difference import differences
from relaycast_wasm.metadata.model import Metadata
from relaycast_wasm.metadata.read import read_metadata

pytestmark = pytest.mark.oracle

SCRIPT = Path(__file__).parent / "papi_checksums.mjs"
OF_ALL_PALLETS = re.compile(r"\b(RuntimeCall|DispatchError\w*|EventRecord|Bounded|ManagerMultisigVote)\b")
OURS_ALONE = re.compile(r"moved from index|its default was")


def read(file: Path) -> Metadata:
    found = re.search(r"'0x([0-9a-f]+)'", file.read_text())
    assert found is not None
    data = bytes.fromhex(found[1])
    return read_metadata(data[data.index(b"meta") :])


def items(metadata: Metadata) -> Iterator[tuple[str, str]]:
    """Yield every item under PAPI's name, with the types that it has."""
    for pallet in metadata.pallets:
        for about, listed in (("call", pallet.calls), ("event", pallet.events)):
            for item in listed:
                yield f"{about} {pallet.name}.{item.name}", " ".join(it.type.text for it in item.fields)
        for entry in pallet.storage:
            yield f"storage {pallet.name}.{entry.name}", " ".join(it.text for it in (*entry.keys, entry.value))
        for constant in pallet.constants:
            yield f"constant {pallet.name}.{constant.name}", constant.type.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("v14/kusama", "v15/kusama"),
        ("v14/polkadot", "v15/polkadot"),
        ("v15/polkadot", "v15/kusama"),
        ("v15/asset-hub-polkadot", "v15/asset-hub-kusama"),
    ],
)
def test_what_changed_is_what_papi_finds_changed(before: str, after: str) -> None:
    folder = node_packages("polkadot-api") / "@polkadot/types-support/metadata"
    files = [folder / f"{name}-hex.js" for name in (before, after)]
    command: list[str | Path] = ["node", SCRIPT, PEERS / "clients", *files]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    old, new = json.loads(run.stdout)
    metadata = [read(file) for file in files]
    types = dict(items(metadata[0]))
    assert types.keys() == old.keys()

    both = old.keys() & new.keys()
    theirs = {name for name in both if old[name] != new[name]}
    told = {
        f"{it.about} {it.name}": it
        for it in differences(*metadata)
        if it.what == "changed" and not (it.before or "").startswith("0x")  # the value of a constant
    }
    ours = told.keys() & both
    print(f"{before} -> {after}: {len(both)} items in both, {len(ours)} changed here, {len(theirs)} at PAPI")
    assert not [told[name] for name in ours - theirs if not OURS_ALONE.search(told[name].why)]
    assert not [(name, types[name]) for name in theirs - ours if not OF_ALL_PALLETS.search(types[name])]
    assert len(both) > 900
    assert len(ours & theirs) > 20
