"""The pool does what a plain model of it does: nonces on lists, promoted one by one, ordered by looking at all."""

from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from node.small_chain import ALICE, BOB, CHARLIE, SmallChain, remark, signed
from relaycast_node.extrinsic.extrinsic import Signed, decode_extrinsic, extrinsic_hash
from relaycast_node.extrinsic.pool import TransactionPool
from relaycast_node.extrinsic.pool_errors import PoolError
from relaycast_node.extrinsic.tag_graph import QueueLimit

SIGNERS = (ALICE, BOB, CHARLIE)
READY_COUNT = 6
FUTURE_COUNT = 4

signers = st.integers(0, len(SIGNERS) - 1)
nonces = st.integers(0, 7)
tips = st.integers(0, 3)


@dataclass(frozen=True)
class Known:
    """A transaction as the model sees it."""

    data: bytes
    signer: bytes
    nonce: int
    priority: int


def known(data: bytes) -> Known:
    extrinsic = decode_extrinsic(data)
    assert isinstance(extrinsic, Signed)
    account = extrinsic.address.account
    assert account is not None
    return Known(data, account, extrinsic.extra.nonce, extrinsic.extra.tip + 1)


@dataclass
class Model:
    """``ready`` and ``future`` in the order of arrival."""

    nonces: dict[bytes, int] = field(default_factory=dict)
    ready: list[Known] = field(default_factory=list)
    future: list[Known] = field(default_factory=list)

    def at(self, signer: bytes, nonce: int) -> Known | None:
        return next((one for one in self.ready if (one.signer, one.nonce) == (signer, nonce)), None)

    def enter(self, new: Known) -> bool:
        """Make ``new`` ready unless another one with its nonce pays as much; return whether it entered."""
        rival = self.at(new.signer, new.nonce)
        if rival and rival.priority >= new.priority:
            return False
        self.ready = [one for one in self.ready if one is not rival] + [new]
        return True

    def promote(self) -> None:
        """Make ready what no longer waits, those with the lowest nonces first."""
        while due := [one for one in self.future if not self.waits(one)]:
            first = min(due, key=lambda one: one.nonce)
            self.future.remove(first)
            self.enter(first)

    def waits(self, one: Known) -> bool:
        return one.nonce > self.nonces.get(one.signer, 0) and self.at(one.signer, one.nonce - 1) is None

    def submit(self, new: Known) -> int | None:
        """Return the code of the refusal."""
        if new.nonce < self.nonces.get(new.signer, 0):
            return 1010
        if self.waits(new):
            self.future.append(new)
        elif not self.enter(new):
            return 1014
        self.promote()
        return None

    def drop_beyond_limits(self) -> set[bytes]:
        before = {one.data for one in self.ready + self.future}
        while len(self.ready) > READY_COUNT:
            worst = min(self.ready, key=lambda one: (one.priority, self.ready.index(one)))
            self.drop_with_dependents(worst)
        self.future = self.future[-FUTURE_COUNT:]
        return before - {one.data for one in self.ready + self.future}

    def drop_with_dependents(self, gone: Known) -> None:
        self.ready = [one for one in self.ready if one.signer != gone.signer or one.nonce < gone.nonce]

    def include(self, signer: bytes, nonce: int) -> None:
        """A block included somebody's transaction with this nonce."""
        self.nonces[signer] = nonce + 1
        self.ready = [one for one in self.ready if (one.signer, one.nonce) != (signer, nonce)]
        self.future = [one for one in self.future if (one.signer, one.nonce) != (signer, nonce)]

    def ordered(self) -> list[bytes]:
        """Take again and again the best of those that wait for nothing that is still here."""
        left, taken = list(self.ready), list[bytes]()
        while left:
            free = [one for one in left if not any(o.signer == one.signer and o.nonce == one.nonce - 1 for o in left)]
            best = max(free, key=lambda one: (one.priority, -self.ready.index(one)))
            left.remove(best)
            taken.append(best.data)
        return taken


