"""The logs of headers, to the byte, and that real headers decode into the same ones."""

from itertools import pairwise

from collator.networks import PUBLISHER, SUBSCRIBER, keys, network, publish, values
from relaycast_collator import BlockBuilt, DigestItem, Header
from relaycast_collator.header import (
    CONSENSUS,
    MODELLED_AUTHORITIES,
    PRE_RUNTIME,
    SEAL,
    aura_pre_digest,
    authority_of,
    babe_pre_digest,
    modelled_seal,
    relay_parent_storage_root_item,
)

ROOT = bytes(range(32))


def test_a_relay_block_says_who_built_it_in_which_slot() -> None:
    """``PreDigest::SecondaryPlain`` is variant 2: u32 and u64."""
    item = babe_pre_digest(authority_index=258, slot=3)
    assert (item.variant, item.engine) == (PRE_RUNTIME, b"BABE")
    assert item.data == b"\x02" + b"\x02\x01\x00\x00" + b"\x03" + bytes(7)
    assert len(item.data) == 13
    assert item.encode() == b"\x06BABE\x34" + item.data


def test_a_parachain_block_says_its_slot_and_its_relay_parent() -> None:
    assert aura_pre_digest(slot=5).encode() == b"\x06aura\x20\x05" + bytes(7)
    item = relay_parent_storage_root_item(ROOT, 70)
    assert (item.variant, item.engine, item.data) == (CONSENSUS, b"RPSR", ROOT + b"\x19\x01")
    assert item.encode() == b"\x04RPSR\x88" + ROOT + b"\x19\x01"


def test_the_logs_of_a_real_header_are_made_alike() -> None:
    """Parachain header 10,990,425, with which the bridges of polkadot-sdk are tested: its slot, root and number."""
    root = bytes.fromhex("eff55cbcba39a6fb903bf960fc0036e731b439dd4275d4816ceeb386f1932fbf")
    slot = int.from_bytes(bytes.fromhex("a74c4a1100000000"), "little")
    assert aura_pre_digest(slot=slot).data.hex() == "a74c4a1100000000"
    number = int.from_bytes(bytes.fromhex("92bdf005"), "little") >> 2
    assert relay_parent_storage_root_item(root, number).data.hex() == root.hex() + "92bdf005"


def test_a_seal_has_64_bytes_and_follows_from_the_header_and_the_parachain() -> None:
    header = Header(ROOT, 1, ROOT)
    seal = modelled_seal(SUBSCRIBER, header)
    assert (seal.variant, seal.engine, len(seal.data)) == (SEAL, b"aura", 64)
    assert seal == modelled_seal(SUBSCRIBER, header)
    assert seal != modelled_seal(PUBLISHER, header)
    assert seal != modelled_seal(SUBSCRIBER, Header(ROOT, 2, ROOT))


def test_authorities_take_turns_that_the_seed_decides() -> None:
    turns = [authority_of(b"seed", slot) for slot in range(200)]
    assert max(turns) < MODELLED_AUTHORITIES
    assert len(set(turns)) > 100
    assert turns != [authority_of(b"other", slot) for slot in range(200)]


def test_parachain_headers_carry_their_logs_in_order_and_come_back() -> None:
    net = network()
    net.subscribe(SUBSCRIBER, PUBLISHER, keys(2))
    built: list[BlockBuilt] = []
    net.listeners.append(lambda fact: built.append(fact) if isinstance(fact, BlockBuilt) else None)
    for tick in range(5):
        publish(net, PUBLISHER, values(2, tick))
        net.step()
    for fact in built:
        header, parent = fact.block.header, fact.relay_parent
        logs = (aura_pre_digest(slot=parent.number), relay_parent_storage_root_item(parent.state_root, parent.number))
        unsealed = Header(header.parent_hash, header.number, header.state_root, digest=logs)
        assert header.digest == (*logs, modelled_seal(fact.para_id, unsealed))
        assert Header.decode(header.encode()) == header
        assert len(header.encode()) == 32 + 1 + 32 + 32 + 1 + 14 + (1 + 4 + 1 + 32 + 1) + (1 + 4 + 2 + 64)
    own = [fact.block.header for fact in built if fact.para_id == SUBSCRIBER]
    assert all(later.parent_hash == earlier.hash for earlier, later in pairwise(own))
    assert isinstance(own[0].digest[0], DigestItem)
