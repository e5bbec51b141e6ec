"""Mutants of the kernel that walks two tries side by side: the specification notices each of them.

A process of its own runs this where numba compiles nothing. A mutant is a passage of the kernel that is another one. It
walks the blocks that ship with the specification, and blocks of random networks that the specification computes, too.
What only a pass shows, its reads in their order and why it stopped, is compared with the plain one. What is printed
names the mutants, each with what noticed it.
"""

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec
from msgspec.structs import replace

from pallets import block_vectors
from pallets.block_vectors import (
    ALPHA,
    AMPLE,
    About,
    BlockVector,
    SmallNetwork,
    cut_short,
    expectation_of,
    honest_vector,
    key,
    keys,
    of_bytes,
    path_key,
    prune,
)
from pallets.subscriber_world import World
from pallets.test_array_walk import found
from pallets.test_array_walk import told as told_by
from relaycast_pallets import State, SubscribedKey
from relaycast_pallets.subscriber import array_walk
from relaycast_spec.vectors import kind_of, mismatches, shipped, vectors_in
from relaycast_trie.array import side_by_side
from relaycast_trie.engine import Engine
from relaycast_trie.kernels import side_by_side as kernel
from relaycast_xcm.primitives import Weight
from spec.test_random_networks import History
from vector_fields import VectorSource, VectorWeight

SOURCE = Path(kernel.__file__).read_text()
SEEDS = 12


class Mutant(NamedTuple):
    """A passage of the kernel that is another one."""

    line: str
    other: str


MORE = """
def _slot(walk, source, at):
    return look_up(walk.given_hashes, walk.given_table, len(walk.given_table) - 1, walk.data[source], at)
"""
"""What mutants call."""

PRICE = "row = min(size, walk.prices.shape[1] - 1)"
FITS = "if time > walk.allowed[0] or proof > walk.allowed[1]:"
KEY_UNDER_WORK = "continue\n        state[KEY_AT] = low\n"
KEY_OF_A_LEAF = "low = first\n            state[KEY_AT] = low"
BOTH_SIDES = "for row in range(2):\n                if not (reads_old if row"
WAY = "way = MOST_CHILDREN - 1 - back"
ABSENT = "if node < 0 or not walk.live[node]:"
ADMITTED = "if asked != ADMIT and asks:"
UNSEEN = "_place(walk, out, LOST, low, depth, source + MISSING, at)"
NOWHERE_BELOW = "_lead(frames, _push(frames, state, low, high, frame) + side, NOWHERE, 0, 0, 0, 0, 0)\n        return"
SHARED = "shared[key] = both"
FIRST_KEY = "int64(walk.shared[key]) >= depth"
DEEPEST = "frame[side + ABOVE] == most_above"
ABOVE_ONE = "frame[side + ABOVE] + int64(frame[side + SIZE] == 32)"

