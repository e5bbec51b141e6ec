"""A parachain of a ``relaycast.Network`` whose real runtime builds its blocks: what tests submit, read and call."""

from collections.abc import Sequence
from os import PathLike, fspath

from relaycast.feed import Feed, described, feed_of, whole_number
from relaycast.genesis.chain_spec import ChainSpec, refuse_missing_children
from relaycast.genesis.state_export import read_state
from relaycast.inputs import place_of, read_bytes
from relaycast.simulation.wasm_parachains import WasmParachainWorkload, workload_of
from relaycast.simulation.wasm_sources import WasmParachainSource, code_of, read_extrinsics
from relaycast_collator import Fact, Header, WasmBlockBuilt
from relaycast_collator.wasm_parachain import WasmBlock
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES
from relaycast_trie import ChildInfo
from relaycast_trie.exceptions import CodecError
from relaycast_trie.scale import ScaleReader
from relaycast_xcm import ParaId


class RealRuntime:
    """A parachain with a real runtime; ``chain`` is its machinery, ``blocks`` are those it has built."""

    def __init__(self, workload: WasmParachainWorkload) -> None:
        self.chain = workload.parachain
        self._workload = workload
        self._blocks: list[WasmBlock] = []

    @property
    def para_id(self) -> int:
        """The parachain's id."""
        return int(self.chain.para_id)

    @property
    def head(self) -> Header:
        """The header of its last block."""
        return self.chain.head

    def waiting(self, last: int) -> int:
        """Return how many extrinsics wait for a block after relay block number ``last``."""
        return self._workload.waiting(last)

    @property
    def blocks(self) -> Sequence[WasmBlock]:
        """Its blocks so far, each with its extrinsics and their results, its proofs and what the runtime logged."""
        return tuple(self._blocks)

    def submit(self, extrinsic: bytes | str) -> None:
        """Let its next block hold an extrinsic, its length in front, in bytes or in hex: as clients submit them."""
        data = _bytes(extrinsic, "an extrinsic")
        try:
            reader = ScaleReader(data)
            reader.bytes_()
            reader.done()
        except CodecError as error:
            raise ValueError(f"an extrinsic has its length in front, got 0x{data[:16].hex()}... ({error})") from None
        self.chain.submit(data)

    def storage(self, key: bytes | str, *, child: bytes | str | None = None) -> bytes | None:
        """Return what stands under a storage key, in the child trie of this name where one is given."""
        state, at = self.chain.state, _bytes(key, "a storage key")
        if child is None:
            return state.get(at)
        return state.child(ChildInfo.new_default(_bytes(child, "the name of a child trie"))).get(at)

    def call(self, method: str, data: bytes | str = b"") -> bytes:
        """Call a runtime API over the state of the head and return its answer in SCALE; what it writes is lost."""
        return self.chain.chain.call(method, _bytes(data, "arguments")).output

    def feed(self, key: str | bytes) -> Feed:
        """Return the feed that it publishes under a name, or under the 32 bytes of a key."""
        return Feed(self.para_id, key) if isinstance(key, bytes) else feed_of(self.para_id, key)

    def begin(self, block: int) -> None:
        """Submit what its file of extrinsics has for a relay block."""
        self._workload.begin(block)

    def on_fact(self, fact: Fact) -> None:
        """Note a block that it built."""
        if isinstance(fact, WasmBlockBuilt) and fact.para_id == self.chain.para_id:
            self._blocks.append(fact.block)

    def __repr__(self) -> str:
        version = f"{self.chain.spec_name} {self.chain.spec_version}"
        return f"<RealRuntime {self.para_id} of {version} at #{self.head.number}>"


def real_runtime(
    para_id: ParaId,
    genesis: str | PathLike[str] | ChainSpec,
    *,
    wasm: str | PathLike[str] | bytes | None = None,
    extrinsics: str | PathLike[str] | None = None,
    max_pov_bytes: int | None = None,
) -> RealRuntime:
    """Return a parachain with a real runtime, at its genesis; raises ``BadInput`` for files that do not fit."""
    if not isinstance(genesis, str | PathLike | ChainSpec):
        raise TypeError(f"a genesis is a ChainSpec or the file of one, got {described(genesis)}")
    spec = genesis if isinstance(genesis, ChainSpec) else read_state(fspath(genesis))
    if spec.witness is not None:
        raise ValueError("a real runtime needs a whole state, got a witness")
    refuse_missing_children(spec, "genesis" if isinstance(genesis, ChainSpec) else place_of(fspath(genesis)))
    if isinstance(wasm, bytes):
        code, place = wasm, "wasm"
    elif wasm is not None:
        code, place = read_bytes(fspath(wasm)), place_of(fspath(wasm))
    else:
        code, place = code_of(spec, spec.name if isinstance(genesis, ChainSpec) else fspath(genesis), None)
    file = None if extrinsics is None else fspath(extrinsics)
    source = WasmParachainSource(code, spec, place, {} if file is None else read_extrinsics(file), file or "")
    most = MAX_POV_BYTES if max_pov_bytes is None else whole_number(max_pov_bytes, "max_pov_bytes")
    if most < 1:
        raise ValueError(f"max_pov_bytes is at least 1, got {most}")
    return RealRuntime(workload_of(para_id, source, max_pov_size=most))


def _bytes(data: bytes | str, what: str) -> bytes:
    if isinstance(data, bytes):
        return data
    if not isinstance(data, str):
        raise TypeError(f"{what}: bytes or hex, got {described(data)}")
    if not data.startswith("0x"):
        raise ValueError(f"{what}: 0x and hex digits, got {described(data)}")
    try:
        return bytes.fromhex(data[2:])
    except ValueError:
        raise ValueError(f"{what}: 0x and hex digits, got {described(data)}") from None
