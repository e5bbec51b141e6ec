"""``rc.Network``: publishing and reading in a few lines of Python."""

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import relaycast as rc
from relaycast import choices
from relaycast_ledger import Accounts
from relaycast_pallets.broadcaster.config import POLKADOT
from relaycast_pallets.parachain_system.relay_budget import Remaining
from relaycast_pallets.subscriber.policies import Policies
from relaycast_xcm import ParaId

pytestmark = pytest.mark.relaycast(seed=7)


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
    assert repr(run).startswith("<Run of 3 blocks: DeliveryTotals(callbacks=1")


def waiting(net: rc.Network) -> str:
    """Return what the network of a test shows, with all that waits in it."""
    chains = net.chains.parachains.values()
    return repr((net, [(list(chain.outbox), dict(chain.kept.wanted)) for chain in chains]))


@pytest.mark.parametrize(
    ("publish", "slip", "line"),
    [
        (lambda it: it.publish("x", "text"), TypeError, "a value is bytes, got 'text' of type str"),
        (lambda it: it.publish("x", None), TypeError, "a value is bytes, got None"),
        (lambda it: it.publish_many({"good": b"1", "bad": "2"}), TypeError, "a value is bytes, got '2'"),
        (lambda it: it.publish_many({"good": b"1", "bad": bytes(2_049)}), ValueError, "at most 2048 bytes, got 2049"),
        (lambda it: it.publish_many([("x", b"1")]), TypeError, "values are a mapping of keys to bytes"),
        (lambda it: it.publish(7, b"1"), TypeError, "a key is a name or 32 bytes, got 7 of type int"),
        (lambda it: it.publish(bytes(31), b"1"), ValueError, "32 bytes, got 31"),
        (lambda it: it.publish("x", b"1", ttl="3"), TypeError, "a ttl is a whole number, got '3'"),
        (lambda it: it.publish("x", b"1", ttl=1.5), TypeError, "a ttl is a whole number, got 1.5"),
        (lambda it: it.publish("x", b"1", ttl=-1), ValueError, "a ttl is a u32, got -1"),
    ],
)
def test_a_publication_that_cannot_be_is_refused_at_once(
    net: rc.Network, publish: Callable[[Any], object], slip: type[Exception], line: str
) -> None:
    publisher = net.publisher(2000)
    publisher.publish("first", b"1")
    before = waiting(net)
    with pytest.raises(slip, match=line):
        publish(publisher)
    assert waiting(net) == before
    assert net.run(blocks=3).invariants.ok


@pytest.mark.parametrize(
    ("subscribe", "slip", "line"),
    [
        (lambda net, _: net.subscriber(3000, keys=["price/1"]), TypeError, "keys are feeds, got 'price/1' of type str"),
        (
            lambda net, feed: net.subscriber(3000, keys=feed),
            TypeError,
            "keys are a list of feeds, got <Feed x of 2000>",
        ),
        (lambda net, _: net.subscriber(3000, keys=None), TypeError, "keys are a list of feeds, got None"),
        (lambda net, feed: net.subscriber("3000", keys=[feed]), TypeError, "a parachain id is a whole number"),
        (lambda net, feed: net.subscriber(-1, keys=[feed]), ValueError, "a parachain id is a u32, got -1"),
        (lambda net, feed: net.subscriber(3000, keys=[feed], policies="x"), TypeError, "policies are Policies"),
        (lambda net, feed: net.subscriber(3000, keys=[feed], budget=85), TypeError, "a budget shares out a block"),
        (
            lambda net, feed: net.subscriber(3000, keys=[feed], max_pov_bytes=0),
            ValueError,
            "max_pov_bytes is at least 1",
        ),
        (lambda net, feed: net.subscriber(2000, keys=[feed], policies=Policies()), ValueError, "2000 is there already"),
        (lambda net, feed: net.subscriber(2000, keys=[feed], budget=Remaining()), ValueError, "2000 is there already"),
        (
            lambda net, _: net.subscriber(3000, keys=[rc.Feed(para_id, bytes(32)) for para_id in range(101)]),
            ValueError,
            "a parachain reads at most 100 publishers",
        ),
        (lambda net, _: net.publisher(True), TypeError, "a parachain id is a whole number, got True of type bool"),
        (lambda net, _: net.run(blocks="3"), TypeError, "the number of blocks is a whole number, got '3'"),
        (lambda net, _: net.run(blocks=2.0), TypeError, "the number of blocks is a whole number, got 2.0"),
    ],
)
def test_a_call_that_cannot_be_meant_leaves_the_network_as_it_was(
    net: rc.Network, subscribe: Callable[[Any, rc.Feed], object], slip: type[Exception], line: str
) -> None:
    feed = net.publisher(2000).publish("x", b"1")
    before = waiting(net)
    with pytest.raises(slip, match=line):
        subscribe(net, feed)
    assert waiting(net) == before


