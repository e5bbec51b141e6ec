"""Subscribers that do one thing wrong, which several files of tests must notice."""

from typing import Any

import pytest

from relaycast_pallets.subscriber.proof_pass import PublisherPass
from relaycast_pallets.subscriber.storage import SubscriberStorage
from relaycast_pallets.subscriber.variants.deletions import DeliveredKeys, bitmap_of, delivered_of
from relaycast_pallets.subscriber.walk import End, PublisherWalk


def tell_keys_of_the_disabled(patch: pytest.MonkeyPatch) -> None:
    """Keys that were read before a publisher is disabled are told all the same."""
    change = PublisherPass.change

    def told(self: PublisherPass) -> Any:
        found = change(self)
        if found is not None and found.disabled_by is not None:
            found.changed = self._walk.changed
        return found

    patch.setattr(PublisherPass, "change", told)


def tell_every_absent_key(patch: pytest.MonkeyPatch) -> None:
    """A deletion is told of every absent key that is met, delivered or not."""

    def note(self: PublisherPass, low: int, high: int) -> None:
        self.found.deleted += self._view.subscribed.keys[low:high]

    patch.setattr(PublisherPass, "absent", note)


def tell_where_the_old_trie_had_it(patch: pytest.MonkeyPatch) -> None:
    """A deletion is told if the key's base trie had an entry, whether or not that was delivered."""
    compare = PublisherWalk._compare

    def compared(self: PublisherWalk, index: int, new: Any, old: Any) -> None:
        compare(self, index, new, old)
        if isinstance(old, End) and not isinstance(new, End) and isinstance(self._reads, PublisherPass):
            self._reads.found.deleted.append(self.subscribed.keys[index])

    def nothing(_self: PublisherPass, _low: int, _high: int) -> None:
        """Note nothing here."""

    patch.setattr(PublisherWalk, "_compare", compared)
    patch.setattr(PublisherPass, "absent", nothing)


def tell_no_deletion_without_the_trie(patch: pytest.MonkeyPatch) -> None:
    """The last key of a publisher takes its child trie along: nothing is told of that."""
    note = PublisherPass.absent

    def noted(self: PublisherPass, low: int, high: int) -> None:
        if self.found.root is not None:
            note(self, low, high)

    patch.setattr(PublisherPass, "absent", noted)


def remember_deletions_as_delivered(patch: pytest.MonkeyPatch) -> None:
    """A key that was told as deleted still counts as delivered."""
    put = DeliveredKeys._put

    def kept(self: DeliveredKeys, view: Any, change: Any) -> None:
        deleted, bits = change and change.deleted, view.delivered()
        put(self, view, change)
        if deleted:
            bitmap = bitmap_of(view.subscribed.keys, bits)
            self.storage.delivered_keys.insert(view.para_id, bitmap)

    patch.setattr(DeliveredKeys, "_put", kept)


def forget_what_was_delivered_with_the_cache(patch: pytest.MonkeyPatch) -> None:
    """Clearing or forgetting a publisher removes its bits, though the handler still has the values."""
    forget = SubscriberStorage.forget_publisher

    def forgotten(self: SubscriberStorage, para_id: Any, *, keeps_delivered: bool = False) -> None:
        forget(self, para_id)
        self.delivered_keys.remove(para_id)

    patch.setattr(SubscriberStorage, "forget_publisher", forgotten)


def keep_bits_where_keys_move(patch: pytest.MonkeyPatch) -> None:
    """The bits stay where they are when the subscription changes, and then belong to other keys."""

    def load(self: DeliveredKeys, view: Any) -> Any:
        return delivered_of(self.storage, view.para_id, view.subscribed.keys)

    patch.setattr(DeliveredKeys, "_load", load)


def count_no_deletions(patch: pytest.MonkeyPatch) -> None:
    """Callbacks that tell of deletions count against no limit."""

    def admitted(self: PublisherPass, low: int, high: int) -> None:
        delivered = self._view.delivered()
        self.found.deleted += [key for key in self._view.subscribed.keys[low:high] if key in delivered]

    patch.setattr(PublisherPass, "absent", admitted)
