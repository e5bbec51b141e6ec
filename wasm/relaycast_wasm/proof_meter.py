"""How large the proof of what a block read is, while it is still being built (sp-trie ``estimate_encoded_size``)."""

from collections.abc import Mapping, Set

from relaycast_pallets.frame.tries import Name
from relaycast_trie.scale import encode_compact
from relaycast_wasm.backing import Backing

Read = Mapping[Name, Set[bytes]]


class ProofMeter:
    """Adds up the nodes and external values that were read, each with its length in front; none twice."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing
        self._forget()

    def measure(self, reads: Read, seeks: Read) -> int:
        """Return the bytes of all these; what was measured before is not read again unless some of it is gone."""
        if not (_holds(reads, self._reads) and _holds(seeks, self._seeks)):
            self._forget()
        new_reads, new_seeks = _without(reads, self._reads), _without(seeks, self._seeks)
        if new_reads or new_seeks:
            self._backing.record(self, new_reads, new_seeks)
            for known, new in ((self._reads, new_reads), (self._seeks, new_seeks)):
                for name, keys in new.items():
                    known.setdefault(name, set()).update(keys)
        return self._bytes

    def record(self, node_hash: bytes, data: bytes, /) -> None:
        if node_hash not in self._nodes:
            self._nodes.add(node_hash)
            self._bytes += len(encode_compact(len(data))) + len(data)

    def _forget(self) -> None:
        self._nodes: set[bytes] = set()
        self._reads: dict[Name, set[bytes]] = {}
        self._seeks: dict[Name, set[bytes]] = {}
        self._bytes = 0


def _holds(keys: Read, known: Read) -> bool:
    return all(held <= keys.get(name, frozenset()) for name, held in known.items())


def _without(keys: Read, known: Read) -> dict[Name, set[bytes]]:
    new = {name: set(held) - known.get(name, frozenset()) for name, held in keys.items()}
    return {name: left for name, left in new.items() if left or name not in known}
