"""Runtime upgrades in a scenario: what changes on a chain from a relay block on.

Law: an upgrade changes what it names, and nothing else. To add an option, give the table a field and name the pallet's
constant in ``SUBSCRIBER_CONSTANTS`` or ``BROADCASTER_CONSTANTS``.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace

from relaycast.callback_time import limit_of
from relaycast.scenario.policy_choice import PolicyTable
from relaycast.scenario.ranges import (
    U32,
    Block,
    CallbackProofBytes,
    Count,
    Microseconds,
    PublishedBytes,
    TotalBytes,
    TrieDepth,
)
from relaycast_pallets.subscriber.policies import MAX_NODE_BYTES


class PolicyChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Policies that an upgrade replaces, by the names that ``[policies]`` has."""

    order: str | UnsetType = UNSET
    metering: str | UnsetType = UNSET
    root_commit: str | UnsetType = UNSET
    callback: str | UnsetType = UNSET
    cache: str | UnsetType = UNSET
    budget: str | UnsetType = UNSET
    deletion: str | UnsetType = UNSET
    advancement: str | UnsetType = UNSET
    max_cached_node: Annotated[int, Meta(ge=1, le=MAX_NODE_BYTES)] | UnsetType = UNSET
    """Bytes of the largest node that is kept."""

    def over(self, table: PolicyTable) -> PolicyTable:
        """Return ``table`` with the changes."""
        return replace(table, **given(self))


class KeysTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a parachain reads of one ``publisher`` after an upgrade."""

    publisher: U32
    keys: Count | Annotated[list[str], Meta(min_length=1)] | str = "all"
    """A number for the first ones, a range of numbers as in "100..150" (50 keys), a list of names, or all."""

    callback_us: Microseconds | UnsetType = UNSET
    """Computation time that a callback declares and takes, in microseconds.

    Without this and ``callback_proof_bytes``, keys that were read before keep what they had, and new ones have none.
    """

    callback_proof_bytes: CallbackProofBytes | UnsetType = UNSET
    """Bytes of proof that such a callback declares and takes, modelled."""


class UpgradeTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A runtime upgrade of a parachain: what its code does differently from then on."""

    at: Block
    """The relay block: the new code runs from the parachain's first block on this relay block or a later one."""

    max_trie_depth: TrieDepth | UnsetType = UNSET
    """Nodes on the way to a key beyond which a publisher is disabled.

    A lower limit holds for a path from its next change on.
    """

    max_value_bytes: Annotated[int, Meta(ge=1, le=1 << 20)] | UnsetType = UNSET
    """The longest value that the parachain expects: at least what the relay chain lets be published then."""

    max_publishers: Count | UnsetType = UNSET
    max_subscribed_keys: Count | UnsetType = UNSET
    """Keys that it reads of one publisher at a time."""

    max_total_keys: Count | UnsetType = UNSET
    """Keys that it reads at a time, of all publishers together."""

    max_cached_bytes: U32 | UnsetType = UNSET
    """Bytes of the trie nodes that it keeps."""

    callback_limit_us: Microseconds | UnsetType = UNSET
    """Microseconds that the callbacks of a block may declare; 0 is no limit."""

    subscribe: list[KeysTable] | UnsetType = UNSET
    """Subscriptions that replace all earlier ones, also those that ``subscribe`` plans for later blocks."""

    policies: PolicyChange | UnsetType = UNSET
    """Policies that it replaces; the others stay."""


class RelayUpgradeTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A runtime upgrade of the relay chain: other limits; what is published already stays."""

    at: Block
    """The first relay block that the new code builds."""

    max_value_bytes: PublishedBytes | UnsetType = UNSET
    """No parachain may expect less at any time."""

    max_stored_keys: Count | UnsetType = UNSET
    max_total_bytes: TotalBytes | UnsetType = UNSET
    max_publishers: Count | UnsetType = UNSET
    max_publishes_per_block: Count | UnsetType = UNSET
    """Publications of one publisher in one relay block."""


Constants = Mapping[str, tuple[str, Callable[[Any], object]]]
"""Each option's constant in the pallet's configuration, and the conversion of its value."""

SUBSCRIBER_CONSTANTS: Constants = {
    "max_trie_depth": ("max_trie_depth", int),
    "max_value_bytes": ("max_value_length", int),
    "max_publishers": ("max_publishers", int),
    "max_subscribed_keys": ("max_subscribed_keys", int),
    "max_total_keys": ("max_total_keys", int),
    "max_cached_bytes": ("max_cached_bytes", int),
    "callback_limit_us": ("callback_limit", limit_of),
}

BROADCASTER_CONSTANTS: Constants = {
    "max_value_bytes": ("max_value_length", int),
    "max_stored_keys": ("max_stored_keys", int),
    "max_total_bytes": ("max_total_storage_size", int),
    "max_publishers": ("max_publishers", int),
    "max_publishes_per_block": ("max_publishes_per_block", int),
}


def given(table: Struct) -> dict[str, Any]:
    """Return the fields that a table sets."""
    return {name: value for name, value in asdict(table).items() if value is not UNSET}


def constants_of(table: Struct, known: Constants) -> dict[str, Any]:
    """Return the pallet's constants that an upgrade sets."""
    return {known[name][0]: known[name][1](value) for name, value in given(table).items() if name in known}
