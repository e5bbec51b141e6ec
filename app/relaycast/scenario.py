"""Scenarios: what a simulation is made of, in files shaped like zombienet's.

Law: a scenario is strict. A name that is not known, a number out of range or a reference to nobody raises ``BadInput``
with the path inside the file, before anything runs. Presets are folded in once it is read, so that its digest names
the run.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from relaycast.policy_choice import PolicyTable, check_policies
from relaycast.refusal import BadInput, shown

if TYPE_CHECKING:
    from relaycast.recording import Recording

U32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
ValueBytes = Annotated[int, Meta(ge=0, le=1 << 20)]

MAX_BLOCKS = 1_000_000
MAX_SEED = 2**63 - 1


class Publish(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a parachain publishes: ``keys`` named ``prefix/0``, ``prefix/1``, ..., ``changed`` of them at a time."""

    keys: Count
    value_bytes: ValueBytes | Annotated[list[ValueBytes], Meta(min_length=1)] = 16
    """One size for all keys, or sizes that take turns."""

    every: Count = 1
    """Relay blocks between publications; the first one, at block 1, sends every key."""

    changed: Count | None = None
    """Keys that a publication sends, in turns; all of them where it is not given."""

    ttl: U32 = 0
    """Relay blocks until an entry expires; 0 is never."""

    prefix: str = "key"

    def size_of(self, index: int) -> int:
        """Return the bytes of the value of the key numbered ``index``."""
        if isinstance(self.value_bytes, int):
            return self.value_bytes
        return self.value_bytes[index % len(self.value_bytes)]


