"""The pallets of a relay chain that run the steps of a broadcaster's vector."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal

import msgspec

from relaycast.vectors.broadcaster.broadcaster_vector import (
    BroadcasterLimits,
    BroadcasterStep,
    BroadcasterVector,
    CallOrigin,
    ChildEntries,
    StateEntries,
    StepRefusal,
    StepResult,
    UpwardXcm,
)
from relaycast.vectors.vector import VectorWeight, entries, hexed, pairs_of, unhexed
from relaycast_node.chain.dispatcher import CannotBeMeant
from relaycast_node.extrinsic.decoded_call import DecodedCall
from relaycast_node.metadata.declarations import declare
from relaycast_node.metadata.runtime import EVENT, Runtime, RuntimeNames
from relaycast_pallets import Balances, Broadcaster, BroadcasterConfig, Origin, State, System
from relaycast_pallets.broadcaster.registration import REGISTRATIONS
from relaycast_pallets.frame.dispatch import DispatchError
from relaycast_pallets.frame.typed_storage import BLAKE2_128_CONCAT, TWOX_64_CONCAT, storage_prefix
from relaycast_trie import CHILD_STORAGE_PREFIX, ChildInfo, StateVersion, trie_root
from relaycast_xcm import AllowPublishFrom, OnlyParachains, XcmExecutor
from relaycast_xcm.broadcast import ParachainBroadcastAdapter
from relaycast_xcm.location import Location
from relaycast_xcm.message import V5
from relaycast_xcm.outcome import Complete, Incomplete, Outcome
from relaycast_xcm.primitives import DbWeight, ParaId, Weight
from relaycast_xcm.weigher import TEST_WEIGHTS

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
        """Run one step, a refused one without a trace."""
        if self.system.block_number != step.block:
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
            with self.state.transaction():
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
