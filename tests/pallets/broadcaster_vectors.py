"""Vectors of the broadcaster: what each says, the run of one through the pallets, and steps as they are written."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from string import ascii_lowercase
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from relaycast_node.chain.dispatcher import CannotBeMeant
from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.metadata.declarations import declare
from relaycast_node.metadata.runtime import EVENT, Runtime, RuntimeNames
from relaycast_pallets import Balances, Broadcaster, BroadcasterConfig, Origin, State, System
from relaycast_pallets.broadcaster.config import REGISTRATIONS
from relaycast_pallets.frame.dispatch import DispatchError
from relaycast_pallets.frame.typed_storage import BLAKE2_128_CONCAT, TWOX_64_CONCAT, storage_prefix
from relaycast_trie import CHILD_STORAGE_PREFIX, ChildInfo, StateVersion, trie_root
from relaycast_trie.hasher import blake2_256
from relaycast_xcm import AllowPublishFrom, OnlyParachains, XcmExecutor
from relaycast_xcm.broadcast import ParachainBroadcastAdapter
from relaycast_xcm.executor import Complete, Incomplete, Outcome
from relaycast_xcm.instructions import Instruction, Publish
from relaycast_xcm.location import Location
from relaycast_xcm.message import V5
from relaycast_xcm.primitives import DbWeight, ParaId, Weight
from relaycast_xcm.weigher import TEST_WEIGHTS
from vector_fields import (
    Drafted,
    Entry,
    Hash,
    Hex,
    Number,
    ParaNumber,
    U32Number,
    Vector,
    VectorSource,
    VectorWeight,
    entries,
    hexed,
    pairs_of,
    unhexed,
)


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


TTL_HASHERS = {hasher.name: hasher for hasher in (TWOX_64_CONCAT, BLAKE2_128_CONCAT)}

Ended = Literal["ok"] | StepRefusal

PARA_IDS = frozenset({"para_id", "publisher"})
"""Arguments of calls that are parachains' ids."""

LEFT_OUT = (storage_prefix("System", "Number"), storage_prefix("System", "ParentHash"))
"""Items that every block writes: no part of a vector's state."""


def config_of(limits: BroadcasterLimits) -> BroadcasterConfig:
    """Return the pallet's configuration that a vector gives."""
    return BroadcasterConfig(
        max_publishers=limits.max_publishers,
        max_stored_keys=limits.max_stored_keys,
        max_value_length=limits.max_value_length,
        max_total_storage_size=limits.max_total_storage_size,
        publisher_deposit=int(limits.publisher_deposit),
        max_ttl_scans_per_idle=limits.max_ttl_scans_per_idle,
        slash_on_force=limits.slash_on_force,
        registration=REGISTRATIONS[limits.registration],
        ttl_key_hasher=TTL_HASHERS[limits.ttl_key_hasher],
        db_weight=DbWeight(int(limits.db_weight.read), int(limits.db_weight.write)),
    )


@cache
def relay_types() -> Runtime:
    """Return the types of calls and events, made once: the pallets that it was made from run nothing."""
    system = System(State(window=1))
    balances = Balances(system)
    broadcaster = Broadcaster(system, balances)
    declared = [
        declare("System", 0, system),
        declare("Balances", 2, balances),
        declare("Broadcaster", 200, broadcaster),
    ]
    return Runtime(RuntimeNames("relaycast-relay"), declared, [system, balances, broadcaster])


