"""What tests of the pool do with one: submit what it refuses, and put blocks on its chain."""

import pytest

from node.small_chain import SmallChain
from relaycast_node.extrinsic.pool import TransactionPool
from relaycast_node.extrinsic.pool_errors import PoolError

CHAIN = SmallChain()


def refused(pool: TransactionPool, data: bytes) -> tuple[int, str, str | None]:
    """Return code, message and data of the refusal; assert that the pool holds what it held before."""
    before = (pool.pending(), pool.futures())
    with pytest.raises(PoolError) as refusal:
        pool.submit(data)
    assert (pool.pending(), pool.futures()) == before
    return refusal.value.code, refusal.value.message, refusal.value.data


def block(pool: TransactionPool, *included: bytes, chain: SmallChain = CHAIN) -> tuple[SmallChain, bytes]:
    """Put a block on the chain and tell the pool; return the chain with it, and its hash."""
    after = chain.after(included)
    pool.prune(included, after)
    block_hash = after.block_hash(after.block_number)
    assert block_hash is not None
    return after, block_hash
