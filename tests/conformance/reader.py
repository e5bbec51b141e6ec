"""Recompute every vector of a relaycast conformance suite from its README alone: ``python reader.py DIR``."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conformance import broadcaster, proofs, subscriber, xcm
from conformance.scale import blake2


def thaw(value: Any) -> Any:
    """JSON with its bytes and its long numbers read."""
    if isinstance(value, str) and value.startswith("0x"):
        return bytes.fromhex(value[2:])
    if isinstance(value, str):
        return int(value) if value.isdecimal() else value
    if isinstance(value, (list, tuple)):
        return [thaw(one) for one in value]
    return {name: thaw(one) for name, one in value.items()} if isinstance(value, dict) else value


CHECKS = {"proofs": proofs.check, "xcm": xcm.check, "broadcaster": broadcaster.check, "subscriber": subscriber.check}


def wrong(kind: str, vector: Any) -> Iterator[str]:
    """The fields of a vector that are not what they must be."""
    v = thaw(vector)
    try:
        for field, value in CHECKS[kind](v):
            there = v
            for part in field.split("."):
                there = there[int(part)] if isinstance(there, list) else there.get(part)
            if there != thaw(value):
                yield f"{vector['id']}: {field} is {there}, not {value}"
    except Exception as error:
        yield f"{vector['id']}: {error!r}"


def read(directory: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Kind, number of vectors and failures of each file."""
    manifest = json.loads((directory / "suite.json").read_text())
    for entry in manifest["files"]:
        data = (directory / entry["path"]).read_bytes()
        vectors = [] if entry["kind"] == "document" else json.loads(data)["vectors"]
        here = {"vectors": len(vectors), "bytes": len(data), "blake2_256": "0x" + blake2(data).hex()}
        found = [
            f"{entry['path']}: {name} is {entry[name]}, not {here[name]}" for name in here if entry[name] != here[name]
        ]
        yield entry["kind"], len(vectors), found + [line for v in vectors for line in wrong(entry["kind"], v)]


def failures(directory: str | Path) -> list[str]:
    """Files and vectors that break the suite's rules."""
    return [line for _, _, found in read(Path(directory)) for line in found]


def main() -> int:
    vectors, bad = Counter[str](), Counter[str]()
    for kind, number, found in read(Path(sys.argv[1])):
        vectors[kind] += number
        bad[kind] += len(found)
        for line in found[:5]:
            print(line[:2_000])
    for kind, number in vectors.items():
        print(f"{kind}: {number} vectors, {bad[kind]} mismatches")
    return int(bad.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