MUTANTS = {
    "charge: a read is priced as one a byte longer": Mutant(PRICE, PRICE.replace("size,", "size + 1,")),
    "charge: a read is priced as one a byte shorter": Mutant(PRICE, PRICE.replace("size,", "max(size - 1, 0),")),
    "charge: the cap is a byte lower": Mutant(PRICE, PRICE.replace("- 1", "- 2")),
    "charge: time must be left": Mutant(FITS, FITS.replace("time >", "time >=")),
    "charge: bytes must be left": Mutant(FITS, FITS.replace("proof >", "proof >=")),
    "charge: time is no limit": Mutant(FITS, "if proof > walk.allowed[1]:"),
    "charge: bytes are no limit": Mutant(FITS, "if time > walk.allowed[0]:"),
    "charge: time is not taken": Mutant("walk.allowed[0] -= time", "pass"),
    "charge: bytes are not taken": Mutant("walk.allowed[1] -= proof", "pass"),
    "charge: a node has the price of a value": Mutant("_take(walk, NODE, source", "_take(walk, VALUE, source"),
    "charge: a value has the price of a node": Mutant("_take(walk, VALUE, source", "_take(walk, NODE, source"),
    "charge: a kept node has the price of a value": Mutant("_pay(walk, KEPT_NODE", "_pay(walk, VALUE"),
    "charge: a given node is paid for each time": Mutant("walk.used[node] = 1", "pass"),
    "charge: a kept node is paid for each time": Mutant("walk.met[node] = 1", "pass"),
    "charge: a given node is free": Mutant("if not walk.used[node]:", "if what == VALUE and not walk.used[node]:"),
    "charge: a kept node is free": Mutant("if not walk.met[node]:", "if False:"),
    "order: the old node is read before the new one": Mutant(BOTH_SIDES, BOTH_SIDES.replace("range(2)", "(1, 0)")),
    "order: the last way is walked first": Mutant(WAY, "way = back"),
    "order: the proof comes before the cache": Mutant(ABSENT, f"{ABSENT[:-1]} or _slot(walk, source, at) >= 0:"),
    "order: a node that went is still kept": Mutant(ABSENT, "if node < 0:"),
    "order: no callback is admitted": Mutant(ADMITTED, "if False:"),
    "stop: a key late": Mutant(KEY_UNDER_WORK, KEY_UNDER_WORK.replace("= low", "= min(low + 1, high - 1)")),
    "stop: a key early": Mutant(KEY_UNDER_WORK, KEY_UNDER_WORK.replace("= low", "= max(low - 1, 0)")),
    "stop: at the first key of a range that leads to a leaf": Mutant(KEY_OF_A_LEAF, "low = first"),
    "prefix: an old node that is not kept is not noted": Mutant(UNSEEN, "pass"),
    "prefix: an old node that is not kept is noted as kept": Mutant(
        UNSEEN, "_place(walk, out, LOST, low, depth, int64(KEPT), int64(0))"
    ),
    "prefix: below an old node that is not kept all is as it was": Mutant(NOWHERE_BELOW, "return"),
    "prefix: keys share a nibble more": Mutant(SHARED, "shared[key] = min(both + 1, PATH)"),
    "prefix: keys share a nibble less": Mutant(SHARED, "shared[key] = max(both - 1, 0)"),
    "prefix: a place begins at a later key": Mutant(FIRST_KEY, FIRST_KEY.replace(">=", ">")),
    "prefix: a place begins at the key under work": Mutant(FIRST_KEY, "False"),
    "depth: a node less is too deep": Mutant(DEEPEST, DEEPEST.replace("==", "+ 1 ==")),
    "depth: a node more is not too deep": Mutant(DEEPEST, DEEPEST.replace("==", "- 1 ==")),
    "depth: inline nodes count": Mutant(ABOVE_ONE, "frame[side + ABOVE] + 1"),
}

POLICIES: tuple[dict[str, str], ...] = (
    {},
    {"metering": "values-only"},
    {"max_cached_node": "150"},
    {"callback": "all-keys"},
    {"cache": "none"},
)


class LateHistory(History):
    """A network of keys that part at the end of their paths, below inline nodes."""

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__("late", seed, **options)
        ends = [first + second for first in ("00", "01", "10") for second in ("00", "01", "1f", "10")]
        late = [SubscribedKey(bytes.fromhex(end.rjust(64, "0"))) for end in ends]
        for publisher in self.publishers:
            self.network.delete(publisher, self.stock)
        self.stock = self.draw.sample(late, 6) + self.stock[:2]
        for publisher in self.publishers:
            self.network.subscribe(publisher, self.draw.sample(self.stock, self.draw.choice([2, 5, 8])))
            self.network.publish(publisher, self.draw.sample(self.stock, self.draw.choice([3, 6])), self._value())


class LongHistory(History):
    """A network of values about as long as the longest charge."""

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__("long", seed, **options)

    def _value(self) -> bytes:
        return self.draw.randbytes(1) * self.draw.randint(735, 745)

    def _budget(self) -> Weight:
        return self.draw.choice(
            [of_bytes(self.draw.randint(0, 4_000)), AMPLE, Weight(self.draw.randint(0, 900), 1 << 20)]
        )


