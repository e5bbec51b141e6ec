"""Pictures of proofs: every node on the way to what is read, under what the account has it."""

from collections import Counter

import pytest

from ledger.watched import Watched
from relaycast_ledger import Accounts, BlockRecord
from relaycast_ledger.accounting import IN_THE_PROOF
from relaycast_ledger.proof_picture import VALUE_BYTES_KEPT, PicturedNode, ProofPicture
from relaycast_pallets.subscriber.policies import Policies
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_pallets.subscriber.variants.drafts import NoCache
from relaycast_trie import blake2_256
from relaycast_trie.nibbles import to_nibbles
from relaycast_xcm import ParaId

KEYS = [blake2_256(bytes([index])) for index in range(40)]
READER = ParaId(3_000)


def network(*, pictured: int = 100, policies: Policies | None = None, max_pov_size: int = 5 << 20) -> Watched:
    chains = Watched(seed=3, accounts=Accounts.BY_PUBLISHER, pictures={READER: pictured})
    chains.add_parachain(READER, policies=policies, max_pov_size=max_pov_size)
    for publisher in (1_000, 1_001):
        chains.add_parachain(publisher)
        chains.subscribe(READER, publisher, KEYS[:12])
    return chains


def steps(chains: Watched, *, blocks: int, changed: int = 2) -> list[BlockRecord]:
    records = []
    for tick in range(1, blocks + 1):
        for publisher in (1_000, 1_001):
            keys = KEYS if tick == 1 else KEYS[tick % 12 :][:changed]
            for index, key in enumerate(keys):
                chains.parachains[ParaId(publisher)].publish(key, bytes([tick, index]) * (8 + 60 * (index % 2)))
        records += chains.recorded_step()
    return records


def nodes(picture: ProofPicture) -> list[PicturedNode]:
    return [node for trie in picture.tries for node in trie.nodes if node.node_hash is not None and not node.is_again]


@pytest.mark.parametrize("policies", [None, Policies(cache=NoCache())], ids=["cache", "no cache"])
@pytest.mark.parametrize("max_pov_size", [5 << 20, 9_000], ids=["roomy", "starved"])
def test_a_picture_has_every_byte_of_the_proof_under_its_cause(policies: Policies | None, max_pov_size: int) -> None:
    records = steps(network(policies=policies, max_pov_size=max_pov_size), blocks=9)
    pictured = [record for record in records if record.picture is not None]
    assert len(pictured) >= 4
    for record in pictured:
        picture, account = record.picture, record.account
        assert picture is not None
        assert account is not None
        sums = Counter[str]()
        for node in nodes(picture):
            sums[node.cause] += node.node_bytes
        assert sums["static"] == account.static.node_bytes == picture.static_bytes
        for cause in (*IN_THE_PROOF, "pruned_unchanged", "pruned_beyond_budget", "pruned_cached"):
            assert sums[cause] == sum(getattr(it, cause).node_bytes for it in account.publishers), cause
        assert sum(node.node_bytes for node in nodes(picture) if node.is_in_proof) == record.proof_bytes
        assert picture.complete == record.complete


def test_nodes_stand_on_the_paths_that_were_asked_for_and_parents_come_first() -> None:
    (picture, *_) = [record.picture for record in steps(network(), blocks=4) if record.picture is not None]
    for trie in picture.tries:
        paths = list(map(to_nibbles, trie.keys))
        seen: set[bytes] = set()
        for node in trie.nodes:
            assert any(path.startswith(node.prefix) for path in paths)
            assert node.is_value or node.prefix not in seen
            assert not node.prefix or any(node.prefix.startswith(prefix) for prefix in seen)
            seen.add(node.prefix)
            if node.node_hash is not None and not node.is_value:
                assert blake2_256(node.data) == node.node_hash
    child = picture.tries[1]
    assert child.publisher == 1_000
    assert child.keys == tuple(sorted(map(bytes, map(SubscribedKey, KEYS[:12]))))
    assert child.changed == child.keys
    assert child.reason == "finished"


def test_a_picture_keeps_little_of_a_long_value() -> None:
    (picture, *_) = [record.picture for record in steps(network(), blocks=4) if record.picture is not None]
    values = [node for node in nodes(picture) if node.is_value]
    assert values
    assert all(len(node.data) == min(VALUE_BYTES_KEPT, node.node_bytes) for node in values)
    assert max(node.node_bytes for node in values) > VALUE_BYTES_KEPT


def test_only_blocks_with_callbacks_are_pictured_and_only_so_many() -> None:
    records = [record for record in steps(network(pictured=3), blocks=10) if record.para_id == READER]
    pictured = [record for record in records if record.picture is not None]
    assert pictured == [record for record in records if record.deliveries][:3]
    assert [record for record in steps(network(pictured=0), blocks=4) if record.picture is not None] == []


def test_pictures_change_nothing_else() -> None:
    with_them, without = steps(network(), blocks=6), steps(network(pictured=0), blocks=6)
    assert [(it.proof_bytes, it.account, it.deliveries) for it in with_them] == [
        (it.proof_bytes, it.account, it.deliveries) for it in without
    ]
