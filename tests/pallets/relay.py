"""A relay chain of pallets alone, with people who have money, and a check that a refusal leaves no trace."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from relaycast_pallets import (
    DRAFT_MOCK,
    PUBLISHER_DEPOSIT,
    Balances,
    Broadcaster,
    BroadcasterConfig,
    Event,
    Origin,
    State,
    System,
)
from relaycast_pallets.frame.state import Snapshot
from relaycast_trie import RelaycastError, blake2_256
from relaycast_xcm.primitives import ParaId

ALICE, BOB, CAROL = (bytes([byte]) * 32 for byte in (0xA1, 0xB0, 0xCA))
SYSTEM_PARA, PARA, OTHER_PARA = ParaId(1_000), ParaId(2_000), ParaId(2_001)


def hash_key(text: str) -> bytes:
    """Return the key that a publisher derives from a name."""
    return blake2_256(text.encode())


E = TypeVar("E", bound=RelaycastError)
A, B, C = hash_key("A"), hash_key("B"), hash_key("C")


class Relay:
    """The pallets of a relay chain at block 1; accounts begin with 10,000."""

    def __init__(self, config: BroadcasterConfig = DRAFT_MOCK, *, funds: int = 10_000) -> None:
        self.state = State(window=4)
        self.system = System(self.state)
        self.balances = Balances(self.system)
        self.broadcaster = Broadcaster(self.system, self.balances, config=config)
        self.storage = self.broadcaster.storage
        for account in (ALICE, BOB, CAROL):
            self.balances.mint(account, funds)
        self.at(1)

    def at(self, number: int) -> None:
        """Begin block ``number``."""
        self.system.initialize(number)

    def register(self, para_id: ParaId = PARA, manager: bytes = ALICE) -> None:
        self.broadcaster.register_publisher(Origin.signed(manager), para_id)

    def publish(self, key: bytes, value: bytes = b"\x2a", *, ttl: int = 0, publisher: ParaId = PARA) -> None:
        self.broadcaster.handle_publish(publisher, key, value, ttl=ttl)

    def value(self, key: bytes, publisher: ParaId = PARA) -> bytes | None:
        entry = self.storage.entry(publisher, key)
        return None if entry is None else entry.value

    def keys(self, publisher: ParaId = PARA) -> set[bytes]:
        return set(self.storage.keys_of(publisher))

    def held(self, account: bytes = ALICE) -> int:
        return self.balances.held(account, PUBLISHER_DEPOSIT)

    def free(self, account: bytes = ALICE) -> int:
        return self.balances.free(account)

    def everything(self) -> tuple[Snapshot, list[Event]]:
        return self.state.snapshot(), list(self.system.events)


@contextmanager
def refused(relay: Relay, error: type[E]) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect ``error`` from the block, and state, events and root equal to what they were."""
    root, before = relay.state.commit(), relay.everything()
    with pytest.raises(error) as refusal:
        yield refusal
    assert relay.everything() == before
    assert relay.state.commit() == root