class PoolMachine(RuleBasedStateMachine):
    """Drives a pool and the model with the same transactions and blocks."""

    def __init__(self) -> None:
        super().__init__()
        limits = QueueLimit(READY_COUNT, 1 << 20), QueueLimit(FUTURE_COUNT, 1 << 20)
        self.chain = SmallChain()
        self.pool = TransactionPool(self.chain, ready_limit=limits[0], future_limit=limits[1])
        self.model = Model()
        self.banned: set[bytes] = set()
        self.made: list[bytes] = []
        self.last_block: tuple[SmallChain, bytes, list[bytes]] | None = None
        self.is_after_a_block = False  # nothing was taken since the block, which may have made future ones ready

    def make(self, signer: int, nonce: int, tip: int) -> bytes:
        salt = len(self.made).to_bytes(4, "big")
        data = signed(self.chain, SIGNERS[signer], nonce, tip=tip, call=remark(salt))
        self.made.append(data)
        return data

    def code_of(self, data: bytes) -> int | None:
        try:
            assert self.pool.submit(data) == extrinsic_hash(data)
        except PoolError as refusal:
            return refusal.code
        return None

    def expected_code(self, data: bytes) -> int | None:
        if data in [one.data for one in self.model.ready + self.model.future]:
            return 1013
        if data in self.banned:
            return 1012
        code = self.model.submit(known(data))
        if code is None:
            dropped = self.model.drop_beyond_limits()
            self.banned |= dropped
            self.is_after_a_block = False
            return 1016 if data in dropped else None
        if code == 1010:
            self.banned.add(data)
        return code

    @rule(signer=signers, ahead=nonces, tip=tips)
    def submit(self, signer: int, ahead: int, tip: int) -> None:
        data = self.make(signer, self.chain.nonce(SIGNERS[signer].account) + ahead, tip)
        assert self.code_of(data) == self.expected_code(data)

    @rule(signer=signers, nonce=nonces)
    def submit_with_any_nonce(self, signer: int, nonce: int) -> None:
        data = self.make(signer, nonce, 0)
        assert self.code_of(data) == self.expected_code(data)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def submit_again(self, data: st.DataObject) -> None:
        again = data.draw(st.sampled_from(self.made))
        assert self.code_of(again) == self.expected_code(again)

    @rule(count=st.integers(0, 4), data=st.data())
    def block_of_our_own(self, count: int, data: st.DataObject) -> None:
        self.put(self.pool.pending()[:count])

    @rule(signer=signers, length=st.integers(1, 3))
    def block_with_what_the_pool_does_not_know(self, signer: int, length: int) -> None:
        nonce = self.chain.nonce(SIGNERS[signer].account)
        self.put([self.make(signer, nonce + step, 0) for step in range(length)])

    def put(self, included: list[bytes]) -> None:
        before = self.chain
        self.chain = before.after(included)
        self.pool.prune(included, self.chain)
        block_hash = self.chain.block_hash(self.chain.block_number)
        assert block_hash is not None
        self.last_block = before, block_hash, included
        self.is_after_a_block = True
        ours = {one.data for one in self.model.ready}
        for data in included:
            self.model.include(known(data).signer, known(data).nonce)
        self.model.promote()
        self.banned |= {*included, *(ours - {one.data for one in self.model.ready})}

    @precondition(lambda self: self.last_block)
    @rule()
    def retract_the_last_block(self) -> None:
        assert self.last_block is not None
        before, block_hash, included = self.last_block
        self.last_block = None
        self.chain = replace(before, block_number=self.chain.block_number, fork=bytes(len(self.made)))
        self.banned -= set(included)
        old = self.model
        self.model = Model(dict(self.chain.nonces))
        known_before = [data for data in old.ordered() if data not in included] + [one.data for one in old.future]
        for one in [*included, *known_before]:
            self.model.submit(known(one))
        self.banned |= self.model.drop_beyond_limits()
        self.is_after_a_block = False
        self.pool.retract(block_hash, included, self.chain)

    @precondition(lambda self: self.model.ready or self.model.future)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.model.ready + self.model.future))
        removed = self.pool.remove([extrinsic_hash(gone.data)])
        self.banned.add(gone.data)
        if gone in self.model.ready:
            expected = [one for one in self.model.ready if one.signer == gone.signer and one.nonce >= gone.nonce]
            self.model.drop_with_dependents(gone)
        else:
            expected = [gone]
            self.model.future.remove(gone)
        assert set(removed) == {extrinsic_hash(one.data) for one in expected}

    @invariant()
    def the_pool_holds_what_the_model_holds(self) -> None:
        assert self.pool.pending() == self.model.ordered()
        assert self.pool.futures() == [one.data for one in self.model.future]

    @invariant()
    def nothing_is_both_ready_and_future(self) -> None:
        assert not set(self.pool.pending()) & set(self.pool.futures())

    @invariant()
    def what_is_ready_can_be_included_in_its_order(self) -> None:
        chain = self.chain
        for data in self.pool.pending():
            one = known(data)
            assert chain.nonce(one.signer) == one.nonce
            chain = chain.after([data])
        for signer in SIGNERS:
            assert self.pool.next_nonce(signer.account) == chain.nonce(signer.account)

    @invariant()
    def limits_and_counts_hold(self) -> None:
        status = self.pool.status()
        assert (status.ready, status.future) == (len(self.pool.pending()), len(self.pool.futures()))
        assert status.ready_bytes == sum(map(len, self.pool.pending()))
        assert status.future_bytes == sum(map(len, self.pool.futures()))
        assert status.ready <= READY_COUNT or self.is_after_a_block
        assert status.ready + status.future <= READY_COUNT + FUTURE_COUNT
        assert status.future <= FUTURE_COUNT


PoolMachine.TestCase.settings = settings(stateful_step_count=40)
TestPoolAgainstItsModel = PoolMachine.TestCase


def test_a_block_can_make_more_ready_than_the_limit_and_the_model_agrees() -> None:
    machine = PoolMachine()
    machine.block_with_what_the_pool_does_not_know(signer=2, length=2)
    machine.block_with_what_the_pool_does_not_know(signer=2, length=1)
    machine.block_with_what_the_pool_does_not_know(signer=1, length=3)
    machine.retract_the_last_block()
    machine.block_with_what_the_pool_does_not_know(signer=0, length=3)
    machine.submit_with_any_nonce(signer=2, nonce=5)
    machine.retract_the_last_block()
    machine.block_with_what_the_pool_does_not_know(signer=2, length=2)
    machine.the_pool_holds_what_the_model_holds()
    machine.what_is_ready_can_be_included_in_its_order()
    machine.limits_and_counts_hold()
    assert machine.pool.status().ready == READY_COUNT + 1
    machine.submit(signer=1, ahead=3, tip=1)
    machine.the_pool_holds_what_the_model_holds()
    machine.limits_and_counts_hold()
    assert machine.pool.status().ready == READY_COUNT - 1  # the worst left with one that depended on it
