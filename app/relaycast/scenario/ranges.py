"""Ranges of the numbers in a scenario, and the numbers of keys that are wanted."""

import re
from typing import Annotated

from msgspec import Meta

from relaycast.callback_time import MAX_MICROSECONDS, MAX_PROOF_BYTES
from relaycast.refusal import BadInput, shown

U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
ValueBytes = Annotated[int, Meta(ge=0, le=1 << 20)]
Block = Annotated[int, Meta(ge=1, le=1_000_000)]
Microseconds = Annotated[int, Meta(ge=0, le=MAX_MICROSECONDS)]
CallbackProofBytes = Annotated[int, Meta(ge=0, le=MAX_PROOF_BYTES)]
Percentage = Annotated[str, Meta(pattern=r"^(?!0+(\.0+)?%)(100|[1-9]?[0-9](\.[0-9]{1,3})?)%$")]
Planck = Annotated[int, Meta(ge=1, le=2**63 - 1)]

TrieDepth = Annotated[int, Meta(ge=1, le=64)]
PublishedBytes = Annotated[int, Meta(ge=1, le=2_048)]
"""At most what a ``Publish`` instruction can carry."""

TotalBytes = Annotated[int, Meta(ge=1, le=2**32 - 1)]


KEY_RANGE = re.compile(r"all|([0-9]{1,7})\.\.([0-9]{1,7})")
WANTED_KEYS = 'a number from 1 on, a range such as "100..150", a list of names, or "all"'


def range_of(keys: int | str, known: int) -> range:
    """Return the numbers of the keys that are wanted of ``known`` ones, none where ``keys`` are refused."""
    if isinstance(keys, int):
        return range(keys)
    form = KEY_RANGE.fullmatch(keys)
    if form is None:
        return range(0)
    first, end = form.groups()
    return range(known) if first is None else range(int(first), int(end))


def check_range(keys: int | str, known: int, place: str, these: str) -> None:
    """Raise ``BadInput`` unless the numbers of the keys that are wanted are among the ``known`` ones."""
    if isinstance(keys, str) and not KEY_RANGE.fullmatch(keys):
        raise BadInput(place, shown(keys), WANTED_KEYS)
    wanted = range_of(keys, known)
    if wanted.stop > known:
        raise BadInput(place, str(keys), f"at most {these}")
    if not wanted:
        raise BadInput(place, str(keys), f"a range with a key in it, such as 0..{known}")
