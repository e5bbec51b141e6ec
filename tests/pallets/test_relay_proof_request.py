"""What a parachain asks its collator to prove, and the bytes of the question."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallets.block_vectors import ALPHA, PUBLIC, A, B, BlockVector, SmallNetwork, executes, values
from pallets.subscriber_world import World
from relaycast_pallets import Child, RelayProofRequest, Top, derive_child_info, static_relay_keys
from relaycast_trie import CodecError
from relaycast_xcm.primitives import ParaId
from yielded_vectors import yields

STORAGE_KEY = b"pubsub\xe8\x03\x00\x00"
TOP, CHILD = Top(b"\x01\x02"), Child(STORAGE_KEY, b"k")

requests = st.lists(st.builds(Top, st.binary(max_size=40)) | st.builds(Child, st.binary(max_size=12), st.binary()))


@given(requests)
def test_a_request_survives_its_bytes(wanted: list[Top | Child]) -> None:
    request = RelayProofRequest(tuple(wanted))
    assert RelayProofRequest.decode(request.encode()) == request


def test_a_request_has_these_bytes() -> None:
    assert RelayProofRequest((TOP, CHILD)).encode() == b"\x08\x00\x08\x01\x02\x01\x28" + STORAGE_KEY + b"\x04k"


@pytest.mark.parametrize(
    "data",
    [
        b"",  # no count
        b"\x04",  # a key is missing
        b"\x04\x02\x00",  # no such variant
        b"\x04\x00\x08\x01",  # a key ends too early
        b"\x00\x00",  # bytes left over
        b"\xff\xff\xff\xff\xff",  # a count that cannot be
    ],
)
def test_bytes_that_are_no_request_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        RelayProofRequest.decode(data)


def test_keys_are_grouped_by_child_trie_and_each_there_once() -> None:
    request = RelayProofRequest((CHILD, Top(b"t"), Child(b"other", b"x"), CHILD, Top(b"t"), Child(STORAGE_KEY, b"a")))
    assert request.by_child_trie() == {STORAGE_KEY: [b"k", b"a"], b"other": [b"x"]}
    assert request.top_keys() == [b"t"]
    assert len(request) == 6
    assert list(request)[1] == Top(b"t")


@pytest.mark.upstream("relay_keys_includes_subscribed")
def test_every_subscribed_key_is_asked_for_in_the_publishers_child_trie() -> None:
    world = World()
    world.subscribe(ALPHA, [B, A])
    assert world.subscriber.relay_keys().keys == (Child(STORAGE_KEY, A), Child(STORAGE_KEY, B))
    assert world.parachain.relay_keys_to_prove() == world.subscriber.relay_keys()


@pytest.mark.upstream("relay_keys_empty_no_subscriptions")
@pytest.mark.upstream("noop_extender_relay_keys_empty")
def test_nothing_is_asked_for_without_subscriptions() -> None:
    world = World()
    assert world.subscriber.relay_keys() == RelayProofRequest()
    assert not world.subscriber.subscribes


@pytest.mark.upstream("relay_keys_multiple_publishers")
def test_each_publisher_is_asked_for() -> None:
    world = World()
    for publisher in (PUBLIC, ALPHA):
        world.subscribe(publisher, [A])
    names = [derive_child_info(publisher).storage_key for publisher in (ALPHA, PUBLIC)]
    assert list(world.subscriber.relay_keys().by_child_trie()) == names


@yields("subscriber/budget-scenarios")
def test_the_paths_to_all_subscribed_keys_are_collected() -> Iterator[BlockVector]:
    about = executes(
        "Relay Proof Collection / Proof collection for subscriptions",
        "proof-collection",
        "the collected proof holds the paths to A, B and C in the child trie of 1000",
    )
    yield values(wanted=3).block(about, seal=False)


@yields("subscriber/budget-scenarios")
def test_a_child_root_is_found_by_the_publishers_id_in_four_bytes() -> Iterator[BlockVector]:
    about = executes(
        "Relay Proof Collection / Child trie key derivation",
        "child-trie-key",
        "the child root stands at :child_storage:default:pubsub and the id as u32 (e8030000 for 1000)",
    )
    network = SmallNetwork()
    for publisher in (ALPHA, ParaId(0x0102_0304)):
        assert derive_child_info(publisher).storage_key == b"pubsub" + int(publisher).to_bytes(4, "little")
        network.subscribe(publisher, [A])
        network.publish(publisher, [A], str(publisher).encode())
    yield network.block(about)


def test_the_static_keys_of_a_parachain_are_these() -> None:
    """Prefixes as computed from the names of the relay chain's pallets; parachain 1000."""
    assert [static[:32].hex() for static in static_relay_keys(ParaId(1_000))] == [
        "1cb6f36e027abb2091cfb5110ab5087fd077dfdb8adb10f78f10a5df8742c545",
        "1cb6f36e027abb2091cfb5110ab5087f7ce678799d3eff024253b90e84927cc6",
        "1cb6f36e027abb2091cfb5110ab5087f7a414cb008e0e61e46722aa60abdd672",
        "1cb6f36e027abb2091cfb5110ab5087f06155b3cd9a8c9e5e9a23fd5dc13a5ed",
        "06de3d8a54d27e44a9d5ce189618f22db4b49d95320d9021994c850f25b8e385",
        "63f78c98723ddc9073523ef3beefda0c4d7fefc408aac59dbfe80a72ac8e3ce5",
        "f5207f03cfdce586301014700e2c2593fad157e461d71fd4c1f936839a5f1f3e",
        "3a72656c61795f64697370617463685f71756575655f72656d61696e696e675f",
        "6a0da05ca59913bc38a8630590f2627c1d3719f5b0b12c7105c073c507445948",
        "6a0da05ca59913bc38a8630590f2627cf12b746dcf32e843354583c9702cc020",
        "cd710b30bd2eab0352ddcc26417aa1949e94c040f5e73d9b7addd6cb603d15d3",
        "cd710b30bd2eab0352ddcc26417aa194f27bbb460270642b5bcaf032ea04d56a",
        "cd710b30bd2eab0352ddcc26417aa1941b3c252fcb29d88eff4f3de5de4476c3",
    ]
