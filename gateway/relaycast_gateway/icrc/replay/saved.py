"""Replays as bytes of the store."""

from typing import Any

import msgspec

from relaycast_gateway.icrc.candypath.compiled import candy_path
from relaycast_gateway.icrc.replay.replays import EventReplay, ReplayStage
from relaycast_gateway.icrc.skip import Skip
from relaycast_gateway.icrc16 import Icrc16, Tag, from_json, to_json


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
    config: Any
    memo: bytes
    filter: str | None
    skip: tuple[str, str] | None
    last_seq: int
    stage: str
    sent: int
    error: str


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Saved)


def saved(replay: EventReplay) -> bytes:
    """Return what the store keeps of a replay."""
    return _ENCODER.encode(
        _Saved(
            replay.id,
            replay.subscriber,
            replay.namespace,
            str(replay.start),
            None if replay.end is None else str(replay.end),
            replay.publisher,
            replay.broadcaster,
            replay.relay,
            replay.registered_ns,
            to_json(Icrc16(Tag.MAP, replay.config)),
            replay.memo,
            replay.filter,
            None if replay.skip is None else (str(replay.skip.mod), str(replay.skip.offset)),
            replay.last_seq,
            str(replay.stage),
            replay.sent,
            replay.error,
        )
    )


def loaded(value: bytes) -> EventReplay:
    """Return the replay of ``saved``; ``ValueError`` where it is none."""
    it = _DECODER.decode(value)
    return EventReplay(
        it.id,
        it.subscriber,
        it.namespace,
        int(it.start),
        None if it.end is None else int(it.end),
        it.publisher,
        it.broadcaster,
        it.relay,
        it.registered_ns,
        from_json(it.config).content,
        it.memo,
        it.filter,
        None if it.filter is None else candy_path(it.filter),
        None if it.skip is None else Skip(*map(int, it.skip)),
        it.last_seq,
        ReplayStage(it.stage),
        it.sent,
        it.error,
    )
