"""The ticks of served chains as a tree, and the way back to one of them.

Law: everything that chains do follows from where they began, from what was put in before each tick, and from the
extrinsics in their blocks. To go back, the chains load the last checkpoint before that tick and repeat the ticks after
it, without listeners. The blocks that come out are the same bytes. A checkpoint is taken every
``TICKS_OF_A_CHECKPOINT`` ticks, so that this takes a second at most.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from relaycast_collator import ChainSimulator
from relaycast_collator.chains import ChainsDump
from relaycast_collator.relay_chain import Call

TICKS_OF_A_CHECKPOINT = 64

ChainId = int | None
"""A parachain, or the relay chain."""


class Input(Protocol):
    """What somebody puts into chains between two ticks, beside extrinsics."""

    def apply(self) -> None:
        """Put it in; it was checked before."""
        ...


class Workload(Protocol):
    """What lets ticks pass and does something in them by itself."""

    def step(self) -> object:
        """Let one tick pass."""
        ...

    def dump(self) -> Any:
        """Return how far it is, between two ticks, beside the chains; ``ValueError`` where that cannot be put away."""
        ...

    def load(self, dump: Any, /) -> None:
        """Stand where it stood when this was dumped."""
        ...


class Idle:
    """Lets ticks of ``chains`` pass and does nothing in them."""

    def __init__(self, step: Callable[[], object]) -> None:
        self.step = step

    def dump(self) -> None:
        return None

    def load(self, _dump: None, /) -> None:
        return None


@dataclass(eq=False, slots=True)
class Tick:
    """One tick that passed: what was put in before it, and, for each chain, the extrinsics of its blocks in order.

    ``heads`` are the hashes of the chains' blocks after it.
    """

    number: int
    parent: "Tick | None"
    inputs: tuple[Input, ...] = ()
    extrinsics: dict[ChainId, list[tuple[bytes, ...]]] = field(default_factory=dict)
    heads: dict[ChainId, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where chains and workload stood after a tick, with nothing put in since; ``calls`` wait for the next one."""

    tick: Tick
    chains: ChainsDump
    workload: Any
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class TimelinePoint:
    """A tick, the checkpoint before it with the ticks between, and what was put in since."""

    checkpoint: Checkpoint
    ticks: tuple[Tick, ...]
    inputs: tuple[Input, ...]

    @property
    def tick(self) -> Tick:
        return self.ticks[-1] if self.ticks else self.checkpoint.tick


