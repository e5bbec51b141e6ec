"""What a validator has in place of a chain's state: the nodes of a proof."""

from collections.abc import Iterable, Mapping

import relaycast_pallets as rp
import relaycast_trie as rt
import relaycast_wasm as rw


class ProofBelow(rw.StateBacking):
    """Below an overlay, the top trie with this ``root``, of which the ``proof`` has some nodes; others are missing."""

    def __init__(self, proof: Iterable[bytes], root: bytes) -> None:
        super().__init__(rp.State())
        self.nodes, self.parent_root = rt.MemoryDB(proof), root

    def get(self, name: rt.ChildInfo | None, key: bytes) -> bytes | None:
        assert name is None, "the top trie alone"
        if key == b":heappages":  # the memory of a call, which the host looks up for itself
            return None
        return rt.TrieDB(self.nodes, self.parent_root).get(key)

    def root(
        self,
        changes: Mapping[rt.ChildInfo | None, Mapping[bytes, bytes | None]],
        *,
        state_version: rt.StateVersion,
    ) -> bytes:
        trie = rt.TrieDBMut(self.nodes, self.parent_root, state_version=state_version)
        for key, value in changes[None].items():
            if value is None:
                trie.remove(key)
            else:
                trie.insert(key, value)
        return trie.commit(prune=False)
