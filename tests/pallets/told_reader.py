"""A model of one reader: its delivered values, independent of how the pallet records them."""

from dataclasses import dataclass, field

from pallets.subscriber_invariants import Wanted
from pallets.subscriber_world import Block, World
from relaycast_pallets.broadcaster.published_entry import PublishedEntry


@dataclass
class ToldReader:
    """The values of followed keys that were delivered and not deleted.

    ``begin`` before each block, ``hear`` after it. ``uncertain`` are keys that may have been delivered while deletions
    were silent: one deletion of each may be told, or not. Among them are all that the pallet has not dealt with since
    it was told to forget a root: deletions being silent, nothing else says that they were delivered.
    """

    values: dict[Wanted, bytes] = field(default_factory=dict)
    uncertain: set[Wanted] = field(default_factory=set)
    tells: bool = True

    def begin(self, world: World) -> None:
        """Forget keys that are followed no more; a disabled publisher is followed as it was."""
        for wanted in [*self.values, *self.uncertain]:
            publisher, key = wanted
            keys = world.handler.wanted.get(publisher) or ()
            if not keys or (key not in keys and publisher not in world.storage.disabled_publishers):
                self.values.pop(wanted, None)
                self.uncertain.discard(wanted)

    def hear(self, world: World) -> None:
        """Apply a block's callbacks; asserts that each deletion is of a delivered key that is absent."""
        delivered = world.subscriber.delivered
        assert delivered.deletions == world.handler.deleted
        assert self.tells or not delivered.deletions
        world.handler.deleted.clear()
        told = [update[:2] for update in delivered.updates] + delivered.deletions
        assert len(set(told)) == len(told), "a key is told twice in one block"
        for publisher, key, entry in delivered.updates:
            self.values[publisher, key] = entry.value
            self.uncertain.discard((publisher, key))
        for wanted in delivered.deletions:
            assert world.entry(*wanted) is None, f"{wanted} is there, and told as deleted"
            assert wanted in self.values or wanted in self.uncertain, f"{wanted} is told as deleted and never was told"
            self.values.pop(wanted, None)
            self.uncertain.discard(wanted)

    def switch(self, world: World, *, tells: bool) -> None:
        """Be told of deletions from now on, or no more."""
        if tells and not self.tells:
            every = {(publisher, key) for publisher, keys in world.handler.wanted.items() for key in keys}
            dealt_with = dealt_with_by(world)
            self.uncertain = {
                it for it in every if it not in self.values or it not in dealt_with or world.entry(*it) is None
            }
        self.tells = tells

    def knows_everything(self, world: World) -> None:
        """Assert, while the relay chain does not change, that the reader has exactly what is published."""
        published: dict[Wanted, bytes] = {}
        for publisher, keys in world.handler.wanted.items():
            for key in keys:
                entry = world.entry(publisher, key)
                if entry is not None:
                    published[publisher, key] = PublishedEntry.decode(entry).value
        seen = {it: value for it, value in self.values.items() if it[0] not in world.storage.disabled_publishers}
        stale = seen.keys() - published.keys() - self.uncertain
        assert not (self.tells and stale), f"{stale} are deleted, and the reader does not know"
        for it, value in published.items():
            assert it[0] in world.storage.disabled_publishers or seen.get(it) == value


def dealt_with_by(world: World) -> set[Wanted]:
    """Return the keys that count as delivered when deletions are told from now on."""
    storage = world.storage
    roots = storage.previous_roots()
    return {
        (publisher, key)
        for publisher in storage.digests()
        for key in storage.delivered(publisher, storage.subscribed_keys.get(publisher) or (), roots.get(publisher))
    }


def both_modes_tell_the_same(block: Block) -> None:
    """PRUNE finds the deletions that VERIFY finds."""
    found = [[(change.para_id, change.deleted) for change in it.changes] for it in (block.pruning, block.result)]
    assert found[0] == found[1]
