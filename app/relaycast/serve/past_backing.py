"""The state that a block of a served chain left, as a runtime's calls see it.

Law: nothing that a call writes reaches the chain. What stands unsealed in the chain's state is not seen.
"""

from collections.abc import Iterator, Mapping

from relaycast_node.chain.code import BlockState, ReadableState
from relaycast_pallets.frame.state import State
from relaycast_pallets.frame.storage import Values
from relaycast_pallets.frame.tries import Keys, Name
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.node_codec import EMPTY_ROOT, StateVersion
from relaycast_trie.plain.trie_db import NodeRecorder
from relaycast_trie.plain.trie_update import update_trie


class PastBacking:
    """The state ``at`` a block (``Backing``); roots are those that the sealed tries of ``state`` lead to.

    A call that asks for a root at a block whose tries are gone raises ``StateDiscarded``.
    """

    def __init__(self, at: BlockState, state: State) -> None:
        self._at = at
        self._state = state

    def get(self, name: Name, key: bytes) -> bytes | None:
        return self._trie(name).get(key)

    def exists(self, name: Name, key: bytes) -> bool:
        return self._trie(name).get(key) is not None

    def next_key(self, name: Name, key: bytes) -> bytes | None:
        return next(self._trie(name).keys(after=key), None)

    def keys(self, name: Name, prefix: bytes, start: bytes) -> Iterator[bytes]:
        if start == prefix:
            yield from self._trie(name).keys(prefix)
            return
        if self.exists(name, start):
            yield start
        yield from self._trie(name).keys(prefix, after=start)

    def root(self, changes: Mapping[Name, Values], *, state_version: StateVersion) -> bytes:
        written = dict(changes.get(None, {}))
        for info, values in changes.items():
            if info is not None:
                root = self.child_root(info, values, state_version=state_version)
                written[info.prefixed_storage_key()] = None if root == EMPTY_ROOT else root
        return self._updated(self._at.header.state_root, written, state_version)

    def child_root(self, info: ChildInfo, changes: Values, *, state_version: StateVersion) -> bytes:
        return self._updated(self._root(info), changes, state_version)

    def record(self, recorder: NodeRecorder, reads: Keys, seeks: Keys) -> None:
        nodes = self._state.nodes_under(self._at.header.state_root)
        ways = {name.prefixed_storage_key() for name in {*reads, *seeks} if name is not None}
        looked = {**seeks, None: {*seeks.get(None, ()), *ways}}
        for name in {**reads, **looked}:
            root = self._root(name)
            if root != EMPTY_ROOT:
                wanted, sought = reads.get(name, ()), looked.get(name, ())
                update_trie(nodes, root, {}, reads=wanted, seeks=sought, recorder=recorder)

    def _root(self, name: Name) -> bytes:
        if name is None:
            return self._at.header.state_root
        return self._at.state.get(name.prefixed_storage_key()) or EMPTY_ROOT

    def _updated(self, root: bytes, written: Values, state_version: StateVersion) -> bytes:
        nodes = self._state.nodes_under(self._at.header.state_root)
        return update_trie(nodes, root, written, state_version=state_version).root

    def _trie(self, name: Name) -> ReadableState:
        return self._at.state if name is None else self._at.state.child(name.storage_key)
