"""Corners of the specification that no vector has, as the page of the suite and the pallets have them."""

import pytest

from relaycast_spec import messages, proof_pass, scale, tries, xcm


def test_the_first_message_that_does_not_fit_ends_those_in_full() -> None:
    assert messages.share(130, 100, [100, 20], []) == (1, 0, 0, True)
    assert messages.share(1_000, 100, [100, 20], []) == (2, 0, 880, True)
    assert messages.share(10, 100, [], []) == (0, 0, 10, False)


def refused(data: bytes) -> str:
    with pytest.raises(scale.Refused) as found:
        xcm.decode_message(data)
    return str(found.value.name)


def test_a_fixed_number_of_items_has_no_length_that_could_exceed_the_bytes() -> None:
    """``DescendOrigin`` with an ``X2`` whose first junction has no known variant, and one that ends before it."""
    assert refused(b"\x05\x04\x0b\x02\xff") == "UnknownVariant"
    assert refused(b"\x05\x04\x0b\x02") == "CodecError"


def test_keys_are_read_in_their_order_and_the_first_error_is_the_result() -> None:
    long, other = b"\x11" * 32, b"\x21" * 32
    root, nodes = tries.trie({long: bytes(40), other: bytes(41)})
    proof = [node for node in nodes.values() if node != bytes(40)]
    with pytest.raises(scale.Refused, match="MissingNode"):
        tries.verify(proof, root, [long, other], strict=False)
    assert tries.verify(proof, root, [other], strict=False) == [bytes(41)]


def test_an_external_value_is_not_known_because_it_is_the_empty_node() -> None:
    leaf = tries.Node("1" * 64, tries.EMPTY_ROOT, hashed=True).encoded()
    with pytest.raises(scale.Refused, match="MissingNode"):
        tries.verify([leaf], scale.blake2_256(leaf), [b"\x11" * 32], strict=False)


def block(**changes: object) -> proof_pass.BlockInput:
    fields: dict[str, object] = {
        "config": proof_pass.Config(max_trie_depth=8, max_value_length=64, read_ref_time=1),
        "policies": proof_pass.Policies(),
        "subscriptions": [],
        "state": [],
        "relay_parent_number": 1,
        "seed": b"",
        "has_messages": False,
        "budget": {"ref_time": 10**9, "proof_size": 10**6},
    }
    return proof_pass.BlockInput(**(fields | changes))  # type: ignore[arg-type]


def test_a_node_that_was_collected_twice_is_in_the_proof_once() -> None:
    root, nodes = tries.trie({b"a": b"1"})
    collected = [*nodes.values(), *nodes.values()]
    assert proof_pass.prune(block(relay_root=root, static_keys=[b"a"]), collected) == [*nodes.values()]


def test_a_barrier_that_nobody_knows_admits_nothing() -> None:
    about = xcm.Properties(dict(xcm.ZERO), dict(xcm.ZERO), [])
    with pytest.raises(ValueError, match="no barrier is called AllowAll"):
        xcm.admitted({"barrier": "AllowAll"}, xcm.parachain(1000), ["ClearOrigin"], about)
    for name in ("Chain", "TrailingSetTopicAsId", "WithComputedOrigin"):
        with pytest.raises(scale.Refused, match="Unsupported"):
            xcm.admitted({"barrier": name, "max_prefixes": 1}, xcm.parachain(1000), ["ClearOrigin"], about)
