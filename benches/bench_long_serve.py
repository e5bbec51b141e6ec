"""Memory of served chains over many blocks: ``python benches/bench_long_serve.py --blocks 100000``.

Prints, for every tenth of the way, resident memory, what Python has allocated, and the time per relay block.
"""

import argparse
import gc
import time

import psutil

from relaycast.serve.network import living

TENTHS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="config-sync")
    parser.add_argument("--blocks", type=int, default=100_000)
    parser.add_argument("--keep", default="")
    given = parser.parse_args()
    live, process = living(given.scenario, "manual", keep=given.keep).clock, psutil.Process()
    print(f"{given.scenario}: {given.blocks:,} relay blocks, the newest {live.relay.kept_blocks} kept")
    for _ in range(TENTHS):
        began = time.process_time()
        live.new_block(given.blocks // TENTHS)
        spent = (time.process_time() - began) / (given.blocks // TENTHS)
        gc.collect()
        resident = process.memory_info().rss / 2**20
        objects = len(gc.get_objects())
        taken = f"{resident:7.1f} MiB, {objects:>9,} objects"
        print(f"block {live.relay.best.number:>7,}: {taken}, {spent * 1e3:.2f} ms a block", flush=True)


if __name__ == "__main__":
    main()
