"""Replays as bytes of the store."""

from collections.abc import Callable

import msgspec

from relaycast_gateway.icrc.naturals import loaded_number, stored_number
from relaycast_gateway.icrc.orchestrator.filter_languages import FilterLanguage, stored_filter
from relaycast_gateway.icrc.replay.replays import EventReplay, ReplayStage, is_active
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.log.record_codec import decode_headers, encode_headers


class _Saved(msgspec.Struct, array_like=True):
    """Numbers of any size are texts."""

    id: int
    subscriber: bytes
    namespace: str
    start: str
    end: str | None
    publisher: bytes
    broadcaster: bytes
    relay: bytes | None
    registered_ns: int
    config: bytes
    memo: bytes
    filter: str | None
    skip: tuple[str, str] | None
    last_seq: int
    stage: str
    sent: int
    error: str
    skipped: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Saved)


def saved(replay: EventReplay) -> bytes:
    """Return what the store keeps of a replay."""
    return _ENCODER.encode(
        _Saved(
            replay.id,
            replay.subscriber,
            replay.namespace,
            stored_number(replay.start),
            None if replay.end is None else stored_number(replay.end),
            replay.publisher,
            replay.broadcaster,
            replay.relay,
            replay.registered_ns,
            encode_headers(replay.config),
            replay.memo,
            replay.filter,
            None if replay.skip is None else (stored_number(replay.skip.mod), stored_number(replay.skip.offset)),
            replay.last_seq,
            str(replay.stage),
            replay.sent,
            replay.error,
            replay.skipped,
        )
    )


def loaded(value: bytes, language_of: Callable[[str], FilterLanguage]) -> EventReplay:
    """Return the replay of ``saved``, its filter compiled where it is active; ``ValueError`` where it is none.

    ``language_of`` tells the language of filters of a namespace.
    """
    it = _DECODER.decode(value)
    stage = ReplayStage(it.stage)
    return EventReplay(
        it.id,
        it.subscriber,
        it.namespace,
        loaded_number(it.start),
        None if it.end is None else loaded_number(it.end),
        it.publisher,
        it.broadcaster,
        it.relay,
        it.registered_ns,
        decode_headers(it.config),
        it.memo,
        it.filter,
        stored_filter(language_of(it.namespace), it.filter) if it.filter is not None and is_active(stage) else None,
        None if it.skip is None else Skip(*map(loaded_number, it.skip)),
        it.last_seq,
        stage,
        it.sent,
        it.error,
        it.skipped,
    )
