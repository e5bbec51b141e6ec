"""The PoV of a block: its bytes as a collator sends them, by cause, and whether they fit."""

import pyarrow as pa
import pytest

from collator.networks import EVERYTHING, PUBLISHER, SUBSCRIBER, keys, network, publish, run, values
from ledger.watched import Watched
from relaycast_collator import BlockBuilt, Header
from relaycast_ledger.outcome import percentiles
from relaycast_ledger.pov import ZSTD_PREFIX, PovSize, block_data, compressed, pov_size
from relaycast_ledger.run_statistics import SubscriberStatistics
from relaycast_trie import CompactProof, StorageProof
from relaycast_trie.scale import ScaleReader

POV = 20_000


def built(net: Watched, ticks: int) -> list[BlockBuilt]:
    facts: list[BlockBuilt] = []
    net.listeners.append(lambda fact: facts.append(fact) if isinstance(fact, BlockBuilt) else None)
    run(net, ticks)
    return [fact for fact in facts if fact.para_id == SUBSCRIBER]


def reading(*, pov: int = POV, count: int = 20, size: int = 16) -> Watched:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER, budget=EVERYTHING, max_pov_size=pov)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(count))
    publish(net, PUBLISHER, values(count, 0, size))
    return net


def test_block_data_is_header_extrinsics_and_own_state() -> None:
    fact = built(reading(), 4)[-1]
    reader = ScaleReader(block_data(fact.block, own_root=fact.parent.state_root))
    header = fact.block.header.encode()
    assert reader.take(len(header)) == header
    assert reader.length() == 1, "one extrinsic"
    extrinsic = reader.bytes_()
    assert extrinsic[:3] == bytes([5, 1, 0]), "unsigned, ParachainSystem, set_validation_data"
    assert extrinsic[3:].startswith(fact.block.inherent.validation_data.encode())
    assert all(node in extrinsic for node in fact.block.inherent.relay_chain_state)
    compact = CompactProof(tuple(reader.bytes_() for _ in range(reader.length())))
    reader.done()
    own, root = compact.decode(fact.parent.state_root)
    assert own == fact.block.own_proof
    assert root == fact.parent.state_root


def test_a_pov_is_sent_compressed_behind_the_prefix_of_compressed_blobs() -> None:
    fact = built(reading(), 4)[-1]
    data = block_data(fact.block, own_root=fact.parent.state_root)
    reader = ScaleReader(compressed(data))
    blob = reader.bytes_()
    reader.done()
    assert blob.startswith(ZSTD_PREFIX)
    unpacked = pa.Codec("zstd").decompress(blob[len(ZSTD_PREFIX) :], decompressed_size=len(data), asbytes=True)
    assert unpacked == data


def test_messages_are_carried_in_full_or_as_hashes() -> None:
    net = reading()
    net.traffic[SUBSCRIBER] = lambda _: ((b"d" * 9_000,), (b"h" * 8_000, b"i" * 8_000))
    fact = built(net, 3)[-1]
    size = pov_size(fact.block, own_root=fact.parent.state_root, ref_time=0)
    full, hashed = 9_000 + 4 + 4, 2 * (32 + 4 + 4)
    assert fact.block.outcome.abridged.horizontal_count in {0, 1}
    in_full = fact.block.outcome.abridged.horizontal_count * (8_000 + 8 + 2 - 40)
    assert abs(size.message_bytes - (full + hashed + in_full)) < 60
    data = block_data(fact.block, own_root=fact.parent.state_root)
    assert b"d" * 9_000 in data


def test_causes_add_up_to_the_block() -> None:
    for record in run(reading(count=30, size=900), 5):
        assert record.pov is not None
        assert sum(record.pov_by_cause.values()) == record.pov.pov_bytes


