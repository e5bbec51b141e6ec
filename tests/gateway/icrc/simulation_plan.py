"""How large a run of the simulation is, and what goes wrong in it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SimulationPlan:
    """How large a run is, and what goes wrong in it."""

    seed: int
    subscribers: int = 20
    events: int = 60
    """Events of each publisher."""

    publishers: int = 3
    broadcasters: int = 2
    seconds: float = 30.0
    """Over which events are published."""

    late: float = 0.2
    """The share of subscribers that come while events are published."""

    selective: float = 0.7
    """The share that has a filter, a skip or both; the others get all events of their namespaces."""

    slow: float = 0.1
    trusted: float = 0.2
    crashes: float = 0.3
    """Share of the subscribers that crash in the run and start again from their stores."""

    outages: int = 2
    """Times that a broadcaster cannot be reached."""

    notifications_a_call: int = 8
    epochs: int = 2
    """Close-outs of each publisher in the first namespace."""

    replays: float = 0.3
    """The share of subscribers that ask for a replay of a part of the log while events are published."""

    restarts: int = 1
    """Times that the process of the orchestrator and all broadcasters is killed."""
