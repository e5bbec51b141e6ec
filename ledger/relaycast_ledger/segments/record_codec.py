"""Records of blocks as bytes, from the worker that made them to the process that writes the run's files.

Equal records give equal bytes, whichever of their parts are one object; and bytes make nothing but records, whoever
wrote them.
"""

from typing import Any

import msgspec

from relaycast_ledger.records import BlockRecord
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import CheckpointRefused

OWN_TYPES = (ParaId, SubscribedKey)
"""Numbers and bytes under a name of their own, as which they come back."""


def encode_records(records: list[BlockRecord]) -> bytes:
    """Return the records of one relay block as bytes."""
    return _ENCODER.encode(records)


def decode_records(data: bytes) -> list[BlockRecord]:
    """Return what ``encode_records`` was given; raises ``CheckpointRefused``."""
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise CheckpointRefused(str(error)) from error


def _plainly(value: object) -> object:
    if isinstance(value, ParaId):
        return int(value)
    if isinstance(value, SubscribedKey):
        return bytes(value)
    raise TypeError(f"a record holds {type(value).__name__}, which has no bytes here")


def _by_name(kind: type, value: Any) -> object:
    if kind not in OWN_TYPES:
        raise TypeError(f"a record holds {kind.__name__}, which has no bytes here")
    return kind(value)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plainly)
_DECODER = msgspec.msgpack.Decoder(list[BlockRecord], dec_hook=_by_name)
