"""What the live page shows: the last blocks, publications and proofs, and each new one as it comes.

It listens to the heads of all chains and to the facts of complete ticks, batching what happens at once. A
browser that does not read is dropped; it comes back by itself and begins with the snapshot. Of subscriptions a browser
sees those of its caller, an admin's those of all; the WAMP router and the canisters an admin alone.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from relaycast.serve.canisters_view import shown_canisters
from relaycast.serve.faces import Faces
from relaycast.serve.router_view import shown_router
from relaycast_collator import BlockBuilt, Fact, RelaySealed
from relaycast_gateway.cloudevents.caller import EVERYBODY_HERE, Caller
from relaycast_gateway.gateway import Gateway, shown_state
from relaycast_node.block_time import block_time_text
from relaycast_node.rpc.chain_protocols import BlockFace, ChainFace, ClockFace
from relaycast_pallets.broadcaster.events import DataPublished

BLOCKS_SHOWN = 16
PUBLICATIONS_SHOWN = 16
PROOFS_SHOWN = 60
"""Proofs of each reader that the page shows, the newest."""

SUBSCRIPTIONS_SHOWN = 50
"""The newest ones."""

SUBSCRIPTIONS_SECONDS = 0.5
"""Between two events about subscriptions, however much is delivered."""

LOOK_SECONDS = 1.0
"""Between two looks at the WAMP router and the canisters while browsers follow."""

EVENTS_WAITING = 64
"""For one browser; one that is further behind is dropped."""

SILENCE_SECONDS = 15.0
"""After this long without an event a comment says that the server is there."""

Json = dict[str, Any]

KeyNames = Callable[[], Mapping[tuple[int, bytes], str]]
"""Gives the names of keys that are known by more than their hash, by publisher and key."""


class LiveFeed:
    """Follows ``clock``; ``title`` is what the page is called."""

    def __init__(
        self,
        clock: ClockFace,
        *,
        title: str,
        key_names: KeyNames,
        gateway: Gateway | None = None,
        faces: Faces | None = None,
        dialect: str = "all",
    ) -> None:
        self._clock = clock
        self._dialect = dialect
        self._faces = faces or Faces(cloudevents=gateway is not None, wamp=False, icrc=False)
        self._gateway = gateway
        self._title = title
        self._key_names = key_names
        self._blocks: deque[Json] = deque(maxlen=BLOCKS_SHOWN)
        self._publications: deque[Json] = deque(maxlen=PUBLICATIONS_SHOWN)
        self._proofs: dict[int, deque[Json]] = {}
        self._new: dict[str, list[Json]] = {"blocks": [], "publications": [], "proofs": []}
        self._queues: dict[asyncio.Queue[bytes | None], Caller] = {}
        self._is_due = False
        self._told: dict[str, Json] = {}
        self._look_timer: asyncio.TimerHandle | None = None
        if self._has_subscriptions:
            assert gateway is not None
            gateway.on_change = self._note_subscriptions
        clock.facts.connect(self.on_fact)
        clock.taken_back.connect(self._forget_lost)
        for chain in (clock.relay, *clock.parachains.values()):
            chain.new_heads.connect(partial(self._note_block, chain))

    @property
    def listener_failures(self) -> int:
        """The number of failures of listeners to the chains."""
        return self._clock.listener_failures

    @property
    def watchers(self) -> int:
        """The number of browsers that follow."""
        return len(self._queues)

    async def page(self, host: str, caller: Caller = EVERYBODY_HERE) -> str:
        """Return the live page for a browser that reached the server as ``host``."""
        from relaycast.serve.live_page import render_live  # noqa: PLC0415 - loads the template engine

        parachains = {para_id: chain.name for para_id, chain in sorted(self._clock.parachains.items())}
        first = msgspec.json.encode(self._snapshot(caller)).decode()
        relay = self._clock.relay.name
        router = None if self._gateway is None else self._gateway.router
        realm = None if router is None else router.config.realms[0]
        render = partial(render_live, faces=self._faces, realm=realm, dialect=self._dialect)
        return await asyncio.to_thread(render, self._title, host, relay, parachains, first)

    async def events(self, caller: Caller = EVERYBODY_HERE) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events: first everything that is known, then what is new, until the feed is closed."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(EVENTS_WAITING)
        self._queues[queue] = caller
        self._look()
        try:
            yield _event("snapshot", self._snapshot(caller))
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), SILENCE_SECONDS)
                except TimeoutError:
                    yield b": here\n\n"
                    continue
                if event is None:
                    return
                yield event
        finally:
            self._queues.pop(queue, None)

    def close(self) -> None:
        """End all events: the server stops."""
        if self._look_timer is not None:
            self._look_timer.cancel()
        for queue in tuple(self._queues):
            self._end(queue)

    def on_fact(self, fact: Fact) -> None:
        """Record publications and proofs of a complete tick."""
        if isinstance(fact, RelaySealed):
            published = [event for event in fact.block.events if isinstance(event, DataPublished)]
            names = self._key_names() if published else {}
            for event in published:
                self._note_publication(fact.block.number, event, names)
        elif isinstance(fact, BlockBuilt) and fact.subscribes:
            self._note_proof(fact)

    def _forget_lost(self, _: object) -> None:
        """Remove the blocks of a tick that was rolled back."""
        chains = {chain.name: chain for chain in (self._clock.relay, *self._clock.parachains.values())}

        def stays(row: Json) -> bool:
            return bool(row["number"] <= chains[row["chain"]].best.header.number)

        self._blocks = deque(filter(stays, self._blocks), maxlen=BLOCKS_SHOWN)
        self._new["blocks"] = list(filter(stays, self._new["blocks"]))

    def _note_block(self, chain: ChainFace, block: BlockFace) -> None:
        row = {
            "chain": chain.name,
            "paraId": None if chain.para_id is None else int(chain.para_id),
            "number": block.header.number,
            "hash": f"0x{block.hash.hex()}",
            "extrinsics": len(block.extrinsics),
        }
        self._blocks.append(row)
        self._add("blocks", row)

    def _note_publication(self, number: int, event: DataPublished, names: Mapping[tuple[int, bytes], str]) -> None:
        entry = self._clock.chains.relay_chain.broadcaster.storage.entry(event.publisher, event.key)
        row = {
            "block": number,
            "publisher": int(event.publisher),
            "key": names.get((int(event.publisher), event.key), ""),
            "hash": f"0x{event.key.hex()}",
            "valueBytes": None if entry is None else len(entry.value),
            "ttl": None if entry is None else entry.ttl,
        }
        self._publications.append(row)
        self._add("publications", row)

    def _note_proof(self, fact: BlockBuilt) -> None:
        row = {
            "reader": int(fact.para_id),
            "block": fact.block.header.number,
            "full": fact.collation.collected.proof_bytes,
            "pruned": fact.block.inherent.proof_bytes,
            "updates": len(fact.block.updates),
        }
        self._proofs.setdefault(int(fact.para_id), deque(maxlen=PROOFS_SHOWN)).append(row)
        self._add("proofs", row)

    def _add(self, kind: str, row: Json) -> None:
        """Send a row with all others of this moment: what is built in one go goes out in one event."""
        if not self._queues:
            return
        if not any(self._new.values()):
            try:
                asyncio.get_running_loop().call_soon(self._flush)
            except RuntimeError:  # nobody follows where no loop runs
                return
        self._new[kind].append(row)
        if kind == "blocks" and self._has_subscriptions:
            self._note_subscriptions()  # how far they are behind changes although nothing is delivered

    def _flush(self) -> None:
        news, self._new = self._new, {"blocks": [], "publications": [], "proofs": []}
        event = _event("news", {**news, "blockTime": self._pace()})
        for queue in tuple(self._queues):
            self._put(queue, event)

    def _pace(self) -> str:
        """Return the block time, and the one reached if blocks are late."""
        asked, reached = block_time_text(self._clock.block_time), self._clock.reached_block_time
        return asked if reached is None else f"{asked} asked, {reached:.3g}s reached"

    def _note_subscriptions(self) -> None:
        """Tell browsers of subscriptions a moment later, of everything that changed until then."""
        if self._queues and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(SUBSCRIPTIONS_SECONDS, self._tell_subscriptions)

    def _tell_subscriptions(self) -> None:
        self._is_due = False
        events = {caller: _event("subscriptions", self._subscriptions(caller)) for caller in set(self._queues.values())}
        for queue, caller in tuple(self._queues.items()):
            self._put(queue, events[caller])

    @property
    def _has_subscriptions(self) -> bool:
        return self._gateway is not None and self._faces.cloudevents

    def _look(self) -> None:
        """Tell admins' browsers what the WAMP router and the canisters do, each second in which it has changed."""
        if self._gateway is None or not any(caller.is_admin for caller in self._queues.values()):
            self._look_timer, self._told = None, {}
            return
        if self._look_timer is None or self._look_timer.when() <= asyncio.get_running_loop().time():
            self._look_timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)
            for name, found in self._views().items():
                if found != self._told.get(name):
                    self._told[name] = found
                    event = _event(name, found)
                    for queue, caller in tuple(self._queues.items()):
                        if caller.is_admin:
                            self._put(queue, event)

    def _views(self) -> dict[str, Json]:
        """Return what admins see of the faces that have a view."""
        found = {}
        if self._gateway is not None and self._gateway.router is not None:
            found["wamp"] = shown_router(self._gateway.router)
        if self._gateway is not None and self._gateway.icrc is not None:
            found["icrc"] = shown_canisters(self._gateway.icrc)
        return found

    def _subscriptions(self, caller: Caller) -> Json:
        assert self._gateway is not None
        mine = self._gateway.book.query(caller)[0]
        states = {it.id: self._gateway.deliveries.state(it.id) for it in mine}
        last_seq = self._gateway.log.last_seq
        newest = list(reversed(mine))[:SUBSCRIPTIONS_SHOWN]
        totals = {
            name: sum(getattr(state, name) for state in states.values())
            for name in ("delivered", "pending", "retries", "dead")
        }
        rows = [
            {
                "owner": it.owner,
                "protocol": it.protocol,
                "sink": it.shown()["sink"],
                **shown_state(states[it.id], last_seq),
            }
            for it in newest
        ]
        return {"count": len(mine), **totals, "rows": rows}

    def _put(self, queue: "asyncio.Queue[bytes | None]", event: bytes) -> None:
        if queue.full():
            self._end(queue)
        else:
            queue.put_nowait(event)

    def _end(self, queue: "asyncio.Queue[bytes | None]") -> None:
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)
        self._queues.pop(queue, None)

    def _snapshot(self, caller: Caller) -> Json:
        shown: Json = {"subscriptions": self._subscriptions(caller)} if self._has_subscriptions else {}
        if caller.is_admin:
            shown |= self._views()
        return {
            "blocks": list(self._blocks),
            "publications": list(self._publications),
            "proofs": [row for rows in self._proofs.values() for row in rows],
            "blockTime": self._pace(),
            **shown,
        }


def _event(name: str, data: Json) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
