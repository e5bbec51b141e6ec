"""Random networks, three kinds of trouble at a time: alternative policies, limits, upgrades, messages, interruptions.

Law: no honest block panics. A network that was loaded from a dump, at whatever block, continues as the one that ran.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from collator.networks import PUBLISHER, SUBSCRIBER, keys
from relaycast_collator import BlockBuilt, BlockPanicked, ChainSimulator, Fact, Messages, Pace, ParachainUpgrade
from relaycast_collator.chains import ChainsDump
from relaycast_pallets import CumulusSixths, Floor, Origin, Policies, Remaining, SubscribedKey, SubscriberConfig
from relaycast_pallets.parachain_system.relay_budget import BudgetPolicy
from relaycast_pallets.subscriber import policies as policy
from relaycast_pallets.subscriber.errors import NoCachedNodes, PublisherRootNotFound
from relaycast_pallets.subscriber.variants import drafts
from relaycast_pallets.subscriber.variants.deletions import NotifyDeletions
from relaycast_pallets.subscriber.variants.metered_state import MeterOwnState
from relaycast_trie import blake2_256
from relaycast_xcm import ParaId
from relaycast_xcm.checkpoint import decoded, encoded

SYSTEM = ParaId(1_000)
PUBLISHERS = (SYSTEM, PUBLISHER)
STOCK = tuple(map(SubscribedKey, keys(40)))
ENOUGH = 9_000
"""Bytes of a budget that every key fits into."""

Step = tuple[str, ParaId, int, int]
"""What happens before a tick: an action, a publisher, and the first and the number of its keys."""

ACTIONS = ("publish", "publish", "publish", "delete", "subscribe", "unsubscribe", "clear cache", "clear root", "expire")

BEGINNING: tuple[Step, ...] = (
    *(("subscribe", publisher, 0, 12) for publisher in PUBLISHERS),
    *(("publish", publisher, 0, 30) for publisher in PUBLISHERS),
)

some_policies = st.builds(
    Policies,
    order=st.sampled_from([policy.SystemFirstShuffled(), drafts.SystemFirstNumeric()]),
    metering=st.sampled_from([policy.EveryRead(), MeterOwnState(), drafts.ValuesOnly()]),
    root_commit=st.sampled_from([policy.WhenPublisherDone(), drafts.AfterFirstKey(), drafts.ForgetUnchanged()]),
    callback=st.sampled_from([policy.ChangedKeys(), drafts.AllKeysOnChange()]),
    cache=st.sampled_from([policy.StructureNodes(), policy.StructureNodes(300), drafts.NoCache()]),
    deletion=st.sampled_from([policy.IgnoreDeletions(), NotifyDeletions()]),
    advancement=st.sampled_from([policy.Advanced(), drafts.Basic()]),
)
budgets: st.SearchStrategy[BudgetPolicy] = st.one_of(
    st.integers(600, 4_000).map(lambda size: Remaining(limit_bytes=size)),
    st.just(CumulusSixths()),
    st.integers(600, 4_000).map(Floor),
)
limits = st.fixed_dictionaries(
    {},
    optional={
        "max_publishers": st.integers(1, 3),
        "max_subscribed_keys": st.integers(1, 30),
        "max_total_keys": st.integers(1, 40),
        "max_cached_bytes": st.integers(0, 3_000),
        "max_trie_depth": st.integers(4, 16),
    },
)
steps: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(ACTIONS), st.sampled_from(PUBLISHERS), st.integers(0, 30), st.integers(1, 20)
)


@dataclass(frozen=True)
class Plan:
    """A network and its history: what happens before each tick, and after which one it is put away and loaded."""

    policies: Policies = Policies()  # noqa: RUF009 - a frozen value
    limits: Mapping[str, Any] = field(default_factory=dict)
    budget: BudgetPolicy = Remaining()  # noqa: RUF009 - a frozen value
    max_pov_size: int = 30_000
    pace: Pace = Pace()  # noqa: RUF009 - a frozen value
    upgrades: tuple[ParachainUpgrade, ...] = ()
    message_bytes: tuple[int, ...] = ()
    lies_at: frozenset[int] = frozenset()
    history: tuple[tuple[Step, ...], ...] = ()
    loaded_at: int = 1


def fits(policies: Policies, limits: Mapping[str, Any]) -> bool:
    return "max_cached_bytes" not in limits or not policies.metering.charges_own_state


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw a plan with three kinds of trouble."""
    history = draw(st.lists(st.lists(steps, max_size=4).map(tuple), min_size=6, max_size=14).map(tuple))
    plan = Plan(history=history, loaded_at=draw(st.integers(1, len(history) - 1)), pace=draw(paces))
    kinds = ("policies", "limits", "upgrades", "messages", "interruptions")
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=3, max_size=3, unique=True)):
        plan = replace(plan, **draw(TROUBLES[kind]))
    if not fits(plan.policies, plan.limits):
        plan = replace(plan, limits={name: it for name, it in plan.limits.items() if name != "max_cached_bytes"})
    config, chosen, upgrades = dict(plan.limits), plan.policies, []
    for upgrade in plan.upgrades:
        chosen = upgrade.policies or chosen
        config |= upgrade.constants
        if fits(chosen, config):
            upgrades.append(upgrade)
    return replace(plan, upgrades=tuple(upgrades))


