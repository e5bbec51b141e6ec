"""What chains tell, as events of the log: every pallet event, every callback and every block once.

Law: the events of one block are appended together, in this order: its pallet events as they were deposited, the
callbacks of its subscriber, and last ``block.imported``. All have the time of the block. The thread that steps the
chains does not wait for the disk. With ``by_tick`` all events of a tick are appended together when it has passed: a tick
that fails announces nothing.

| namespace | of | data |
|---|---|---|
| ``data.published`` | relay | ``publisher``, ``key``, ``value``, ``ttl``, ``expiresAt``, ``blockNumber``, ``blockHash``, ``stateRoot``, ``childStorageKey``, ``childRoot``, ``superseded``, on request ``proof`` |
| ``subscriber.updated`` | parachains | ``publisher``, ``key``, ``value``, ``ttlState``, ``remainingBlocks``, ``publishedAt``, ``blockNumber``, ``blockHash``, ``relayParent`` |
| ``subscriber.deleted`` | parachains that are told of deletions | ``publisher``, ``key``, ``blockNumber``, ``blockHash``, ``relayParent`` |
| ``block.imported`` | all | ``number``, ``hash``, ``parentHash``, ``stateRoot``, ``extrinsicsRoot``, ``events``, ``relayParent`` and ``callbacks`` of a parachain's, ``deletions`` where any is told |
| others, see ``pallet_event`` | all | the fields of the event |

A Wasm parachain tells ``block.imported`` alone: instead of ``callbacks`` it has ``rawEvents``, the bytes of its ``System.Events``.
"""  # noqa: E501 - rows of a table

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Protocol
from urllib.parse import quote

from relaycast_collator import BlockBuilt, ChainSimulator, Fact, RelaySealed, TickBegan, WasmBlockBuilt
from relaycast_collator.header import Header
from relaycast_gateway.chain_topics import chain_topic
from relaycast_gateway.icrc16 import NOTHING, Icrc16, array, blob, boolean, map_of, nat, option, text
from relaycast_gateway.log import EventLog
from relaycast_gateway.pallet_event import SHORT_NAMES, event_fields, event_name, key_of, publisher_of
from relaycast_gateway.principal import chain_principal
from relaycast_gateway.record import EventDraft, EventRecord, Headers
from relaycast_pallets.broadcaster.events import DataPublished
from relaycast_pallets.broadcaster.storage import INFINITE, PublishedEntry, derive_child_info
from relaycast_pallets.frame.system import Event, System, storage_prefix
from relaycast_pallets.subscriber.subscription import (
    Infinite,
    TtlState,
    ValidFor,
    compute_ttl_state,
)
from relaycast_pallets.timestamp import GENESIS_MILLISECONDS, SLOT_MILLISECONDS, Timestamp
from relaycast_xcm import ParaId

PREFIX = "io.relaycast"
UPDATED, DELETED, IMPORTED = "subscriber.updated", "subscriber.deleted", "block.imported"

BLOCK_NUMBER, BLOCK_HASH = "ce:blocknumber", "ce:blockhash"

OF_PARACHAINS = frozenset({UPDATED, DELETED, "publisher.disabled", "publisher.enabled"})
"""What the relay chain never tells."""

EVENTS, EVENT_COUNT = storage_prefix("System", "Events"), storage_prefix("System", "EventCount")
"""Where a runtime leaves the events of its last block, and their number."""

ALL_BLOCKS = sys.maxsize
"""As a number of known blocks: no event of a rebuilt block is appended."""

NS_A_MILLISECOND = 1_000_000

TTL_STATES: Mapping[type[TtlState], str] = {Infinite: "infinite", ValidFor: "valid_for"}
"""Texts of what is left of a time to live; any other is ``timed_out``."""

KeyNames = Callable[[], Mapping[tuple[int, bytes], str]]
"""Gives the names of keys that are known by more than their hash, by publisher and key."""

_LOGGER = logging.getLogger(__name__)


class BlockClock(Protocol):
    """Tells the time of the block that a chain has just built, in nanoseconds since 1970."""

    def __call__(self, system: System, number: int, /) -> int: ...


