"""Chains that live: a clock that lets ticks pass, and the chains behind the RPC that follow.

Law: everything happens in one thread, tick by tick. What is submitted while a tick passes waits for the next one.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from relaycast_collator import BlockBuilt, Chains, Fact, GuestBuilt, RelaySealed
from relaycast_node.block_time import BlockTime
from relaycast_node.chain.genesis import Token, serve_parachain, serve_relay_chain
from relaycast_node.chain.served_block import ServedBlock
from relaycast_node.chain.served_chain import ServedChain
from relaycast_node.chain.signal import Signal


class Live:
    """Served ``chains``, at block 0, and the ``step`` that lets one tick pass; ``name`` is part of their names.

    Chains that run code of their own come served: ``guests`` by id, and the relay chain as ``relay``.
    """

    def __init__(
        self,
        chains: Chains,
        step: Callable[[], object],
        *,
        name: str = "relaycast",
        block_time: BlockTime = "manual",
        token: Token | None = None,
        relay: ServedChain | None = None,
        guests: Mapping[int, ServedChain] | None = None,
    ) -> None:
        self.chains = chains
        self.name = name
        self.relay = relay or serve_relay_chain(chains.relay_chain, f"{name} relay", token=token)
        self.parachains: dict[int, ServedChain] = {
            int(para_id): serve_parachain(chain, f"{name} parachain {para_id}", token=token)
            for para_id, chain in chains.parachains.items()
        } | dict(guests or {})
        self.facts: Signal[Fact] = Signal()
        """Every fact, when the chains behind the RPC have taken note of it."""

        self._step = step
        self._block_time = block_time
        self._changed = asyncio.Event()
        self._noted: list[ServedBlock] = []
        chains.listeners.append(self._hear)
        for served in self.served():
            served.submitted.connect(lambda _: self._wake())

    def served(self) -> list[ServedChain]:
        """Return all chains, the relay chain first."""
        return [self.relay, *self.parachains.values()]

    @property
    def block_time(self) -> BlockTime:
        return self._block_time

    @block_time.setter
    def block_time(self, block_time: BlockTime) -> None:
        if not isinstance(block_time, str) and not block_time > 0:
            raise ValueError(f"a block time is more than 0 seconds, got {block_time}")
        self._block_time = block_time
        self._changed.set()

    def new_block(self, count: int = 1) -> list[ServedBlock]:
        """Let ``count`` ticks pass and return the blocks that were sealed in them, on all chains."""
        if count < 1:
            raise ValueError(f"at least one block is built, got {count}")
        self._noted = []
        for _ in range(count):
            self._step()
        return self._noted

    def set_storage(
        self, para_id: int | None, values: Mapping[bytes, bytes | None], *, child: bytes | None = None
    ) -> None:
        """Write values into a chain's storage: its next block seals them; ``None`` removes a key.

        ``child`` is the bare name of a child trie. ``ValueError`` for a key of the top trie that names a child trie.
        """
        (self.relay if para_id is None else self.parachains[int(para_id)]).set_storage(values, child=child)

    async def run(self) -> None:
        """Let ticks pass as the block time says, until this is cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            wait = None if isinstance(self._block_time, str) else max(0.0, due - loop.time())
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()
            if self._changed.is_set():
                self._changed.clear()
                if self._block_time == "instant" and any(it.pool.pending() for it in self.served()):
                    self.new_block()
                due = loop.time() + (0 if isinstance(self._block_time, str) else self._block_time)
                continue
            assert not isinstance(self._block_time, str), "without a period nothing is due"
            self.new_block()
            due = max(due + self._block_time, loop.time())

    def _wake(self) -> None:
        if self._block_time == "instant":
            self._changed.set()

    def _hear(self, fact: Fact) -> None:
        if isinstance(fact, RelaySealed):
            self._noted.append(self.relay.note(fact.block.header))
        elif isinstance(fact, BlockBuilt | GuestBuilt) and int(fact.para_id) in self.parachains:
            self._noted.append(self.parachains[int(fact.para_id)].note(fact.block.header))
        self.facts.emit(fact)

    def __repr__(self) -> str:
        return f"<Live {self.name} at relay block {self.relay.best.number}>"