paces = st.builds(Pace, relay_blocks=st.integers(1, 2), cores=st.integers(1, 2), relay_parent_offset=st.integers(0, 2))
upgrade_lists = st.lists(
    st.builds(
        ParachainUpgrade,
        at=st.integers(2, 12),
        constants=limits.map(lambda it: {name: value for name, value in it.items() if name != "max_publishers"}),
        policies=st.none() | some_policies,
        budget=st.none() | budgets,
    ),
    max_size=3,
).map(lambda found: tuple(sorted(found, key=lambda it: it.at)))
TROUBLES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "policies": st.fixed_dictionaries({"policies": some_policies}),
    "limits": st.fixed_dictionaries({"limits": limits}),
    "upgrades": st.fixed_dictionaries({"upgrades": upgrade_lists}),
    "messages": st.fixed_dictionaries(
        {"message_bytes": st.lists(st.integers(0, 6_000), min_size=1, max_size=6).map(tuple)}
    ),
    "interruptions": st.fixed_dictionaries(
        {"budget": budgets, "max_pov_size": st.integers(12_000, 40_000)},
        optional={"lies_at": st.frozensets(st.integers(1, 12), max_size=3)},
    ),
}


class RandomNetwork:
    """The chains of a plan: two publishers, and a reader of what its history subscribes to."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.chains = ChainSimulator(seed=7, window=8)
        for publisher in PUBLISHERS:
            self.chains.add_parachain(publisher)
        self.chains.register_publisher(PUBLISHER)
        config = replace(SubscriberConfig(max_value_length=2_048), **plan.limits)
        self.reader = self.chains.add_parachain(
            SUBSCRIBER,
            config=config,
            policies=plan.policies,
            budget=plan.budget,
            max_pov_size=plan.max_pov_size,
            pace=plan.pace,
        )
        self.chains.upgrades.schedule(parachains={SUBSCRIBER: plan.upgrades})
        if plan.message_bytes:
            self.chains.traffic[SUBSCRIBER] = self._messages
        self.facts: list[Fact] = []

    def _messages(self, relay_block: int) -> Messages:
        sizes = self.plan.message_bytes
        drawn = [sizes[(relay_block + place) % len(sizes)] for place in range(relay_block % 4)]
        return tuple(bytes(size // 3) for size in drawn[:2]), tuple(map(bytes, drawn))

    def twin(self) -> "RandomNetwork":
        """Return another network of the plan that stands where this one stands."""
        other = RandomNetwork(self.plan)
        other.chains.load(decoded(encoded(self.chains.dump()), ChainsDump))
        return other

    def tick(self, happens: tuple[Step, ...]) -> list[Fact]:
        for action in happens:
            self._act(*action)
        is_lie = self.chains.tick + 1 in self.plan.lies_at
        self.chains.collators[SUBSCRIBER].tamper = _lie if is_lie else None
        return self.chains.step()

    def _act(self, action: str, publisher: ParaId, first: int, count: int) -> None:
        chosen = STOCK[first : first + count]
        if action in {"publish", "expire"}:
            for place, key in enumerate(chosen):
                value = blake2_256(b"%d/%d" % (self.chains.tick, place)) * (1 + place % 3 * 4)
                self.chains.parachains[publisher].publish(key, value, ttl=3 if action == "expire" else 0)
        elif action == "delete":
            broadcaster = self.chains.relay_chain.broadcaster
            weight = broadcaster.config.weight("delete_keys", n=len(chosen))
            self.chains.call(
                lambda: broadcaster.delete_keys(Origin.parachain(publisher), list(chosen)), declared=weight
            )
        elif action == "subscribe":
            for key in chosen:  # as many as the limits allow
                with suppress(ValueError):
                    self.chains.subscribe(SUBSCRIBER, publisher, [key])
        elif action == "unsubscribe":
            self.chains.unsubscribe(SUBSCRIBER, publisher, list(chosen))
        else:
            subscriber = self.reader.subscriber
            clear = subscriber.clear_publisher_cache if action == "clear cache" else subscriber.clear_stored_roots
            with suppress(NoCachedNodes, PublisherRootNotFound):
                clear(Origin.root(), publisher)


def _lie(inherent: Any) -> Any:
    return replace(inherent, relay_chain_state=inherent.relay_chain_state[:-1])


def outcomes(facts: list[Fact]) -> list[object]:
    """Return what each block of the reader came to."""
    found: list[object] = []
    for fact in facts:
        if isinstance(fact, BlockBuilt):
            block = fact.block
            found.append((block.header.hash, block.inherent, block.updates, block.deletions, block.events))
        elif isinstance(fact, BlockPanicked):
            found.append(fact.reason)
    return found


def no_honest_block_panicked(facts: list[Fact]) -> None:
    panics = [fact.reason for fact in facts if isinstance(fact, BlockPanicked) and fact.honest]
    assert not panics


@given(plans())
def test_networks_with_three_kinds_of_trouble(plan: Plan) -> None:
    network, twin = RandomNetwork(plan), None
    for number, happens in enumerate((BEGINNING, *plan.history)):
        if number == plan.loaded_at:
            twin = network.twin()
        facts = network.tick(happens)
        no_honest_block_panicked(facts)
        if twin is not None:
            assert outcomes(twin.tick(happens)) == outcomes(facts)
    assert twin is not None
    event("delivered" if network.reader.kept.values else "nothing delivered")
    assert encoded(twin.chains.dump()) == encoded(network.chains.dump())
