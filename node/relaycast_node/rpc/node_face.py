"""What a server exposes of a node: one ``JsonRpc`` for the relay chain and one for each parachain.

It knows no server: messages come in as bytes or text, answers and notifications go into the outbox of a session.
"""

from relaycast_node.rpc import (
    archive_methods,
    author_methods,
    chain_head_methods,
    chain_methods,
    chain_spec_methods,
    childstate_methods,
    dev_methods,
    fork_methods,
    payment_methods,
    rpc_methods,
    state_methods,
    system_methods,
    transaction_methods,
)
from relaycast_node.rpc.chain_protocols import ChainFace, ClockFace
from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.json_rpc import JsonRpc
from relaycast_node.rpc.method_table import MethodTable
from relaycast_node.rpc.proof_tracker import ProofTracker

LEGACY = (
    system_methods.GROUP,
    chain_methods.GROUP,
    state_methods.GROUP,
    childstate_methods.GROUP,
    author_methods.GROUP,
    payment_methods.GROUP,
)
NEW = (
    chain_head_methods.GROUP,
    archive_methods.GROUP,
    chain_spec_methods.GROUP,
    transaction_methods.GROUP,
)
"""The interface that succeeds the legacy methods (JSON-RPC interface specification)."""

DIALECTS = {"all": (*LEGACY, *NEW), "legacy": LEGACY, "new": NEW}
"""Which methods are context, beside ``dev_*`` and ``rpc_methods``."""


class NodeFace:
    """Every chain of ``clock``; ``relay`` answers for the relay chain, ``parachain`` for one of the others."""

    def __init__(self, clock: ClockFace, *, version: str, dialect: str = "all") -> None:
        self.clock = clock
        self.table = MethodTable((*DIALECTS[dialect], dev_methods.GROUP, fork_methods.GROUP, rpc_methods.GROUP))
        self.proofs = ProofTracker(clock.chains)
        clock.facts.connect(self.proofs.on_fact)
        self._version = version
        self.relay = self._serving(clock.relay)
        self._parachains: dict[int, JsonRpc] = {}

    def parachain(self, para_id: int) -> JsonRpc | None:
        """Return what answers for a parachain, ``None`` where there is no such chain."""
        known = self._parachains.get(para_id)
        chain = self.clock.parachains.get(para_id)
        if known is None and chain is not None:
            known = self._parachains[para_id] = self._serving(chain)
        return known

    def _serving(self, chain: ChainFace) -> JsonRpc:
        context = RpcContext(chain, self.clock, self.proofs, self.table.names, version=self._version)
        return JsonRpc(self.table, context)
