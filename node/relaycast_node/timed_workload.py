"""The workload of served chains with their time: both go back together."""

from dataclasses import dataclass
from typing import Any

from relaycast_node.chain.genesis import ModelledTime
from relaycast_node.timeline import Workload


@dataclass(frozen=True, slots=True)
class TimedWorkload:
    """A workload with the time of the chains."""

    workload: Workload
    time: ModelledTime

    def step(self) -> object:
        return self.workload.step()

    def dump(self) -> tuple[int, Any]:
        return self.time.offset, self.workload.dump()

    def load(self, dump: tuple[int, Any]) -> None:
        self.time.offset, inner = dump
        self.workload.load(inner)
