"""What chains tell: facts, small frozen values, each told when it has happened and in that order.

Law: a chain does not keep score. Whoever wants figures listens: a listener is a function of facts with its own state,
called while the chains still stand as the fact leaves them. A fact that is not told did not happen.

One tick tells, in this order:

1. ``TickBegan``,
2. ``MessagesQueued`` and ``MessagesRefused`` by the relay chain,
3. ``RelaySealed``,
4. ``BlockBuilt`` or ``BlockPanicked`` for each block of each parachain,
5. ``WasmBlockBuilt`` or ``WasmBlockRefused`` for each Wasm parachain.
"""

from collections.abc import Callable

from msgspec import Struct

from relaycast_collator.collator import Collation
from relaycast_collator.header import Header
from relaycast_collator.outbox import SentMessage
from relaycast_collator.parachain import ParachainBlock
from relaycast_collator.relay_chain import RelayBlock
from relaycast_collator.wasm_parachain import WasmBlock
from relaycast_xcm import ParaId


class TickBegan(Struct, frozen=True):
    """A tick begins: nothing has happened in it."""

    tick: int


class MessagesQueued(Struct, frozen=True):
    """The relay chain queued the upward messages that one parachain block sent in the tick before."""

    tick: int
    para_id: ParaId
    messages: tuple[SentMessage, ...]


class RelaySealed(Struct, frozen=True):
    """The relay chain sealed a block on ``parent``."""

    tick: int
    block: RelayBlock
    parent: RelayBlock


class MessagesRefused(Struct, frozen=True):
    """Messages for a parachain were refused to their senders because its queue or their channel was full."""

    tick: int
    para_id: ParaId
    refused_bytes: int


class InboundTotals(Struct, frozen=True):
    """Bytes of messages for a parachain: in its block, waiting after it, and refused since the start."""

    taken_bytes: int
    hashed_bytes: int
    """Bytes of the entries that stand in the block for messages that it has no room for."""

    waiting_bytes: int
    refused_bytes: int


class BlockBuilt(Struct, frozen=True):
    """A parachain built ``block`` on ``relay_parent``; the collation is what its collator had prepared."""

    tick: int
    para_id: ParaId
    relay_parent: RelayBlock
    collation: Collation
    parent: Header
    """The header of the parachain block that it stands on."""

    block: ParachainBlock
    inbound: InboundTotals
    honest: bool
    """False where the collator handed over something else than what it had prepared, or may have."""

    subscribes: bool
    """Whether the parachain had subscriptions when the block was built."""


class BlockPanicked(Struct, frozen=True):
    """A block was refused: the parachain stays at ``head``, and the messages wait for its next block."""

    tick: int
    para_id: ParaId
    relay_parent: RelayBlock
    collation: Collation
    head: Header
    reason: str
    inbound: InboundTotals
    honest: bool


class WasmBlockBuilt(Struct, frozen=True):
    """A Wasm parachain built ``block`` on ``relay_parent``; ``parent`` is the header of its block before."""

    tick: int
    para_id: ParaId
    relay_parent: RelayBlock
    parent: Header
    block: WasmBlock
    max_pov_size: int


class WasmBlockRefused(Struct, frozen=True):
    """A Wasm parachain built no block on ``relay_parent``, or one whose messages the relay chain refuses.

    ``log`` is what its code said.
    """

    tick: int
    para_id: ParaId
    relay_parent: RelayBlock
    head: Header
    reason: str
    log: tuple[str, ...] = ()


class ParachainLeft(Struct, frozen=True):
    """A parachain is off-boarded: it builds no more blocks."""

    tick: int
    para_id: ParaId


Fact = (
    TickBegan
    | MessagesQueued
    | RelaySealed
    | MessagesRefused
    | BlockBuilt
    | BlockPanicked
    | WasmBlockBuilt
    | WasmBlockRefused
    | ParachainLeft
)

Listener = Callable[[Fact], None]
