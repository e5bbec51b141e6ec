"""The replays of an orchestrator: requests for them, who serves them, how far they are.

Law: broadcasters know of a replay before its publisher does. Only the subscriber cancels, only the publisher reports.
A replay that ended stays as it is. Source: ICRC-77, "Methods" and "Replay Life Cycle".
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

from relaycast_gateway.candid import Variant
from relaycast_gateway.clock import SECOND
from relaycast_gateway.icrc.canister import Answer, CallRefused, Handler, Wire
from relaycast_gateway.icrc.interface import CanisterRole
from relaycast_gateway.icrc.names import FILTER, REPLAY_SKIPPED, SKIP, SUBSCRIBER_URL
from relaycast_gateway.icrc.naturals import shown
from relaycast_gateway.icrc.orchestrator.batch import ErrorCode, ItemRefused, generic, improper, positional
from relaycast_gateway.icrc.registry import Registry
from relaycast_gateway.icrc.replay.assignment import ReplayRights, assigned
from relaycast_gateway.icrc.replay.listing import replay_filter, replay_status
from relaycast_gateway.icrc.replay.replays import EventReplay, ReplayStage
from relaycast_gateway.icrc.replay.request import ReplayRequest
from relaycast_gateway.icrc.replay.saved import loaded, saved
from relaycast_gateway.icrc.replay.settings import ReplaySettings
from relaycast_gateway.icrc.store import IcrcStore, number_key, stored_rows
from relaycast_gateway.icrc.system_messages import (
    BROADCASTER_ADD,
    BROADCASTER_REMOVE,
    PUBLISHER_ADD,
    PUBLISHER_REMOVE,
    RELAY_ADD,
    RELAY_REMOVE,
    RELAYER_ADD,
    RELAYER_REMOVE,
    SystemItem,
    system_notification,
)
from relaycast_gateway.icrc.variants import pairs_of
from relaycast_gateway.icrc16 import Icrc16, Tag, nat, text
from relaycast_gateway.log import EventLog

TABLE = "replays"
_MESSAGES = "replays:messages"
"""Upper bound of the ids of system messages until the next start."""

MINUTE_NS = 60 * SECOND
MOST_DIGITS = 1_000
"""Digits of a number in a skip that is written as text."""

IDS_RESERVED = 1_000
"""Number of system message ids reserved by each write to the store; a restart skips the unused ones."""

MESSAGES_KEPT = 1_000
"""System messages that are remembered, for whoever looks at a run."""

_REPORTS = {"running", "completed", "canceled", "errored"}

MOST_SENT = (1 << 63) - 1
"""Events that a publisher may say that it sent."""

LONGEST_ERROR = 1_000
"""Characters of what a publisher says went wrong; longer ones are cut."""


class ReplayBook:
    """Handles the methods ``icrc77_*`` for the orchestrator with the principal ``owner``."""

    def __init__(
        self,
        owner: bytes,
        wire: Wire,
        registry: Registry,
        store: IcrcStore,
        log: EventLog,
        *,
        rights: ReplayRights,
        archivist: bytes | None = None,
        settings: ReplaySettings | None = None,
    ) -> None:
        self.settings = settings or ReplaySettings()
        self.archivist = archivist
        """The publisher that serves namespaces of which no publisher is capable."""

        self.messages: deque[tuple[bytes, SystemItem]] = deque(maxlen=MESSAGES_KEPT)
        """The newest system messages, with their receivers, in the order of sending."""

        self._owner, self._wire, self._registry, self._store = owner, wire, registry, store
        self._log, self._rights = log, rights
        self._registered: dict[bytes, deque[int]] = {}
        self._load()
        self._last_id = max(registry.replays, default=0)
        kept = store.get(_MESSAGES, b"")
        self._message_id = self._reserved_ids = 0 if kept is None else int.from_bytes(kept, "big")
        self._is_closed = False
        self._untold: list[Callable[[], None]] | None = None
        """System messages that wait until what they speak of is durable; ``None`` outside of calls."""

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the methods."""
        return {
            "icrc77_register_replay": self._register,
            "icrc77_cancel_replay": self._cancel,
            "icrc77_replay_status": self._report,
            "icrc77_get_replays": self._page,
            "icrc77_request_messages": self._request_messages,
            "icrc77_cancel_messages_request": self._cancel_messages,
        }

    def resume(self) -> None:
        """Tell broadcasters and publishers once more of what had not ended; they know what they have already."""
        for replay in list(self._registry.replays.values()):
            if replay.is_active:
                self._assign(replay)

    def close(self) -> None:
        """Tell nobody anything more."""
        self._is_closed = True

    def _load(self) -> None:
        """Replace what is known by what is stored."""
        self._store.take_back(TABLE)
        self._registry.replays.clear()
        with stored_rows(self._store, "replays"):
            for _, value in self._store.items(TABLE):
                replay = loaded(value, self._rights.filter_language)
                self._registry.replays[replay.id] = replay

    # Methods

    def _register(self, caller: bytes, argument: object) -> object:
        return self._batch(argument, lambda item: self._begin(self._checked(caller, self._asked(item), 0)))

    def _cancel(self, caller: bytes, argument: object) -> object:
        return self._batch(argument, lambda replay_id: self._canceled(caller, replay_id))

    def _report(self, caller: bytes, argument: object) -> object:
        return self._batch(argument, lambda update: self._reported(caller, update))

    def _request_messages(self, caller: bytes, argument: object) -> object:
        """Begin replays as an older text has it; it has no errors, so one that is refused refuses the call."""
        items = cast("list[Any]", argument)
        if len(items) > self.settings.most_a_batch:
            raise CallRefused(f"got {len(items)} items, expected at most {self.settings.most_a_batch}")
        checked: list[EventReplay] = []
        for item in items:
            try:
                checked.append(self._checked(caller, self._asked(_as_registration(item)), len(checked)))
            except ItemRefused as refused:
                raise CallRefused(f"{item['namespace'][:80]!r}: {refused}") from None
        with self._durably():
            return [self._begin(replay) for replay in checked]

    def _cancel_messages(self, caller: bytes, argument: object) -> object:
        results = cast("list[Variant]", self._cancel(caller, argument))
        return [result.value for result in results if result.tag == "Ok"]

    def _page(self, caller: bytes, argument: object) -> object:
        asked = cast("dict[str, Any]", argument)
        if asked["prev"] is not None:
            raise CallRefused("prev: pages of replays go on from the id of a replay: give prevId")
        take = self.settings.most_a_batch if asked["take"] is None else min(asked["take"], self.settings.most_a_batch)
        after = 0 if asked["prevId"] is None else asked["prevId"]
        if after > self._last_id:
            raise CallRefused(f"prevId: there is no replay {shown(after)}")
        wanted = replay_filter(asked["filter"])
        found = [it for it in self._registry.replays.values() if it.id > after and wanted(it)]
        return [replay_status(it, caller, self._rights.statistics.sent_of_replay(it.id)) for it in found[:take]]

    def _batch(self, argument: object, act: Callable[[Any], object]) -> list[Variant]:
        with self._durably():
            return positional(cast("list[Any]", argument), self.settings.most_a_batch, act)

    @contextmanager
    def _durably(self) -> Iterator[None]:
        """Flush, and then tell others; ``CallRefused`` where the disk refuses: nothing was changed."""
        self._untold = []
        try:
            yield
            self._store.flush()
        except sqlite3.Error as error:
            self._load()
            raise CallRefused(f"nothing was stored: {error}") from None
        finally:
            untold, self._untold = self._untold, None
        for tell in untold:
            tell()

    # Requests

    def _asked(self, item: Mapping[str, Any]) -> ReplayRequest:
        return ReplayRequest.of(item, self._rights.filter_language)

    def _checked(self, caller: bytes, request: ReplayRequest, before: int) -> EventReplay:
        """Return the replay that a request begins; ``before`` were asked for in the same call."""
        self._ensure_within_quota(caller, before)
        replay = assigned(
            request, caller, self._registry, self._log, self._rights, archivist=self.archivist, settings=self.settings
        )
        self._ensure_reachable(caller, request)
        return replace(replay, registered_ns=self._wire.now_ns())

    def _ensure_reachable(self, caller: bytes, request: ReplayRequest) -> None:
        if request.url is not None:
            try:
                self.settings.check_url(request.url)
            except ValueError as error:
                raise improper(f"{SUBSCRIBER_URL}: {error}") from None
        elif not self.settings.has_place(caller):
            raise improper(f"config: expected {SUBSCRIBER_URL} here or in a subscription, got neither")

    def _ensure_within_quota(self, caller: bytes, before: int) -> None:
        active = before + sum(1 for it in self._registry.replays.values() if it.subscriber == caller and it.is_active)
        if active >= self.settings.most_active:
            raise generic(
                ErrorCode.TOO_MANY_REPLAYS, f"a subscriber has at most {self.settings.most_active} replays at one time"
            )
        times = self._registered.get(caller, deque())
        while times and times[0] <= self._wire.passed_ns() - MINUTE_NS:
            times.popleft()
        if before + len(times) >= self.settings.most_a_minute:
            most = self.settings.most_a_minute
            raise generic(ErrorCode.TOO_FAST, f"a subscriber registers at most {most} replays a minute")

    def _begin(self, replay: EventReplay) -> int:
        self._last_id += 1
        replay = replace(replay, id=self._last_id)
        self._registered.setdefault(replay.subscriber, deque()).append(self._wire.passed_ns())
        self._keep(replay)
        self._registry.version += 1
        self._forget_old()
        self._assign(replay)
        self._rights.count_request(replay.subscriber, replay.namespace)
        return replay.id

    # The life of a replay

    def _canceled(self, caller: bytes, replay_id: int) -> int:
        replay = self._of(replay_id)
        if replay.subscriber != caller:
            raise ItemRefused(Variant("Unauthorized"))
        if not replay.may_become(ReplayStage.CANCELED):
            raise ItemRefused(Variant("CannotCancel", f"the replay is {replay.stage}"))
        self._end(replace(replay, stage=ReplayStage.CANCELED))
        self._tell(replay.publisher, CanisterRole.PUBLISHER, SystemItem(PUBLISHER_REMOVE, replay.id))
        return replay_id

    def _reported(self, caller: bytes, update: Mapping[str, Any]) -> None:
        replay, state = self._of(update["replayId"]), update["status"]
        if replay.publisher != caller:
            raise ItemRefused(Variant("Unauthorized"))
        name = str(state.tag).lower()
        if name not in _REPORTS:
            raise generic(
                ErrorCode.ILLEGAL_STATE, f"a publisher reports one of {', '.join(sorted(_REPORTS))}, got {name}"
            )
        stage = ReplayStage(name)
        if stage in {ReplayStage.COMPLETED, ReplayStage.CANCELED} and state.value > MOST_SENT:
            raise generic(ErrorCode.ILLEGAL_STATE, f"a publisher reports at most {MOST_SENT} events as sent")
        replay = replace(replay, skipped=max(replay.skipped, _skipped(update.get("stats"))))
        if replay.stage is stage is ReplayStage.CANCELED:
            self._keep(replay)  # its broadcaster counts what was sent
            return
        if replay.stage is stage is ReplayStage.RUNNING:
            return
        if not replay.may_become(stage):
            raise generic(ErrorCode.ILLEGAL_STATE, f"the replay is {replay.stage} and cannot become {stage}")
        if stage is ReplayStage.RUNNING:
            self._keep(replace(replay, stage=stage))
        elif stage is ReplayStage.ERRORED:
            self._end(replace(replay, stage=stage, error=state.value[:LONGEST_ERROR]))
        else:
            self._end(replace(replay, stage=stage, sent=0 if stage is ReplayStage.CANCELED else state.value))

    def _end(self, replay: EventReplay) -> None:
        """Keep the last state, and tell the broadcasters that no more is coming."""
        self._keep(replay)
        self._registry.version += 1
        for receiver, item in _removals(replay):
            self._tell(receiver, CanisterRole.BROADCASTER, item)

    def _assign(self, replay: EventReplay) -> None:
        """Tell the broadcasters, and when all know the publisher."""
        waiting = _assignments(replay)
        self._tell_in_turn(replay.id, waiting, 0)

    def _tell_in_turn(self, replay_id: int, waiting: list[tuple[bytes, CanisterRole, SystemItem]], tries: int) -> None:
        replay = self._registry.replays.get(replay_id)
        if self._is_closed or replay is None or not replay.is_active or not waiting:
            return
        receiver, role, item = waiting[0]

        def answered(answer: Answer) -> None:
            if answer.refusal is None:
                self._tell_in_turn(replay_id, waiting[1:], 0)
            elif tries + 1 < self.settings.tries:
                again = self.settings.retry_seconds * 2**tries
                self._wire.call_later(again, lambda: self._tell_in_turn(replay_id, waiting, tries + 1))
            else:
                self._fail(replay_id, answer.refusal)

        self._tell(receiver, role, item, answered)

    def _fail(self, replay_id: int, reason: str) -> None:
        replay = self._registry.replays[replay_id]
        if replay.is_active and not self._is_closed:
            self._end(replace(replay, stage=ReplayStage.ERRORED, error=reason))
            self._store.try_flush()

    def _tell(
        self,
        receiver: bytes,
        role: CanisterRole,
        item: SystemItem,
        answered: Callable[[Answer], None] | None = None,
    ) -> None:
        self.messages.append((receiver, item))
        if self._message_id == self._reserved_ids:
            self._reserved_ids += IDS_RESERVED
            self._store.put(_MESSAGES, b"", number_key(self._reserved_ids))
            if self._untold is None:
                self._store.try_flush()
        self._message_id += 1
        notification = system_notification(item, role, receiver, self._owner, self._wire.now_ns(), self._message_id)
        tell = partial(self._wire.call, self._owner, receiver, "icrc72_handle_notification", [notification], answered)
        if self._untold is None:
            tell()
        else:
            self._untold.append(tell)

    def _of(self, replay_id: int) -> EventReplay:
        replay = self._registry.replays.get(replay_id)
        if replay is None:
            raise ItemRefused(Variant("NotFound"))
        return replay

    def _keep(self, replay: EventReplay) -> None:
        self._store.put(TABLE, _key(replay.id), saved(replay))
        self._registry.replays[replay.id] = replay

    def _forget_old(self) -> None:
        ended = [it.id for it in self._registry.replays.values() if not it.is_active]
        for replay_id in ended[: max(0, len(ended) - self.settings.most_kept)]:
            del self._registry.replays[replay_id]
            self._rights.statistics.forget_replay(replay_id)
            self._store.delete(TABLE, _key(replay_id))


