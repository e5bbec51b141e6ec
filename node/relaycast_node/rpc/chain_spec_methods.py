"""``chainSpec_v1_*``: what does not change while a chain runs."""

from relaycast_node.rpc.context import RpcContext
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.method_table import MethodGroup

GROUP = MethodGroup()


@GROUP.method("chainSpec_v1_chainName")
def chain_name(context: RpcContext) -> str:
    return context.chain.name


@GROUP.method("chainSpec_v1_genesisHash")
def genesis_hash(context: RpcContext) -> str:
    return hexed(context.chain.genesis_hash)


@GROUP.method("chainSpec_v1_properties")
def properties(context: RpcContext) -> dict[str, object]:
    return dict(context.chain.properties)
