"""The broadcaster against a model of dictionaries, over thousands of random steps.

After every step each storage item, each child trie and each deposit is what the model says. A refused call changes
nothing at all. Money is neither made nor lost but by a slash.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from long_hauls import soak
from pallets.relay import ALICE, BOB, CAROL, Relay
from relaycast_pallets import (
    AlreadyRegistered,
    BroadcasterConfig,
    DispatchError,
    InsufficientBalance,
    KeyExpired,
    NoDataToCleanup,
    NotManager,
    NotPublicParachain,
    NotRegistered,
    Origin,
    TooManyKeys,
    TooManyPublishers,
    TooManyPublishes,
    TotalStorageSizeExceeded,
    ValueTooLarge,
)
from relaycast_pallets.frame.state_dump import StateDump
from relaycast_xcm.primitives import ZERO_DB, ParaId, Weight
from searches import examples

PARAS = [ParaId(para) for para in (1_000, 1_999, 2_000, 2_001, 2_002)]
ACCOUNTS = [ALICE, BOB, CAROL]
KEYS = [bytes([number]) * 32 for number in range(6)]
FUNDS = 250

paras, accounts, keys = st.sampled_from(PARAS), st.sampled_from(ACCOUNTS), st.sampled_from(KEYS)
key_lists = st.lists(keys, max_size=8)
values = st.sampled_from([b"", b"x", bytes(23), bytes(24), bytes(40), bytes(41)])
ttls = st.sampled_from([0, 0, 1, 2, 5, 2**32 - 1])

Refusal = type[DispatchError] | None


@dataclass
class Entry:
    value: bytes
    ttl: int
    when: int


class BroadcasterMachine(RuleBasedStateMachine):
    """Four keys of 40 bytes and 200 bytes in all for each publisher, two publishers, deposits of 100."""

    @initialize(slash=st.booleans(), publishes=st.none() | st.integers(1, 3))
    def begin(self, slash: bool, publishes: int | None) -> None:
        self.config = BroadcasterConfig(
            max_publishers=2,
            max_stored_keys=4,
            max_value_length=40,
            max_total_storage_size=200,
            publisher_deposit=100,
            max_ttl_scans_per_idle=3,
            max_publishes_per_block=publishes,
            slash_on_force=slash,
            db_weight=ZERO_DB,
        )
        self.relay = Relay(self.config, funds=FUNDS)
        self.pallet = self.relay.broadcaster
        self.now = 1
        self.burnt = 0
        self.registered: dict[ParaId, tuple[bytes, int]] = {}
        self.published: Counter[tuple[ParaId, int]] = Counter()
        self.data: dict[ParaId, dict[bytes, Entry]] = {para: {} for para in PARAS}

    def expect(self, refusal: Refusal, call: Callable[[], object]) -> bool:
        """Make the call; return whether it was allowed. A refused one must leave everything as it was."""
        if refusal is None:
            call()
            return True
        before = self.relay.everything()
        with pytest.raises(refusal):
            call()
        assert self.relay.everything() == before
        return False

    def free(self, account: bytes) -> int:
        return self.relay.free(account)

    @rule(para=paras, account=accounts, forced=st.none() | st.sampled_from([0, 7, 300]))
    def register(self, para: ParaId, account: bytes, forced: int | None) -> None:
        deposit = 100 if forced is None else forced
        refusal: Refusal = None
        if forced is None and para < 2_000:
            refusal = NotPublicParachain
        elif para in self.registered:
            refusal = AlreadyRegistered
        elif len(self.registered) == 2:
            refusal = TooManyPublishers
        elif self.free(account) < deposit:
            refusal = InsufficientBalance

        def call() -> object:
            if forced is None:
                return self.pallet.register_publisher(Origin.signed(account), para)
            return self.pallet.force_register_publisher(Origin.root(), account, forced, para)

        if self.expect(refusal, call):
            self.registered[para] = (account, deposit)

    @rule(para=paras, key=keys, value=values, ttl=ttls)
    def publish(self, para: ParaId, key: bytes, value: bytes, ttl: int) -> None:
        held = self.data[para]
        total = sum(32 + len(entry.value) for at, entry in held.items() if at != key) + 32 + len(value)
        refusal: Refusal = None
        if para >= 2_000 and para not in self.registered:
            refusal = NotRegistered
        elif len(value) > 40:
            refusal = ValueTooLarge
        elif key not in held and len(held) == 4:
            refusal = TooManyKeys
        elif total > 200:
            refusal = TotalStorageSizeExceeded
        elif self.published[para, self.now] == self.config.max_publishes_per_block:
            refusal = TooManyPublishes
        if self.expect(refusal, lambda: self.relay.publish(key, value, ttl=ttl, publisher=para)):
            held[key] = Entry(value, ttl, self.now)
            self.published[para, self.now] += 1

    @rule(para=paras, wanted=key_lists, caller=accounts | st.none())
    def delete(self, para: ParaId, wanted: list[bytes], caller: bytes | None) -> None:
        refusal: Refusal = None
        if para not in self.registered:
            refusal = NotRegistered if caller is not None or para >= 2_000 else None
        elif caller not in {None, self.registered[para][0]}:
            refusal = NotManager
        origin = Origin.parachain(para) if caller is None else Origin.signed(caller)
        if self.expect(refusal, lambda: self.pallet.delete_keys(origin, wanted, publisher=para)):
            self.drop(para, wanted)

    @rule(para=paras, wanted=key_lists)
    def force_delete(self, para: ParaId, wanted: list[bytes]) -> None:
        refusal = NotRegistered if para >= 2_000 and para not in self.registered else None
        if self.expect(refusal, lambda: self.pallet.force_delete_keys(Origin.root(), para, wanted)):
            self.drop(para, wanted)

    def drop(self, para: ParaId, wanted: list[bytes]) -> None:
        for key in wanted:
            self.data[para].pop(key, None)

    @rule()
    def put_away(self) -> None:
        """Load what the state puts away into the same state: no pallet knows more than its storage."""
        before, state = self.relay.everything(), self.relay.state
        state.load(msgspec.msgpack.decode(msgspec.msgpack.encode(state.dump()), type=StateDump))
        assert self.relay.everything() == before

    @rule(para=paras, account=accounts)
    def clean_up(self, para: ParaId, account: bytes) -> None:
        refusal: Refusal = self.not_managed(para, account) or (None if self.data[para] else NoDataToCleanup)
        if self.expect(refusal, lambda: self.pallet.cleanup_published_data(Origin.signed(account), para)):
            self.data[para].clear()

    @rule(para=paras, account=accounts)
    def deregister(self, para: ParaId, account: bytes) -> None:
        refusal = self.not_managed(para, account)
        if self.expect(refusal, lambda: self.pallet.deregister_publisher(Origin.signed(account), para)):
            self.forget(para, slash=False)

    @rule(para=paras)
    def force_deregister(self, para: ParaId) -> None:
        refusal = None if para in self.registered else NotRegistered
        if self.expect(refusal, lambda: self.pallet.force_deregister_publisher(Origin.root(), para)):
            self.forget(para, slash=self.config.slash_on_force)

    @rule(leaving=st.lists(paras, max_size=2))
    def offboard(self, leaving: list[ParaId]) -> None:
        self.pallet.offboard_publishers(leaving)
        for para in leaving:
            self.forget(para, slash=False)
            del self.published[para, self.now]

    def not_managed(self, para: ParaId, account: bytes) -> Refusal:
        if para not in self.registered:
            return NotRegistered
        return None if self.registered[para][0] == account else NotManager

    def forget(self, para: ParaId, *, slash: bool) -> None:
        self.data[para].clear()
        _, deposit = self.registered.pop(para, (b"", 0))
        self.burnt += deposit if slash else 0

    @rule(blocks=st.sampled_from([1, 1, 1, 3]), idles=st.sampled_from([0, 1, 1, 2, 20]))
    def next_block(self, blocks: int, idles: int) -> None:
        self.relay.state.commit()
        self.now += blocks
        self.relay.at(self.now)
        for _ in range(idles):
            self.pallet.on_idle(Weight.MAX)
        for event in self.relay.system.events.of(KeyExpired):
            entry = self.data[event.publisher].pop(event.key)
            assert entry.ttl
            assert self.now >= entry.when + entry.ttl
        if idles == 20:
            late = [entry for held in self.data.values() for entry in held.values() if entry.ttl]
            assert all(self.now < entry.when + entry.ttl for entry in late)

    @invariant()
    def storage_is_what_the_model_says(self) -> None:
        storage = self.relay.storage
        for para, held in self.data.items():
            assert dict(storage.entries(para)).keys() == held.keys()
            for key, entry in held.items():
                found = storage.entry(para, key)
                assert found is not None
                assert (found.value, found.ttl, found.when_inserted) == (entry.value, entry.ttl, entry.when)
            assert list(storage.keys_of(para)) == sorted(held)
            total = sum(32 + len(entry.value) for entry in held.values())
            assert storage.total_storage_size.get(para) == (total if held else None)
            assert storage.publisher_exists.get(para) == (True if held else None)
        expiring = {(para, k): (e.ttl, e.when) for para, held in self.data.items() for k, e in held.items() if e.ttl}
        assert {(para, key): ttl for para, key, ttl in storage.ttl_data.items()} == expiring

    @invariant()
    def funds_are_conserved(self) -> None:
        assert dict(self.relay.storage.registered_publishers.items()).keys() == self.registered.keys()
        for account in ACCOUNTS:
            deposits = sum(deposit for manager, deposit in self.registered.values() if manager == account)
            assert self.relay.held(account) == deposits
        everyone = sum(self.free(account) + self.relay.held(account) for account in ACCOUNTS)
        assert everyone == self.relay.balances.total_issuance == len(ACCOUNTS) * FUNDS - self.burnt


def test_the_pallet_agrees_with_the_model() -> None:
    run_state_machine_as_test(BroadcasterMachine, settings=settings(max_examples=examples(60), stateful_step_count=50))


@pytest.mark.slow
def test_the_pallet_agrees_with_the_model_for_long() -> None:
    run_state_machine_as_test(BroadcasterMachine, settings=settings(max_examples=150, stateful_step_count=150))


@soak(rounds=40)
def test_the_pallet_agrees_with_the_model_for_ever_longer(soak_round: int) -> None:
    chosen = settings(max_examples=500, stateful_step_count=200, database=None)
    run_state_machine_as_test(seed(soak_round)(BroadcasterMachine), settings=chosen)
