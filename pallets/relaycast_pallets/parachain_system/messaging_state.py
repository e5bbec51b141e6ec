"""What the relay chain's state says about a parachain's messages: static values that every block reads.

Beside the fixed static keys these are the ``HrmpChannels`` entries of all open channels, which the indexes name
(cumulus ``MessagingStateSnapshot``).
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from relaycast_pallets.frame.typed_storage import BYTES32
from relaycast_pallets.frame.well_known_keys import (
    dmq_mqc_head,
    hrmp_channel,
    hrmp_egress_channel_index,
    hrmp_ingress_channel_index,
)
from relaycast_pallets.messaging.hrmp_channel import HrmpChannel, HrmpChannelId
from relaycast_pallets.messaging.inbound_message import EMPTY_CHAIN, decode_para_ids
from relaycast_trie.exceptions import RelaycastError
from relaycast_xcm.primitives import ParaId

Read = Callable[[Iterable[bytes]], Mapping[bytes, bytes | None]]
"""Reads keys of the relay chain's top trie."""

Channels = dict[ParaId, HrmpChannel]
"""Channels of one direction by the parachain at their other end."""


class ChannelMissing(
    RelaycastError, message="the relay chain lists a channel from {sender} to {recipient} that its state does not hold"
):
    """The relay chain's index lists a channel from ``sender`` to ``recipient`` that its state does not hold."""

    sender: ParaId
    recipient: ParaId


class MessagingState(Struct, frozen=True):
    """The head of a parachain's downward queue, and its open channels in both directions."""

    dmq_mqc_head: bytes
    ingress: Channels
    egress: Channels

    @classmethod
    def read(cls, read: Read, para_id: ParaId) -> "MessagingState":
        """Read a parachain's messaging state.

        Raises ``ChannelMissing``, ``CodecError`` for values that are none, and what ``read`` raises.
        """
        ingress_ids, egress_ids = _channel_ids(read, para_id)
        keys = {channel: hrmp_channel(*channel) for channel in (*ingress_ids, *egress_ids)}
        head_key = dmq_mqc_head(para_id)
        values = read([head_key, *keys.values()])
        head = values.get(head_key)
        return cls(
            EMPTY_CHAIN if head is None else BYTES32.decode(head),
            {channel.sender: _channel(channel, values.get(keys[channel])) for channel in ingress_ids},
            {channel.recipient: _channel(channel, values.get(keys[channel])) for channel in egress_ids},
        )

    @property
    def is_empty(self) -> bool:
        """Whether no message was ever queued for the parachain, as far as open channels tell."""
        return self.dmq_mqc_head == EMPTY_CHAIN and all(it.mqc_head is None for it in self.ingress.values())


def channel_keys(read: Read, para_id: ParaId) -> list[bytes]:
    """Return the keys of a parachain's open channels: what a proof covers beside the fixed static keys."""
    return [hrmp_channel(*channel) for ids in _channel_ids(read, para_id) for channel in ids]


def _channel_ids(read: Read, para_id: ParaId) -> tuple[list[HrmpChannelId], list[HrmpChannelId]]:
    ingress_key, egress_key = hrmp_ingress_channel_index(para_id), hrmp_egress_channel_index(para_id)
    values = read([ingress_key, egress_key])
    ingress, egress = values.get(ingress_key), values.get(egress_key)
    senders = () if ingress is None else decode_para_ids(ingress)
    recipients = () if egress is None else decode_para_ids(egress)
    return [HrmpChannelId(it, para_id) for it in senders], [HrmpChannelId(para_id, it) for it in recipients]


def _channel(channel: HrmpChannelId, value: bytes | None) -> HrmpChannel:
    if value is None:
        raise ChannelMissing(*channel)
    return HrmpChannel.decode_abridged(value)
