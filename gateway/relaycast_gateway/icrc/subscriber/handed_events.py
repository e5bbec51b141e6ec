"""Which events of one namespace were handed to their handler.

Law: an event is handed over once. It is recognised by its id, from any sender and by any way, while the memory of its
chain holds that id: at most ``MOST_RUNS`` runs of ids. An older event counts as handed over if it comes live, because a
chain only goes forward. If it is replayed, it is handed over again rather than lost.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from relaycast_gateway import crockford
from relaycast_gateway.icrc.id_runs import MOST_RUNS, IdRuns, RunDump
from relaycast_gateway.icrc.subscriber.notified_event import NotifiedEvent

_NO_FLOOR = -1

Missing = TypeVar("Missing")


class HandedDump(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a subscriber remembers of one chain, in plain form."""

    source: bytes
    accepted_by: bytes
    runs: list[RunDump]
    floor: str | None = None
    """Crockford Base32."""

    first: str | None = None
    """The first live event, Crockford Base32."""

    is_increasing: bool = True


class _Chain:
    def __init__(self, ids: IdRuns, *, first: int | None = None, is_increasing: bool = True) -> None:
        self.ids = ids
        self.first = first
        self.is_increasing = is_increasing
        """Whether each event had a higher id than the one before it: only then the floor says anything."""


class HandedEvents:
    """The memory of a namespace, by chain."""

    def __init__(self, chains: Iterable[HandedDump] = (), *, most_runs: int = MOST_RUNS) -> None:
        self._most_runs = most_runs
        self._chains = {
            (each.source, each.accepted_by): _Chain(
                IdRuns(each.runs, floor=_read(each.floor, _NO_FLOOR), most_runs=most_runs),
                first=_read(each.first, None),
                is_increasing=each.is_increasing,
            )
            for each in chains
        }

    def __contains__(self, event: NotifiedEvent) -> bool:
        return self.has_id(event.event_id) or (event.replay_id is None and self._is_below_floor(event))

    def has_id(self, event_id: int) -> bool:
        """Return whether the event with that id is remembered."""
        return any(chain.ids.has(event_id) for chain in self._chains.values())

    def began_after(self, event_id: int, event: NotifiedEvent) -> bool:
        """Return whether the event with ``event_id``, one before ``event``, lies before the first of its publisher."""
        source, _ = event.chain
        firsts = [chain.first for key, chain in self._chains.items() if key[0] == source and chain.first is not None]
        return not firsts or event_id < min(firsts)

    def precedes(self, event_id: int, event: NotifiedEvent) -> bool:
        """Return whether the event with ``event_id``, one before ``event``, was handed over, or may have been."""
        chain = self._chains.get(event.chain)
        return self.has_id(event_id) or (chain is not None and event_id <= chain.ids.floor)

    def add(self, event: NotifiedEvent) -> None:
        """Note an event that was handed over."""
        chain = self.begin(event)
        chain.ids.add(event.event_id)
        if event.prev_id is not None and event.prev_id >= event.event_id:
            chain.is_increasing = False

    def begin(self, event: NotifiedEvent) -> _Chain:
        """Note that a live event came: the first one is the beginning of its chain."""
        chain = self._chains.get(event.chain)
        if chain is None:
            chain = self._chains[event.chain] = _Chain(IdRuns(most_runs=self._most_runs))
        if chain.first is None and event.replay_id is None:
            chain.first = event.event_id
        return chain

    def begin_again(self) -> None:
        """Let each chain begin with its next live event."""
        for chain in self._chains.values():
            chain.first = None

    @property
    def runs(self) -> int:
        """Number of runs of ids that are remembered."""
        return sum(len(chain.ids) for chain in self._chains.values())

    def dump(self) -> list[HandedDump]:
        """Return the memory in plain form: ``HandedEvents(dump)`` remembers the same."""
        return [
            HandedDump(
                source,
                accepted_by,
                chain.ids.dump(),
                None if chain.ids.floor == _NO_FLOOR else crockford.encode(chain.ids.floor),
                None if chain.first is None else crockford.encode(chain.first),
                chain.is_increasing,
            )
            for (source, accepted_by), chain in self._chains.items()
        ]

    def _is_below_floor(self, event: NotifiedEvent) -> bool:
        chain = self._chains.get(event.chain)
        return chain is not None and chain.is_increasing and event.event_id <= chain.ids.floor


def _read(text: str | None, otherwise: Missing) -> "int | Missing":
    return otherwise if text is None else crockford.decode(text)
