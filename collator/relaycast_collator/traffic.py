"""Messages that load a parachain beside pub-sub: what arrives in which relay block, and who is modelled to send it."""

from collections.abc import Callable, Sequence

from relaycast_xcm import ParaId

Messages = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""Downward and horizontal messages of one relay block."""

Traffic = Callable[[int], Messages]
"""What arrives for one parachain, by the number of the relay block that the messages stand in."""

MODELLED_SENDER = ParaId(9_999)
"""Who sends horizontal messages unless a load names its senders."""


def by_sender(
    messages: Sequence[bytes], senders: Sequence[ParaId], *, relay_block: int
) -> dict[ParaId, tuple[bytes, ...]]:
    """Share the horizontal messages of a relay block out among their ``senders``, who take turns, also over blocks."""
    count = len(senders)
    shares = {sender: tuple(messages[(index - relay_block) % count :: count]) for index, sender in enumerate(senders)}
    return {sender: share for sender, share in sorted(shares.items()) if share}
