"""Served chains that go back and forth beside a model that keeps a whole copy of every block's state."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from long_hauls import soak
from node.chains import ALICE, BOB, PUBLISHER, READER, address, live_chains, modelled, submit
from relaycast_node import timeline
from relaycast_node.chain.exceptions import CannotGoBack, UnknownBlock
from relaycast_node.chain.served_block import ServedBlock
from relaycast_node.chain.served_chain import Finality, HeadMove, ServedChain
from relaycast_node.extrinsic.accounts import KeyPair
from relaycast_xcm import ParaId
from searches import examples

KEPT = 12
NAMES: tuple[ParaId | None, ...] = (None, ParaId(PUBLISHER), ParaId(READER))

Contents = tuple[dict[bytes, bytes], dict[bytes, dict[bytes, bytes]]]


@dataclass
class Copies:
    """One chain as its listeners were told of it: all blocks with copies of their states, and the best branch."""

    chain: ServedChain
    blocks: dict[bytes, ServedBlock] = field(default_factory=dict)
    contents: dict[bytes, Contents] = field(default_factory=dict)
    best: bytes = b""
    final: bytes = b""

    def __post_init__(self) -> None:
        self.best = self.final = self.chain.genesis_hash
        self.keep(self.chain.best)
        self.chain.new_heads.connect(self.hear_new)
        self.chain.moved_heads.connect(self.hear_moved)
        self.chain.finalized_heads.connect(self.hear_final)

    def keep(self, block: ServedBlock) -> None:
        self.blocks[block.hash] = block
        self.contents[block.hash] = self.chain._state.snapshot()

    def hear_new(self, block: ServedBlock) -> None:
        assert block.hash not in self.blocks, "a block is new once"
        assert block.header.parent_hash == self.best, "and stands on the best one"
        self.keep(block)
        self.best = block.hash

    def hear_moved(self, move: HeadMove) -> None:
        before, after = self.contents[self.best][0], self.contents[move.block.hash][0]
        changed = {**before, **move.changes}
        assert {key: value for key, value in changed.items() if value is not None} == after
        self.best = move.block.hash
        if move.is_rewound:
            self.final = self.chain.finalized.hash

    def hear_final(self, told: Finality) -> None:
        assert told.block.header.parent_hash == self.final
        self.final = told.block.hash
        final = self.branch(self.final)
        for lost in told.pruned:
            assert not {lost, *self.branch(lost)} <= {*final, *self.branch(self.best)}
            assert self.final not in self.branch(lost)

    def branch(self, block_hash: bytes) -> list[bytes]:
        """Return the hashes from a block down to the genesis, as far as they are known."""
        found = [block_hash]
        while self.blocks[found[-1]].number:
            found.append(self.blocks[found[-1]].header.parent_hash)
        return found


@dataclass(eq=False)
class Place:
    """Where all chains stood after a tick."""

    before: "Place | None"
    heads: Mapping[ParaId | None, bytes]

    def way(self) -> "list[Place]":
        """Return the places on the way here, this one first."""
        found = [self]
        while found[-1].before is not None:
            found.append(found[-1].before)
        return found


Kept = tuple[Place, dict[bytes, tuple[bytes, int]], list[bytes], dict[ParaId | None, int]]
"""What a snapshot brings back: a place, what was sent until then, the pool, and the numbers of the finalized blocks."""


class Forks(RuleBasedStateMachine):
    """Blocks, transactions, writes, other heads and snapshots in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.live = live_chains()
        for chain in self.live.served():
            chain.kept_blocks = KEPT
        self.copies = {it.para_id: Copies(it) for it in self.live.served()}
        self.now = Place(None, {})
        self.places = list[Place]()
        self.has_reverted = False
        self.sent = dict[bytes, tuple[bytes, int]]()
        """Extrinsics with the account and the nonce that each of them uses."""

        self.snapshots: dict[int, Kept] = {}
        self.note()

    @property
    def relay(self) -> Copies:
        return self.copies[None]

    def heads(self) -> dict[ParaId | None, bytes]:
        return {name: copies.best for name, copies in self.copies.items()}

    def note(self) -> None:
        self.now = Place(self.now, self.heads())
        self.places.append(self.now)

    @rule(count=st.integers(1, 3))
    def build(self, count: int) -> None:
        for _ in range(count):
            self.live.new_block()
            self.note()

    @rule(value=st.integers(1, 9), sender=st.sampled_from([ALICE, BOB]))
    def send(self, value: int, sender: KeyPair) -> None:
        receiver = BOB if sender is ALICE else ALICE
        args = {"dest": address(receiver), "value": value * 10**10}
        nonce = self.live.relay.pool.next_nonce(sender.account)
        data = submit(self.live.relay, sender, "Balances", "transfer_keep_alive", **args)
        self.sent[data] = sender.account, nonce

    @rule(
        name=st.sampled_from(NAMES), key=st.sampled_from([b"a", b"ab", b"b"]), value=st.sampled_from([None, b"1", b"2"])
    )
    def write(self, name: ParaId | None, key: bytes, value: bytes | None) -> None:
        self.live.set_storage(name, {key: value})

    @rule(value=st.sampled_from([b"x", b"y"]))
    def publish(self, value: bytes) -> None:
        self.live.publish(PUBLISHER, bytes(32), value)

    @rule(name=st.sampled_from(NAMES), back=st.integers(0, 13))
    def set_head(self, name: ParaId | None, back: int) -> None:
        copies = self.copies[name]
        known = sorted(copies.blocks, key=lambda it: copies.blocks[it].number)
        wanted = known[-1 - back % len(known)]
        before = self.heads()
        could = [it for it in self.places if it.heads[name] == wanted and self.is_allowed(it)]
        mine = [it for it in could if it in self.now.way()]
        try:
            self.live.set_head(copies.chain, wanted)
        except (CannotGoBack, UnknownBlock):
            assert self.heads() == before
            assert not mine
            assert not could or self.has_reverted, "what lay beside the way to a snapshot is forgotten with its ticks"
        else:
            assert wanted == copies.best
            if mine:
                assert self.heads() == mine[-1].heads
            self.now = next(it for it in reversed(mine or could) if it.heads == self.heads())

    def is_allowed(self, place: "Place") -> bool:
        """Return whether no finalized block has to go."""
        return all(it.final in it.branch(place.heads[key]) for key, it in self.copies.items())

    @rule()
    def snapshot(self) -> None:
        try:
            number = self.live.snapshot()
        except CannotGoBack:
            return
        self.snapshots[number] = self.now, dict(self.sent), self.live.relay.pool.pending(), self.finals()

    @precondition(lambda self: self.snapshots)
    @rule(back=st.integers(0, 5))
    def revert(self, back: int) -> None:
        number = sorted(self.snapshots)[-1 - back % len(self.snapshots)]
        place, sent, waiting, finals = self.snapshots[number]
        heads = place.heads
        try:
            self.live.revert(number)
        except CannotGoBack:
            gone = [it for it, found in heads.items() if self.copies[it].chain.block(found) is None]
            assert gone or any(finals[it] < copies.chain._tree.first for it, copies in self.copies.items())
            return
        assert self.heads() == heads
        assert self.live.relay.pool.pending() == waiting
        self.now, self.sent, self.has_reverted = place, sent, True
        self.snapshots = {it: kept for it, kept in self.snapshots.items() if it < number}

    def finals(self) -> dict[ParaId | None, int]:
        return {name: copies.blocks[copies.final].number for name, copies in self.copies.items()}

    @invariant()
    def every_kept_block_reads_as_its_copy(self) -> None:
        for copies in self.copies.values():
            chain = copies.chain
            assert chain.best.hash == copies.best
            assert chain.finalized.hash == copies.final
            assert chain._state.snapshot() == copies.contents[copies.best] or self.live._timeline.pending
            branch = copies.branch(copies.best)
            oldest = chain._tree.first
            assert oldest <= max(0, max(it.number for it in copies.blocks.values()) - KEPT + 1)
            for block_hash in branch:
                if copies.blocks[block_hash].number >= oldest:
                    self.reads_as(copies, block_hash)
                    assert chain.hash_of(copies.blocks[block_hash].number) == block_hash
            for block_hash in copies.blocks.keys() - set(branch):
                if chain.block(block_hash) is not None:
                    self.reads_as(copies, block_hash)

    @staticmethod
    def reads_as(copies: Copies, block_hash: bytes) -> None:
        state, (top, children) = copies.chain.state_at(block_hash), copies.contents[block_hash]
        assert dict(state.pairs()) == top
        assert list(state.keys()) == sorted(top)
        for name, held in children.items():
            assert dict(state.child(name).pairs()) == held

    @invariant()
    def no_transaction_is_lost(self) -> None:
        included = {data for it in self.relay.branch(self.relay.best) for data in self.relay.blocks[it].extrinsics}
        pool, system = self.live.relay.pool, modelled(self.live.relay).executive.system
        for lost in self.sent.keys() - included - {*pool.pending(), *pool.futures()}:
            account, nonce = self.sent[lost]
            assert nonce < system.account_nonce(account), "but for one whose nonce another one used on this branch"

    @invariant()
    def memory_holds_no_more_than_what_is_kept(self) -> None:
        for copies in self.copies.values():
            tree = copies.chain._tree
            assert len(tree._branch) <= KEPT + 3
            assert all(block.number > copies.chain.best.number - 3 * KEPT for block in tree._beside.values())


def test_chains_that_go_back_are_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "TICKS_OF_A_CHECKPOINT", 5)
    run_state_machine_as_test(
        Forks, settings=settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
    )


@pytest.mark.slow
def test_long_histories_of_chains_that_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "TICKS_OF_A_CHECKPOINT", 7)
    run_state_machine_as_test(Forks, settings=settings(max_examples=40, stateful_step_count=50, deadline=None))


@soak(rounds=20)
def test_two_hundred_long_histories_of_chains_that_go_back(monkeypatch: pytest.MonkeyPatch, soak_round: int) -> None:
    monkeypatch.setattr(timeline, "TICKS_OF_A_CHECKPOINT", 7)
    chosen = settings(max_examples=10, stateful_step_count=50, deadline=None, database=None)
    run_state_machine_as_test(seed(soak_round)(Forks), settings=chosen)
