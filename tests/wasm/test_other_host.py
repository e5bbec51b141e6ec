"""Blocks of Westend and Kusama beside another host's: each call's result, what the block writes, and the root.

The other host works its root out from the changes alone, so the root that is compared with is that of a state of our
own into which its changes are written. Transactions: a good transfer, one of more than there is, one whose signature is
broken, one with a used nonce, a remark.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from long_hauls import soak
from relaycast_collator.header import Header
from relaycast_pallets.frame.state import State
from relaycast_trie.scale import ScaleReader, encode_bytes
from relaycast_wasm.blocks.applied import is_included
from relaycast_wasm.blocks.inherents import encode_inherents, relay_inherents
from relaycast_wasm.chain import BuiltBlock, RuntimeChain
from relaycast_wasm.transactions.extrinsics import TransactionWriter
from wasm.other_host import Diff, OtherHost, other_host
from wasm.real_chains import ALICE, BOB, CODE, broken, digest_of, next_block, relay, slot_of, state_of, top_of, writer

pytestmark = pytest.mark.oracle

BLOCKS = 60
MANY_BLOCKS = 200


@pytest.fixture(scope="module")
def other() -> Iterator[OtherHost]:
    with other_host() as host:
        yield host


@dataclass(slots=True)
class OtherBlock:
    """A block as the other host built it."""

    header: Header
    extrinsics: list[bytes] = field(default_factory=list)
    results: list[bytes] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)
    diff: Diff = field(default_factory=dict)
    milliseconds: float = 0.0


def build_there(other: OtherHost, chain: RuntimeChain, transactions: list[bytes]) -> OtherBlock:
    """Build the next block on the chain's head in the other host."""
    parent = chain.head
    header = Header(parent.hash, parent.number + 1, bytes(32), bytes(32), (digest_of(chain),))
    block = OtherBlock(header)

    def keep(method: str, data: bytes) -> bytes:
        answer = other.call(method, data)
        other.keep()
        block.diff |= answer.diff
        block.milliseconds += answer.milliseconds
        return answer.result

    keep("Core_initialize_block", header.encode())
    given = encode_inherents(relay_inherents(slot_of(chain), parent))
    answer = other.call("BlockBuilder_inherent_extrinsics", given)
    block.milliseconds += answer.milliseconds
    reader = ScaleReader(answer.result)
    inherents = [encode_bytes(reader.bytes_()) for _ in range(reader.length())]
    for extrinsic in (*inherents, *transactions):
        answer = other.call("BlockBuilder_apply_extrinsic", extrinsic)
        block.milliseconds += answer.milliseconds
        if is_included(answer.result):
            other.keep()
            block.diff |= answer.diff
            block.extrinsics.append(extrinsic)
            block.results.append(answer.result)
        else:
            block.refused.append(answer.result)
    block.header = Header.decode(keep("BlockBuilder_finalize_block", b""))
    return block


def transactions_for(chain: RuntimeChain, tx: TransactionWriter, number: int) -> list[bytes]:
    """Return transactions of all kinds; on Kusama of 2019 nobody may transfer yet, but everybody may remark."""
    nonce = chain.account_nonce(ALICE.public)
    transfers = chain.runtime.version.spec_name == "westend"
    good = tx.transfer(BOB.public, 10**12 + number) if transfers else tx.remark(b"good")
    made = [
        tx.sign(good, ALICE, nonce=nonce),
        broken(tx.sign(tx.transfer(BOB.public, 1), ALICE, nonce=nonce + 1)),
        tx.sign(tx.transfer(BOB.public, 10**30), ALICE, nonce=nonce + 1),
        tx.sign(tx.remark(bytes(number)), ALICE, nonce=nonce + 1 + transfers),
        tx.sign(tx.transfer(BOB.public, 2), ALICE, nonce=nonce),
        tx.sign(tx.transfer(ALICE.public, 3), BOB, nonce=7),
    ]
    return made if number % 3 else made[: number % 4]


def written(state: State, diff: Diff) -> Diff:
    """Return what of the changes is one."""
    return {key: value for key, value in diff.items() if state.get(key) != value}


def assert_same(ours: BuiltBlock, theirs: OtherBlock, mirror: State) -> None:
    assert list(ours.extrinsics) == theirs.extrinsics
    assert list(ours.results) == theirs.results
    assert [it.result for it in ours.refused] == theirs.refused
    assert ours.header.extrinsics_root == theirs.header.extrinsics_root
    assert ours.header.digest == theirs.header.digest
    assert set(ours.changes) <= {None}
    assert written(mirror, dict(ours.changes[None])) == written(mirror, theirs.diff)
    for key, value in theirs.diff.items():
        if value is None:
            mirror.kill(key)
        else:
            mirror.put(key, value)
    assert mirror.commit() == ours.header.state_root


@pytest.mark.parametrize("name", ["westend", "kusama"])
def test_blocks_are_the_other_hosts_and_our_execution_accepts_each(
    other: OtherHost, name: str, record_property: Callable[[str, object], None]
) -> None:
    compare(other, name, BLOCKS, record_property)


@soak(rounds=2)
def test_200_blocks_are_the_other_hosts_and_our_execution_accepts_each(
    other: OtherHost, soak_round: int, record_property: Callable[[str, object], None]
) -> None:
    compare(other, ["westend", "kusama"][soak_round], MANY_BLOCKS, record_property)


def compare(other: OtherHost, name: str, blocks: int, record_property: Callable[[str, object], None]) -> None:
    """Build blocks here and there, and let our execution import each."""
    other.set_up(top_of(name)[CODE], top_of(name))
    chain, checker, mirror = relay(name), relay(name), state_of(name)
    tx = writer(chain, chain.head.hash)
    ours_ms, theirs_ms, compared = [], [], 0
    for number in range(blocks):
        transactions = transactions_for(chain, tx, number)
        theirs = build_there(other, chain, transactions)
        start = time.perf_counter()
        ours = next_block(chain, transactions)
        ours_ms.append(1e3 * (time.perf_counter() - start))
        theirs_ms.append(theirs.milliseconds)
        assert_same(ours, theirs, mirror)
        checker.import_block(ours.header, ours.extrinsics)
        assert checker.state.root == chain.state.root
        compared += len(ours.results) + len(ours.refused)
    record_property("blocks", blocks)
    record_property("results", compared)
    record_property("ms a block, ours", round(sorted(ours_ms)[blocks // 2], 1))
    record_property("ms a block, the other host", round(sorted(theirs_ms)[blocks // 2], 1))
    assert checker.head == chain.head
