"""One call of a publisher: its results, which come one by one, and its answer when all are there.

Law: the answer has one result for each event, in the order of the events.
"""

from collections.abc import Callable, Sequence

from relaycast_gateway.candid import Variant
from relaycast_gateway.icrc.canister import Promise

Ids = Sequence[int]


class PublishCall:
    """Collects the results of ``count`` events; ``when_all`` is called when each event has one."""

    def __init__(self, count: int, when_all: Callable[[Callable[[], None]], None]) -> None:
        self.answer: Promise[list[Variant]] = Promise()
        self._results: dict[int, Variant] = {}
        self._count = count
        self._when_all = when_all

    def take(self, place: int, notification_ids: Ids) -> None:
        """Note that the event at ``place`` was taken, and which notifications it has."""
        self._set(place, Variant("Ok", list(notification_ids)))

    def refuse(self, place: int, error: Variant) -> None:
        self._set(place, Variant("Err", error))

    def _set(self, place: int, result: Variant) -> None:
        self._results[place] = result
        if len(self._results) == self._count:
            results = [self._results[at] for at in range(self._count)]
            self._when_all(lambda: self.answer.settle(results))
