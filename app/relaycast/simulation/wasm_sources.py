"""What a scenario's files say of a parachain with a real runtime: code, state, and the extrinsics of its blocks.

Law: all of it is read, and the runtime compiled, before anything runs. What does not fit raises ``BadInput``.
"""

import atexit
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from relaycast.genesis.chain_spec import ChainSpec, refuse_missing_children, refuse_part
from relaycast.genesis.state_export import read_state
from relaycast.inputs import parse_hex, place_of, read_bytes, read_json
from relaycast.refusal import BadInput, shown
from relaycast.scenario.scenario import MAX_BLOCKS, ParachainTable
from relaycast_trie.exceptions import CodecError
from relaycast_trie.extras import install_command
from relaycast_trie.scale import ScaleReader

if TYPE_CHECKING:
    from relaycast_wasm.runtime import WasmRuntime

CODE = b":code"

MOST_AMOUNT = 2**128 - 1

TRANSFER = ("amount", "block", "from", "to")

EXPECTED = '{"block": 3, "extrinsic": "0x.."} or {"block": 3, "from": "Alice", "to": "Bob", "amount": 1000000}'


class PlannedTransfer(Struct, frozen=True):
    """Money that moves from a development account to another, or to any account by its 32 bytes."""

    sender: str
    to: str | bytes
    amount: int


class WasmParachainSource(Struct, frozen=True):
    """A runtime with the state it starts from, and its extrinsics by relay block; ``place`` is where the code stood."""

    code: bytes
    state: ChainSpec
    place: str
    extrinsics: dict[int, list[bytes | PlannedTransfer]] = field(default_factory=dict)
    extrinsics_place: str = ""

    @property
    def digest(self) -> bytes:
        """Digest of the code, every entry of the state and all extrinsics."""
        found = blake2b(self.code, digest_size=32)
        for child, pairs in sorted({b"": self.state.top, **self.state.children}.items()):
            for key, value in sorted(pairs.items()):
                for part in (child, key, value):
                    found.update(len(part).to_bytes(8, "little") + part)
        found.update(repr(sorted(self.extrinsics.items())).encode())
        return found.digest()

    @classmethod
    def of(cls, chain: ParachainTable) -> "WasmParachainSource":
        """Read the files of a parachain with a real runtime; raises ``BadInput``."""
        assert isinstance(chain.genesis, str)
        state, file = read_state(chain.genesis), chain.extrinsics
        code, place = code_of(state, chain.genesis, chain.wasm if isinstance(chain.wasm, str) else None)
        check_complete(state, chain.genesis)
        if not isinstance(file, str):
            return cls(code, state, place)
        return cls(code, state, place, read_extrinsics(file), place_of(file))


def code_of(state: ChainSpec, genesis: str, wasm: str | None) -> tuple[bytes, str]:
    """Return the runtime that a state is run by, and where it stood: its own ``:code``, or the file ``wasm``."""
    if wasm is not None:
        return read_bytes(wasm), place_of(wasm)
    code = state.top.get(CODE)
    if code is None:
        raise BadInput(f"{place_of(genesis)} at :code", "a state without a runtime", "wasm = ... beside the genesis")
    return code, f"{place_of(genesis)} at :code"


def check_complete(state: ChainSpec, genesis: str) -> None:
    """Raise ``BadInput`` for a part of a state, and for a child trie of which nothing but the root is there."""
    refuse_part(state, place_of(genesis))
    refuse_missing_children(state, place_of(genesis))


@lru_cache(maxsize=4)
def loaded(code: bytes, place: str) -> "WasmRuntime":
    """Return the runtime that ``code`` is, which answers what its version is; raises ``BadInput``."""
    try:
        from relaycast_wasm.exceptions import WasmError  # noqa: PLC0415 - needs the extra wasm
        from relaycast_wasm.runtime import WasmRuntime  # noqa: PLC0415
    except ModuleNotFoundError as error:
        expected = f'the extra "wasm": {install_command("wasm")}'
        raise BadInput(place, f"a real runtime, and no {error.name}", expected) from None
    atexit.register(loaded.cache_clear)  # while the engine can still be closed in order
    try:
        runtime = WasmRuntime.load(code)
        _ = runtime.version
    except (WasmError, CodecError) as error:
        raise BadInput(place, str(error), "a runtime in WebAssembly, compressed or not") from None
    return runtime


def read_extrinsics(file: str) -> dict[int, list[bytes | PlannedTransfer]]:
    """Return the extrinsics of a file by relay block; raises ``BadInput``."""
    content, place = read_json(file), place_of(file)
    if not isinstance(content, list):
        raise BadInput(place, shown(content), f"a list of {EXPECTED}")
    found: dict[int, list[bytes | PlannedTransfer]] = {}
    for index, entry in enumerate(content):
        here = f"{place} at [{index}]"
        if not isinstance(entry, dict):
            raise BadInput(here, shown(entry), EXPECTED)
        block = _whole(entry.get("block"), f"{here}.block", most=MAX_BLOCKS)
        if set(entry) == {"block", "extrinsic"}:
            found.setdefault(block, []).append(_extrinsic(entry["extrinsic"], f"{here}.extrinsic"))
        elif set(entry) == set(TRANSFER):
            found.setdefault(block, []).append(_transfer(entry, here))
        else:
            raise BadInput(here, f"the members {', '.join(map(shown, entry))}", EXPECTED)
    return found


def _extrinsic(text: Any, place: str) -> bytes:
    data = parse_hex(text, place)
    reader = ScaleReader(data)
    try:
        reader.bytes_()
        reader.done()
    except CodecError as error:
        expected = "an extrinsic with its length in front, as author_submitExtrinsic takes it"
        raise BadInput(place, f"{shown(text)} ({error})", expected) from None
    return data


def _transfer(entry: dict[str, Any], place: str) -> PlannedTransfer:
    sender, to = entry["from"], entry["to"]
    if not isinstance(sender, str) or not sender or sender.startswith("0x"):
        raise BadInput(f"{place}.from", shown(sender), "the name of a development account, such as Alice")
    if not isinstance(to, str) or not to:
        raise BadInput(f"{place}.to", shown(to), "the name of a development account, or the 32 bytes of one in hex")
    account = parse_hex(to, f"{place}.to", size=32) if to.startswith("0x") else to
    return PlannedTransfer(sender, account, _whole(entry["amount"], f"{place}.amount", most=MOST_AMOUNT))


def _whole(value: Any, place: str, *, most: int) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise BadInput(place, shown(value), f"a whole number from 1 to {most:,}")
    return value
