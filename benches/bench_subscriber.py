"""Prune and verify, block after block: how fast one subscriber follows its publishers, and in how much memory.

``relaycast.bench.proof_pass`` says what is timed. Prints one JSON object::

    python benches/bench_subscriber.py --keys 1000 --publishers 10 --changed 10 --blocks 500
"""

import argparse
import cProfile
import gc
import json
import platform
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / room) for room in ("trie", "xcm", "pallets", "app")]

from relaycast.bench.proof_pass import PassBench, PassOptions  # noqa: E402 - the rooms are put on the path above


def report(bench: PassBench, blocks: int, options: dict[str, object]) -> dict[str, object]:
    both = bench.seconds["prune"] + bench.seconds["verify"]
    one_by_one = sorted(later - earlier for earlier, later in pairwise(bench.both))
    return {
        "bench": "subscriber",
        "options": options,
        "python": platform.python_version(),
        "blocks": blocks,
        "callbacks": bench.handler.calls,
        "proof_bytes_per_block": round(bench.proof_bytes / blocks),
        **bench.each(blocks),
        "prune_blocks_per_s": round(blocks / bench.seconds["prune"], 1),
        "verify_blocks_per_s": round(blocks / bench.seconds["verify"], 1),
        "prune_and_verify_blocks_per_s": round(blocks / both, 1),
        "fastest_tenth_blocks_per_s": round(1 / one_by_one[len(one_by_one) // 10], 1),
        "median_blocks_per_s": round(1 / one_by_one[len(one_by_one) // 2], 1),
    }


def memory(bench: PassBench, blocks: int) -> dict[str, object]:
    """Return the traced memory, in bytes, after each tenth of ``blocks``."""
    tracemalloc.start()
    sizes = []
    for _ in range(10):
        bench.run(max(blocks // 10, 1))
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return {"memory_blocks": blocks, "memory_bytes": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keys", type=int, default=1_000, help="subscribed keys, over all publishers")
    parser.add_argument("--published", type=int, default=100, help="keys that each publisher has")
    parser.add_argument("--publishers", type=int, default=10)
    parser.add_argument("--changed", type=int, default=10, help="subscribed keys that change in each block")
    parser.add_argument("--value", type=int, default=16, help="bytes of each value")
    parser.add_argument("--top", type=int, default=512, help="other entries of the relay chain's top trie")
    parser.add_argument("--engine", choices=["auto", "plain", "array"], default="auto")
    parser.add_argument("--blocks", type=int, default=500)
    parser.add_argument("--warm-up", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--memory", type=int, default=0, metavar="BLOCKS", help="trace memory over this many blocks too"
    )
    parser.add_argument("--profile", metavar="FILE", help="write what cProfile sees of the timed blocks")
    options = parser.parse_args()
    given = vars(options)
    bench = PassBench(PassOptions(**{name: given[name] for name in PassOptions.__struct_fields__}))
    bench.run(options.warm_up)
    gc.collect()
    gc.freeze()
    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    bench.run(options.blocks)
    profile.disable()
    said = report(bench, options.blocks, given)
    if options.profile:
        profile.dump_stats(options.profile)
    if options.memory:
        said |= memory(bench, options.memory)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
