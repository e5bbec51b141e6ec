"""The part of a relay chain's ``HostConfiguration`` that parachains read out of their relay proofs, in SCALE.

Polkadot's values (``AbridgedHostConfiguration``), but for the limits of upward messages, which are the network's.
"""

from relaycast_trie.scale import encode_u32
from relaycast_xcm.ump import UpwardLimits

MAX_CODE_SIZE = 3 * 1024 * 1024
MAX_HEAD_DATA_SIZE = 20_480
HRMP_MAX_MESSAGE_NUM_PER_CANDIDATE = 10
VALIDATION_UPGRADE_COOLDOWN, VALIDATION_UPGRADE_DELAY = 14_400, 600
MAX_CANDIDATE_DEPTH, ALLOWED_ANCESTRY_LEN = 3, 2
"""Limits of asynchronous backing."""


def host_configuration(upward: UpwardLimits) -> bytes:
    """Return the leading fields of the configuration; a relay chain has more behind them."""
    fields = (
        MAX_CODE_SIZE,
        MAX_HEAD_DATA_SIZE,
        upward.queue_count,
        upward.queue_bytes,
        upward.message_bytes,
        upward.messages_per_candidate,
        HRMP_MAX_MESSAGE_NUM_PER_CANDIDATE,
        VALIDATION_UPGRADE_COOLDOWN,
        VALIDATION_UPGRADE_DELAY,
        MAX_CANDIDATE_DEPTH,
        ALLOWED_ANCESTRY_LEN,
    )
    return b"".join(map(encode_u32, fields))
