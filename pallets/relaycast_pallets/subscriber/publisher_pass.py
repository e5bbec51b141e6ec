"""One publisher's part of a pass: which of its keys are walked against which root, and what is to be kept of that."""

from functools import partial
from typing import Protocol

from relaycast_pallets.subscriber.callbacks import CallbackMeter
from relaycast_pallets.subscriber.node_cache import (
    PublisherCache,
    marked_by_base,
    marked_placements,
    net_moves,
)
from relaycast_pallets.subscriber.plan import Bases, PublisherView
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.result import (
    PublisherChange,
    ReadSource,
    Stop,
    entry_key,
)
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_pallets.subscriber.tracked_proof import decode_known
from relaycast_pallets.subscriber.variants.cache_limit import CacheLimit
from relaycast_pallets.subscriber.walk import PublisherWalk, TrieDepthExceeded
from relaycast_trie.hasher import blake2_256
from relaycast_trie.node import HashedValue, Node, Value
from relaycast_xcm.primitives import ParaId, Weight


class PassReads(Protocol):
    """The pass, as one publisher's part needs it: reads that are paid for, which raise ``Stop``."""

    policies: Policies
    max_trie_depth: int
    callbacks: CallbackMeter
    cache_limit: CacheLimit | None

    def child_root(self, para_id: ParaId) -> bytes | None: ...

    def read_relay(self, publisher: ParaId | None, node_hash: bytes, source: ReadSource) -> bytes: ...

    def read_cached(self, view: PublisherView, node_hash: bytes) -> bytes | None: ...


class PublisherReads:
    """How one publisher's walk gets at nodes: out of its node cache, or out of the proof, and paid for (``NodeReads``).

    ``new`` are the nodes that the proof gave; ``callback_weight`` is what the callbacks for the changed keys weigh.
    """

    __slots__ = ("_cached", "_run", "_view", "callback_weight", "new")

    def __init__(self, run: PassReads, view: PublisherView) -> None:
        self._run = run
        self._view = view
        self._cached: dict[bytes, bytes | None] = {}
        self.new: dict[bytes, bytes] = {}
        self.callback_weight = Weight.ZERO

    def new_node(self, node_hash: bytes) -> Node:
        data = self._cached.get(node_hash, b"")
        if data == b"":
            data = self._read_cached(node_hash)
        if data is None:
            data = self._run.read_relay(self._view.para_id, node_hash, ReadSource.RELAY_NODE)
            self.new[node_hash] = data
        return decode_known(node_hash, data)

    def changed_entry(self, key: SubscribedKey, value: Value) -> bytes:
        """Return the new entry of a key, read only if its callback fits too; raises ``Stop``."""
        publisher, callbacks = self._view.para_id, self._run.callbacks
        weight = callbacks.admit(publisher, key)
        if isinstance(value, HashedValue):
            value = self._run.read_relay(publisher, value.hash, ReadSource.RELAY_VALUE)
        callbacks.consume(weight)
        if weight is not Weight.ZERO:
            self.callback_weight += weight
        return value

    def admit_deletion(self, key: SubscribedKey) -> None:
        """Count the callback that tells of a deletion; raises ``Stop`` where it does not fit."""
        weight = self._run.callbacks.admit(self._view.para_id, key)
        self._run.callbacks.consume(weight)
        if weight is not Weight.ZERO:
            self.callback_weight += weight

    def old_node(self, node_hash: bytes) -> Node | None:
        data = self._cached.get(node_hash, b"")
        if data == b"":
            data = self._read_cached(node_hash)
        return None if data is None else decode_known(node_hash, data)

    @property
    def old(self) -> dict[bytes, bytes]:
        """The nodes that the cache gave."""
        return {node_hash: data for node_hash, data in self._cached.items() if data is not None}

    def _read_cached(self, node_hash: bytes) -> bytes | None:
        """Return a node of the cache, paid for once, ``None`` when it is not there; raises ``Stop``."""
        data = self._cached[node_hash] = self._run.read_cached(self._view, node_hash)
        return data


