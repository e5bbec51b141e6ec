"""How fast the relay chain publishes, and what expiry costs: seeded workloads, warmed up, on one core.

::

    python benches/bench_publish.py [--publishers 40] [--keys 500] [--blocks 10] [--per-block 2000] [--expiring 100000]

Each publish workload ends its blocks with a real state root; the columns split the time between bytes to state
(decoding, barrier, executor, pallet) and state to root (the tries). ``on_idle`` scans a map of expiring entries.
Times are the process's own on one core: what else the machine does is not counted.
"""

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from relaycast_pallets import POLKADOT, Balances, Broadcaster, Origin, State, System
from relaycast_xcm import (
    AllowPublishFrom,
    Everything,
    OnlyParachains,
    ParachainBroadcastAdapter,
    ParaId,
    Publish,
    UpwardLimits,
    UpwardMessageQueue,
    Weight,
    XcmExecutor,
    encode_versioned_xcm,
)

SEED = 7
FIRST_PARA = 2_000
MANAGER = bytes([1]) * 32
VALUE_BYTES = 32

Publication = tuple[ParaId, bytes, bytes, int]
Block = list[Publication]


@dataclass(frozen=True, slots=True)
class Chain:
    """The pallets of a relay chain with registered publishers, and a queue for their messages."""

    state: State
    system: System
    broadcaster: Broadcaster
    queue: UpwardMessageQueue


def build_chain(publishers: int) -> Chain:
    state = State(window=8)
    system = System(state)
    balances = Balances(system)
    broadcaster = Broadcaster(system, balances, config=POLKADOT)
    balances.mint(MANAGER, POLKADOT.publisher_deposit * publishers)
    for index in range(publishers):
        broadcaster.register_publisher(Origin.signed(MANAGER), ParaId(FIRST_PARA + index))
    adapter = ParachainBroadcastAdapter(OnlyParachains(), broadcaster)
    executor = XcmExecutor(AllowPublishFrom(Everything()), broadcast=adapter)
    unlimited = UpwardLimits(messages_per_candidate=1 << 20, queue_count=1 << 20, queue_bytes=1 << 30)
    return Chain(state, system, broadcaster, UpwardMessageQueue(executor, limits=unlimited))


def publications(arguments: argparse.Namespace, *, ttl: int) -> list[Block]:
    """Return the blocks: every publisher in turn, keys drawn from its own set."""
    draw = random.Random(SEED)
    keys = [[draw.randbytes(32) for _ in range(arguments.keys)] for _ in range(arguments.publishers)]
    blocks = []
    for _ in range(arguments.blocks):
        block = []
        for index in range(arguments.per_block):
            publisher = index % arguments.publishers
            key = draw.choice(keys[publisher])
            block.append((ParaId(FIRST_PARA + publisher), key, draw.randbytes(VALUE_BYTES), ttl))
        blocks.append(block)
    return blocks


def by_pallet(chain: Chain, block: Block) -> None:
    for publisher, key, value, ttl in block:
        chain.broadcaster.handle_publish(publisher, key, value, ttl=ttl)


def by_xcm(per_message: int) -> Callable[[Chain, Block], None]:
    """Return a workload that sends ``per_message`` instructions in each upward message."""

    def run(chain: Chain, block: Block) -> None:
        waiting: dict[ParaId, list[Publish]] = {}
        for publisher, key, value, ttl in block:
            waiting.setdefault(publisher, []).append(Publish(key, value, ttl))
        messages = [
            (publisher, encode_versioned_xcm(instructions[start : start + per_message]))
            for publisher, instructions in waiting.items()
            for start in range(0, len(instructions), per_message)
        ]
        run.started = time.process_time()  # type: ignore[attr-defined]
        for publisher, message in messages:
            chain.queue.enqueue(publisher, message)
        chain.queue.service()

    return run


def publish(name: str, blocks: list[Block], run: Callable[[Chain, Block], None], publishers: int) -> None:
    """Run the blocks after one to warm up and print a line."""
    chain = build_chain(publishers)
    to_state = to_root = 0.0
    for number, block in enumerate(blocks):
        chain.system.initialize(number + 1)
        started = time.process_time()
        run(chain, block)
        started = getattr(run, "started", started)
        written = time.process_time()
        chain.state.commit()
        if number:
            to_state += written - started
            to_root += time.process_time() - written
    count = sum(map(len, blocks[1:]))
    print(
        f"{name:<34} {count / (to_state + to_root):>9,.0f} publishes/s   "
        f"{to_state / count * 1e6:6.1f} us to state + {to_root / count * 1e6:6.1f} us to root"
    )


def idle(entries: int, blocks: int) -> None:
    """Fill ``TtlData``, scan it for some blocks without a hit, then let everything expire."""
    chain = build_chain(0)
    draw = random.Random(SEED)
    for index in range(entries):
        key = draw.randbytes(32)
        chain.broadcaster.handle_publish(ParaId(1_000 + index // 4_000), key, b"v", ttl=1_000)
    chain.broadcaster.on_idle(Weight.ZERO)
    chain.broadcaster.storage.ttl_data.count()
    for name, first in (("on_idle, nothing expires", 10), ("on_idle, everything expires", 2_000)):
        started = time.process_time()
        for number in range(blocks):
            chain.system.initialize(first + number)
            chain.broadcaster.on_idle(Weight.MAX)
        each = (time.process_time() - started) / blocks
        scans = POLKADOT.max_ttl_scans_per_idle
        print(f"{name:<34} {each * 1e3:6.2f} ms a block of {scans} scans among {entries:,} entries")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (
        ("publishers", 40),
        ("keys", 500),
        ("blocks", 10),
        ("per-block", 2_000),
        ("expiring", 100_000),
    ):
        parser.add_argument(f"--{option}", type=int, default=default)
    arguments = parser.parse_args()
    for ttl, kind in ((0, "for ever"), (100, "with a TTL")):
        blocks = publications(arguments, ttl=ttl)
        publish(f"pallet, {kind}", blocks, by_pallet, arguments.publishers)
        for per_message in (1, 16):
            name = f"XCM, {per_message} a message, {kind}"
            publish(name, blocks, by_xcm(per_message), arguments.publishers)
    idle(arguments.expiring, 40)


if __name__ == "__main__":
    main()
