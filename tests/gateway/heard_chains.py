"""Chains with a feed into an event log, and the facts that they told, to compare the two."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relaycast_collator import BlockBuilt, ChainSimulator, Fact, RelaySealed
from relaycast_gateway.chain_feed import ChainFeed
from relaycast_gateway.icrc16 import to_json
from relaycast_gateway.log import EventLog
from relaycast_gateway.record import EventRecord
from relaycast_pallets.frame.system import Event

SHORT_NAMES = {
    "DataPublished": "data.published",
    "KeyExpired": "key.expired",
    "KeysDeleted": "keys.deleted",
    "KeysForcedDeleted": "keys.force_deleted",
    "PublisherRegistered": "publisher.registered",
    "PublisherDeregistered": "publisher.deregistered",
    "PublisherDisabled": "publisher.disabled",
    "PublisherEnabled": "publisher.enabled",
}


@dataclass
class Heard:
    """Chains with a feed, and the facts that they told."""

    chains: ChainSimulator
    log: EventLog = field(default_factory=EventLog.open)
    options: Mapping[str, Any] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.feed = ChainFeed(self.log, chains=self.chains, network_name="my net", **self.options)
        self.chains.listeners.append(self.facts.append)

    def records(self, name: str | None = None) -> list[EventRecord]:
        self.log.purge()  # when this is done, all that was appended before is durable
        return self.log.read(limit=1_000_000, namespaces=None if name is None else [f"io.relaycast.{name}"])

    def data(self, name: str) -> list[dict[str, Any]]:
        return [to_json(record.data) for record in self.records(name)]

    def told(self) -> list[tuple[str, str, str]]:
        """Return name, source and block hash of each event that the chains' own vectors make."""
        expected = []
        for fact in self.facts:
            if isinstance(fact, RelaySealed):
                source, callbacks, deletions = "/my%20net/relay", 0, 0
            elif isinstance(fact, BlockBuilt):
                source, callbacks = f"/my%20net/para/{fact.para_id}", len(fact.block.updates)
                deletions = len(fact.block.deletions)
            else:
                continue
            block_hash = f"0x{fact.block.header.hash.hex()}"
            told = [*["subscriber.updated"] * callbacks, *["subscriber.deleted"] * deletions]
            names = [*map(named, fact.block.events), *told, "block.imported"]
            expected += [(f"io.relaycast.{name}", source, block_hash) for name in names]
        return expected


def named(event: Event) -> str:
    """Return an event's name in the log, by its pallet's and its own."""
    name = type(event).__name__
    if name in SHORT_NAMES:
        return SHORT_NAMES[name]
    snake = ["".join(f"_{it.lower()}" if it.isupper() else it for it in word)[1:] for word in (event.pallet, name)]
    return f"pallet.{snake[0]}.{snake[1]}"
