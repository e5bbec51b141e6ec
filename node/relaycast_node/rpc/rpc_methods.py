"""``rpc_methods``: the methods that are there."""

from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.method_table import MethodGroup

GROUP = MethodGroup()


@GROUP.method("rpc_methods")
def methods(context: RpcContext) -> dict[str, list[str]]:
    return {"methods": context.method_names}
