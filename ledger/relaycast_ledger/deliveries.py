"""What was published and who has seen it: the source of latencies, conflated values and lost updates.

A publication counts from the relay block that applied it; what the relay chain refused was never published. What went
past the network (a call on the relay chain) is delivered as well, one tick older than its block.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from relaycast_collator.facts import Fact, MessagesQueued, ParachainLeft, RelaySealed
from relaycast_collator.outbox import SentMessage
from relaycast_collator.parachain import Update
from relaycast_ledger.records import Delivery
from relaycast_pallets.broadcaster.storage import PublishedEntry
from relaycast_pallets.subscriber.plan import PublisherView, SubscriptionChange
from relaycast_pallets.subscriber.result import ProofProcessingResult
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import U32, Count, Dump, DumpRow, Hash, refusing
from relaycast_xcm.executor import Incomplete
from relaycast_xcm.primitives import BlockNumber
from relaycast_xcm.ump import Processed, Processing

VERSIONS_KEPT = 256
"""Publications of one key remembered for latencies; a subscriber further behind counts from the oldest of them."""

Place = tuple[ParaId, SubscribedKey]
"""A publisher's key."""

Entries = Callable[[ParaId, bytes], PublishedEntry | None]
"""What the relay chain holds now."""


class CarriedMessage(DumpRow, frozen=True):
    """A message under way, and the keys that it publishes, from instruction ``first`` on, with their ticks."""

    id: Hash
    first: Count
    keys: tuple[SubscribedKey, ...]
    ticks: tuple[Count, ...]

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.ticks):
            raise ValueError(f"a message has a tick for each of {len(self.keys)} keys, got {len(self.ticks)}")


class PublishedRow(DumpRow, frozen=True):
    """The keys of one publisher, the one published last at the end, and the last publications of each.

    ``counts`` has the number of publications of each key; ``relay_blocks`` and ``ticks`` have them one after another.
    """

    publisher: ParaId
    keys: list[SubscribedKey]
    counts: list[Count]
    relay_blocks: list[U32]
    ticks: list[Count]


class DeliveriesDump(Dump, frozen=True):
    """What later deliveries and checks follow from."""

    under_way: list[tuple[ParaId, list[CarriedMessage]]]
    """The messages of one parachain that the relay chain has queued, the oldest first."""

    published: list[PublishedRow]
    seen: list[tuple[ParaId, ParaId, list[SubscribedKey], list[U32]]]
    """By subscriber and publisher the relay blocks of the values that reached it last."""

    checked: list[tuple[ParaId, ParaId, U32]]
    """The relay block up to which a publisher's values were looked for at a subscriber."""

    begun: list[tuple[ParaId, ParaId, U32]]


