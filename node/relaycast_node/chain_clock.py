"""The clock of served chains: it lets ticks pass, and the chains behind the RPC follow.

Law: everything happens in one thread, tick by tick. What is submitted while a tick passes waits for the next one.
Whatever is put into the chains comes through here, so that they can go back: see ``timeline``. Between two ticks other
tasks of the event loop get their share of time, however late the clock is: see ``loop_share``.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b

from relaycast_collator import BlockBuilt, ChainSimulator, Fact, RelaySealed, WasmBlockBuilt
from relaycast_collator.header import Header
from relaycast_node.block_time import BlockTime, block_time_text
from relaycast_node.chain.exceptions import CannotGoBack, ChainsHalted, TickFailed, UnknownBlock
from relaycast_node.chain.genesis import ModelledTime, Token, serve_parachain, serve_relay_chain
from relaycast_node.chain.served_block import ServedBlock
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.chain.signal import Signal
from relaycast_node.chain_clock_dump import ChainClockDump
from relaycast_node.chains_snapshot import ChainsSnapshot, LastTick
from relaycast_node.extrinsic.extrinsic import is_bare
from relaycast_node.inputs import Published, StorageWritten, TimeMoved
from relaycast_node.journal.entries import (
    HeadEntry,
    PaceEntry,
    PublishEntry,
    RevertEntry,
    SnapshotEntry,
    StoreEntry,
    TickEntry,
    TravelEntry,
)
from relaycast_node.journal.input_log import HaltedLog, InputLog
from relaycast_node.journal.journal import NotNoted
from relaycast_node.line_rate import LineRate
from relaycast_node.loop_share import LoopShare
from relaycast_node.timed_workload import TimedWorkload
from relaycast_node.timeline import ChainId, Idle, Offers, Tick, Timeline, Workload
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import CheckpointRefused, refusing

REAL_RUNTIMES = "chains of real runtimes cannot go back"
"""Their states could, but what the runtimes keep beside them is not known here."""

MOST_SNAPSHOTS = 64
LONGEST_REASON = 300
"""Characters shown of a failed tick's error."""

log = logging.getLogger(__name__)
log.addFilter(LineRate())

PACE_BLOCKS = 16
"""Blocks over which the reached pace is measured."""

LATE = 1.1
"""Blocks that take this many times the block time are reported as late."""

LATE_LINE_SECONDS = 60.0
"""Least time between two lines about late blocks."""


