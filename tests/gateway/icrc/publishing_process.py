"""Publishes events to a broadcaster over the files of a folder, and prints the id of each that was answered."""

import sys
from itertools import count
from pathlib import Path

from gateway.icrc.stage import Stage
from relaycast_gateway.icrc16 import nat


def main() -> None:
    with Stage(folder=Path(sys.argv[1])) as stage:
        stage.register()
        stage.subscribe(b"alice")
        stage.subnet.stop(b"alice")
        for number in count(1):
            stage.publish(stage.event(number, nat(number), timestamp=1))
            print(number, flush=True)


if __name__ == "__main__":
    main()
