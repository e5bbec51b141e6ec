"""How fast a broadcaster fans events out, in process: from the call of a publisher to all confirmations.

::

    python benches/bench_icrc.py [--subscriptions 1000] [--filters 10] [--events 500]

Log and store are in memory, and canisters call each other on a subnet with virtual time: the figures are those of the
broadcaster, without Candid and HTTP. Each event is selected by the subscriptions with one of the filters.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from gateway.icrc.stage import Stage
from relaycast_gateway.icrc16 import map_of, nat, text

EVENTS_A_CALL = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--subscriptions", type=int, default=1_000)
    parser.add_argument("--filters", type=int, default=10)
    parser.add_argument("--events", type=int, default=500)
    asked = parser.parse_args()
    with Stage() as stage:
        stage.register()
        for number in range(asked.subscriptions):
            stage.subscribe(b"subscriber %d" % number, filter=f"shelf == {number % asked.filters}")
        events = [
            stage.event(data=map_of({"shelf": nat(at % asked.filters), "pair": text("DOT/USD"), "price": nat(at)}))
            for at in range(asked.events)
        ]
        wall, cpu = time.perf_counter(), time.process_time()
        for at in range(0, len(events), EVENTS_A_CALL):
            stage.publish(*events[at : at + EVENTS_A_CALL])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        sent = sum(len(it.messages) for it in stage.subscribers.values())
        assert sent == stage.stats()["confirmations"], "every notification is confirmed"
    about = f"{asked.subscriptions:,} subscriptions, {asked.filters} filters"
    print(f"{about}: {asked.events:,} events, {sent:,} notifications")
    print(f"{asked.events / wall:8,.0f} events/s, {sent / wall:10,.0f} notifications/s")
    print(f"{asked.events / cpu:8,.0f} events/s, {sent / cpu:10,.0f} notifications/s of CPU time")


if __name__ == "__main__":
    main()
