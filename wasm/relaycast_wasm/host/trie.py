"""``ext_trie_*``: roots of tries that a runtime makes up, and proofs of them."""

from collections.abc import Callable

from relaycast_trie.exceptions import CodecError, ProofError
from relaycast_trie.hasher import BLAKE2B_256, KECCAK_256, Hasher
from relaycast_trie.plain.build import build_root
from relaycast_trie.proofs.statement_proof import verify_proof
from relaycast_trie.scale import ScaleReader, encode_compact
from relaycast_wasm.host.host_call import HostCall, HostRefusal
from relaycast_wasm.host.registry import declare
from relaycast_wasm.host.storage import state_version_of


def _declare(name: str, hasher: Hasher) -> None:
    def root(host: HostCall, data: int, version: int) -> bytes:
        return build_root(_pairs(host.read(data)), state_version=state_version_of(version), hasher=hasher)

    def ordered_root(host: HostCall, data: int, version: int) -> bytes:
        items = {encode_compact(index): item for index, item in enumerate(_items(host.read(data), "values"))}
        return build_root(items, state_version=state_version_of(version), hasher=hasher)

    def verifies(host: HostCall, root: int, proof: int, key: int, value: int, version: int) -> int:
        expected, nodes = host.memory.read(root, 32), _items(host.read(proof), "a proof's nodes")
        pair = [(host.read(key), host.read(value))]
        try:
            verify_proof(expected, nodes, pair, state_version=state_version_of(version), hasher=hasher)
        except ProofError:
            return 0
        return 1

    for kind, computed in (("root", root), ("ordered_root", ordered_root)):
        _declare_root(f"ext_trie_{name}_{kind}", computed)

    def verifies_version_0(host: HostCall, root: int, proof: int, key: int, value: int) -> int:
        return verifies(host, root, proof, key, value, 0)

    declare(f"ext_trie_{name}_verify_proof_version_1", "iIII", "i", verifies_version_0)
    declare(f"ext_trie_{name}_verify_proof_version_2", "iIIIi", "i", verifies)


def _declare_root(name: str, computed: Callable[[HostCall, int, int], bytes]) -> None:
    def version_1(host: HostCall, data: int) -> int:
        return host.give_at(computed(host, data, 0))

    def version_2(host: HostCall, data: int, version: int) -> int:
        return host.give_at(computed(host, data, version))

    def version_3(host: HostCall, data: int, version: int, out: int) -> None:
        host.memory.write(out, computed(host, data, version))

    declare(f"{name}_version_1", "I", "i", version_1)
    declare(f"{name}_version_2", "Ii", "i", version_2)
    declare(f"{name}_version_3", "Iii", "", version_3)


_declare("blake2_256", BLAKE2B_256)
_declare("keccak_256", KECCAK_256)


def _items(data: bytes, what: str) -> list[bytes]:
    reader = ScaleReader(data)
    try:
        items = [reader.bytes_() for _ in range(reader.length())]
    except CodecError as error:
        raise HostRefusal(f"{what} do not decode: {error}") from None
    return items


def _pairs(data: bytes) -> dict[bytes, bytes]:
    reader = ScaleReader(data)
    try:
        pairs = {reader.bytes_(): reader.bytes_() for _ in range(reader.length(2))}
    except CodecError as error:
        raise HostRefusal(f"keys and values do not decode: {error}") from None
    return pairs
