"""``rc.Network``: publishing and reading in a few lines of Python."""

import subprocess
import sys

import pytest

import relaycast as rc


@pytest.fixture
def net() -> rc.Network:
    return rc.Network(seed=7)


def test_the_first_example_of_the_product_page_holds(net: rc.Network) -> None:
    feeds = net.publisher(2000).publish_many({f"price/{i}": bytes(16) for i in range(50)})
    net.subscriber(3000, keys=feeds)
    run = net.run(blocks=200)
    assert run.delivery.p99_blocks <= 3
    assert run.invariants.ok
    assert run.delivery.callbacks == 50


def test_values_reach_every_reader_of_several_publishers(net: rc.Network) -> None:
    feeds = [net.publisher(para_id).publish("name", bytes([para_id % 256])) for para_id in (1000, 2000, 2001)]
    one, two = net.subscriber(3000, keys=feeds), net.subscriber(3001, keys=feeds[:1])
    net.run(blocks=4)
    assert [one[feed] for feed in feeds] == [b"\xe8", b"\xd0", b"\xd1"]
    assert feeds[0] in two
    assert feeds[1] not in two


def test_a_publisher_may_read_and_a_reader_may_publish(net: rc.Network) -> None:
    first = net.publisher(2000).publish("a", b"1")
    second = net.publisher(2001).publish("a", b"2")
    readers = net.subscriber(2000, keys=[second]), net.subscriber(2001, keys=[first])
    net.run(blocks=4)
    assert (readers[0][second], readers[1][first]) == (b"2", b"1")


def test_a_key_is_hashed_from_a_name_or_taken_as_it_is(net: rc.Network) -> None:
    publisher = net.publisher(2000)
    assert publisher.feed("my_key").key.hex() == "bc9d53ee74990af2b89dacb0a0f2e037a7d8025b0b269ff0be1cf41eab7cc88b"
    assert publisher.feed(bytes(32)).key == bytes(32)
    with pytest.raises(ValueError, match="32 bytes"):
        publisher.feed(b"short")


def test_only_what_changed_is_called_back(net: rc.Network) -> None:
    publisher = net.publisher(2000)
    feeds = publisher.publish_many({f"{index}": b"old" for index in range(20)})
    reader = net.subscriber(3000, keys=feeds)
    first = net.run(blocks=4)
    publisher.publish("7", b"new")
    second = net.run(blocks=4)
    assert (first.delivery.callbacks, second.delivery.callbacks) == (20, 1)
    assert reader[feeds[7]] == b"new"


def test_a_run_of_no_blocks_is_a_slip(net: rc.Network) -> None:
    with pytest.raises(ValueError, match="at least one block, got 0"):
        net.run(blocks=0)


def test_what_is_shown_can_be_read(net: rc.Network) -> None:
    publisher = net.publisher(2000)
    feed = publisher.publish("a", b"1")
    reader = net.subscriber(3000, keys=[feed])
    run = net.run(blocks=3)
    assert repr(net) == "<relaycast.Network at block 3, 2 parachains>"
    assert repr(feed) == "<Feed a of 2000>"
    assert repr(publisher) == "<Publisher 2000, 0 values waiting>"
    assert repr(reader) == "<Reader 3000, 1 of 1 values there>"
    assert repr(run).startswith("<Run of 3 blocks: Delivery(callbacks=1")


def test_neither_the_compiler_nor_arrow_is_loaded_by_a_first_run() -> None:
    code = (
        "import sys, relaycast; assert 'relaycast.network' not in sys.modules\n"
        "net = relaycast.Network()\n"
        "net.subscriber(3000, keys=[net.publisher(2000).publish('a', b'1')])\n"
        "net.run(blocks=3)\n"
        "print([name for name in ('numba', 'pyarrow', 'pandas', 'jinja2') if name in sys.modules])"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout == "[]\n"