def _skipped(stats: object) -> int:
    """Return the number of events left out, as the publisher's report states."""
    for pair in cast("list[dict[int, Any]]", stats or []):
        if pair[0] == REPLAY_SKIPPED:
            tag, content = pair[1]
            if tag != Tag.NAT or content > MOST_SENT:
                raise generic(
                    ErrorCode.ILLEGAL_STATE, f"stats: {REPLAY_SKIPPED}: expected a Nat of at most {MOST_SENT}"
                )
            return int(content)
    return 0


def _key(replay_id: int) -> bytes:
    return replay_id.to_bytes(8, "big")


def _assignments(replay: EventReplay) -> list[tuple[bytes, CanisterRole, SystemItem]]:
    """Return who is told of a replay, in this order: broadcasters first."""
    of = {"namespace": replay.namespace, "filter": replay.filter, "skip": replay.skip}
    subscriber, publisher, relay = replay.subscriber, replay.publisher, replay.relay
    add = SystemItem(
        BROADCASTER_ADD,
        replay.id,
        relay=relay,
        subscriber=subscriber,
        publisher=publisher,
        **of,  # type: ignore[arg-type]
    )
    told = [(replay.broadcaster, CanisterRole.BROADCASTER, add)]
    if relay is not None:
        relayer = SystemItem(RELAYER_ADD, replay.id, replay.namespace, relay=relay)
        relayed = SystemItem(
            RELAY_ADD,
            replay.id,
            broadcaster=replay.broadcaster,
            publisher=publisher,
            **of,  # type: ignore[arg-type]
        )
        told += [(replay.broadcaster, CanisterRole.BROADCASTER, relayer), (relay, CanisterRole.BROADCASTER, relayed)]
    begin = SystemItem(
        PUBLISHER_ADD,
        replay.id,
        replay.namespace,
        broadcaster=replay.publishes_to,
        start=replay.start,
        end=replay.end,
    )
    return [*told, (publisher, CanisterRole.PUBLISHER, begin)]


