"""What was published and who has seen it: the source of latencies, conflated values and lost updates.

A publication counts from the relay block that applied it; what the relay chain refused was never published. What went
past the network (a call on the relay chain) is delivered as well, one tick older than its block.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from relaycast_collator.facts import Fact, MessagesQueued, ParachainLeft, RelaySealed
from relaycast_collator.outbox import SentMessage
from relaycast_collator.parachain import Update
from relaycast_ledger.records import Delivery
from relaycast_pallets.broadcaster.published_entry import PublishedEntry
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.processing_result import ProofProcessingResult
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId
from relaycast_xcm.outcome import Incomplete
from relaycast_xcm.primitives import BlockNumber
from relaycast_xcm.ump import Processed, Processing

VERSIONS_KEPT = 256
"""Publications of one key remembered for latencies; a subscriber further behind counts from the oldest of them."""

Place = tuple[ParaId, SubscribedKey]
"""A publisher's key."""

Entries = Callable[[ParaId, bytes], PublishedEntry | None]
"""What the relay chain holds now."""


class Deliveries:
    """The publications of all parachains, from the message that carries them to the callbacks."""

    def __init__(self) -> None:
        self._under_way: dict[ParaId, deque[SentMessage]] = {}
        self._versions: dict[Place, deque[tuple[BlockNumber, int]]] = {}
        self._latest: dict[ParaId, dict[SubscribedKey, BlockNumber]] = {}
        self._seen: dict[tuple[ParaId, Place], BlockNumber] = {}
        self._checked: dict[tuple[ParaId, ParaId], BlockNumber] = {}

    def hear(self, fact: Fact) -> None:
        """Note the way of publications to the relay chain."""
        match fact:
            case MessagesQueued(_, para_id, messages):
                self.sent(para_id, messages)
            case RelaySealed(_, block):
                for processing in block.messages:
                    self.processed(processing, block.number)
            case ParachainLeft(_, para_id):
                self.forget(para_id)
            case _:
                pass

    def sent(self, para_id: ParaId, messages: Iterable[SentMessage]) -> None:
        """Note messages that the relay chain has queued."""
        self._under_way.setdefault(para_id, deque()).extend(messages)

    def processed(self, processing: Processing, number: BlockNumber) -> None:
        """Note what relay block ``number`` made of a message, in the order of its queue."""
        under_way = self._under_way.get(processing.origin)
        if not under_way or under_way[0].id != processing.id:
            return
        message = under_way.popleft()
        latest = self._latest.setdefault(processing.origin, {})
        for publication in message.publications[: _applied(processing, message.first)]:
            place = processing.origin, publication.key
            self._versions.setdefault(place, deque(maxlen=VERSIONS_KEPT)).append((number, publication.tick))
            latest.pop(publication.key, None)
            latest[publication.key] = number

    def forget(self, para_id: ParaId) -> None:
        """Forget the messages of a parachain whose queue is gone."""
        self._under_way.pop(para_id, None)

    def delivered(self, subscriber: ParaId, update: Update, tick: int) -> Delivery:
        """Note a callback of ``subscriber`` and return its history."""
        publisher, key, entry = update
        seen = self._seen.get((subscriber, (publisher, key)))
        published_at, overwritten = entry.when_inserted - 1, 0
        delivered = False
        for number, published in reversed(self._versions.get((publisher, key), ())):
            if number == entry.when_inserted and not delivered:
                published_at, delivered = published, True
            elif number <= entry.when_inserted:
                if seen is None or number <= seen:
                    break
                overwritten += 1
        self._seen[subscriber, (publisher, key)] = entry.when_inserted
        return Delivery(publisher, key, entry, published_at, tick, overwritten)

    def repeated(self, subscriber: ParaId, result: ProofProcessingResult, updates: tuple[Update, ...]) -> list[Update]:
        """Return updates that told ``subscriber`` nothing new; to ask before ``delivered`` notes them.

        A key that was never dealt with, or whose root was forgotten, may be told what it knows.
        """
        return [
            update
            for update in updates
            if self._seen.get((subscriber, update[:2])) == update[2].when_inserted
            and _is_known(result.plan.views[update[0]], update[1])
        ]

    def lost(
        self, subscriber: ParaId, result: ProofProcessingResult, relay_parent: BlockNumber, entries: Entries
    ) -> Iterator[Place]:
        """Find values that were there at ``relay_parent``, still are, and did not reach ``subscriber``.

        To ask after a complete pass: it owes the subscriber everything.
        """
        disabled = {change.para_id for change in result.changes if change.disabled_by is not None}
        for publisher, view in result.plan.views.items():
            checked = self._checked.get((subscriber, publisher), 0)
            if view.change is not SubscriptionChange.NONE:
                checked = 0
            self._checked[subscriber, publisher] = relay_parent
            wanted = () if publisher in disabled else self._published(publisher, checked, relay_parent)
            for key, number in wanted:
                if not _wants(view, key) or self._seen.get((subscriber, (publisher, key))) == number:
                    continue
                entry = entries(publisher, key)
                if entry is not None and entry.when_inserted == number:
                    yield publisher, key

    def _published(
        self, publisher: ParaId, after: BlockNumber, until: BlockNumber
    ) -> Iterator[tuple[SubscribedKey, BlockNumber]]:
        """Iterate over keys that were last published in these blocks, the newest first."""
        for key, number in reversed(self._latest.get(publisher, {}).items()):
            if number <= after:
                return
            if number <= until:
                yield key, number


def _applied(processing: Processing, first: int) -> int | None:
    """Return how many publications of a message took effect, ``None`` for all: it ends at the first that fails.

    ``first`` is the index of the first one's instruction.
    """
    if not isinstance(processing, Processed):
        return 0
    return max(0, processing.outcome.error.index - first) if isinstance(processing.outcome, Incomplete) else None


def _wants(view: PublisherView, key: SubscribedKey) -> bool:
    keys = view.subscribed.keys
    at = bisect_left(keys, key)
    return at < len(keys) and keys[at] == key


def _is_known(view: PublisherView, key: SubscribedKey) -> bool:
    """Return whether a key had been dealt with, against a root that is still known."""
    base = view.root if view.bases is None else view.bases.get(key, view.root)
    return view.change is SubscriptionChange.NONE and base is not None