def histories() -> Iterator[History]:
    """Yield the networks that mutants are tried on, until one of them is noticed."""
    for seed in range(SEEDS):
        options = {"policies": POLICIES[seed // 3 % len(POLICIES)], "weighs": seed % 2 == 1}
        made = (lambda seed, **given: History("mutants", seed, **given), LateHistory, LongHistory)[seed % 3]
        yield made(seed, **options)


def told(vector: BlockVector) -> tuple[object, ...]:
    """Return all that a pass over the collected nodes did."""
    places, result = prune(vector)
    changes = list(map(found, result.changes))
    return places, list(result.reads), result.turn, result.consumed, result.stopped_by, result.oversize, changes


def noticed() -> str:
    """Return what differs: a block that the specification has computed, or else the plain pass; nothing if none."""
    by_pass = ""
    for block in [*shipped_blocks(), *drawn_blocks()]:
        try:
            if expectation_of(block) != block.expect or (block.collected and prune(block)[0] != block.pruned):
                return f"specification: {block.id}"
            if not by_pass and block.collected:
                by_pass = pass_difference(block)
        except Exception as error:
            return f"specification: {block.id} raises {type(error).__name__}"
    return by_pass or chain_difference()


@cache
def shipped_blocks() -> list[BlockVector]:
    """Return the blocks that ship with the specification, the random ones last."""
    files = {path: vectors_in(data) for path, data in shipped() if kind_of(path) == "subscriber"}
    paths = sorted(files, key=lambda path: "histories" in path)
    return [msgspec.convert(block, BlockVector, strict=False) for path in paths for block in files[path]]


@cache
def drawn_blocks() -> list[BlockVector]:
    """Return blocks of random networks that the specification computes as the plain pass does."""
    with patch.object(array_walk, "kernels_can_be_compiled", lambda: False):
        blocks = [block for history in histories() for vector in history.blocks() for block in (vector, exact(vector))]
        blocks.append(cut_at_a_value())
        for block in blocks:
            assert not list(mismatches("subscriber", msgspec.json.decode(msgspec.json.encode(block))))
    return blocks


def cut_at_a_value() -> BlockVector:
    """Return a block without room for the value of the second of two keys; the first one is absent."""
    network, about = SmallNetwork(), About("cut-at-a-value", "", VectorSource(invariant=1))
    network.subscribe(ALPHA, [path_key("0"), path_key("1")])
    for value in (bytes(40), bytes(41)):
        network.publish(ALPHA, [path_key("1")], value)
        vector = network.block(about) if len(value) == 40 else cut_short(network, about, seal=True)
    return vector


def pass_difference(block: BlockVector) -> str:
    """Return whether a pass differs from the plain one, read by read."""
    in_arrays = told(block)
    with patch.object(array_walk, "kernels_can_be_compiled", lambda: False):
        return "" if told(block) == in_arrays else "plain pass"


def chain_difference() -> str:
    """Return whether blocks differ whose nodes stay in arrays from each to the next."""
    return "" if returned("array") == returned("plain") else "plain chain"


def returned(engine: Engine) -> list[object]:
    """Return what blocks did while a trie became what it was before: nodes that went are in the proof again."""
    world = World()
    world.state.engine = engine
    world.publish(ALPHA, keys(20))
    world.subscribe(ALPHA, keys(20))
    seen: list[object] = [told_by(world, world.block())]
    for _ in range(2):
        world.publish(ALPHA, [key("more")])
        seen.append(told_by(world, world.block()))
        world.delete(ALPHA, [key("more")])
        seen.append(told_by(world, world.block()))
    return seen


def exact(vector: BlockVector) -> BlockVector:
    """Return the same block with a budget that its pass uses up."""
    assert isinstance(vector.expect.consumed, VectorWeight)
    assert vector.collected is not None
    return honest_vector(replace(vector, budget=vector.expect.consumed), vector.nodes_at(vector.collected))


def mutated(mutant: Mutant) -> ModuleType:
    """Return the kernel's module with a passage changed."""
    assert SOURCE.count(mutant.line) == 1, f"{mutant.line!r} is there {SOURCE.count(mutant.line)} times"
    module = ModuleType(kernel.__name__)
    exec(compile(SOURCE.replace(mutant.line, mutant.other), kernel.__file__, "exec"), module.__dict__)
    exec(MORE, module.__dict__)
    return module


def state_in_arrays(*arguments: Any, **options: Any) -> State:
    return State(*arguments, **{**options, "engine": "array"})


def main(names: list[str]) -> None:
    with (
        patch.object(array_walk, "kernels_can_be_compiled", lambda: True),
        patch.object(array_walk, "MOVED_IN_ARRAYS", 0),
        patch.object(block_vectors, "State", state_in_arrays),
    ):
        seen = {} if names else {"the kernel as it is": noticed()}
        for name in names or MUTANTS:
            with patch.object(side_by_side, "kernel", mutated(MUTANTS[name])):
                seen[name] = noticed()
                print(f"{name}: {seen[name]}", file=sys.stderr, flush=True)
    print(json.dumps(seen, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
