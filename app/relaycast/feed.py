"""Feeds: what a publisher publishes under one key, and how wrong arguments are named in refusals."""

import reprlib
from dataclasses import dataclass, field

from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm import ParaId


@dataclass(frozen=True, slots=True)
class Feed:
    """A key of a publisher; ``name`` is what was hashed into ``key``, where there was a name.

    Feeds with the same publisher and key are equal, named or not.

    >>> Feed(2000, bytes(32))
    <Feed 0x0000000000000000000000000000000000000000000000000000000000000000 of 2000>
    """

    publisher: int
    key: bytes
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        para_id_of(self.publisher)
        if not isinstance(self.key, bytes):
            raise TypeError(f"the key of a feed is 32 bytes, got {described(self.key)}; publisher.feed() hashes names")
        SubscribedKey(self.key)

    def __repr__(self) -> str:
        return f"<Feed {self.name or '0x' + self.key.hex()} of {self.publisher}>"


def feed_of(publisher: int, name: str) -> Feed:
    """Return the feed of a publisher under ``name``, which is hashed unless it is 0x and the hex digits of 32 bytes."""
    if name.startswith("0x"):
        return Feed(publisher, bytes.fromhex(name[2:]))
    return Feed(publisher, bytes(SubscribedKey.from_data(name.encode())), name)


def para_id_of(number: int) -> ParaId:
    return ParaId(whole_number(number, "a parachain id"))


def whole_number(value: int, what: str) -> int:
    if type(value) is bool or not isinstance(value, int):
        raise TypeError(f"{what} is a whole number, got {described(value)}")
    return value


def described(value: object) -> str:
    """Return ``value`` as a refusal names it: short, with its type."""
    return f"{reprlib.repr(value)} of type {type(value).__name__}"