class Subscription(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a parachain reads of one ``publisher``: the first so many ``keys``, some by name, or all."""

    publisher: U32
    keys: Count | Annotated[list[str], Meta(min_length=1)] | Literal["all"] = "all"


class Parachain(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A parachain: it publishes, subscribes, or does both."""

    id: U32
    name: str = ""
    publish: Publish | None = None
    subscribe: list[Subscription] = []
    used_pov_bytes: Annotated[int, Meta(ge=0)] = 0
    """Bytes of every block's PoV that its messages take before the relay proof is considered."""


class RelayChain(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The relay chain: where it starts from, and its limits."""

    genesis: str | None = None
    """A raw chain spec, its path relative to the scenario file; an almost empty state where it is not given."""

    block_seconds: Annotated[float, Meta(gt=0, le=3600)] = 6.0
    max_pov_bytes: Annotated[int, Meta(ge=4_096, le=1 << 30)] = 5_242_880
    """At least about what every block brings along, pub-sub or not."""

    pov_percent: Annotated[int, Meta(ge=1, le=100)] = 85
    """Of the maximum that collators use."""

    max_publishers: Count = 1_000
    max_stored_keys: Count = 4_000
    max_value_bytes: Annotated[int, Meta(ge=1, le=2_048)] = 2_048
    """At most what a ``Publish`` instruction can carry."""

    max_total_bytes: Annotated[int, Meta(ge=1, le=2**32 - 1)] = 2_097_152

    @property
    def allowed_pov_bytes(self) -> int:
        """Return what a block may bring along."""
        return self.max_pov_bytes * self.pov_percent // 100


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A relay chain, parachains, and how long they run."""

    parachains: Annotated[list[Parachain], Meta(min_length=1)]
    name: str = "scenario"
    description: str = ""
    extends: str | None = None
    """Where the rest came from; it is folded in already."""

    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] = 0
    blocks: Annotated[int, Meta(ge=1, le=MAX_BLOCKS)] = 60
    """With recorded ``publications``, unless given, as many as they have and two more, in which the last arrive."""

    publications: str | None = None
    """Recorded publications in CSV or Parquet, the path relative to the scenario file: block, para_id, key, value, ttl.

    A parachain that is in there needs no ``publish``.
    """

    relaychain: RelayChain = RelayChain()
    policies: PolicyTable = PolicyTable()

    def publishers(self) -> dict[int, Publish]:
        """Return what is published, by parachain."""
        return {chain.id: chain.publish for chain in self.parachains if chain.publish is not None}

    def recording(self) -> "Recording | None":
        """Return what is recorded in ``publications``, all of it checked; raises ``BadInput``."""
        if self.publications is None:
            return None
        from relaycast.recording import Terms, recording  # noqa: PLC0415 - pyarrow is slow to load

        by_rule = frozenset(self.publishers())
        others = frozenset(chain.id for chain in self.parachains) - by_rule
        return recording(self.publications, Terms(others, by_rule, self.relaychain.max_value_bytes))

    def subscribers(self) -> list[Parachain]:
        """Return the parachains that read."""
        return [chain for chain in self.parachains if chain.subscribe]


def key_name(publish: Publish, index: int) -> str:
    """Return the name that is hashed into the key numbered ``index``."""
    return f"{publish.prefix}/{index}"


def check_references(scenario: Scenario, place: str) -> None:
    """Raise ``BadInput`` where the parts of a scenario, each fine in itself, do not fit together."""
    check_policies(scenario.policies, f"{place} at policies")
    recorded = scenario.recording()
    seen: dict[int, int] = {}
    for index, chain in enumerate(scenario.parachains):
        here = f"{place} at parachains[{index}]"
        if chain.id in seen:
            raise BadInput(f"{here}.id", f"{chain.id}, the id of parachains[{seen[chain.id]}]", "an id of its own")
        seen[chain.id] = index
        if chain.publish is None and not chain.subscribe and (recorded is None or chain.id not in recorded.keys):
            raise BadInput(here, f"parachain {chain.id} with nothing to do", "publish, subscribe, or both")
        if chain.publish is not None:
            _check_publish(chain.publish, scenario.relaychain, f"{here}.publish")
    for place_and_subscription in _subscriptions(scenario, place):
        _check_subscription(scenario, recorded, *place_and_subscription)
    if not scenario.subscribers():
        raise BadInput(place, "a scenario in which nobody subscribes", "at least one parachain with subscribe")


def _check_publish(publish: Publish, relay: RelayChain, place: str) -> None:
    if publish.keys > relay.max_stored_keys:
        raise BadInput(
            f"{place}.keys", str(publish.keys), f"at most relaychain.max_stored_keys = {relay.max_stored_keys}"
        )
    largest = max(publish.size_of(index) for index in range(publish.keys))
    if largest > relay.max_value_bytes:
        raise BadInput(
            f"{place}.value_bytes", str(largest), f"at most relaychain.max_value_bytes = {relay.max_value_bytes}"
        )
    total = sum(32 + publish.size_of(index) for index in range(publish.keys))
    if total > relay.max_total_bytes:
        got = f"{total:,} bytes in all keys and values"
        raise BadInput(place, got, f"at most relaychain.max_total_bytes = {relay.max_total_bytes:,}")
    if publish.changed is not None and publish.changed > publish.keys:
        raise BadInput(f"{place}.changed", str(publish.changed), f"at most keys = {publish.keys}")


def _subscriptions(scenario: Scenario, place: str) -> Iterator[tuple[Subscription, str]]:
    for index, chain in enumerate(scenario.parachains):
        read: set[int] = set()
        for number, subscription in enumerate(chain.subscribe):
            here = f"{place} at parachains[{index}].subscribe[{number}]"
            if subscription.publisher in read:
                raise BadInput(f"{here}.publisher", f"{subscription.publisher} again", "every publisher once")
            read.add(subscription.publisher)
            yield subscription, here


def _check_subscription(
    scenario: Scenario, recorded: "Recording | None", subscription: Subscription, place: str
) -> None:
    if recorded is not None and subscription.publisher in recorded.keys:
        recorded.subscribed(subscription.publisher, subscription.keys, f"{place}.keys")
        return
    publish = scenario.publishers().get(subscription.publisher)
    if publish is None:
        publishers = [*scenario.publishers(), *(() if recorded is None else recorded.keys)]
        known = ", ".join(map(str, publishers)) or "none"
        raise BadInput(
            f"{place}.publisher", str(subscription.publisher), f"the id of a parachain that publishes ({known})"
        )
    if isinstance(subscription.keys, int) and subscription.keys > publish.keys:
        raise BadInput(f"{place}.keys", str(subscription.keys), f"at most the {publish.keys} keys that are published")
    if isinstance(subscription.keys, list):
        names = {key_name(publish, index) for index in range(publish.keys)}
        for name in subscription.keys:
            if name not in names:
                last = key_name(publish, publish.keys - 1)
                raise BadInput(f"{place}.keys", shown(name), f"a published name, {key_name(publish, 0)} to {last}")