class Timeline:
    """The ticks of ``chains`` from now on; ``heads`` gives the hash of the newest block of each."""

    def __init__(
        self,
        chains: ChainSimulator,
        workload: Workload,
        heads: Callable[[], dict[ChainId, bytes]],
        *,
        refusal: str | None = None,
    ) -> None:
        self.refusal = refusal
        """Why these chains cannot go back now; ``None`` where they can."""

        self.replayed: Tick | None = None
        """The tick that passes again; ``None`` while one passes for the first time."""

        self._never = refusal is not None
        self._chains = chains
        self._workload = workload
        self._heads = heads
        self._again: Counter[ChainId] = Counter()
        self._inputs: list[Input] = []
        self._tick = Tick(chains.tick, None, heads=heads())
        self._ticks = {self._tick: None}
        self._by_relay_block = {self._tick.heads[None]: self._tick}
        self._checkpoint: Checkpoint | None = None
        self._checkpoint = self._next = self._taken()

    @property
    def now(self) -> Tick:
        """The tick that passed last."""
        return self._tick

    @property
    def pending(self) -> Sequence[Input]:
        """What was put in since."""
        return self._inputs

    def put(self, given: Input) -> None:
        """Put something in."""
        given.apply()
        self._inputs.append(given)

    def pass_tick(self, is_final: Callable[[Tick], bool]) -> None:
        """Let one tick pass; ``is_final`` says of a tick whether the relay chain cannot go back before it."""
        tick = Tick(self._chains.tick + 1, self._tick, tuple(self._inputs))
        self._tick, former = tick, self._tick
        try:
            self._workload.step()
        except BaseException:
            self._tick = former
            raise
        self._inputs.clear()
        tick.heads = self._heads()
        self._keep(tick)
        if self._checkpoint is None or self._next is None:
            self._checkpoint = self._next = self._taken()
            if self._checkpoint is not None:
                self._begin_at(self._checkpoint)
            return
        if self._next.tick.number + TICKS_OF_A_CHECKPOINT <= tick.number:
            self._next = self._taken() or self._next
        if self._next is not self._checkpoint and is_final(self._next.tick):
            self._checkpoint = self._next
            self._begin_at(self._checkpoint)

    def _begin_at(self, checkpoint: Checkpoint) -> None:
        """Forget the ticks before a checkpoint."""
        first = checkpoint.tick
        first.parent = None
        self._ticks = {tick: None for tick in self._ticks if tick.number >= first.number}
        self._by_relay_block = {it: tick for it, tick in self._by_relay_block.items() if tick.number >= first.number}

    def _keep(self, tick: Tick) -> None:
        self._ticks[tick] = None
        self._by_relay_block[tick.heads[None]] = tick

    def came_through(self, tick: Tick) -> bool:
        """Return whether the tick that passed last is this one or follows it.

        Every tick that the chains can go back to follows those before the checkpoint.
        """
        now: Tick | None = self._tick
        while now is not None and now.number > tick.number:
            now = now.parent
        return now is None or now is tick

    def load(self, chains: ChainsDump, workload: Any) -> None:
        """Let chains and workload stand where others stood after a tick; nothing before that is known."""
        with self._nobody_listening():
            self._chains.load(chains)
            self._workload.load(workload)
        self._tick = Tick(self._chains.tick, None, heads=self._heads_built())
        self._ticks = {self._tick: None}
        self._by_relay_block = {self._tick.heads[None]: self._tick}
        self._inputs = []
        self._checkpoint = self._next = Checkpoint(self._tick, chains, workload)
        self.refusal = None

    def at(self, relay_block: bytes) -> Tick | None:
        """Return the tick after which a relay block was the newest, if it is not before the checkpoint.

        Where several were, since parachains built other blocks beside it, that is the one the chains came through last.
        """
        return self._by_relay_block.get(relay_block)

    def with_head(self, chain: ChainId, block_hash: bytes) -> Iterator[Tick]:
        """Yield the ticks after which a block was its chain's newest, those of the best branch first."""
        mine, tick = dict[Tick, None](), self._tick
        while True:
            mine[tick] = None
            if tick.parent is None:
                break
            tick = tick.parent
        others = (it for it in reversed(self._ticks) if it not in mine)
        for tick in (*mine, *others):
            if tick.heads.get(chain) == block_hash and self._way_to(tick) is not None:
                yield tick

    def moment(self, tick: Tick | None = None) -> TimelinePoint:
        """Return where the chains stand, or, for a ``tick`` after the checkpoint, where they stood after it."""
        way = self._way_to(tick or self._tick)
        assert self._checkpoint is not None, "asked where there is no refusal"
        assert way is not None, "a tick to go back to follows the checkpoint"
        return TimelinePoint(self._checkpoint, way, () if tick else tuple(self._inputs))

    def _way_to(self, tick: Tick) -> tuple[Tick, ...] | None:
        """Return the ticks after the checkpoint up to this one; ``None`` for one that does not follow it."""
        ticks: list[Tick] = []
        while self._checkpoint is not None and tick is not self._checkpoint.tick:
            ticks.append(tick)
            if tick.parent is None:
                return None
            tick = tick.parent
        return tuple(reversed(ticks))

    def go_to(self, moment: TimelinePoint) -> None:
        """Let chains and workload stand where they stood at a moment."""
        with self._nobody_listening():
            self._chains.load(moment.checkpoint.chains, moment.checkpoint.calls)
            self._workload.load(moment.checkpoint.workload)
            self._tick = moment.checkpoint.tick
            for tick in moment.ticks:
                for given in tick.inputs:
                    given.apply()
                tick.parent = self._tick  # a later checkpoint may have cut it
                self._tick = self.replayed = tick
                self._again.clear()
                self._workload.step()
                assert self._heads_built() == tick.heads, "the blocks that come out are the same"
        self._checkpoint = self._next = moment.checkpoint
        for tick in (moment.checkpoint.tick, *moment.ticks):
            self._keep(tick)
        self._inputs = []
        for given in moment.inputs:
            self.put(given)

    def extrinsics_again(self, chain: ChainId) -> tuple[bytes, ...]:
        """Return the extrinsics of the next block that a chain builds again."""
        self._again[chain] += 1
        return self._tick.extrinsics[chain][self._again[chain] - 1]

    def _heads_built(self) -> dict[ChainId, bytes]:
        """Return the newest block of each chain as the chains themselves have it."""
        built: dict[ChainId, bytes] = {None: self._chains.relay_chain.head.hash}
        built.update((int(para_id), chain.head.hash) for para_id, chain in self._chains.parachains.items())
        return built

    @contextmanager
    def _nobody_listening(self) -> Iterator[None]:
        listeners, self._chains.listeners = self._chains.listeners, []
        try:
            yield
        finally:
            self._chains.listeners = listeners
            self.replayed = None

    def take(self) -> Checkpoint:
        """Return a checkpoint of now; ``ValueError`` for chains that never can or that wait for a call."""
        if self._never:
            raise ValueError(self.refusal)
        return Checkpoint(self._tick, self._chains.dump(), self._workload.dump())

    def _taken(self) -> Checkpoint | None:
        """Return a checkpoint of now, ``None`` where none can be taken; without an earlier one there is no way back."""
        if self._never:
            return None
        calls = self._chains.waiting_calls  # those of the set-up, before the first tick
        try:
            taken = Checkpoint(self._tick, self._chains.dump(calls_apart=True), self._workload.dump(), calls)
        except ValueError as error:
            if self._checkpoint is None:
                self.refusal = f"the chains cannot go back before the next block: {error}"
            return None
        self.refusal = None
        return taken


class Offers:
    """What one chain's blocks are filled with: the pool's ready extrinsics, or, again, those that they held before."""

    def __init__(self, timeline: Timeline, chain: ChainId, ready: Callable[[], Iterable[bytes]]) -> None:
        self._timeline = timeline
        self._chain = chain
        self._ready = ready

    def offer(self) -> Iterable[bytes]:
        """Return what the next block may hold."""
        if self._timeline.replayed is not None:
            return self._timeline.extrinsics_again(self._chain)
        self._timeline.now.extrinsics.setdefault(self._chain, []).append(())
        return self._ready()

    def took(self, extrinsics: Iterable[bytes]) -> None:
        """Note what the block that was built last holds of them."""
        self._timeline.now.extrinsics[self._chain][-1] = tuple(extrinsics)