class RelayPallets:
    """System, Balances and Broadcaster over one state, and the executor of XCM."""

    def __init__(self, limits: BroadcasterLimits, before: StateEntries | None = None) -> None:
        top = {} if before is None else pairs_of(before.top)
        children = [] if before is None else before.children
        named = {ChildInfo.new_default(unhexed(child.name)): pairs_of(child.entries) for child in children}
        self.state = State(top, window=1)
        for info, values in named.items():
            for key, value in values.items():
                self.state.child(info).put(key, value)
        self.system = System(self.state)
        self.balances = Balances(self.system, existential_deposit=int(limits.existential_deposit))
        self.broadcaster = Broadcaster(self.system, self.balances, config=config_of(limits))
        self.executor = XcmExecutor(
            AllowPublishFrom(OnlyParachains(), limits.max_publish_instructions),
            broadcast=ParachainBroadcastAdapter(OnlyParachains(), self.broadcaster),
            weigher=TEST_WEIGHTS,
        )

    def entries(self) -> StateEntries:
        """Return the whole state as vectors spell it."""
        top = {key: value for key, value in self.state.top.values.items() if self._is_told(key)}
        children = {info: self.state.child(info) for info in self.state.children()}
        told = [
            ChildEntries(hexed(info.storage_key), hexed(_root(child.values)), entries(child.values))
            for info, child in sorted(children.items())
        ]
        return StateEntries(entries(top), told, hexed(self.root()))

    def root(self) -> bytes:
        """Return the root over all entries, the roots of child tries among them."""
        top = {key: value for key, value in self.state.top.values.items() if self._is_told(key)}
        children = [(info, self.state.child(info)) for info in self.state.children()]
        return _root(top | {info.prefixed_storage_key(): _root(child.values) for info, child in children})

    def run(self, step: BroadcasterStep) -> StepResult:
        """Run one step. A refused one leaves no trace, although nothing is rolled back: the pallets check first."""
        if self.system.block_number != step.block:
            self.state.commit()
            self.system.initialize(step.block)
        self.system.events.take()
        result, consumed = self._result(step)
        types = relay_types()
        events = [hexed(types.encode(EVENT, (event.pallet, event))) for event in self.system.events]
        told = None if consumed is None else VectorWeight.of(consumed)
        return StepResult(result, events, hexed(self.root()), told)

    def _result(self, step: BroadcasterStep) -> tuple[Ended, Weight | None]:
        if step.xcm is not None:
            return self._execute(step.xcm)
        try:
            return "ok", self._act(step)()
        except DispatchError as refusal:
            return StepRefusal(type(refusal).__name__), None

    def _act(self, step: BroadcasterStep) -> Callable[[], Weight]:
        if step.on_idle is not None:
            remaining = step.on_idle.weight()
            return lambda: self.broadcaster.on_idle(remaining)
        if step.offboard is not None:
            outgoing = ParaId(step.offboard)
            return lambda: self.broadcaster.offboard_publishers([outgoing])
        if step.call is None:
            raise ValueError("a step is a call, an xcm message, on_idle or offboard")
        call, origin = relay_types().decode_call(unhexed(step.call)), origin_of(step.origin)
        return lambda: self._call(call, origin)

    def _call(self, call: DecodedCall, origin: Origin) -> Weight:
        given = {
            name: ParaId(value) if isinstance(value, int) and name in PARA_IDS else value
            for name, value in call.args.items()
        }
        try:
            used: Weight = getattr(self.broadcaster, call.name)(origin, **given)
        except ValueError as error:
            raise CannotBeMeant(str(error)) from error
        return used

    def _execute(self, sent: UpwardXcm) -> tuple[Ended, Weight | None]:
        message = V5.decode(unhexed(sent.message))
        outcome = self.executor.prepare_and_execute(Location.parachain(sent.sender), message)
        return told_outcome(outcome)

    def _is_told(self, key: bytes) -> bool:
        return key not in LEFT_OUT and not key.startswith(CHILD_STORAGE_PREFIX)


def told_outcome(outcome: Outcome) -> tuple[Ended, Weight | None]:
    """Return how a message ended as vectors tell it, and the weight that it used."""
    match outcome:
        case Complete(used):
            return "ok", used
        case Incomplete(used, failed):
            cause = None if failed.cause is None else type(failed.cause).__name__
            return StepRefusal(failed.error.name, failed.index, cause), used
        case refused:
            return StepRefusal(refused.error.name, cause=getattr(refused.cause, "name", None)), None


def origin_of(told: "str | CallOrigin | None") -> Origin:
    """Return the origin that a vector gives."""
    match told:
        case "root":
            return Origin.root()
        case CallOrigin(signed=str() as account):
            return Origin.signed(unhexed(account))
        case CallOrigin(parachain=int() as para_id):
            return Origin.parachain(para_id)
        case _:
            return Origin.none()


def recomputed(vector: BroadcasterVector) -> BroadcasterVector:
    """Return the vector with what its steps return and the state after them computed anew."""
    relay = RelayPallets(vector.config, vector.before)
    before = relay.entries()
    steps = [msgspec.structs.replace(step, expect=relay.run(step)) for step in vector.steps]
    return msgspec.structs.replace(vector, before=before, steps=steps, after=relay.entries())


def _root(values: Mapping[bytes, bytes]) -> bytes:
    return trie_root(values, state_version=StateVersion.V1)


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

ALICE, BOB = (bytes([byte]) * 32 for byte in (0xA1, 0xB0))
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
    before: StateEntries = field(init=False)
    _relay: RelayPallets = field(init=False)

    def __post_init__(self) -> None:
        self._relay = RelayPallets(self.limits)
        for account, funds in self.accounts:
            self._relay.balances.mint(account, funds)
        self.before = self._relay.entries()

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
        self.before = self._relay.entries()
        return self

    def vector(
        self, name: str, why: str, source: VectorSource, *, refused: str | None = None, keeps: str | None = None
    ) -> BroadcasterVector:
        """Return the vector of the steps since ``begin``.

        Its last step is ``refused`` with this error. Publisher 2000 ``keeps`` the keys with these letters as names.
        """
        drafted = BroadcasterVector(
            id=f"broadcaster/{name}",
            why=why,
            source=source,
            policies=policies_of(self.limits),
            config=self.limits,
            before=self.before,
            steps=list(self.steps),
        )
        made = recomputed(drafted)
        if refused is not None:
            assert _refusal(made.steps[-1]) == refused
        if keeps is not None:
            assert _kept(made) == keeps
        return made

    def _add(self, step: BroadcasterStep) -> "StepSequence":
        self.steps.append(step)
        return self


def _refusal(step: BroadcasterStep) -> str | None:
    """Return the error of a step, of a message the inner one."""
    assert step.expect
    result = step.expect.result
    return result.cause or result.error if isinstance(result, StepRefusal) else None


def _kept(vector: BroadcasterVector) -> str:
    relay = RelayPallets(vector.config, vector.after)
    kept = {*relay.broadcaster.storage.keys_of(ParaId(2_000))}
    return "".join(letter for letter in ascii_lowercase if key(letter) in kept)


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


ORIGINS: dict[str, Any] = {"root": "root", "none": "none", "signed": signed(ALICE), "parachain": parachain(2_000)}
"""Every kind of origin by its name in ids of vectors."""
