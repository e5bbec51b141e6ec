"""The vectors of kind ``subscriber``: a block of a parachain that subscribes, each in the file of its topic."""

from collections.abc import Callable, Iterator

from relaycast.vectors.subscriber.block_run import recomputed
from relaycast.vectors.subscriber.block_vector import BlockVector
from relaycast.vectors.subscriber.budget_scenarios import proof_scenarios
from relaycast.vectors.subscriber.budgets import budget_vectors
from relaycast.vectors.subscriber.caches import cache_vectors
from relaycast.vectors.subscriber.callback_weights import weight_vectors
from relaycast.vectors.subscriber.changes import change_vectors
from relaycast.vectors.subscriber.deletions import deletion_vectors
from relaycast.vectors.subscriber.histories import history_vectors
from relaycast.vectors.subscriber.lies import lying_vectors
from relaycast.vectors.subscriber.policies import policy_vectors
from relaycast.vectors.subscriber.scenarios import subscription_scenarios
from relaycast.vectors.subscriber.traps import trap_vectors
from relaycast.vectors.subscriber.turns import turn_vectors
from relaycast.vectors.vector_kind import Made, VectorKind

FILES: dict[str, Callable[[int], Iterator[BlockVector]]] = {
    "scenarios": lambda _: subscription_scenarios(),
    "budget-scenarios": lambda _: proof_scenarios(),
    "traps": lambda _: trap_vectors(),
    "budgets": lambda _: budget_vectors(),
    "turns": lambda _: turn_vectors(),
    "changes": lambda _: change_vectors(),
    "histories": history_vectors,
    "lies": lying_vectors,
    "policies": lambda _: policy_vectors(),
    "deletions": lambda _: deletion_vectors(),
    "callback-weights": lambda _: weight_vectors(),
    "caches": lambda _: cache_vectors(),
}
"""The vectors of each file, made from the seed."""


def made(seed: int) -> Made:
    """Yield every vector with the name of its file."""
    return ((name, vector) for name, vectors in FILES.items() for vector in vectors(seed))


SUBSCRIBER = VectorKind("subscriber", BlockVector, made, recomputed)
