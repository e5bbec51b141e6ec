"""A vector of the broadcaster: a state, steps that change it, what each step returns, and the state after them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from relaycast.vectors.vector import Drafted, Entry, Hash, Hex, Number, ParaNumber, U32Number, Vector, VectorWeight


class DbPrices(Struct, frozen=True, forbid_unknown_fields=True):
    """What a database read and a database write weigh, in picoseconds."""

    read: Number
    write: Number


class BroadcasterLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pallet's configuration."""

    max_publishers: U32Number
    max_stored_keys: U32Number
    max_value_length: U32Number
    max_total_storage_size: U32Number
    publisher_deposit: Number
    max_ttl_scans_per_idle: U32Number
    slash_on_force: bool
    registration: Literal["public", "open"]
    ttl_key_hasher: Literal["Twox64Concat", "Blake2_128Concat"]
    db_weight: DbPrices
    existential_deposit: Number
    """A constant of the balances pallet."""

    max_publish_instructions: U32Number
    """A constant of the barrier ``AllowPublishFrom``."""


class ChildEntries(Struct, frozen=True, forbid_unknown_fields=True):
    """A child trie that is not empty: its name without ``:child_storage:default:``, its root and its entries."""

    name: Hex
    root: Hash
    entries: list[Entry]


class StateEntries(Struct, frozen=True, forbid_unknown_fields=True):
    """A state: entries of the top trie but for the roots of child tries, the child tries, and the root over both."""

    top: list[Entry]
    children: list[ChildEntries]
    root: Hash


class CallOrigin(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Who makes a call: the account that signed, or a parachain."""

    signed: Hash | None = None
    parachain: ParaNumber | None = None


class UpwardXcm(Struct, frozen=True, rename={"sender": "from"}, forbid_unknown_fields=True):
    """An XCM message that a parachain sends to the relay chain."""

    sender: ParaNumber
    message: Hex


class StepRefusal(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Why a step failed. Of an XCM message: ``index`` is the instruction that failed, ``cause`` the inner error."""

    error: str
    index: U32Number | None = None
    cause: str | None = None


class StepResult(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a step returns, the events that it deposits, the weight that it uses, and the root of the state after it."""

    result: Literal["ok"] | StepRefusal
    events: list[Hex]
    root: Hash
    consumed: VectorWeight | None = None


class BroadcasterStep(Drafted, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One of: a ``call`` by an ``origin``, an ``xcm`` message, ``on_idle`` with a weight, a parachain to offboard."""

    computed = ("expect",)
    block: U32Number
    origin: Literal["root", "none"] | CallOrigin | None = None
    call: Hex | None = None
    xcm: UpwardXcm | None = None
    on_idle: VectorWeight | None = None
    offboard: ParaNumber | None = None
    expect: StepResult | None = None


class BroadcasterVector(Vector, frozen=True, kw_only=True):
    """A sequence of steps."""

    computed = ("after",)
    config: BroadcasterLimits
    before: StateEntries
    steps: Annotated[list[BroadcasterStep], Meta(min_length=1)]
    after: StateEntries | None = None