@pytest.mark.parametrize(
    ("make", "slip", "line"),
    [
        (lambda: rc.Network(seed=-1), ValueError, "a seed is a number from 0 to 2"),
        (lambda: rc.Network(seed=2**63), ValueError, "a seed is a number from 0 to 2"),
        (lambda: rc.Network(seed=0.5), TypeError, "a seed is a whole number, got 0.5 of type float"),  # type: ignore[arg-type]
        (lambda: rc.Network(genesis=5), TypeError, "a genesis is a ChainSpec or the file of one"),  # type: ignore[arg-type]
        (lambda: rc.Feed(2000, b"short"), ValueError, "32 bytes, got 5"),
        (lambda: rc.Feed(2000, "price"), TypeError, "hashes names"),  # type: ignore[arg-type]
        (lambda: rc.Feed(-1, bytes(32)), ValueError, "a parachain id is a u32"),
    ],
)
def test_what_cannot_be_made_says_why(make: Callable[[], object], slip: type[Exception], line: str) -> None:
    with pytest.raises(slip, match=line):
        make()


def test_a_genesis_may_be_a_path(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text('{"name": "x", "genesis": {"raw": {"top": {"0x01": "0x02"}, "childrenDefault": {}}}}')
    assert rc.Network(genesis=spec).genesis_entries == 1


def test_a_reader_says_what_it_does_not_have(net: rc.Network) -> None:
    publisher = net.publisher(2000)
    feed = publisher.publish("a", b"1")
    reader = net.subscriber(3000, keys=[feed])
    with pytest.raises(KeyError, match="<Feed a of 2000>: no value has reached parachain 3000"):
        reader[feed]
    with pytest.raises(KeyError, match="<Feed b of 2000>: it is not subscribed by parachain 3000"):
        reader[publisher.feed("b")]
    with pytest.raises(TypeError, match="a reader is asked for a feed, got 'a' of type str"):
        reader["a"]  # type: ignore[index]
    assert reader.get(feed) is None
    assert list(reader) == []


def test_a_reader_gives_its_feeds_and_a_feed_is_its_key(net: rc.Network) -> None:
    publisher = net.publisher(2000)
    feed = publisher.publish("a", b"1")
    reader = net.subscriber(3000, keys=[feed, feed])
    net.subscriber(3000, keys=[feed, rc.Feed(2000, feed.key)])
    net.run(blocks=4)
    assert repr(reader) == "<Reader 3000, 1 of 1 values there>"
    assert [repr(found) for found in reader] == ["<Feed a of 2000>"]
    assert reader[rc.Feed(2000, feed.key)] == reader.get(feed) == b"1"


def test_the_package_names_what_it_offers() -> None:
    assert {"Network", "Feed", "Publisher", "Reader", "Run"} <= set(dir(rc))
    with pytest.raises(AttributeError, match="no attribute 'Netwrk'"):
        rc.Netwrk  # noqa: B018


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


def test_the_signature_of_a_network_is_one_that_a_person_reads() -> None:
    assert "WeightTable" not in str(inspect.signature(rc.Network))
    assert rc.Network(broadcaster=POLKADOT).genesis_entries == rc.Network().genesis_entries


def test_no_lie_comes_through_and_an_honest_collator_goes_on_where_the_chain_stands(net: rc.Network) -> None:
    publisher = net.publisher(2000)
    feed = publisher.publish("a", b"1")
    reader = net.subscriber(3000, keys=[feed])
    net.run(blocks=3)
    publisher.publish("a", b"2")
    lies: list[Callable[[tuple[bytes, ...]], Iterable[bytes]]] = [
        lambda nodes: nodes[1:],  # a node left out
        lambda nodes: [*nodes, b"\x00" * 40],  # one that nobody needs
        lambda nodes: (),  # no proof at all
    ]
    for lie in lies:
        reader.tamper(lie)
        run = net.run(blocks=2)
        assert len(run.panics) == 2
        assert all(panic.startswith("3000: block on relay block") for panic in run.panics)
        assert repr(run).endswith(", 2 panics>")
        assert reader[feed] == b"1"
    reader.tamper(lambda nodes: nodes)
    assert net.run(blocks=1).panics == []
    assert reader[feed] == b"2"
    reader.tamper(None)
    assert net.run(blocks=2).invariants.ok


def test_a_lie_is_a_function_that_gives_bytes(net: rc.Network) -> None:
    reader = net.subscriber(3000, keys=[net.publisher(2000).publish("a", b"1")])
    with pytest.raises(TypeError, match="a lie is a function of the proof's nodes, got 'x'"):
        reader.tamper("x")  # type: ignore[arg-type]
    reader.tamper(lambda nodes: ["x"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="the nodes of a proof are bytes, got 'x'"):
        net.run(blocks=1)


def test_what_a_network_is_given_by_name_is_what_it_is_given_as_an_object() -> None:
    named = rc.Network(
        seed=3, broadcaster="rococo", policies={"cache": "none", "callback": "all-keys"}, budget="floor:99"
    )
    policies = Policies(cache=choices.NoCache(), callback=choices.AllKeysOnChange())
    given = rc.Network(seed=3, broadcaster=choices.ROCOCO, policies=policies, budget=choices.Floor(99))
    for net in (named, given):
        feed = net.publisher(2000).publish("a", bytes(40))
        net.subscriber(3000, keys=[feed])
        net.subscriber(3001, keys=[feed], policies={"cache": "structure"}, budget="cumulus")
        first, second = net.chains.parachains[ParaId(3000)], net.chains.parachains[ParaId(3001)]
        assert first.subscriber.policies == policies
        assert first.parachain_system.budget == choices.Floor(99)
        assert second.subscriber.policies == Policies()
        assert second.parachain_system.budget == choices.CumulusSixths()
        assert net.chains.relay_chain.broadcaster.config is choices.ROCOCO


@pytest.mark.parametrize(
    ("choose", "line"),
    [
        (lambda: choices.policies_of({"cash": "none"}), "'cash' is no kind of policy .did you mean cache"),
        (lambda: choices.policies_of({"budget": "floor"}), "'budget' is no kind of policy"),
        (lambda: choices.policies_of({"cache": "nnoe"}), "policies.cache: got 'nnoe'.* .did you mean none"),
        (lambda: choices.policies_of({"cache": 7}), "the cache policy is a name, got 7"),
        (lambda: choices.policies_of({"max_cached_node": "512"}), "the max_cached_node policy is a number of bytes"),
        (lambda: choices.policies_of({"max_cached_node": 751}), "max_cached_node is from 1 to 750, got 751"),
        (lambda: choices.budget_of("floor:-1"), "policies.budget: got 'floor:-1', expected floor:N"),
        (lambda: choices.broadcaster_of("polkadott"), "names no limits of a relay chain .did you mean polkadot"),
        (lambda: rc.Network(broadcaster="kusama"), "'kusama' names no limits of a relay chain"),
    ],
)
def test_a_name_that_nothing_has_is_refused_with_the_nearest(choose: Callable[[], object], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        choose()


def test_every_choice_is_there_by_its_name() -> None:
    assert sorted(choices.__all__) == sorted({*choices.__all__})
    assert all(hasattr(choices, name) for name in choices.__all__)
    for kind, names in choices.NAMES.items():
        for name in names:
            match kind:
                case "budget":
                    assert repr(choices.budget_of(name)).endswith(")")
                case "broadcaster":
                    assert choices.broadcaster_of(name).name == name
                case "ground":
                    assert choices.GROUNDS[name].name == name
                case _:
                    chosen = getattr(choices.policies_of({kind: name}), kind)
                    assert repr(chosen).startswith(type(chosen).__name__ + "(")


def test_what_happened_in_a_block_can_be_read(net: rc.Network) -> None:
    net.ledger.accounts = Accounts.BY_PUBLISHER
    publisher = net.publisher(2000)
    feed = publisher.publish("a", bytes(40))
    reader = net.subscriber(3000, keys=[feed])
    *_, record = [record for _ in range(3) for record in net.ledger.step()]
    sizes = f"proof {record.proof_bytes:,} bytes, {record.static_bytes:,} of them static, own {record.own_bytes}"
    assert repr(record) == f"<BlockRecord 3000 #3 on relay block 2: 1 callbacks, {sizes}, complete>"
    assert repr(record.deliveries[0]) == f"<Delivery 0x{feed.key.hex()} of 2000: 40 bytes after 2 blocks>"
    assert record.account is not None
    (account,) = record.account.publishers
    assert repr(account) == "<PublisherAccount 2000 finished: 1 of 1 keys changed, top 67, new 66, value 49>"
    total = f"{record.proof_bytes:,} bytes, {record.static_bytes:,} of them static"
    assert repr(record.account) == f"<BlockAccount of {total}: {account!r}>"
    collator = net.chains.collators[ParaId(3000)]
    assert repr(collator) == "<Collator of <Parachain 3000 at #3>>"
    collation = collator.collate(net.chains.relay_chain.head)
    assert repr(collation).startswith("<Collation: 5,279 bytes collected, 5,164 handed over, <ProofProcessingResult")
    root = net.chains.relay_chain.head.state_root.hex()
    assert repr(collation.inherent) == (
        f"<ParachainInherentData on <PersistedValidationData of relay block 3, state 0x{root}>: "
        "26 nodes, 5,164 bytes, 0 messages>"
    )
    reader.tamper(lambda nodes: nodes[1:])
    assert repr(collator) == "<Collator of <Parachain 3000 at #3>, which lies>"
    (lie,) = net.ledger.step()
    assert repr(lie).endswith(", panicked>")
