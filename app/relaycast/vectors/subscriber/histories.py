"""Vectors of random histories: small networks that go on for some blocks, each block a vector.

Publishers write, delete and come back; subscriptions change; calls clear and enable; budgets, seeds and crowded blocks
are drawn. Each vector names the invariant that its block shows most of.
"""

from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_vector import BlockVector, PalletCall
from relaycast.vectors.subscriber.budget_scenarios import of_bytes
from relaycast.vectors.subscriber.small_network import (
    ALPHA,
    AMPLE,
    OTHER_PUBLIC,
    PUBLIC,
    SMALL,
    About,
    SmallNetwork,
    path_key,
)
from relaycast.vectors.vector import VectorSource
from relaycast_xcm.primitives import ParaId, Weight

HISTORIES = 48
CRAFTED = [path_key(first + second + third) for first in "01" for second in ("00", "01", "10") for third in "01f"]
"""Keys whose paths part late, in every other way: a key that comes or goes moves the others up or down."""

INVARIANTS = {
    1: "both modes read, consume and stop alike",
    3: "a pass that is cut short loses no update: it remembers how far it came",
    4: "no callback without a change",
    6: "after a complete pass the cache is exactly the structure of the subscribed paths",
    8: "a publisher that is too deep harms no other",
}


class History:
    """One network, its publishers, and the draw that moves it."""

    def __init__(self, name: str, seed: int, *, policies: Mapping[str, str] = MappingProxyType({})) -> None:
        self.name = name
        self.draw = Random(f"{seed} {name}")  # noqa: S311 - to be drawn again
        depth = self.draw.choice([8, 8, 8, 3])
        self.network = SmallNetwork(
            config=replace(SMALL, max_trie_depth=depth, max_value_length=128), policies=policies
        )
        self.publishers = self.draw.sample([ALPHA, PUBLIC, OTHER_PUBLIC], self.draw.choice([1, 1, 1, 2]))
        self.stock = self.draw.sample(CRAFTED, 7)
        for publisher in self.publishers:
            self.network.subscribe(publisher, self.draw.sample(self.stock, self.draw.randint(1, 3)))
            self.network.publish(publisher, self.draw.sample(self.stock, 5), self._value())

    def blocks(self) -> Iterator[BlockVector]:
        for number in range(self.draw.randint(5, 8)):
            if number:
                self._move()
            vector = self.network.block(
                About(f"histories/{self.name}/{number}", "", VectorSource(invariant=1)),
                budget=self._budget(),
                seed=self.draw.randbytes(2),
                crowded=self.draw.random() < 0.25,
                calls=self._calls(),
            )
            invariant = _shown_by(vector)
            why = f"random history {self.name}: {INVARIANTS[invariant]}"
            yield replace(vector, why=why, source=VectorSource(invariant=invariant))

    def _value(self) -> bytes:
        return self.draw.randbytes(1) * self.draw.choice([0, 5, 23, 24, 40])

    def _budget(self) -> Weight:
        return self.draw.choice([of_bytes(self.draw.randint(0, 800)), of_bytes(self.draw.randint(100, 500)), AMPLE])

    def _move(self) -> None:
        """Let a few things happen on either chain."""
        draw, network = self.draw, self.network
        for publisher in self.publishers:
            chance = draw.random()
            if chance < 0.5:
                network.publish(
                    publisher, draw.sample(self.stock, draw.randint(1, 3)), self._value(), ttl=draw.choice([0, 1, 9])
                )
            elif chance < 0.65:
                network.delete(publisher, draw.sample(self.stock, 2))
            elif chance < 0.7:
                network.delete(publisher, self.stock)
        if draw.random() < 0.3:
            self._change_subscription(draw.choice(self.publishers))

    def _change_subscription(self, publisher: ParaId) -> None:
        held = dict(self.network.wanted).get(publisher, [])
        some = self.draw.sample(self.stock, self.draw.randint(1, 2))
        self.network.subscribe(publisher, self.draw.choice([[*held, *some], some, [], held[1:]]))

    def _calls(self) -> list[PalletCall]:
        if self.draw.random() < 0.85:
            return []
        name = self.draw.choice(["clear_stored_roots", "clear_publisher_cache", "enable_publisher"])
        return [(name, int(self.draw.choice(self.publishers)))]


def _shown_by(vector: BlockVector) -> int:
    """Return the number of the invariant that a block shows most of."""
    expect = vector.expect
    events = expect.events or ()
    if any(event.startswith("0x04") for event in events):
        return 8
    if not expect.complete:
        return 3
    if not expect.callbacks:
        return 4
    return 6 if expect.after != vector.before else 1


def history_vectors(seed: int) -> Iterator[BlockVector]:
    """Yield the blocks of all random histories."""
    for number in range(HISTORIES):
        yield from History(f"{number:02}", seed).blocks()