class PublisherPass:
    """One publisher's part of a pass, in one range of keys, or in two when the cursor stood inside it."""

    def __init__(self, run: PassReads, view: PublisherView) -> None:
        self._run = run
        self._view = view
        self._reads = PublisherReads(run, view)
        self._tells_deletions = run.policies.deletion.tells
        absent = self._note_absent if self._tells_deletions else None
        self._walk = PublisherWalk(view.subscribed, self._reads, max_depth=run.max_trie_depth, absent=absent)
        self._deleted: list[SubscribedKey] = []
        self._root: bytes | None = None
        self._root_known = False
        self._done: list[tuple[int, int]] = []
        self._disabled: TrieDepthExceeded | None = None
        self._new = self._reads.new
        self._saw_all_of_old = True
        self._began_at = 0
        self.stopped_at = 0

    def process(self, low: int, high: int) -> None:
        """Deal with keys ``[low, high)``; raises ``Stop``, and ``stopped_at`` says where."""
        if not self._root_known:
            self._began_at = self.stopped_at = low
            self._root = self._begin()
            self._root_known = True
        if self._root is None and self._tells_deletions:
            self._note_all_absent(low, high)
        if self._root is None or self._is_unchanged() or self._disabled is not None:
            return
        for start, stop, base in self._runs(low, high):
            # Keys processed against the current root are done under every policy; otherwise no pass would ever end.
            compared = base if base == self._root else self._run.policies.callback.compared_with(base)
            self._saw_all_of_old &= compared == base
            try:
                self._walk_run(start, stop, compared)
            except TrieDepthExceeded as error:
                self._disabled = error.as_value()
                self._run.callbacks.give_back(self._reads.callback_weight)
                return
            except Stop:
                self.stopped_at = self._walk.at
                self._done.append((start, self._walk.at))
                raise
            self._done.append((start, stop))

    def _begin(self) -> bytes | None:
        """Return the publisher's child root."""
        return self._run.child_root(self._view.para_id)

    def _walk_run(self, start: int, stop: int, old_root: bytes | None) -> None:
        """Walk keys ``[start, stop)``, last dealt with against ``old_root``."""
        assert self._root is not None
        self._walk.walk(start, stop, new_root=self._root, old_root=old_root)

    def change(self) -> PublisherChange | None:
        """Return what there is to keep, ``None`` when nothing moved."""
        if not self._root_known or (self._root is not None and self._is_unchanged()):
            return None
        walk, walked = self._walk, sum(stop - start for start, stop in self._done)
        change = PublisherChange(self._view.para_id, self._root, disabled_by=self._disabled, keys_walked=walked)
        change.gained, change.lost, change.unseen = walk.gained, walk.lost, walk.unseen
        if self._disabled is not None:
            change.finished = True
            return change
        change.deleted = self._deleted
        if self._root is None:
            change.finished = True
            return change
        change.changed = walk.changed
        change.finished = walked == len(self._view.subscribed.keys)
        if change.finished:
            change.sweep = self._swept_cache
        else:
            change.bases = self._new_bases()
            change.sweep = partial(self._interrupted_cache, change.bases)
        return change

    def key_in(self, node_hash: bytes) -> bytes | None:
        """Return the key of the entry that a node or value read for this publisher holds."""
        data = self._new.get(node_hash)
        if data is not None:
            places = (prefix for prefix, gained in self._walk.gained if gained == node_hash)
            return entry_key(next(places), decode_known(node_hash, data))
        changed = (key for key, entry in self._walk.changed if blake2_256(entry) == node_hash)
        return next(changed, None)

    def _note_absent(self, low: int, high: int) -> None:
        """Note the keys of ``[low, high)``, all proven absent, whose deletion is to be told; may raise ``Stop``."""
        keys, delivered = self._view.subscribed.keys, self._view.delivered
        for index in range(low, high):
            if keys[index] in delivered:
                self._walk.at = index
                self._reads.admit_deletion(keys[index])
                self._deleted.append(keys[index])

    def _note_all_absent(self, low: int, high: int) -> None:
        """Note the same for a trie that is absent as a whole; the next pass tells the deletions that do not fit."""
        try:
            self._note_absent(low, high)
        except Stop:
            self.stopped_at = self._walk.at
            raise

    def _is_unchanged(self) -> bool:
        return self._root == self._view.root and self._view.bases is None

    def _runs(self, low: int, high: int) -> list[tuple[int, int, bytes | None]]:
        """Return ranges of keys that were last dealt with against the same root."""
        if not self._view.bases:
            return [(low, high, self._view.root)]
        runs: list[tuple[int, int, bytes | None]] = []
        for index in range(low, high):
            base = self._base(self._view.subscribed.keys[index])
            if runs and runs[-1][2] == base:
                runs[-1] = (runs[-1][0], index + 1, base)
            else:
                runs.append((index, index + 1, base))
        return runs

    def _base(self, key: SubscribedKey) -> bytes | None:
        return self._view.root if self._view.bases is None else self._view.bases.get(key, self._view.root)

    def _new_bases(self) -> dict[SubscribedKey, bytes | None]:
        keys = self._view.subscribed.keys
        bases = {key: self._base(key) for key in keys}
        for start, stop in self._done:
            bases.update(dict.fromkeys(keys[start:stop], self._root))
        return bases

    def _kept(self, nodes: dict[bytes, bytes]) -> dict[bytes, bytes]:
        keeps = self._run.policies.cache.keeps
        return {node_hash: data for node_hash, data in nodes.items() if keeps(data)}

    def _interrupted_cache(self, bases: Bases) -> PublisherCache:
        """Return what was read, to be added; once in a round of the keys, also drop what no key needs.

        A publisher that changes faster than the budget follows is never done, so its cache is swept on the way. What
        was just read stays, and what stands on the path of each key in the trie that it was last processed against.
        """
        cache = PublisherCache(insert=self._kept(self._new))
        if self._view.bases is not None and not 0 < self._began_at < self.stopped_at:
            stored = self._view.cached_nodes()  # none of these is new: a node is looked for in the cache first
            marked = marked_by_base(bases, stored | self._new)
            cache.remove = stored.keys() - marked
        limit = self._run.cache_limit
        return cache if limit is None else limit.admitted(self._view, cache, self._walk.gained)

    def _swept_cache(self) -> PublisherCache:
        """Return the changes that leave exactly the structure of the subscribed paths in the cache.

        What came and what went is enough where every key was compared with the one old trie and all of that was in
        sight. Otherwise all subscribed paths are marked anew.
        """
        kept, view, walk = self._kept(self._new), self._view, self._walk
        settled = view.root is not None and view.bases is None and self._saw_all_of_old
        if self._run.cache_limit is not None:
            return self._limited_cache(self._run.cache_limit, kept, settled=settled)
        if settled and not walk.old_unknown and len(kept) == len(self._new):
            return PublisherCache.moved(net_moves(walk.gained, walk.lost), view.shared_nodes(), kept)
        assert self._root is not None
        stored = view.cached_nodes()
        known = stored | self._new
        placements = marked_placements(view.subscribed, self._root, known)
        return PublisherCache.exactly(placements, self._kept(known), stored)

    def _limited_cache(self, limit: CacheLimit, kept: dict[bytes, bytes], *, settled: bool) -> PublisherCache:
        """Return the changes that keep as much of the structure as fits.

        Nodes that an earlier block left out are not in the cache, and so unseen in the old trie.
        """
        view, walk, old = self._view, self._walk, self._reads.old
        if settled and len(kept) == len(self._new):
            lost = [placement for placement in walk.lost if placement[1] in old]
            cache = limit.moved(view, walk.gained, lost, new=kept, old=old)
            if cache is not None:
                return cache
        assert self._root is not None
        return limit.marked(view, self._root, self._new, self._run.policies.cache.keeps)
