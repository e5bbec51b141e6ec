"""Recompute every vector of a relaycast conformance suite from its README alone: ``python reader.py DIR``."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import broadcaster, subscriber, tries, xcm
from conformance.scale import STORAGE, TYPES, blake2

MODULES = {"subscriber": subscriber, "broadcaster": broadcaster, "xcm": xcm, "proofs": tries}


def thaw(value: Any) -> Any:
    """JSON with its bytes and its long numbers read."""
    if isinstance(value, str):
        return bytes.fromhex(value[2:]) if value.startswith("0x") else int(value) if value.isdecimal() else value
    if isinstance(value, dict):
        return {name: thaw(one) for name, one in value.items()}
    return [thaw(one) for one in value] if isinstance(value, (list, tuple)) else value


def wrong(kind: str, vector: Any) -> Iterator[str]:
    """The fields of a vector that are not what they must be."""
    v = thaw(vector)
    try:
        for field, value in MODULES[kind].expected(v).items():
            if v.get(field) != thaw(value):
                yield f"{v['id']}: {field} is {v.get(field)}, not {value}"
    except Exception as error:
        yield f"{v['id']}: {error!r}"


def learn(directory: Path) -> None:
    """Read the types and the items of storage that the suite describes."""
    types = json.loads((directory / "types.json").read_text())
    TYPES.update(types["types"])
    STORAGE.update(types["storage"])


def read(directory: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Path, number of vectors and failures of each file."""
    learn(directory)
    for entry in json.loads((directory / "suite.json").read_text())["files"]:
        data = (directory / entry["path"]).read_bytes()
        vectors = [] if entry["kind"] == "document" else json.loads(data)["vectors"]
        here = {"vectors": len(vectors), "bytes": len(data), "blake2_256": "0x" + blake2(data).hex()}
        bad = [f"{name} is {entry[name]}, not {here[name]}" for name in here if entry[name] != here[name]]
        yield entry["path"], len(vectors), bad + [line for v in vectors for line in wrong(entry["kind"], v)]


if __name__ == "__main__":
    mismatches = 0
    for path, number, found in read(Path(sys.argv[1])):
        mismatches += len(found)
        print(f"{path}: {number} vectors, {len(found)} mismatches", *(line[:2_000] for line in found[:5]), sep="\n")
    sys.exit(mismatches > 0)
