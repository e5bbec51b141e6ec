"""Relay chain keys that every parachain block proves, pub-sub or not (cumulus ``get_static_relay_storage_keys``)."""

from functools import cache

from relaycast_trie.hasher import twox_64_concat, twox_128
from relaycast_xcm.primitives import ParaId


def _item(pallet: str, item: str) -> bytes:
    return twox_128(pallet.encode()) + twox_128(item.encode())


CURRENT_BLOCK_RANDOMNESS = _item("Babe", "AuthorVrfRandomness")
ONE_EPOCH_AGO_RANDOMNESS = _item("Babe", "NextRandomness")
TWO_EPOCHS_AGO_RANDOMNESS = _item("Babe", "Randomness")
CURRENT_SLOT = _item("Babe", "CurrentSlot")
ACTIVE_CONFIG = _item("Configuration", "ActiveConfig")


def dmq_mqc_head(para_id: ParaId) -> bytes:
    """Return the key of the head of the parachain's downward message queue."""
    return _item("Dmp", "DownwardMessageQueueHeads") + twox_64_concat(para_id.encode())


def relay_dispatch_queue_size(para_id: ParaId) -> bytes:
    """Return the key of what waits in the parachain's upward queue, as older relay chains keep it."""
    return _item("Ump", "RelayDispatchQueueSize") + twox_64_concat(para_id.encode())


def relay_dispatch_queue_remaining_capacity(para_id: ParaId) -> bytes:
    """Return the key of the room left in the parachain's upward queue: a key with a plain name."""
    return b":relay_dispatch_queue_remaining_capacity" + para_id.encode()


def hrmp_ingress_channel_index(para_id: ParaId) -> bytes:
    return _item("Hrmp", "HrmpIngressChannelsIndex") + twox_64_concat(para_id.encode())


def hrmp_egress_channel_index(para_id: ParaId) -> bytes:
    return _item("Hrmp", "HrmpEgressChannelsIndex") + twox_64_concat(para_id.encode())


def hrmp_channel(sender: ParaId, recipient: ParaId) -> bytes:
    """Return the key of the channel between two parachains, which both of them prove."""
    return _item("Hrmp", "HrmpChannels") + twox_64_concat(sender.encode() + recipient.encode())


def upgrade_go_ahead_signal(para_id: ParaId) -> bytes:
    return _item("Paras", "UpgradeGoAheadSignal") + twox_64_concat(para_id.encode())


def upgrade_restriction_signal(para_id: ParaId) -> bytes:
    return _item("Paras", "UpgradeRestrictionSignal") + twox_64_concat(para_id.encode())


def para_head(para_id: ParaId) -> bytes:
    return _item("Paras", "Heads") + twox_64_concat(para_id.encode())


@cache
def static_relay_keys(para_id: ParaId) -> tuple[bytes, ...]:
    """Return the keys that the relay state proof of ``para_id`` always covers, beside those of its open channels."""
    return (
        CURRENT_BLOCK_RANDOMNESS,
        ONE_EPOCH_AGO_RANDOMNESS,
        TWO_EPOCHS_AGO_RANDOMNESS,
        CURRENT_SLOT,
        ACTIVE_CONFIG,
        dmq_mqc_head(para_id),
        relay_dispatch_queue_size(para_id),
        relay_dispatch_queue_remaining_capacity(para_id),
        hrmp_ingress_channel_index(para_id),
        hrmp_egress_channel_index(para_id),
        upgrade_go_ahead_signal(para_id),
        upgrade_restriction_signal(para_id),
        para_head(para_id),
    )
