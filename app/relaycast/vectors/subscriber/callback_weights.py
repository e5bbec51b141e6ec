"""Vectors of callbacks that declare a weight: a pass ends where the limit of a block has no room for one more."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.budget_scenarios import costs, of_bytes
from relaycast.vectors.subscriber.deletions import aside
from relaycast.vectors.subscriber.scenarios import K
from relaycast.vectors.subscriber.small_network import (
    ALPHA,
    BETA,
    SMALL,
    About,
    SmallNetwork,
    path_key,
    staircase,
)
from relaycast.vectors.vector import VectorSource, VectorWeight
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_xcm.primitives import U64_MAX, ParaId, Weight

A, B, C, D, E, F = K
MICROSECOND = 1_000_000
LIMIT = Weight(100 * MICROSECOND, U64_MAX)


def about(name: str, why: str, invariant: int = 2) -> About:
    return About(f"callback-weights/{name}", why, VectorSource(invariant=invariant))


def weighing(weights: Mapping[SubscribedKey, int], *, publishers: Sequence[ParaId] = (ALPHA,)) -> SmallNetwork:
    """Return a network whose callbacks declare these microseconds; its keys have values, inside their nodes or not."""
    network = SmallNetwork(config=replace(SMALL, callback_limit=VectorWeight.of(LIMIT)))
    for publisher in publishers:
        network.subscribe(publisher, weights)
        for number, (each, micros) in enumerate(weights.items()):
            network.publish(publisher, [each], each if number % 2 else b"inside")
            network.callback_weights[publisher, each] = Weight(micros * MICROSECOND, 10)
    network.seal()
    return network


def _rounds() -> Iterator[BlockVector]:
    network = weighing({A: 40, B: 40, C: 40, D: 0})
    for number in range(2):
        part = about(f"rounds/{number}", "three callbacks of 40 us, a limit of 100: the third waits with the cursor")
        yield network.block(part, seal=False)
    for each in (60, 61):
        network = weighing({A: 40, B: each})
        part = about(f"boundary/{each}", f"callbacks of 40 and {each} us: the limit of 100 may be reached exactly")
        yield network.block(part, seal=False)


def _both_dimensions() -> Iterator[BlockVector]:
    network = weighing({A: 1, B: 1})
    for limit in (19, 20):
        part = aside(network)
        part.config = replace(network.config, callback_limit=VectorWeight(10 * MICROSECOND, limit))
        part.callback_weights = network.callback_weights
        name = about(f"proof-size/{limit}", f"two callbacks of 10 bytes of proof each, a limit of {limit}")
        yield part.block(name, seal=False)


def _publishers() -> Iterator[BlockVector]:
    network = weighing({A: 60}, publishers=(ALPHA, BETA))
    yield network.block(about("publishers/first", "the second publisher's callback does not fit"), seal=False)
    network.publish(ALPHA, [A], b"new")
    yield network.block(about("publishers/second", "it comes first in the next block, and then the other does not fit"))


def _beyond() -> Iterator[BlockVector]:
    network = weighing({A: 10, B: 101, C: 10})
    for number in range(3):
        part = about(f"beyond/{number}", "a callback above the limit is passed over, once it is at the cursor", 8)
        yield network.block(part, seal=False)
        network.publish(ALPHA, [A], bytes([number]))
        network.seal()
    network.callback_weights[ALPHA, B] = Weight(MICROSECOND)
    yield network.block(about("beyond/fits", "it is told once it weighs less", 3), seal=False)


def _with_the_budget() -> Iterator[BlockVector]:
    network = weighing({A: 60, B: 60})
    whole = costs(network.honest(about("", ""), seal=False))
    for short in (0, 1):
        part = about(f"budget/{short}", f"the budget is {short} bytes short of all reads: which meter ends the pass")
        yield network.honest(part, budget=of_bytes(whole[-1] - short), seal=False)


def _lies() -> Iterator[BlockVector]:
    network = weighing({A: 60, B: 60})
    source = VectorSource(attack="stop_early")
    honest = network.honest(about("", ""), seal=False)
    nodes = honest.nodes_at(honest.given)
    for index in (0, len(nodes) - 1):
        part = About(f"callback-weights/lies/{index}", "a node less, before the callback meter ends the pass", source)
        yield network.lie(honest, part, nodes[:index] + nodes[index + 1 :])
    assert honest.collected
    rest = [node for node in honest.nodes_at(honest.collected) if node not in nodes]
    more = About("callback-weights/lies/more", "the value of the key that waits is given too", source)
    yield network.lie(honest, more, [*nodes, *rest])


def _disabled() -> Iterator[BlockVector]:
    network, deep = weighing({path_key("0"): 60, path_key("f"): 10}), staircase(9, subscribed=path_key("f"))
    network.publish(ALPHA, deep, bytes(30))
    network.subscribe(BETA, [A])
    network.publish(BETA, [A], b"beta")
    network.callback_weights[BETA, A] = Weight(100 * MICROSECOND)
    yield network.block(about("disabled", "what a publisher that is disabled had counted is given back", 8))


def _overweight() -> Iterator[BlockVector]:
    network = weighing({A: 10, B: 10})
    network.used_weights = {(ALPHA, A): Weight(10 * MICROSECOND, 11), (ALPHA, B): Weight(9 * MICROSECOND, 10)}
    yield network.block(about("overweight", "a callback that returns more than it declared is an event"), seal=False)


def _overweight_in_one() -> Iterator[BlockVector]:
    """Yield callbacks that return more in one dimension and less in the other, which the event gives as they are."""
    network = weighing({A: 10, B: 10, C: 0, D: 10})
    network.write(ALPHA, D, b"\xff")
    network.callback_weights[ALPHA, C] = Weight.ZERO
    network.used_weights = {
        (ALPHA, A): Weight(10 * MICROSECOND + 1, 9),
        (ALPHA, B): Weight(MICROSECOND, 1 << 20),
        (ALPHA, C): Weight(1 << 40, 0),
        (ALPHA, D): Weight(1 << 40, 1 << 40),
    }
    part = about("overweight/one-dimension", "more than declared in one dimension is enough; no callback, no event")
    yield network.block(part)
    network.policies = {"deletion": "told"}
    network.delete(ALPHA, [A, B])
    yield network.block(about("overweight/deletions", "the callback of a told deletion returns more than it declared"))


def _beyond_one_meter() -> Iterator[BlockVector]:
    """Yield a key at the cursor that does not fit one of the two meters."""
    network = weighing({A: 10, B: 10})
    network.config = replace(network.config, callback_limit=VectorWeight(100 * MICROSECOND, 70_000))
    network.callback_weights[ALPHA, A] = Weight(20 * MICROSECOND, 70_001)
    for number in range(2):
        part = about(f"beyond/proof-size-{number}", "a callback above the limit in its proof size alone", 8)
        yield network.block(part, seal=False)
    network = weighing({A: 10, B: 10})
    network.publish(ALPHA, [A], bytes(600))
    network.seal()
    for number in range(2):
        part = about(f"beyond/budget-{number}", "a key that weighs something and does not fit the budget", 8)
        yield network.block(part, budget=of_bytes(500), seal=False)


def _deletions() -> Iterator[BlockVector]:
    for name, deleted in (("keys", [A, B]), ("trie", K)):
        network = weighing({A: 60, B: 60, C: 10})
        network.policies = {"deletion": "told"}
        for _ in range(2):
            network.block(about("", ""), seal=False)
        network.delete(ALPHA, deleted)
        network.seal()
        for number in range(3):
            part = about(f"deletions/{name}-{number}", "a told deletion weighs what a value does", 3)
            yield network.block(part, seal=False)


def weight_vectors() -> Iterator[BlockVector]:
    """Yield the vectors of callbacks that declare a weight."""
    for scene in (
        _rounds,
        _both_dimensions,
        _publishers,
        _beyond,
        _with_the_budget,
        _lies,
        _disabled,
        _overweight,
        _overweight_in_one,
        _beyond_one_meter,
        _deletions,
    ):
        yield from scene()
