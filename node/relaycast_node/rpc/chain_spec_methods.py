"""``chainSpec_v1_*``: what does not change while a chain runs."""

from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.served import Served

GROUP = MethodGroup()


@GROUP.method("chainSpec_v1_chainName")
def chain_name(served: Served) -> str:
    return served.chain.name


@GROUP.method("chainSpec_v1_genesisHash")
def genesis_hash(served: Served) -> str:
    return hexed(served.chain.genesis_hash)


@GROUP.method("chainSpec_v1_properties")
def properties(served: Served) -> dict[str, object]:
    return dict(served.chain.properties)
