"""The broadcaster's limits, deposit and prices: named presets, each with its source.

The default is what the draft's plan recommends for Polkadot. Where a source is silent, a preset says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from relaycast_pallets.frame.typed_storage import TWOX_64_CONCAT, StorageHasher
from relaycast_pallets.frame.weights import CallWeight, Term, WeightTable
from relaycast_xcm.primitives import (
    LOWEST_PUBLIC_ID,
    ROCKS_DB,
    U32_MAX,
    U128_MAX,
    ZERO_DB,
    Balance,
    DbWeight,
    ParaId,
    Weight,
    u32,
)


class Registration(Protocol):
    """Whether an account may register ``para_id``."""

    def admits(self, para_id: ParaId) -> bool: ...


class PublicParachains(Struct, frozen=True):
    """Public parachains alone: a system parachain publishes unregistered, and nobody can become its manager."""

    def admits(self, para_id: ParaId) -> bool:
        return para_id >= LOWEST_PUBLIC_ID


class AnyParachain(Struct, frozen=True):
    """Any parachain, as in the drafts: whoever registers a system parachain may clean up what it published."""

    def admits(self, para_id: ParaId) -> bool:  # noqa: ARG002 - any
        return True


REGISTRATIONS: Mapping[str, Registration] = MappingProxyType({"public": PublicParachains(), "open": AnyParachain()})
"""Every policy by its name, the default first."""


UNITS = 10_000_000_000
"""One DOT in its smallest unit."""

_COUNTED = "accesses counted in relaycast_pallets/broadcaster.py"
_DRAFT = "the draft's formula (pallet broadcaster, do_delete_keys and on_idle)"
_PLACEHOLDER = f"the draft's placeholder weights.rs; {_COUNTED}"

_FORGET_KEY = Term(Weight(5_000_000), writes=2)
DRAFT_WEIGHTS = WeightTable.of(
    CallWeight("register_publisher", Term(Weight(20_000_000, 3_000), 3, 3), {}, _PLACEHOLDER),
    CallWeight("force_register_publisher", Term(Weight(15_000_000, 3_000), 3, 3), {}, _PLACEHOLDER),
    CallWeight("cleanup_published_data", Term(Weight(10_000_000), 3, 3), {"k": _FORGET_KEY}, _PLACEHOLDER),
    CallWeight("deregister_publisher", Term(Weight(10_000_000), 5, 6), {"k": _FORGET_KEY}, _PLACEHOLDER),
    CallWeight("force_deregister_publisher", Term(Weight(10_000_000), 5, 6), {"k": _FORGET_KEY}, _PLACEHOLDER),
    CallWeight("delete_keys", Term(reads=2, writes=1), {"n": Term(reads=1, writes=2)}, _DRAFT),
    CallWeight("force_delete_keys", Term(reads=1, writes=1), {"n": Term(reads=1, writes=2)}, _DRAFT),
    CallWeight("publish", Term(Weight(15_000_000), 5, 5), {}, f"Westend's placeholder for one item; {_COUNTED}"),
    CallWeight("on_idle", Term(reads=1), {"n": Term(reads=2, writes=4)}, _DRAFT),
)
"""What calls weigh before anyone has benchmarked them; ``k``: keys a publisher has, ``n``: keys given or scanned."""

_LARGEST: Mapping[object, int] = {u32: U32_MAX, Balance: U128_MAX}
"""The bounds of constants by their types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcasterConfig:
    """The pallet's ``Config``. Sizes in bytes, equality with a limit is allowed; ``ValueError`` for what cannot be."""

    name: str = "custom"
    source: str = "chosen by the user"

    max_publishers: u32 = 1_000
    max_stored_keys: u32 = 4_000
    """Keys of one publisher."""

    max_value_length: u32 = 2_048
    max_total_storage_size: u32 = 2_097_152
    """One publisher's sum of 32 bytes and the value's length over its keys."""

    publisher_deposit: Balance = 100 * UNITS
    max_publishes_per_block: u32 | None = None
    """Publications that a publisher may make in a relay block; unlimited by default, as in RFC-0160."""

    max_ttl_scans_per_idle: u32 = 500
    slash_on_force: bool = False
    """Whether ``force_deregister_publisher`` burns the deposit instead of giving it back."""

    registration: Registration = field(default_factory=PublicParachains)
    """Which ids an account may register; governance may register any."""

    ttl_key_hasher: StorageHasher = TWOX_64_CONCAT
    """How ``TtlData`` hashes its second key: the draft's code says Twox64Concat, its design Blake2_128Concat."""

    db_weight: DbWeight = ROCKS_DB
    weights: WeightTable = DRAFT_WEIGHTS

    def __post_init__(self) -> None:
        for constant in fields(self):
            value = getattr(self, constant.name)
            bound = _LARGEST.get(constant.type)
            if bound is not None and not 0 <= value <= bound:
                raise ValueError(f"{constant.name} is between 0 and {bound}, got {value}")
        publishes = self.max_publishes_per_block
        if publishes is not None and not 1 <= publishes <= U32_MAX:
            raise ValueError(f"max_publishes_per_block is between 1 and {U32_MAX}, or None, got {publishes}")
        if not self.ttl_key_hasher.keeps_key:
            raise ValueError(f"TtlData is scanned for its keys, {self.ttl_key_hasher} does not keep them")
        object.__setattr__(self, "weights", self.weights.over(DRAFT_WEIGHTS))

    def weight(self, call: str, **components: int) -> Weight:
        """Return the weight of ``call``; under a limit of publications, publish reads and writes their count too."""
        weight = self.weights[call].at(self.db_weight, **components)
        counted = call == "publish" and self.max_publishes_per_block is not None
        return weight + self.db_weight.reads_writes(1, 1) if counted else weight


POLKADOT = BroadcasterConfig(name="polkadot", source="the values that the draft's plan recommends for Polkadot")
DRAFT_MOCK = BroadcasterConfig(
    name="draft-mock",
    source="the mock runtime of the draft's broadcaster tests",
    max_stored_keys=50,
    max_value_length=1_024,
    max_total_storage_size=2_048,
    publisher_deposit=100,
    db_weight=ZERO_DB,
)
ROCOCO = BroadcasterConfig(
    name="rococo",
    source="blockdeep's Rococo runtime at 60b6d186; it had no total limit; its deposit is not known: Polkadot's",
    max_stored_keys=100,
    max_value_length=1_024,
    max_total_storage_size=U32_MAX,
)
SPEC = BroadcasterConfig(
    name="spec",
    source="MaxValueLength 2048 of the specification, room for 50 such values; the rest as the draft's mock",
    max_stored_keys=50,
    max_total_storage_size=50 * (32 + 2_048),
    publisher_deposit=100,
)
PRESETS = {config.name: config for config in (POLKADOT, DRAFT_MOCK, ROCOCO, SPEC)}
"""Every preset by its name."""