class ChainClock:
    """Served ``chains``, at block 0, and what lets one tick pass: a ``step``, or a workload that can go back too.

    ``name`` is part of the chains' names. Chains that run code of their own come served: ``wasm_parachains`` by id, and
    the relay chain as ``relay``.
    """

    def __init__(
        self,
        chains: ChainSimulator,
        step: Callable[[], object] | Workload,
        *,
        name: str = "relaycast",
        block_time: BlockTime = "manual",
        token: Token | None = None,
        relay: ServedChain | None = None,
        wasm_parachains: Mapping[int, ServedChain] | None = None,
    ) -> None:
        self.chains = chains
        self.name = name
        self.time = ModelledTime()
        self.relay = relay or serve_relay_chain(chains.relay_chain, f"{name} relay", token=token, time=self.time)
        self.parachains: dict[int, ServedChain] = {
            int(para_id): serve_parachain(chain, f"{name} parachain {para_id}", token=token, time=self.time)
            for para_id, chain in chains.parachains.items()
        } | dict(wasm_parachains or {})
        self.facts: Signal[Fact] = Signal()
        """Emits every fact of a tick, in order, once the tick is complete; facts of a failed tick are never emitted."""

        self.ticks: Signal[Tick] = Signal()
        """The tick that passed last, after each one that passes and each move to an earlier one."""

        self.taken_back: Signal[Tick] = Signal()
        """The last completed tick, after a failed one and until ``ticks`` reports it."""

        self.halted: str | None = None
        """Why the chains build no block until the next start, else ``None``."""

        self.paused: str | None = None
        """Why the clock waits for an input (a tick without new input failed), else ``None``."""

        self._log = InputLog()
        self._block_time = block_time
        self._changed = asyncio.Event()
        self._share = LoopShare()
        self._built_at: deque[float] = deque(maxlen=PACE_BLOCKS + 1)
        self._late_line_at: float | None = None
        self._noted: list[ServedBlock] = []
        self._facts: list[Fact] = []
        self._snapshots: dict[int, ChainsSnapshot | None] = {}
        self._snapshot_count = 0
        workload = Idle(step) if callable(step) else step
        refusal = REAL_RUNTIMES if wasm_parachains or relay is not None else None
        self._timeline = Timeline(chains, TimedWorkload(workload, self.time), self._heads, refusal=refusal)
        self._offers: dict[ChainId, Offers] = {}
        for chain in self.served():
            if refusal is None:
                self._follow_timeline(chain)
            chain.submitted.connect(lambda _: self._wake())
        self.log = self._log
        self._last = self._stand()
        chains.listeners.append(self._on_fact)

    def _follow_timeline(self, chain: ServedChain) -> None:
        """Let a chain build blocks again from what they held; a parachain's are final with the relay chain's."""
        offers = self._offers[chain.para_id] = Offers(self._timeline, chain.para_id, chain.pool.pending)
        chain.contents.ready = offers.offer
        if chain is not self.relay:
            chain.most_final = lambda: self._final_with_relay(chain)

    @property
    def listener_failures(self) -> int:
        """The number of failed listeners of these signals and of those of all chains."""
        own = (self.facts, self.ticks, self.taken_back)
        return sum(it.failures for it in own) + sum(chain.listener_failures for chain in self.served())

    def served(self) -> list[ServedChain]:
        """Return all chains, the relay chain first."""
        return [self.relay, *self.parachains.values()]

    def chain(self, para_id: int | None) -> ServedChain:
        """Return a parachain, or the relay chain; ``KeyError`` for a parachain that is not here."""
        return self.relay if para_id is None else self.parachains[int(para_id)]

    @property
    def log(self) -> InputLog:
        """What notes every input, of all chains."""
        return self._log

    @log.setter
    def log(self, log: InputLog) -> None:
        self._log = log
        for chain in self.served():
            chain.log = log

    @property
    def block_time(self) -> BlockTime:
        return self._block_time

    @block_time.setter
    def block_time(self, block_time: BlockTime) -> None:
        if not isinstance(block_time, str) and not block_time > 0:
            raise ValueError(f"a block time is more than 0 seconds, got {block_time}")
        self._log.note(PaceEntry(block_time))
        self._block_time, self.paused = block_time, None
        self._changed.set()

    def start_at(self, block_time: BlockTime) -> None:
        """Set the block time of this start; it is not recorded as an input."""
        self._block_time = block_time
        self._last = replace(self._last, block_time=block_time)

    def new_block(self, count: int = 1) -> list[ServedBlock]:
        """Run ``count`` ticks and return the blocks that were sealed in them, on all chains.

        Raises ``TickFailed`` for one that fails: it is rolled back with the inputs since the tick before it.
        """
        if count < 1:
            raise ValueError(f"at least one block is built, got {count}")
        self._noted = []
        for _ in range(count):
            self._pass_tick()
        return self._noted

    async def build(self) -> list[ServedBlock]:
        """Run one tick like ``new_block``, after other tasks of the event loop had their share of time."""
        async with self._share.piece(in_a_hurry=True):
            return self.new_block()

    def _pass_tick(self) -> None:
        self._log.note(TickEntry())
        try:
            self._timeline.pass_tick(self._is_final)
        except Exception as error:
            raise self._take_back(error) from error
        for it in self.served():
            it.finalize()
        self._log.tick_done(self.heads_digest())
        self._last = self._stand()
        self._resume()
        facts, self._facts = self._facts, []
        for fact in facts:
            self.facts.emit(fact)
        self.ticks.emit(self._timeline.now)

    def _stand(self) -> LastTick:
        """Return a snapshot after the completed tick."""
        served = self.served()
        return LastTick(
            None if self._timeline.refusal is not None else self._timeline.moment(),
            self._heads(),
            {it.para_id: it.finalized.number for it in served},
            {it.para_id: (*it.pool.pending(), *it.pool.futures()) for it in served},
            {it.para_id: dict(it.pool.bans) for it in served},
            dict(self._snapshots),
            self._snapshot_count,
            self._block_time,
        )

    def _take_back(self, error: Exception) -> TickFailed:
        """Restore the snapshot after the last completed tick; return the error for the caller.

        Chains that cannot be rolled back halt.
        """
        last, head = self._last, self.relay.block(self._last.heads[None])
        assert head is not None, "the blocks of the last tick are kept"
        failed_at, reason = head.number + 1, _reason_of(error)
        log.debug("relay block %d failed", failed_at, exc_info=error)
        self._facts.clear()
        failed = TickFailed(failed_at, reason, self._log.drop(failed_at, reason), self._log.kept_aside)
        try:
            if last.moment is None:
                raise CannotGoBack(self._timeline.refusal or REAL_RUNTIMES)
            self._timeline.go_to(last.moment)
        except Exception as problem:
            log.debug("the chains cannot go back", exc_info=problem)
            self._halt(f"{failed}; the chains are halted until the next start, since they cannot be taken back there")
        for it in self.served():
            name = it.para_id
            it.take_back(last.heads[name], last.finalized[name], last.waiting[name], last.bans[name])
        self._snapshots, self._snapshot_count = dict(last.snapshots), last.snapshot_count
        if self._block_time != last.block_time:
            self._block_time = last.block_time
            self._changed.set()
        log.warning("%s", self.halted or failed)
        self.taken_back.emit(self._timeline.now)
        self.ticks.emit(self._timeline.now)
        return failed

    def _halt(self, reason: str) -> None:
        self.halted = reason
        self.log = HaltedLog(reason, self._log.position)

    def _resume(self) -> None:
        """Start the clock again if it was waiting for an input."""
        if self.paused is not None:
            self.paused = None
            self._changed.set()

    def heads_digest(self) -> bytes:
        """Return a digest of all chains' newest blocks, 16 bytes."""
        return blake2b(b"".join(self._heads().values()), digest_size=16).digest()

    def set_storage(
        self,
        para_id: int | None,
        values: Mapping[bytes, bytes | None],
        *,
        child: bytes | None = None,
        is_checked: bool = False,
    ) -> None:
        """Write values into a chain's storage: its next block seals them; ``None`` removes a key.

        ``child`` is the bare name of a child trie. ``ValueError`` for entries that no block can hold or the
        chain's code cannot read, see ``ServedChain.check_storage``; checked values are not checked again.
        """
        chain = self.chain(para_id)
        if not is_checked:
            chain.check_storage(values, child=child)
        with self._log.noting(StoreEntry(chain.number_in_entries, list(values.items()), child)):
            self._timeline.put(StorageWritten(chain, values, child))
        self._resume()

    def publish(self, para_id: int, key: bytes, value: bytes, *, ttl: int = 0) -> None:
        """Let a modelled parachain publish with its next block; ``ValueError`` for what cannot be published."""
        parachain = self.chains.parachains[ParaId(para_id)]
        with self._log.noting(PublishEntry(int(para_id), key, value, ttl)):
            self._timeline.put(Published(parachain, key, value, ttl))
        self._resume()

    def travel(self, milliseconds: int) -> None:
        """Let the relay chain's next block be of this time, since 1970, and all later blocks accordingly.

        ``CannotGoBack`` for a time before the one that it has anyway.
        """
        self._ensure_modelled()
        least = self.time.of_block(self.relay.best.number + 1)
        if milliseconds < least:
            raise CannotGoBack(f"the next block's time is {least} ms, {milliseconds} ms is before that")
        with self._log.noting(TravelEntry(milliseconds)):
            self._timeline.put(TimeMoved(self.time, self.time.offset + milliseconds - least))
        self._resume()

    def set_head(self, chain: ServedChain, block_hash: bytes) -> ServedBlock:
        """Make a kept block the newest of its chain, and return it; all other chains go where they stood then.

        What waits for the next block is lost, but for extrinsics; those that return to the pool bring no block by
        themselves, with ``instant`` neither. ``UnknownBlock`` for a block that is not kept, ``CannotGoBack`` for one
        that finalized blocks of any chain do not allow.
        """
        self._ensure_modelled()
        block = chain.block(block_hash)
        if block is None:
            raise UnknownBlock(block_hash)
        if not chain.may_be_best(block):
            final = chain.finalized.number
            raise CannotGoBack(f"block {block.number} does not descend from the finalized block {final}")
        tick = next(filter(self._may_return, self._timeline.with_head(chain.para_id, block_hash)), None)
        if tick is None:
            raise CannotGoBack(
                f"block {block.number}: the chains never stood there together since a block became final"
            )
        self._log.note(HeadEntry(chain.number_in_entries, block_hash))
        self._timeline.go_to(self._timeline.moment(tick))
        for it in self.served():
            it.move(tick.heads[it.para_id])
        self._resume()
        self.ticks.emit(self._timeline.now)
        return block

    def snapshot(self) -> int:
        """Keep where all chains stand, with their pools, and return the number of this snapshot."""
        self._ensure_modelled()
        if len(self._snapshots) >= MOST_SNAPSHOTS:
            raise CannotGoBack(f"{MOST_SNAPSHOTS} snapshots are kept already, revert to one of them")
        self._log.note(SnapshotEntry())
        self._snapshot_count += 1
        self._snapshots[self._snapshot_count] = ChainsSnapshot(
            self._timeline.moment(),
            {it.para_id: it.finalized.number for it in self.served()},
            {it.para_id: (*it.pool.pending(), *it.pool.futures()) for it in self.served()},
        )
        return self._snapshot_count

    def revert(self, number: int) -> None:
        """Let all chains stand where they stood at a snapshot; it and later ones are gone then.

        ``KeyError`` for a number that no snapshot has, ``CannotGoBack`` where its blocks are no longer kept.
        """
        kept = self._snapshots[number]
        if kept is None or not self._keeps(kept):
            raise CannotGoBack(f"the blocks of snapshot {number} are no longer kept")
        heads = kept.moment.tick.heads
        self._log.note(RevertEntry(number))
        self._timeline.go_to(kept.moment)
        for it in self.served():
            it.rewind(heads[it.para_id], kept.finalized[it.para_id], kept.waiting[it.para_id])
        self._snapshots = {it: snapshot for it, snapshot in self._snapshots.items() if it < number}
        self._resume()
        self.ticks.emit(self._timeline.now)

    def _keeps(self, kept: ChainsSnapshot) -> bool:
        heads = kept.moment.tick.heads
        return all(it.keeps(heads[it.para_id], finalized=kept.finalized[it.para_id]) for it in self.served())

    @property
    def snapshots(self) -> list[int]:
        """Return the numbers of the snapshots."""
        return list(self._snapshots)

    def came_through(self, tick: Tick) -> bool:
        """Return whether the chains stand behind a tick that they stood at before, and not on another branch."""
        return self._timeline.came_through(tick)

    def dump(self) -> ChainClockDump:
        """Return where all chains stand, without the blocks before; ``ValueError`` where that cannot be put away.

        That is so while something waits for the next block, and for chains of real runtimes.
        """
        if self._timeline.pending:
            raise ValueError("something waits for the next block")
        served = [it.dump() for it in self.served()]
        point = self._timeline.take()
        return ChainClockDump(
            point.chains, point.workload, served, list(self._snapshots), self._snapshot_count, self._block_time
        )

    def load(self, dump: ChainClockDump) -> None:
        """Stand where chains stood that were made like these; raises ``CheckpointRefused``.

        Blocks before that are not kept, so that there is no way to its snapshots.
        """
        with refusing("the served chains"):
            self._timeline.load(dump.chains, dump.workload)
            for it, its_dump in zip(self.served(), dump.served, strict=True):
                it.load(its_dump)
            if self._heads() != self._timeline.now.heads:
                raise CheckpointRefused("other blocks than the chains have")
        self._snapshots = dict.fromkeys(dump.snapshots)
        self._snapshot_count = dump.snapshot_count
        self._block_time = dump.block_time
        self._last = self._stand()

    def _ensure_modelled(self) -> None:
        if self._timeline.refusal is not None:
            raise CannotGoBack(self._timeline.refusal)

    def _heads(self) -> dict[ChainId, bytes]:
        return {it.para_id: it.best.hash for it in self.served()}

    def _is_final(self, tick: Tick) -> bool:
        block = self.relay.block(tick.heads[None])
        if block is None or block.number > self.relay.finalized.number:
            return False
        return self.relay.hash_of(block.number) == block.hash

    def _may_return(self, tick: Tick) -> bool:
        blocks = [(it, it.block(tick.heads[it.para_id])) for it in self.served()]
        return all(block is not None and it.may_be_best(block) for it, block in blocks)

    def _final_with_relay(self, chain: ServedChain) -> int:
        """Return the number of a parachain's newest block when the relay chain's finalized block was built."""
        tick = self._timeline.at(self.relay.finalized.hash)
        block = None if tick is None else chain.block(tick.heads[chain.para_id])
        return chain.best.number if block is None else block.number

    async def run(self) -> None:
        """Run ticks at the block time, until cancelled.

        After a tick that took time t, the next one starts at least t later, so that other tasks of the event loop get
        half of the time. Late ticks are not made up for. The log reports late blocks.
        """
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            is_waiting = isinstance(self._block_time, str) or self.paused is not None or self.halted is not None
            wait = None if is_waiting else max(0.0, due - loop.time())
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            if self._changed.is_set():
                self._changed.clear()
                self._built_at.clear()
                if self._block_time == "instant" and self.paused is None and self._has_pending():
                    async with self._share.piece(in_a_hurry=True):
                        self._tick_by_clock()
                due = loop.time() + (0 if isinstance(self._block_time, str) else self._block_time)
                continue
            assert not isinstance(self._block_time, str), "without a period nothing is due"
            async with self._share.piece():
                if self._changed.is_set():  # while the tick waited for its turn
                    continue
                self._tick_by_clock()
            if self._changed.is_set():  # the tick was rolled back, and the block time with it
                continue
            due = max(due + self._block_time, loop.time())
            self._built_at.append(loop.time())
            self._tell_late_pace()

    @property
    def reached_block_time(self) -> float | None:
        """Seconds between the newest blocks of the clock, if they are late."""
        if isinstance(self._block_time, str) or len(self._built_at) <= PACE_BLOCKS:
            return None
        reached = (self._built_at[-1] - self._built_at[0]) / PACE_BLOCKS
        return reached if reached > LATE * self._block_time else None

    def _tell_late_pace(self) -> None:
        reached, now = self.reached_block_time, self._built_at[-1]
        if reached is None or (self._late_line_at is not None and now < self._late_line_at + LATE_LINE_SECONDS):
            return
        self._late_line_at = now
        log.warning(
            "block time: expected a block every %s, got one every %.3gs over the last %d blocks",
            block_time_text(self._block_time),
            reached,
            PACE_BLOCKS,
        )

    def _has_pending(self) -> bool:
        return any(it.pool.pending() for it in self.served())

    def _tick_by_clock(self) -> None:
        """Run a tick; if one without new input fails, it would fail again, so the clock waits for an input."""
        try:
            self.new_block()
        except TickFailed as failed:
            if not failed.dropped and self.halted is None:
                self.paused = str(failed)
                log.warning("the clock waits for an input, such as dev_setStorage or dev_revert")
        except (ChainsHalted, NotNoted) as refusal:
            log.warning("no block by the clock: %s", refusal)

    def _wake(self) -> None:
        self._resume()
        if self._block_time == "instant":
            self._changed.set()

    def _on_fact(self, fact: Fact) -> None:
        if isinstance(fact, RelaySealed):
            self._note(self.relay, fact.block.header)
        elif isinstance(fact, BlockBuilt | WasmBlockBuilt) and int(fact.para_id) in self.parachains:
            self._note(self.parachains[int(fact.para_id)], fact.block.header)
        self._facts.append(fact)

    def _note(self, chain: ServedChain, header: Header) -> None:
        block = chain.note(header)
        self._noted.append(block)
        if chain.para_id in self._offers:
            self._offers[chain.para_id].took(it for it in block.extrinsics if not is_bare(it))

    def __repr__(self) -> str:
        return f"<ChainClock {self.name} at relay block {self.relay.best.number}>"


def _reason_of(error: Exception) -> str:
    """Return an exception's text in one line, with its type unless it is from relaycast."""
    text = " ".join(str(error).split())
    named = text if text and type(error).__module__.startswith("relaycast") else f"{type(error).__name__}: {text}"
    return named[:LONGEST_REASON]