def _removals(replay: EventReplay) -> list[tuple[bytes, SystemItem]]:
    namespace, relay, publisher = replay.namespace, replay.relay, replay.publisher
    removal = SystemItem(BROADCASTER_REMOVE, replay.id, namespace, subscriber=replay.subscriber, publisher=publisher)
    told = [(replay.broadcaster, removal)]
    if relay is not None:
        told = [
            (relay, SystemItem(RELAY_REMOVE, replay.id, namespace, relay=relay, publisher=publisher)),
            (replay.broadcaster, SystemItem(RELAYER_REMOVE, replay.id, namespace, relay=relay, publisher=publisher)),
            *told,
        ]
    return told


def _as_registration(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``MessageRequest`` as a ``ReplayRegistration``; its skip is a text such as ``5`` or ``5,2``."""
    config: list[tuple[str, Icrc16]] = []
    if item["filter"] is not None:
        config.append((FILTER, text(item["filter"])))
    if item["skip"] is not None:
        numbers = item["skip"].replace(" ", "").split(",")
        if not all(number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS for number in numbers):
            raise improper(f"skip: got {item['skip'][:80]!r}, expected a text such as 5 or 5,2")
        config.append((SKIP, Icrc16(Tag.ARRAY, tuple(nat(int(number)) for number in numbers))))
    return {"namespace": item["namespace"], "range": item["range"], "config": pairs_of(config), "memo": None}
