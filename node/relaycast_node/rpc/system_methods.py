"""``system_*``: what this node is, and what the next nonce of an account will be."""

from hashlib import sha256

from relaycast_node.chain.exceptions import BadCallInput, CodeRefused
from relaycast_node.rpc.account_text import base58
from relaycast_node.rpc.context import NODE_NAME, RpcContext
from relaycast_node.rpc.header_json import hexed
from relaycast_node.rpc.method_table import MethodGroup
from relaycast_node.rpc.parameters import Account, BlockHash, HexBytes
from relaycast_node.rpc.rpc_error import RUNTIME_FAILED, UNDECODABLE, RpcError
from relaycast_trie import CodecError

GROUP = MethodGroup()

ED25519_PEER = bytes.fromhex("0024080112 20".replace(" ", ""))
"""What stands before the 32 bytes of an Ed25519 key in the id of a peer."""


@GROUP.method("system_name")
def name(_context: RpcContext) -> str:
    return NODE_NAME


@GROUP.method("system_version")
def version(context: RpcContext) -> str:
    return context.node_version


@GROUP.method("system_chain")
def chain(context: RpcContext) -> str:
    return context.chain.name


@GROUP.method("system_chainType")
def chain_type(_context: RpcContext) -> str:
    return "Development"


@GROUP.method("system_properties")
def properties(context: RpcContext) -> dict[str, object]:
    return dict(context.chain.properties)


@GROUP.method("system_health")
def health(_context: RpcContext) -> dict[str, object]:
    return {"peers": 0, "isSyncing": False, "shouldHavePeers": False}


@GROUP.method("system_localPeerId")
def local_peer_id(context: RpcContext) -> str:
    return base58(ED25519_PEER + sha256(context.chain.genesis_hash).digest())


@GROUP.method("system_localListenAddresses")
def local_listen_addresses(_context: RpcContext) -> list[str]:
    return []


@GROUP.method("system_peers")
def peers(_context: RpcContext) -> list[str]:
    return []


@GROUP.method("system_nodeRoles")
def node_roles(_context: RpcContext) -> list[str]:
    return ["Authority"]


@GROUP.method("system_syncState")
def sync_state(context: RpcContext) -> dict[str, int]:
    best = context.chain.best.header.number
    return {"startingBlock": 0, "currentBlock": best, "highestBlock": best}


@GROUP.method("system_accountNextIndex", "account_nextIndex")
def account_next_index(context: RpcContext, account: Account) -> int:
    try:
        return context.chain.pool.next_nonce(account)
    except CodeRefused as refusal:
        raise RpcError(RUNTIME_FAILED, "Unable to query nonce.", str(refusal)) from None


@GROUP.method("system_dryRun", "system_dryRunAt")
def dry_run(context: RpcContext, extrinsic: HexBytes, at: BlockHash | None = None) -> str:
    """Say what an extrinsic would come to in the block after the best one."""
    try:
        return hexed(context.chain.dry_run(extrinsic, context.block(at).hash))
    except (BadCallInput, CodecError) as error:
        reason = error.reason if isinstance(error, BadCallInput) else str(error)
        raise RpcError(UNDECODABLE, "Unable to dry run extrinsic", reason) from None
    except CodeRefused as refusal:
        raise RpcError(RUNTIME_FAILED, "Unable to dry run extrinsic.", str(refusal)) from None
