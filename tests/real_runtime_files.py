"""Scenario files around the small runtime of tests: its code, a state, extrinsics by relay block."""

import json
from pathlib import Path
from typing import Any

from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.scale import encode_bytes
from relaycast_xcm import Publish
from relaycast_xcm.message import encode_versioned_xcm
from wasm.text_runtime import text_runtime

WRITE, INVALID, PANIC, SEND, READ = 1, 7, 5, 9, 8
"""What an extrinsic of the runtime does, see ``wasm.text_runtime``."""

PRICE = SubscribedKey.from_data(b"price")

SCENARIO = """
name = "small"
blocks = 8
[[parachains]]
id = 3000
wasm = "small.wasm"
genesis = "state.json"
extrinsics = "calls.json"
[[parachains]]
id = 2000
subscribe = [{publisher = 3000, keys = ["price"]}]
"""


def key(number: int) -> bytes:
    return bytes([number]) * 32


def extrinsic(kind: int, data: bytes = b"") -> bytes:
    return encode_bytes(bytes([kind]) + data)


def call(block: int, kind: int, data: bytes = b"") -> dict[str, Any]:
    return {"block": block, "extrinsic": f"0x{extrinsic(kind, data).hex()}"}


def publication(value: bytes) -> bytes:
    return encode_versioned_xcm([Publish(PRICE, value, 0)])


CALLS = [
    *(call(block, WRITE, key(block) + b"value %d" % block * 8) for block in range(1, 6)),
    *(call(block, SEND, publication(b"%d" % block)) for block in range(1, 5)),
    call(4, INVALID),
]


def write_files(folder: Path, *, calls: list[dict[str, Any]] | None = None, scenario: str = SCENARIO) -> str:
    """Write a scenario with all its files and return its name."""
    folder.joinpath("small.wasm").write_bytes(text_runtime())
    top = {f"0x{key(number).hex()}": f"0x{bytes(40).hex()}" for number in range(40)}
    folder.joinpath("state.json").write_text(json.dumps({"top": top}))
    folder.joinpath("calls.json").write_text(json.dumps(CALLS if calls is None else calls))
    folder.joinpath("small.toml").write_text(scenario)
    return str(folder / "small.toml")
