"""What a block carries whatever is published in it: the part of a prediction that is measured, not derived.

It depends on the relay chain's whole state, so no closed form of a few numbers has it. ``GROUNDS`` holds what the
presets measure (``relaycast demo config-sync``, with and without ``--genesis``); a test holds them to it.
"""

from msgspec import Struct


class Ground(Struct, frozen=True):
    """The constants of one relay chain state; sizes in bytes of one parachain block."""

    name: str
    source: str
    static_bytes: int
    """Bytes of the relay proof for the keys that every parachain block proves, subscriptions or none."""

    top_bytes: int
    """Bytes of the relay proof for the way to one publisher's child root, beside the nodes of the static keys."""

    own_bytes: int = 406
    """Bytes of own state, as a compact proof, that a block carries if no publisher changed and no message came."""

    own_changed_bytes: int = 430
    """The same when one did, without the upkeep of its node cache.

    Fitted: what is left of measured blocks beside ``cache_upkeep_bytes``, within 5 % of the whole.
    """

    @property
    def proof_bytes(self) -> int:
        """The relay proof of a block in which nothing changed."""
        return self.static_bytes + self.top_bytes


MODELLED = Ground("modelled", "the modelled genesis: 512 entries evenly spread", static_bytes=5_097, top_bytes=67)
KUSAMA = Ground("kusama", "Kusama's genesis: shallow where parachains read it", static_bytes=1_717, top_bytes=134)
BARE = Ground(
    "bare", "nothing: the publisher's part alone", static_bytes=0, top_bytes=0, own_bytes=0, own_changed_bytes=0
)

GROUNDS = {ground.name: ground for ground in (MODELLED, KUSAMA, BARE)}
"""Every ground by its name."""