class Deliveries:
    """The publications of all parachains, from the message that carries them to the callbacks."""

    def __init__(self) -> None:
        self._under_way: dict[ParaId, deque[CarriedMessage]] = {}
        self._versions: dict[Place, deque[tuple[BlockNumber, int]]] = {}
        self._latest: dict[ParaId, dict[SubscribedKey, BlockNumber]] = {}
        self._seen: dict[tuple[ParaId, ParaId], dict[SubscribedKey, BlockNumber]] = {}
        self._checked: dict[tuple[ParaId, ParaId], BlockNumber] = {}
        self._begun: dict[tuple[ParaId, ParaId], BlockNumber] = {}

    def on_fact(self, fact: Fact) -> None:
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
        under_way = self._under_way.setdefault(para_id, deque())
        for it in messages:
            keys, ticks = tuple(one.key for one in it.publications), tuple(one.tick for one in it.publications)
            under_way.append(CarriedMessage(it.id, it.first, keys, ticks))

    def processed(self, processing: Processing, number: BlockNumber) -> None:
        """Note what relay block ``number`` made of a message, in the order of its queue."""
        under_way = self._under_way.get(processing.origin, ())
        if not any(message.id == processing.id for message in under_way):
            return
        while (message := self._under_way[processing.origin].popleft()).id != processing.id:
            pass  # gone before it ran, so that it is called otherwise
        latest = self._latest.setdefault(processing.origin, {})
        applied = _applied(processing, message.first)
        for key, tick in zip(message.keys[:applied], message.ticks, strict=False):
            self._versions.setdefault((processing.origin, key), deque(maxlen=VERSIONS_KEPT)).append((number, tick))
            latest.pop(key, None)
            latest[key] = number

    def forget(self, para_id: ParaId) -> None:
        """Forget the messages of a parachain whose queue is gone."""
        self._under_way.pop(para_id, None)

    def delivered(self, subscriber: ParaId, update: Update, tick: int) -> Delivery:
        """Note a callback of ``subscriber`` and return its history."""
        publisher, key, entry = update
        all_seen = self._seen.setdefault((subscriber, publisher), {})
        seen = all_seen.get(key)
        published_at, overwritten = entry.when_inserted - 1, 0
        delivered = False
        for number, published in reversed(self._versions.get((publisher, key), ())):
            if number == entry.when_inserted and not delivered:
                published_at, delivered = published, True
            elif number <= entry.when_inserted:
                if seen is None or number <= seen:
                    break
                overwritten += 1
        all_seen[key] = entry.when_inserted
        again = seen == entry.when_inserted
        return Delivery(publisher, key, entry, published_at, tick, overwritten, again, seen is None)

    def repeated(self, subscriber: ParaId, result: ProofProcessingResult, updates: tuple[Update, ...]) -> list[Update]:
        """Return updates that told ``subscriber`` nothing new; to ask before ``delivered`` notes them.

        A key that was never dealt with, or whose root was forgotten, may be told what it knows.
        """
        nothing: dict[SubscribedKey, BlockNumber] = {}
        return [
            update
            for update in updates
            if self._seen.get((subscriber, update[0]), nothing).get(update[1]) == update[2].when_inserted
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
                if not _wants(view, key) or self._seen_at(subscriber, publisher, key) == number:
                    continue
                entry = entries(publisher, key)
                if entry is not None and entry.when_inserted == number:
                    yield publisher, key

    def begin(self, subscriber: ParaId, result: ProofProcessingResult, relay_parent: BlockNumber) -> None:
        """Store the relay block at which ``subscriber`` began to wait, for each publisher whose keys it changed."""
        for publisher, view in result.plan.views.items():
            if view.change is not SubscriptionChange.NONE or (subscriber, publisher) not in self._begun:
                self._begun[subscriber, publisher] = relay_parent

    def owed(
        self,
        subscriber: ParaId,
        result: ProofProcessingResult,
        relay_parent: BlockNumber,
        entries: Entries,
        *,
        since: BlockNumber,
    ) -> Iterator[Place]:
        """Find keys without the value that they have at ``relay_parent``, if a value waits since that relay block.

        To ask after ``delivered``.
        """
        disabled = {change.para_id for change in result.changes if change.disabled_by is not None}
        for publisher, view in result.plan.views.items():
            begun, checked = self._begun[subscriber, publisher], self._checked.get((subscriber, publisher), 0)
            if publisher in disabled or max(begun, checked) > since:
                continue
            for key, number in reversed(self._latest.get(publisher, {}).items()):
                if number <= checked and begun <= checked:
                    break
                place = publisher, key
                if not _wants(view, key) or (first := self._first_unseen(subscriber, place, relay_parent)) is None:
                    continue
                if max(first, begun) > since:
                    continue
                entry = None if number > relay_parent else entries(publisher, key)
                if number > relay_parent or (entry is not None and entry.when_inserted == number):
                    yield place

    def _first_unseen(self, subscriber: ParaId, place: Place, relay_parent: BlockNumber) -> BlockNumber | None:
        """Return the relay block, up to ``relay_parent``, of the first publication of a key after the one seen."""
        seen = self._seen_at(subscriber, *place)
        after = -1 if seen is None else seen
        return next((number for number, _ in self._versions[place] if after < number <= relay_parent), None)

    def _seen_at(self, subscriber: ParaId, publisher: ParaId, key: SubscribedKey) -> BlockNumber | None:
        """Return the relay block of the value of a key that reached ``subscriber`` last."""
        return self._seen.get((subscriber, publisher), {}).get(key)

    def dump(self) -> DeliveriesDump:
        """Return what was published and seen as data."""
        seen = ((pair, sorted(found.items())) for pair, found in sorted(self._seen.items()))
        return DeliveriesDump(
            under_way=[(para_id, list(messages)) for para_id, messages in sorted(self._under_way.items()) if messages],
            published=[self._dump_published(publisher) for publisher in sorted(self._latest)],
            seen=[(*pair, [key for key, _ in rows], [number for _, number in rows]) for pair, rows in seen],
            checked=[(*pair, number) for pair, number in sorted(self._checked.items())],
            begun=[(*pair, number) for pair, number in sorted(self._begun.items())],
        )

    def load(self, dump: DeliveriesDump) -> None:
        """Know what other deliveries put away; raises ``CheckpointRefused``."""
        with refusing("deliveries"):
            self._under_way = {para_id: deque(messages) for para_id, messages in dump.under_way}
            self._latest, self._versions = {}, {}
            for published in dump.published:
                self._load_published(published)
            self._seen = {
                (subscriber, publisher): dict(zip(keys, relay_blocks, strict=True))
                for subscriber, publisher, keys, relay_blocks in dump.seen
            }
            self._checked = {(subscriber, publisher): number for subscriber, publisher, number in dump.checked}
            self._begun = {(subscriber, publisher): number for subscriber, publisher, number in dump.begun}

    def _dump_published(self, publisher: ParaId) -> PublishedRow:
        keys = list(self._latest[publisher])
        versions = [self._versions[publisher, key] for key in keys]
        flat = [version for kept in versions for version in kept]
        return PublishedRow(
            publisher, keys, list(map(len, versions)), [number for number, _ in flat], [tick for _, tick in flat]
        )

    def _load_published(self, row: PublishedRow) -> None:
        latest = self._latest.setdefault(row.publisher, {})
        if sum(row.counts) != len(row.ticks) or not all(row.counts):
            raise ValueError(f"{sum(row.counts)} publications of {row.publisher}, expected {len(row.ticks)}")
        flat = zip(row.relay_blocks, row.ticks, strict=True)
        for key, count in zip(row.keys, row.counts, strict=True):
            versions = deque(islice(flat, count), maxlen=VERSIONS_KEPT)
            self._versions[row.publisher, key] = versions
            latest[key] = versions[-1][0]

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
    return view.change is SubscriptionChange.NONE and view.processed_root(key) is not None
