"""Ranges of the numbers in a scenario."""

from typing import Annotated

from msgspec import Meta

from relaycast.callback_time import MAX_MICROSECONDS, MAX_PROOF_BYTES

U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
ValueBytes = Annotated[int, Meta(ge=0, le=1 << 20)]
Block = Annotated[int, Meta(ge=1, le=1_000_000)]
Microseconds = Annotated[int, Meta(ge=0, le=MAX_MICROSECONDS)]
CallbackProofBytes = Annotated[int, Meta(ge=0, le=MAX_PROOF_BYTES)]
Planck = Annotated[int, Meta(ge=1, le=2**63 - 1)]

TrieDepth = Annotated[int, Meta(ge=1, le=64)]
PublishedBytes = Annotated[int, Meta(ge=1, le=2_048)]
"""At most what a ``Publish`` instruction can carry."""

TotalBytes = Annotated[int, Meta(ge=1, le=2**32 - 1)]
