"""A sequence of steps while it is written: what came before, the steps, and the vector that they make."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from relaycast.vectors.broadcaster.broadcaster_run import RelayPallets, recomputed, relay_types
from relaycast.vectors.broadcaster.broadcaster_vector import (
    BroadcasterLimits,
    BroadcasterStep,
    BroadcasterVector,
    CallOrigin,
    DbPrices,
    StateEntries,
    UpwardXcm,
)
from relaycast.vectors.vector import VectorSource, VectorWeight, hexed
from relaycast_trie.hasher import blake2_256
from relaycast_xcm.instructions import Instruction, Publish
from relaycast_xcm.message import V5
from relaycast_xcm.primitives import Weight

LIMITS = BroadcasterLimits(
    max_publishers=3,
    max_stored_keys=5,
    max_value_length=2_048,
    max_total_storage_size=4_096,
    publisher_deposit=100,
    max_ttl_scans_per_idle=500,
    slash_on_force=False,
    registration="public",
    ttl_key_hasher="Twox64Concat",
    db_weight=DbPrices(25_000_000, 100_000_000),
    existential_deposit=1,
    max_publish_instructions=16,
)
"""The configuration of most vectors: limits that a few steps reach, RocksDB's prices."""

ALICE, BOB, CAROL = (bytes([byte]) * 32 for byte in (0xA1, 0xB0, 0xCA))
FUNDS = 10_000


def key(name: str) -> bytes:
    """Return the published key that is called ``name``."""
    return blake2_256(name.encode())


@dataclass(slots=True)
class StepSequence:
    """Steps that become a vector; what is done ``before`` the first step is its state before."""

    limits: BroadcasterLimits = LIMITS
    accounts: tuple[tuple[bytes, int], ...] = ((ALICE, FUNDS),)
    """Accounts with what they have."""

    block: int = 1
    steps: list[BroadcasterStep] = field(default_factory=list)
    _relay: RelayPallets = field(init=False)
    _before: StateEntries | None = None

    def __post_init__(self) -> None:
        self._relay = RelayPallets(self.limits)
        for account, funds in self.accounts:
            self._relay.balances.mint(account, funds)

    def register(self, para_id: int, manager: bytes = ALICE) -> "StepSequence":
        return self.call("register_publisher", signed(manager), para_id=para_id)

    def force_register(self, para_id: int, manager: bytes = ALICE, *, deposit: int = 0) -> "StepSequence":
        return self.call("force_register_publisher", "root", manager=manager, deposit=deposit, para_id=para_id)

    def deregister(self, para_id: int, manager: bytes = ALICE) -> "StepSequence":
        return self.call("deregister_publisher", signed(manager), para_id=para_id)

    def force_deregister(self, para_id: int) -> "StepSequence":
        return self.call("force_deregister_publisher", "root", para_id=para_id)

    def clean_up(self, para_id: int, manager: bytes = ALICE) -> "StepSequence":
        return self.call("cleanup_published_data", signed(manager), para_id=para_id)

    def delete(self, para_id: int, *names: str) -> "StepSequence":
        """Let a parachain delete keys of its own."""
        return self.call("delete_keys", parachain(para_id), keys=[key(name) for name in names], publisher=None)

    def delete_of(self, publisher: int, *names: str, origin: Any) -> "StepSequence":
        """Delete keys of a publisher that the call names."""
        return self.call("delete_keys", origin, keys=[key(name) for name in names], publisher=publisher)

    def force_delete(self, publisher: int, *names: str, origin: Any = "root") -> "StepSequence":
        return self.call("force_delete_keys", origin, publisher=publisher, keys=[key(name) for name in names])

    def call(self, name: str, origin: Any, **arguments: Any) -> "StepSequence":
        """Add a call of the pallet."""
        encoded = relay_types().encode_call("Broadcaster", name, **arguments)
        return self._add(BroadcasterStep(block=self.block, origin=origin, call=hexed(encoded)))

    def publish(self, para_id: int, name: str, value: bytes, *, ttl: int = 0) -> "StepSequence":
        return self.message(para_id, Publish(key(name), value, ttl))

    def message(self, para_id: int, *instructions: Instruction) -> "StepSequence":
        """Add an XCM message of a parachain."""
        sent = UpwardXcm(para_id, hexed(V5.encode(instructions)))
        return self._add(BroadcasterStep(block=self.block, xcm=sent))

    def on_idle(self, remaining: Weight = Weight.MAX) -> "StepSequence":
        return self._add(BroadcasterStep(block=self.block, on_idle=VectorWeight.of(remaining)))

    def offboard(self, para_id: int) -> "StepSequence":
        return self._add(BroadcasterStep(block=self.block, offboard=para_id))

    def at(self, block: int) -> "StepSequence":
        """Let the next steps happen in this block."""
        self.block = block
        return self

    def begin(self) -> "StepSequence":
        """Make all that was done so far the state before, and begin the vector here."""
        for step in self.steps:
            self._relay.run(step)
        self.steps.clear()
        self._before = self._relay.entries()
        return self

    def vector(self, name: str, why: str, source: VectorSource) -> BroadcasterVector:
        """Return the vector of the steps since ``begin``."""
        before = self._before or self._relay.entries()
        drafted = BroadcasterVector(
            id=f"broadcaster/{name}",
            why=why,
            source=source,
            policies=policies_of(self.limits),
            config=self.limits,
            before=before,
            steps=list(self.steps),
        )
        return recomputed(drafted)

    def _add(self, step: BroadcasterStep) -> "StepSequence":
        self.steps.append(step)
        return self


def policies_of(limits: BroadcasterLimits) -> dict[str, str]:
    """Return the choices of a configuration that are not the defaults."""
    told: dict[str, str] = {"registration": limits.registration, "ttl_key_hasher": limits.ttl_key_hasher}
    told["slash_on_force"] = str(limits.slash_on_force).lower()
    defaults = {"registration": "public", "ttl_key_hasher": "Twox64Concat", "slash_on_force": "false"}
    return {name: value for name, value in told.items() if value != defaults[name]}


def with_limits(**changes: Any) -> StepSequence:
    """Return a sequence under other limits."""
    return StepSequence(msgspec.structs.replace(LIMITS, **changes))


def signed(account: bytes) -> CallOrigin:
    return CallOrigin(signed=hexed(account))


def parachain(para_id: int) -> CallOrigin:
    return CallOrigin(parachain=para_id)
