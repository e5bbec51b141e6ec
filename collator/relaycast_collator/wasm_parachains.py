"""The Wasm parachains of a relay chain: their blocks as facts, and the messages that these sent.

Law: the relay chain takes their messages within the limits that hold for all, and those to other parachains where a
channel is open. A block that sends others is one that it would refuse: they are dropped, and a fact says so.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from msgspec import UNSET, UnsetType, field

from relaycast_collator.facts import MessagesQueued, MessagesRefused, WasmBlockBuilt, WasmBlockRefused
from relaycast_collator.inbound import InboundState, InboundTracker
from relaycast_collator.outbox import Publication, SentMessage
from relaycast_collator.relay_chain import RelayBlock, RelayChain
from relaycast_collator.wasm_parachain import BlockNotBuilt, WasmBlock, WasmParachain, WasmParachainDump
from relaycast_pallets.messaging.hrmp_channel import HrmpChannelId
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie.exceptions import CodecError
from relaycast_xcm import ParaId, Publish
from relaycast_xcm.checkpoint import CheckpointRefused, Dump, refusing
from relaycast_xcm.exceptions import UpwardQueueError
from relaycast_xcm.instructions import SetTopic
from relaycast_xcm.message import decode_versioned_xcm

Upward = tuple[bytes, ...]
Horizontal = tuple[tuple[ParaId, bytes], ...]


class WasmParachainsDump(Dump, frozen=True):
    """The Wasm parachains; ``inbound`` is about messages for them, in the same order."""

    wasm_parachains: list[WasmParachainDump] = field(name="guests")
    inbound: list[InboundState]
    sent: list[tuple[ParaId, list[Upward], list[Horizontal]]]
    """For each block of the last tick the messages upward, and those to other parachains."""


class _Sent(NamedTuple):
    """What one block sent."""

    upward: Upward
    horizontal: Horizontal


class WasmParachains(dict[ParaId, WasmParachain]):
    """Wasm parachains by id, and the messages of their last blocks; ``inbound`` notes the messages that they take."""

    def __init__(self, relay_chain: RelayChain, inbound: InboundTracker) -> None:
        super().__init__()
        self._relay_chain, self._inbound = relay_chain, inbound
        self._sent: dict[ParaId, list[_Sent]] = {}

    def build(self, para_id: ParaId, relay_parent: RelayBlock, *, tick: int) -> WasmBlockBuilt | WasmBlockRefused:
        """Build the next block of a parachain on ``relay_parent``; what it sends is delivered in the next tick."""
        parachain = self[para_id]
        parent = parachain.head
        try:
            block = parachain.build_block(relay_parent, self._relay_chain)
        except BlockNotBuilt as refusal:
            return WasmBlockRefused(tick, para_id, relay_parent, parent, refusal.reason, refusal.log)
        self._inbound.take(para_id, block.taken)
        sent = _Sent(upward_messages(block), block.horizontal_messages)
        if any(sent):
            self._sent.setdefault(para_id, []).append(sent)
        return WasmBlockBuilt(tick, para_id, relay_parent, parent, block, parachain.max_pov_size)

    def deliver(self, *, tick: int) -> Iterator[MessagesQueued | MessagesRefused | WasmBlockRefused]:
        """Queue what Wasm parachains sent in the tick before, with the relay chain."""
        relay, sent = self._relay_chain, self._sent
        self._sent = {}
        for para_id, blocks in sent.items():
            for upward, horizontal in blocks:
                try:
                    relay.upward.receive(para_id, upward)
                except UpwardQueueError as error:
                    reason = f"the relay chain refuses its upward messages: {error}"
                    yield WasmBlockRefused(tick, para_id, relay.head, self[para_id].head, reason)
                else:
                    if upward:
                        yield MessagesQueued(tick, para_id, tuple(sent_message(data, tick=tick - 1) for data in upward))
                for recipient, data in horizontal:
                    yield from self._pass_on(para_id, recipient, data, tick=tick)

    def _pass_on(
        self, sender: ParaId, recipient: ParaId, data: bytes, *, tick: int
    ) -> Iterator[MessagesRefused | WasmBlockRefused]:
        """Put a message into the channel to its recipient; yield what refuses it."""
        relay = self._relay_chain
        if HrmpChannelId(sender, recipient) not in relay.hrmp.channels:
            reason = f"the relay chain refuses its message to {recipient}: there is no channel from {sender}"
            yield WasmBlockRefused(tick, sender, relay.head, self[sender].head, reason)
            return
        refused_bytes = relay.receive(recipient, (), {sender: (data,)})
        if refused_bytes:
            self._inbound.refuse(recipient, refused_bytes)
            yield MessagesRefused(tick, recipient, refused_bytes)

    def leave(self, para_id: ParaId) -> None:
        """Forget a Wasm parachain that is off-boarded, and what it sent last."""
        del self[para_id]
        self._sent.pop(para_id, None)

    def dump(self) -> WasmParachainsDump | UnsetType:
        """Return the state of the Wasm parachains as data, ``UNSET`` if there are none."""
        if not self:
            return UNSET
        sent = [
            (para_id, [it.upward for it in blocks], [it.horizontal for it in blocks])
            for para_id, blocks in self._sent.items()
        ]
        return WasmParachainsDump(
            [parachain.dump() for parachain in self.values()], [self._inbound[it] for it in self], sent
        )

    def load(self, dump: WasmParachainsDump | UnsetType) -> None:
        """Stand where another table's Wasm parachains stood, made like these; raises ``CheckpointRefused``."""
        found = WasmParachainsDump([], [], []) if isinstance(dump, UnsetType) else dump
        with refusing("the Wasm parachains"):
            known, given = list(self), [it.para_id for it in found.wasm_parachains]
            if given != known or len(found.inbound) != len(known):
                raise CheckpointRefused(f"got {given} with messages of {len(found.inbound)}, expected {known}")
            strangers = [int(para_id) for para_id, _, _ in found.sent if para_id not in self]
            if strangers:
                raise CheckpointRefused(f"messages of {strangers}, expected messages of {known}")
            for parachain, its_dump, inbound in zip(self.values(), found.wasm_parachains, found.inbound, strict=True):
                parachain.load(its_dump)
                self._inbound[parachain.para_id] = inbound
            self._sent = {
                para_id: [_Sent(*sent) for sent in zip(upward, horizontal, strict=True)]
                for para_id, upward, horizontal in found.sent
            }


def upward_messages(block: WasmBlock) -> tuple[bytes, ...]:
    """Return what the relay chain executes: signals to it stand behind an empty message (``UMPSignal``)."""
    return tuple(takewhile(len, block.upward_messages))


def sent_message(data: bytes, *, tick: int) -> SentMessage:
    """Return a message with the publications in it, up to the first instruction that interrupts them.

    Bytes that do not decode carry none: the relay chain says what becomes of them.
    """
    try:
        program = decode_versioned_xcm(data)
    except CodecError:
        return SentMessage(data, ())
    first = next((index for index, it in enumerate(program) if isinstance(it, Publish)), 0)
    run = takewhile(lambda it: isinstance(it, Publish), program[first:])
    published = tuple(
        Publication(SubscribedKey(it.key), it.value, it.ttl, tick, 0) for it in run if isinstance(it, Publish)
    )
    topic = program[-1].topic if program and isinstance(program[-1], SetTopic) else None
    return SentMessage(data, published, first, topic)
