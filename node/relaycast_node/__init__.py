"""A node: the emulated chains behind Substrate's JSON-RPC, so that clients talk to them as to real ones."""

from relaycast_node.extrinsic.accounts import KeyPair, dev_account, dev_accounts
from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.extrinsic.era import IMMORTAL, Era, Immortal, Mortal
from relaycast_node.extrinsic.extrinsic import (
    Bare,
    Extra,
    Extrinsic,
    Implicit,
    Signed,
    decode_extrinsic,
    extrinsic_hash,
    sign,
)
from relaycast_node.extrinsic.pool import TransactionPool
from relaycast_node.extrinsic.pool_errors import PoolError
from relaycast_node.extrinsic.signature import MultiAddress, MultiSignature, Scheme, verify
from relaycast_node.extrinsic.validity import ValidationView, ValidTransaction, pre_dispatch, validate
from relaycast_node.extrinsic.validity_errors import InvalidTransaction, UnknownTransaction
from relaycast_node.extrinsic.watchers import StatusKind, TransactionStatus

__all__ = [
    "IMMORTAL",
    "Bare",
    "DecodedCall",
    "Era",
    "Extra",
    "Extrinsic",
    "Immortal",
    "Implicit",
    "InvalidTransaction",
    "KeyPair",
    "Mortal",
    "MultiAddress",
    "MultiSignature",
    "PoolError",
    "Scheme",
    "Signed",
    "StatusKind",
    "TransactionPool",
    "TransactionStatus",
    "UnknownTransaction",
    "ValidTransaction",
    "ValidationView",
    "decode_extrinsic",
    "dev_account",
    "dev_accounts",
    "extrinsic_hash",
    "pre_dispatch",
    "sign",
    "validate",
    "verify",
]