def block_time(system: System, number: int) -> int:
    """Return the time that stands in a chain's state; without one the modelled time: a slot for each block."""
    milliseconds = Timestamp(system).now or GENESIS_MILLISECONDS + number * SLOT_MILLISECONDS
    return milliseconds * NS_A_MILLISECOND


@dataclass(frozen=True, slots=True)
class _Block:
    """What all events of one block share."""

    header: Header
    hash: bytes
    source: bytes
    path: str
    para_id: ParaId | None
    occurred_ns: int

    def headers(self, publisher: ParaId | None, ttl_state: str | None = None) -> Headers:
        """Return the headers of an event, which become attributes of a CloudEvent."""
        found = [
            ("ce:source", text(self.path)),
            (BLOCK_NUMBER, nat(self.header.number)),
            (BLOCK_HASH, text(f"0x{self.hash.hex()}")),
        ]
        if self.para_id is not None:
            found.append(("ce:paraid", nat(int(self.para_id))))
        if publisher is not None:
            found.append(("ce:publisher", nat(int(publisher))))
        if ttl_state is not None:
            found.append(("ce:ttlstate", text(ttl_state)))
        return tuple(found)


class ChainFeed:
    """Appends what ``chains`` tell to ``log``, from now on until ``close``.

    ``network_name`` is part of every source: ``/NAME/relay``, ``/NAME/para/2000``. The chains stand at block 0, or
    ``genesis_hashes`` has that block's hash for each parachain that stands higher, by id.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        chains: ChainSimulator,
        network_name: str,
        prefix: str = PREFIX,
        block_time: BlockClock = block_time,
        key_names: KeyNames = dict,
        genesis_hashes: Mapping[int, bytes] | None = None,
        proofs: bool = False,
        by_tick: bool = False,
    ) -> None:
        self.proofs = proofs
        """Whether each ``data.published`` carries the proof of its value, from the next block on."""

        self.told = 0
        """Blocks that the chains have told of."""

        self.known_blocks = 0
        """Number of the first ones that the log has already, from an earlier run of the same chains."""

        self.lost = 0
        """Events that could not be appended."""

        self.error: str | None = None
        """Why the events of the last block were lost; ``None`` where they were appended."""

        self._log = log
        self._chains = chains
        self._by_tick = by_tick
        self._blocks_of_tick = 0
        self._drafts_of_tick: list[EventDraft] = []
        self._awaited = b""
        self._network = quote(network_name, safe="")
        self._prefix = prefix
        self._block_time = block_time
        self._key_names = key_names
        self._names: Mapping[tuple[int, bytes], str] | None = None
        self._relay_source = chain_principal(Header(bytes(32), 0, chains.relay_chain.genesis_root).hash)
        self._sources = {ParaId(it): chain_principal(found) for it, found in (genesis_hashes or {}).items()}
        self._wasm_systems = {para_id: System(parachain.state) for para_id, parachain in chains.wasm_parachains.items()}
        heads = {para_id: chain.head for para_id, chain in chains.parachains.items()}
        heads |= {para_id: parachain.head for para_id, parachain in chains.wasm_parachains.items()}
        for para_id, head in heads.items():
            if head.number == 0:
                self._sources[para_id] = chain_principal(head.hash)
            elif para_id not in self._sources:
                raise ValueError(f"genesis_hashes: got none of parachain {para_id}, which is at #{head.number}")
        self._newest = next(self._announced(self._relay_source, *self._sources.values()), None)
        chains.listeners.append(self.on_fact)

    def publications(self) -> Iterator[tuple[str, bytes]]:
        """Yield the well-known namespaces of these chains, each with the principals that publish there."""
        for name in (*SHORT_NAMES.values(), UPDATED, DELETED, IMPORTED):
            if name not in OF_PARACHAINS:
                yield f"{self._prefix}.{name}", self._relay_source
            if name in OF_PARACHAINS or name == IMPORTED:
                for source in self._sources.values():
                    yield f"{self._prefix}.{name}", source

    @property
    def log_identity(self) -> bytes:
        """What tells this log, and the namespaces of these chains in it, from all others; 16 bytes."""
        return blake2b(self._log.identity + self._prefix.encode(), digest_size=16).digest()

    @property
    def logged_blocks(self) -> int:
        """The number of blocks in the log, those of other chains that it had before counted."""
        return self._log.count(f"{self._prefix}.{IMPORTED}")

    @property
    def announced(self) -> bytes | None:
        """Hash of the newest block of these chains in the log; ``None`` where it has none, or retention dropped it."""
        block_hash = None if self._newest is None else self._newest.header(BLOCK_HASH)
        return None if block_hash is None else bytes.fromhex(block_hash.content[2:])

    def announced_relay_block(self) -> int:
        """Return the number of the newest relay block in the log, 0 where it has none."""
        found = next(self._announced(self._relay_source), None)
        number = None if found is None else found.header(BLOCK_NUMBER)
        return 0 if number is None else number.content

    def _announced(self, *sources: bytes) -> Iterator[EventRecord]:
        """Yield the blocks in the log that came from ``sources``, the newest first."""
        seq = self._log.last_id(f"{self._prefix}.{IMPORTED}")
        while seq is not None and (record := self._log.get(seq)) is not None:
            if record.source in sources:
                yield record
            seq = record.prev_id

    @property
    def is_behind(self) -> bool:
        """Whether blocks that the log has, and that ``resume`` named, were not rebuilt."""
        return bool(self._awaited) or self.told < self.known_blocks < ALL_BLOCKS

    @property
    def has_empty_log(self) -> bool:
        """Whether the log has no event at all."""
        return self._log.history_start > self._log.last_seq

    def resume(self, known_blocks: int, *, awaited: bytes = b"") -> None:
        """Append only events after the first ``known_blocks`` blocks of chains that are rebuilt.

        With ``awaited`` it starts after the block of this hash, which is the last known one or a later one: events that
        could not be appended in time are not appended later.
        """
        self.known_blocks, self._awaited = known_blocks, awaited

    def close(self) -> None:
        """Hear no more."""
        if self.on_fact in self._chains.listeners:
            self._chains.listeners.remove(self.on_fact)

    def on_fact(self, fact: Fact) -> None:
        """Append the events of a block, or hold them ``by_tick``; other facts are ignored.

        An event that cannot be made is lost; the block and its other listeners continue.
        """
        self._names = None
        if isinstance(fact, TickBegan):
            self._blocks_of_tick = 0
            self._drafts_of_tick.clear()
        if not isinstance(fact, RelaySealed | BlockBuilt | WasmBlockBuilt):
            return
        self._blocks_of_tick += 1
        if not isinstance(fact, RelaySealed) and fact.block.header.number == 1:
            self._sources[fact.para_id] = chain_principal(fact.parent.hash)
        number = self.told + self._blocks_of_tick
        if number <= self.known_blocks or self._awaited:
            if self._awaited and number >= self.known_blocks and fact.block.header.hash == self._awaited:
                self.known_blocks, self._awaited = number, b""
        else:
            try:
                self._drafts_of_tick += self._drafts_of(fact)
            except Exception as error:
                self._note_loss(1, error)
        if not self._by_tick:
            self.tick_passed()

    def tick_passed(self) -> None:
        """Append the events of this tick; for feeds ``by_tick``."""
        self.told += self._blocks_of_tick
        drafts, self._drafts_of_tick, self._blocks_of_tick = self._drafts_of_tick, [], 0
        if not drafts:
            return
        try:
            appended = self._log.append_soon(drafts)
        except Exception as error:
            self._note_loss(len(drafts), error)
        else:
            appended.add_done_callback(partial(self._report, len(drafts)))

    def take_back(self) -> None:
        """Drop the events of the current tick, which has failed."""
        self._blocks_of_tick = 0
        self._drafts_of_tick.clear()

    def _drafts_of(self, fact: RelaySealed | BlockBuilt | WasmBlockBuilt) -> list[EventDraft]:
        if isinstance(fact, RelaySealed):
            return list(self._of_relay_block(fact))
        if isinstance(fact, BlockBuilt):
            return list(self._of_parachain_block(fact))
        return [self._of_wasm_block(fact)]

    def _report(self, events: int, future: "Future[list[EventRecord]]") -> None:
        error = future.exception()
        if error is None:
            self._newest = future.result()[-1]
        self._note_loss(events, error)

    def _note_loss(self, events: int, error: BaseException | None) -> None:
        """Log when events of a block cannot be appended, and when appending works again; the chains continue."""
        if error is not None:
            if self.error is None:
                _LOGGER.error("events are being lost: %s", error)
            self.lost += events
            self.error = str(error)
        elif self.error is not None:
            self.error = None
            _LOGGER.error("events are kept again; lost since the start: %d", self.lost)

    def _of_relay_block(self, fact: RelaySealed) -> Iterator[EventDraft]:
        relay, header = self._chains.relay_chain, fact.block.header
        occurred_ns = self._block_time(relay.system, header.number)
        block = _Block(header, header.hash, self._relay_source, f"/{self._network}/relay", None, occurred_ns)
        newest = {
            (it.publisher, it.key): at for at, it in enumerate(fact.block.events) if isinstance(it, DataPublished)
        }
        for at, event in enumerate(fact.block.events):
            if isinstance(event, DataPublished):
                yield self._published(block, fact, event, is_newest=newest[event.publisher, event.key] == at)
            else:
                yield self._pallet_event(block, event)
        yield self._imported(block, len(fact.block.events), {})

    def _of_parachain_block(self, fact: BlockBuilt) -> Iterator[EventDraft]:
        block = self._parachain_block(fact, self._chains.parachains[fact.para_id].system)
        for event in fact.block.events:
            yield self._pallet_event(block, event)
        relay_parent = map_of({"number": nat(fact.relay_parent.number), "hash": blob(fact.relay_parent.hash)})
        for publisher, key, entry in fact.block.updates:
            yield self._updated(block, publisher, key, entry, fact.relay_parent.number, relay_parent)
        for publisher, key in fact.block.deletions:
            yield self._deleted(block, publisher, key, relay_parent)
        more = {"relayParent": relay_parent, "callbacks": nat(len(fact.block.updates))}
        if fact.block.deletions:
            more["deletions"] = nat(len(fact.block.deletions))
        yield self._imported(block, len(fact.block.events), more)

    def _of_wasm_block(self, fact: WasmBlockBuilt) -> EventDraft:
        system = self._wasm_systems.get(fact.para_id)
        if system is None:
            system = self._wasm_systems[fact.para_id] = System(self._chains.wasm_parachains[fact.para_id].state)
        block = self._parachain_block(fact, system)
        relay_parent = map_of({"number": nat(fact.relay_parent.number), "hash": blob(fact.relay_parent.hash)})
        events = int.from_bytes(system.state.get(EVENT_COUNT) or b"", "little")
        return self._imported(
            block, events, {"relayParent": relay_parent, "rawEvents": blob(system.state.get(EVENTS) or b"\x00")}
        )

    def _parachain_block(self, fact: BlockBuilt | WasmBlockBuilt, system: System) -> _Block:
        header = fact.block.header
        path = f"/{self._network}/para/{fact.para_id}"
        occurred_ns = self._block_time(system, header.number)
        return _Block(header, header.hash, self._sources[fact.para_id], path, fact.para_id, occurred_ns)

    def _published(self, block: _Block, fact: RelaySealed, event: DataPublished, *, is_newest: bool) -> EventDraft:
        """Return the event of a value that was published.

        A value that the same block has replaced or removed again was never in a sealed state: the event says
        ``superseded``, and has neither value nor proof.
        """
        relay, number = self._chains.relay_chain, block.header.number
        child = derive_child_info(event.publisher)
        entry = relay.broadcaster.storage.entry(event.publisher, event.key) if is_newest else None
        if entry is not None and entry.when_inserted != number:
            entry = None
        ttl = None if entry is None or entry.ttl == INFINITE else entry.ttl
        root = relay.state.get(child.prefixed_storage_key())
        data = {
            "publisher": nat(int(event.publisher)),
            "key": blob(event.key),
            "value": NOTHING if entry is None else blob(entry.value),
            "ttl": _natural(ttl),
            "expiresAt": _natural(None if entry is None else entry.expires_at()),
            "blockNumber": nat(number),
            "blockHash": blob(block.hash),
            "stateRoot": blob(block.header.state_root),
            "childStorageKey": blob(child.prefixed_storage_key()),
            "childRoot": NOTHING if root is None else blob(root),
            "superseded": boolean(entry is None),
        }
        ttl_state = None
        if entry is not None:
            ttl_state = _ttl_text(compute_ttl_state(entry.ttl, entry.when_inserted, number))
            if self.proofs:
                proof = relay.prove_child_read(fact.block, child.storage_key, [event.key])
                data["proof"] = array(*map(blob, sorted(proof.nodes)))
        return self._draft(block, event_name(DataPublished), data, event.publisher, event.key, ttl_state)

    def _updated(
        self, block: _Block, publisher: ParaId, key: bytes, entry: PublishedEntry, now: int, relay_parent: Icrc16
    ) -> EventDraft:
        ttl_state = compute_ttl_state(entry.ttl, entry.when_inserted, now)
        remaining = ttl_state.remaining_blocks if isinstance(ttl_state, ValidFor) else None
        data = {
            "publisher": nat(int(publisher)),
            "key": blob(bytes(key)),
            "value": blob(entry.value),
            "ttlState": text(_ttl_text(ttl_state)),
            "remainingBlocks": _natural(remaining),
            "publishedAt": nat(entry.when_inserted),
            "blockNumber": nat(block.header.number),
            "blockHash": blob(block.hash),
            "relayParent": relay_parent,
        }
        return self._draft(block, UPDATED, data, publisher, bytes(key), _ttl_text(ttl_state))

    def _deleted(self, block: _Block, publisher: ParaId, key: bytes, relay_parent: Icrc16) -> EventDraft:
        data = {
            "publisher": nat(int(publisher)),
            "key": blob(bytes(key)),
            "blockNumber": nat(block.header.number),
            "blockHash": blob(block.hash),
            "relayParent": relay_parent,
        }
        return self._draft(block, DELETED, data, publisher, bytes(key))

    def _pallet_event(self, block: _Block, event: Event) -> EventDraft:
        return self._draft(block, event_name(type(event)), event_fields(event), publisher_of(event), key_of(event))

    def _imported(self, block: _Block, events: int, more: Mapping[str, Icrc16]) -> EventDraft:
        header = block.header
        data = {
            "number": nat(header.number),
            "hash": blob(block.hash),
            "parentHash": blob(header.parent_hash),
            "stateRoot": blob(header.state_root),
            "extrinsicsRoot": blob(header.extrinsics_root),
            "events": nat(events),
            **more,
        }
        return self._draft(block, IMPORTED, data)

    def _draft(
        self,
        block: _Block,
        name: str,
        data: Mapping[str, Icrc16],
        publisher: ParaId | None = None,
        key: bytes | None = None,
        ttl_state: str | None = None,
    ) -> EventDraft:
        subject = None if publisher is None else str(int(publisher))
        if publisher is not None and key is not None:
            if self._names is None:
                self._names = self._key_names()
            subject = self._names.get((int(publisher), key)) or f"0x{key.hex()}"
        namespace = f"{self._prefix}.{name}"
        return EventDraft(
            namespace=namespace,
            topic=chain_topic(namespace, block.para_id, publisher),
            data=map_of(data),
            source=block.source,
            occurred_ns=block.occurred_ns,
            subject=subject,
            headers=block.headers(publisher, ttl_state),
        )

    def __repr__(self) -> str:
        return f"<ChainFeed /{self._network} to {self._log!r}{', with proofs' if self.proofs else ''}>"


def _natural(value: int | None) -> Icrc16:
    return option(None) if value is None else nat(value)


def _ttl_text(ttl_state: TtlState) -> str:
    return TTL_STATES.get(type(ttl_state), "timed_out")
