"""``rpc_methods``: the methods that are there."""

from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.served import Served

GROUP = MethodGroup()


@GROUP.method("rpc_methods")
def methods(served: Served) -> dict[str, list[str]]:
    return {"methods": served.method_names}
