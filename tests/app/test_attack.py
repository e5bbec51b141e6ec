"""The attacks: what they find in a sound network, and that they would find more in one that is not."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from command_line import Command, Refused
from relaycast.attacks import Bystander, LieReport, Service, crafted_keys, depth, extra, omit, spam
from relaycast.attacks import lies as all_lies
from relaycast.attacks.message_lies import INVENTED, WITHHELD
from relaycast.attacks.proving_ground import BUSY, TIGHT, Moment, ProvingGround
from relaycast_ledger.outcome import Latency
from relaycast_pallets import ParachainInherentData
from relaycast_pallets.broadcaster.config import POLKADOT
from relaycast_pallets.subscriber.config import SubscriberConfig
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_pallets.subscriber.subscription import SubscribedKey
from relaycast_trie import StateVersion, StorageProof, build_database
from relaycast_xcm import ParaId, Weight

Attack = Callable[..., LieReport]


def rows(report: LieReport) -> dict[str, Counter[str]]:
    return {row.lie: Counter(row.caught) for row in report.rows}


@pytest.fixture(scope="module")
def omissions() -> LieReport:
    return omit(samples=4)


@pytest.fixture(scope="module")
def additions() -> LieReport:
    return extra(samples=2)


def test_every_omission_is_caught_but_those_within_the_last_min_weight(omissions: LieReport) -> None:
    assert omissions.undetected == 0
    assert omissions.violations == ()
    assert omissions.ok
    assert omissions.caught + omissions.within_min_weight + omissions.put_off == omissions.told
    assert {row.lie: row.put_off for row in omissions.rows if row.put_off} == {"hold_back": omissions.put_off}
    assert 0 < omissions.within_min_weight < omissions.told // 10
    assert 0 < omissions.most_bytes_left < omissions.min_weight_bytes == 2_058


def test_every_addition_is_caught(additions: LieReport) -> None:
    assert additions.ok
    assert additions.within_min_weight == 0
    for row in additions.rows:
        assert row.told > 0
        assert (row.no_lie == row.told) == (row.lie == "reorder")
        assert (sum(row.caught.values()) == row.told) == (row.lie != "reorder")


def test_lies_are_caught_by_the_error_that_fits_them(omissions: LieReport, additions: LieReport) -> None:
    caught = rows(omissions) | rows(additions)
    assert set(caught["duplicate"]) == {"DuplicateNode"}
    assert set(caught["add_foreign"]) == set(caught["add_unneeded"]) == set(caught["add_past"]) == {"UnusedNodes"}
    assert set(caught["stop_early"]) == set(caught["stop_at_once"]) == {"IncompleteBelowLimit"}
    assert set(caught["hand_over_nothing"]) == set(caught["show_the_past"]) == {"RootMismatch"}
    assert set(caught["withhold_all"]) == set(caught["withhold_one"]) == {"QueueHeadMismatch"}
    assert set(caught["hash_all"]) == {"NoMessageInFull"}
    assert set(caught["hold_back"]) == {"MessagesHeldBack"}, "horizontal messages, not downward ones"
    causes = {"MessageOutOfOrder", "NoMessageInFull", "NoSuchChannel", "QueueHeadMismatch"}
    assert set(caught["invent_message"]) == causes, "a hash alone, and a sender without a channel, have their own"
    assert set(caught["alter_message"]) == {"QueueHeadMismatch"}
    assert "NoSuchChannel" in caught["rename_sender"]
    assert set(caught["drop_one"]) == {"IncompleteBelowLimit", "MissingNode", "RootMismatch", "UnusedNodes"}


def test_lies_meet_every_state_of_a_subscriber(omissions: LieReport) -> None:
    assert set(omissions.moments) == {
        "changes",
        "cut short",
        "cut short again",
        "disables a publisher",
        "finished after a cut",
        "nothing new",
        "sees a publisher first",
    }


def test_the_same_seed_tells_the_same_lies() -> None:
    told = omit(blocks=3, samples=1, seed=3)
    assert told == omit(blocks=3, samples=1, seed=3)
    assert told.rows != omit(blocks=3, samples=1, seed=4).rows


def test_trying_lies_out_leaves_no_trace_in_the_network() -> None:
    honest, lied_to = ProvingGround(seed=1), ProvingGround(seed=1)
    for _ in honest.moments(6):
        pass
    for moment in lied_to.moments(6):
        draw = Random(0)
        for lie in (
            all_lies.stop_early,
            all_lies.drop_one,
            all_lies.skip_ahead,
            *WITHHELD,
            *INVENTED,
        ):
            for way in list(lie(moment, draw))[:4]:
                told = way() if callable(way) else way
                moment.attempt_inherent(told if isinstance(told, ParachainInherentData) else moment.with_nodes(told))
    assert lied_to.network.relay_chain.head == honest.network.relay_chain.head
    for para_id, parachain in lied_to.network.parachains.items():
        twin = honest.network.parachains[para_id]
        assert (parachain.head, parachain.kept.values) == (twin.head, twin.kept.values)


def accept_unused_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrackedProof, "ensure_no_unused_nodes", lambda _proof: None)


def accept_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StorageProof, "without_duplicates", staticmethod(StorageProof))


def accept_any_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SubscriberConfig, "min_weight", property(lambda _config: Weight.MAX))


@pytest.mark.parametrize(
    ("attack", "weaken", "undetected"),
    [
        (extra, accept_unused_nodes, {"add_foreign", "add_unneeded", "add_past"}),
        (extra, accept_duplicates, {"duplicate"}),
        (omit, accept_any_end, {"stop_early", "stop_at_once", "drop_publisher"}),
    ],
)
def test_a_chain_that_checks_less_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
    attack: Attack,
    weaken: Callable[[pytest.MonkeyPatch], None],
    undetected: set[str],
) -> None:
    weaken(monkeypatch)
    report = attack(blocks=3, samples=2)
    assert not report.ok
    assert report.escapes
    assert undetected <= {row.lie for row in report.rows if row.undetected}


@pytest.mark.parametrize("subscriber", [TIGHT, BUSY])
def test_a_collator_that_stops_as_early_as_it_may_loses_no_value(subscriber: ParaId) -> None:
    network = (ground := ProvingGround(seed=2)).network
    for _ in ground.moments(4):
        pass
    collator, parachain = network.collators[subscriber], network.parachains[subscriber]
    shortened = 0
    for _ in range(18):
        collation = collator.collate(network.relay_chain.head)
        moment = Moment(parachain, network.relay_chain, collation, ())
        budgets = range(0, collation.pruning.consumed.proof_size + 1, 100)
        laziest = next((it for it in map(moment.pruned, budgets) if moment.attempt(it).caught_by is None), moment.nodes)
        shortened += len(laziest) < len(moment.nodes)
        collator.tamper = lambda inherent, nodes=laziest: replace(inherent, relay_chain_state=nodes)
        assert all(record.panic is None for record in ground.ledger.step())
    storage = network.relay_chain.broadcaster.storage
    entries = {
        (publisher, key): storage.entry(publisher, key)
        for publisher, keys in parachain.kept.wanted.items()
        for key in keys
    }
    assert shortened > 0
    for (publisher, key), entry in entries.items():
        if entry is not None:
            assert parachain.kept.values[publisher, key][0] == entry.value


@pytest.mark.parametrize("limit", [4, 16, 64])
def test_crafted_keys_disable_their_publisher_and_harm_nobody(limit: int) -> None:
    report = depth(limit=limit, blocks=12)
    assert report.crafted_keys == limit
    assert (report.path_nodes_before, report.path_nodes_after) == (limit, limit + 1)
    assert report.disabled_at == report.struck_at + 2
    assert report.disabled_alone == ()
    assert report.disabled_attacked == (2_001,)
    assert report.attacker_callbacks_after == 0
    assert [it.publisher for it in report.bystanders] == [1_000, 2_000, 2_002]
    assert all(it.alone == it.attacked and it.alone.callbacks == 100 for it in report.bystanders)
    assert report.contained
    assert not report.harmed


def test_a_subscriber_without_the_limit_does_not_contain_the_attack(
    monkeypatch: pytest.MonkeyPatch, relaycast: Command
) -> None:
    unlimited = SubscriberConfig(max_trie_depth=64)
    monkeypatch.setattr("relaycast.attacks.deep_paths.SubscriberConfig", lambda max_trie_depth: unlimited)
    ended = relaycast("attack", "depth", "--blocks", "9")
    assert ended.code == 1
    assert "the attacker was not stopped" in ended.out


@pytest.mark.parametrize("count", [0, 1, 15, 64])
def test_crafted_keys_make_a_path_of_as_many_branches(count: int) -> None:
    target = SubscribedKey.from_data(b"target")
    keys = [target, *crafted_keys(target, count)]
    assert len(set(keys)) == count + 1
    db, root = build_database([(key, bytes(40)) for key in keys], state_version=StateVersion.V1)
    path = StorageProof.generate(db, root, [target])
    assert len(path) - 1 == count + 1  # the value stands outside


def service(callbacks: int, *, conflated: int = 0, p99: int = 2, longest: int = 2) -> Service:
    return Service(callbacks=callbacks, conflated=conflated, latency_blocks=Latency(2, p99, longest))


@pytest.mark.parametrize(
    ("attacked", "harmed"),
    [
        (service(10), False),
        (service(11), False),
        (service(9), True),
        (service(10, conflated=1), True),
        (service(10, p99=3, longest=3), True),
        (service(10, longest=3), True),
    ],
)
def test_a_bystander_is_harmed_by_less_and_by_later(attacked: Service, harmed: bool) -> None:
    assert Bystander(publisher=1, subscriber=2, alone=service(10), attacked=attacked).harmed is harmed


def test_a_flood_within_the_weight_limit_harms_nobody() -> None:
    report = spam(blocks=4, parachains=2, value_bytes=64)
    publish, idle = POLKADOT.weight("publish").ref_time, POLKADOT.db_weight.read
    assert report.sent_messages == 4 * 2 * 16
    assert report.published == report.sent_messages * 16
    assert report.refused == {}
    assert report.series[0].ref_time == 512 * publish + idle
    assert all(block.ref_time == (512 + 10) * publish + idle for block in report.series[1:])
    assert all(block.waiting_messages == 0 for block in report.series)
    assert report.stored_keys == 2 * (4 * 128 + 0)
    assert report.stored_bytes == report.stored_keys * (32 + 64)
    assert report.state_bytes_after - report.state_bytes_before > report.stored_bytes
    assert not report.harmed


def test_a_flood_beyond_the_weight_limit_makes_others_wait() -> None:
    report = spam(blocks=4, parachains=15, value_bytes=0)
    assert report.block_fits_publishes == 3_125
    assert max(block.weight_share for block in report.series) <= 1
    assert report.series[0].waiting_messages > 0
    assert report.series[-1].waiting_messages > report.series[0].waiting_messages
    assert report.harmed
    assert report.bystanders[0].alone.callbacks > report.bystanders[0].attacked.callbacks


def test_what_the_relay_chain_refuses_is_counted_by_its_reason() -> None:
    report = spam(blocks=10, parachains=1, value_bytes=2_048)
    assert set(report.refused) == {"pallet: TotalStorageSizeExceeded"}
    assert report.stored_bytes <= POLKADOT.max_total_storage_size
    assert sum(block.refused for block in report.series) == sum(report.refused.values())


def test_the_same_seed_floods_the_same() -> None:
    assert spam(blocks=2, parachains=1, seed=5) == spam(blocks=2, parachains=1, seed=5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: spam(blocks=0),
        lambda: spam(parachains=0),
        lambda: spam(value_bytes=2_049),
        lambda: depth(limit=3),
        lambda: depth(blocks=8),
        lambda: omit(blocks=0),
        lambda: extra(samples=-1),
        lambda: crafted_keys(SubscribedKey(bytes(32)), 65),
    ],
)
def test_attacks_that_cannot_be_are_the_callers_slip(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="got"):
        call()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("spam", "--blocks", "2", "--parachains", "1"), "nobody else was harmed"),
        (("depth", "--blocks", "9"), "the attacker is out, nobody else was harmed"),
        (("omit", "--blocks", "2", "--samples", "1"), "(100.00%)"),
        (("extra", "--blocks", "2", "--samples", "1"), "everything that can be caught was caught"),
    ],
)
def test_an_attack_that_fails_ends_well(
    attacked_once: None, relaycast: Command, arguments: tuple[str, ...], says: str
) -> None:
    ended = relaycast("attack", *arguments)
    assert (ended.code, ended.err) == (0, "")
    assert says in ended.out
    shown = relaycast("attack", *arguments, "--json").json
    assert (shown["schema"], shown["attack"], shown["ok"]) == (2, arguments[0], True)


@pytest.mark.parametrize("family", ["omit", "extra"])
def test_a_lie_that_gets_through_makes_the_exit_code_one(
    monkeypatch: pytest.MonkeyPatch, attacked_once: None, relaycast: Command, family: str
) -> None:
    accept_unused_nodes(monkeypatch)
    accept_any_end(monkeypatch)
    ended = relaycast("attack", family, "--blocks", "3", "--samples", "2")
    assert ended.code == 1
    assert "went undetected" in ended.out
    assert relaycast("attack", family, "--blocks", "3", "--samples", "2", "--json").json["undetected"] > 0


def test_a_flood_that_harms_others_makes_the_exit_code_one(relaycast: Command) -> None:
    ended = relaycast("attack", "spam", "--parachains", "15", "--blocks", "4", "--values", "0")
    assert ended.code == 1
    assert "others were harmed" in ended.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("spam", "--blocks", "0"), "--blocks"),
        (("spam", "--values", "2049"), "--values"),
        (("depth", "--limit", "65"), "--limit"),
        (("omit", "--samples", "-1"), "--samples"),
        (("extra", "--seed", "x"), "--seed"),
        (("spamm",), "spamm"),
    ],
)
def test_numbers_out_of_range_are_refused(refused: Refused, arguments: tuple[str, ...], says: str) -> None:
    assert says in refused("attack", *arguments)


def test_a_flood_counts_its_own_blocks() -> None:
    assert [block.block for block in spam(blocks=4, parachains=1).series] == [1, 2, 3, 4]