def test_a_block_is_oversize_when_its_compressed_pov_exceeds_the_limit() -> None:
    records = run(reading(pov=9_000, count=150), 8)
    heavy = [record for record in records if record.is_oversize]
    assert heavy, "own state and static keys come on top of a budget that is the whole PoV"
    for record in records:
        assert record.pov is not None
        assert record.is_oversize == (record.pov.sent_bytes > 9_000)
        fits_as_it_is = record.pov.compressed_bytes is None
        assert not fits_as_it_is or record.pov.pov_bytes < 9_000


@pytest.mark.parametrize(
    ("pov_bytes", "compressed_bytes", "ref_time", "oversize", "large"),
    [
        (900, 800, 0, False, False),
        (1_000, 1_000, 2_000, False, False),  # both limits reached, none exceeded
        (1_500, 1_000, 0, False, True),  # it fits only because it is compressed
        (1_500, 1_001, 0, True, False),
        (900, None, 2_001, True, False),  # too long to compute
    ],
)
def test_either_limit_makes_a_block_oversize(
    pov_bytes: int, compressed_bytes: int | None, ref_time: int, oversize: bool, large: bool
) -> None:
    size = PovSize(
        pov_bytes=pov_bytes,
        compressed_bytes=compressed_bytes,
        own_bytes=0,
        message_bytes=0,
        max_pov_bytes=1_000,
        ref_time=ref_time,
        max_ref_time=2_000,
    )
    assert (size.is_oversize, size.is_large) == (oversize, large)


def test_a_pov_that_fits_in_any_case_is_compressed_only_where_asked_for() -> None:
    fact = built(reading(), 4)[-1]
    root = fact.parent.state_root
    asked, unasked = (pov_size(fact.block, own_root=root, ref_time=0, compresses=it) for it in (True, False))
    assert asked.compressed_bytes is not None
    assert unasked.compressed_bytes is None
    assert asked.pov_bytes == unasked.pov_bytes
    assert not asked.is_oversize
    assert not unasked.is_oversize


def test_a_block_without_own_nodes_carries_an_empty_compact_proof() -> None:
    fact = built(reading(), 4)[-1]
    assert StorageProof() != fact.block.own_proof
    assert isinstance(fact.parent, Header)
    assert fact.parent.hash == fact.block.header.parent_hash


def tallied(net: Watched, ticks: int, warm_up: int | None) -> SubscriberStatistics:
    net.ledger.warm_up = warm_up
    tally = SubscriberStatistics()
    for record in run(net, ticks):
        tally.add(record)
    return tally


@pytest.mark.parametrize(("warm_up", "left_out", "charted_from"), [(None, 3, 3), (4, 4, 3), (1, 1, 2), (0, 0, 1)])
def test_percentiles_leave_out_the_warm_up_and_sums_do_not(
    warm_up: int | None, left_out: int, charted_from: int
) -> None:
    """A value published at block 1 arrives at 3: with it ends the first delivery."""
    tally = tallied(reading(), 6, warm_up)
    sizes = tally.points.column("proof_bytes")
    assert tally.warm_up_blocks == left_out
    assert tally.charted[0].block == charted_from
    assert tally.proof_bytes == percentiles(sizes, after=left_out)
    assert tally.proof_bytes.total == sum(sizes)
    assert tally.first_proof_bytes == max(sizes[:left_out], default=0)


def test_the_first_delivery_lasts_as_long_as_keys_come_for_the_first_time() -> None:
    net = reading(count=8)
    net.ledger.warm_up = None
    first = run(net, 1)
    publish(net, PUBLISHER, values(12, 1))
    later = run(net, 4)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(12))
    last = run(net, 3)
    told = [(len(it.deliveries), it.warm_up) for it in (*first, *later, *last)]
    assert told == [(0, True), (0, True), (8, True), (8, False), (0, False), (4, False), (0, False), (0, False)]


def test_a_run_that_delivers_nothing_has_no_warm_up() -> None:
    net = network(subscribers=())
    net.add_parachain(SUBSCRIBER)
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(2))
    tally = tallied(net, 4, None)
    assert tally.warm_up_blocks == 0
    assert tally.proof_bytes.p50 > 0
