"""Time of callbacks, declared in scenario files and in Python, and reported by runs."""

import msgspec
import pytest

import relaycast as rc
from relaycast.refusal import BadInput
from relaycast.report.verdicts import Severity, verdicts
from relaycast.scenario.checks import check_references
from relaycast.scenario.scenario import ParachainTable, PublishTable, Scenario, SubscriptionTable
from relaycast.scenario.upgrade_tables import UpgradeTable
from relaycast.simulation.simulation import Simulation
from relaycast_collator import LatestValues
from relaycast_ledger.outcome import Outcome
from relaycast_pallets import SubscribedKey
from relaycast_pallets.subscriber.config import CALLBACK_LIMIT
from relaycast_trie.engine import Engine
from relaycast_xcm import ParaId, Weight


def scenario(*, limit_us: int | None = None, blocks: int = 8, **declared: int) -> Scenario:
    """Return a reader of ten keys that change in every block."""
    limit = {} if limit_us is None else {"callback_limit_us": limit_us}
    return Scenario(
        blocks=blocks,
        parachains=[
            ParachainTable(id=2_000, publish=PublishTable(keys=10)),
            ParachainTable(id=3_000, subscribe=[SubscriptionTable(publisher=2_000, **declared)], **limit),  # type: ignore[arg-type]
        ],
    )


def outcome(it: Scenario, *, trie_engine: Engine = "auto") -> Outcome:
    simulation = Simulation.prepare(it, trie_engine=trie_engine)
    list(simulation.blocks())
    return simulation.outcome()


def test_callbacks_of_a_scenario_fill_their_limit_and_no_block_more() -> None:
    run = outcome(scenario(callback_us=100_000))
    (reader,) = run.subscribers
    load = reader.callback_load
    assert not isinstance(load, msgspec.UnsetType)
    assert (load.limit_ref_time, load.ref_time_max) == (500_000_000_000, 500_000_000_000)
    assert load.ref_time_total == reader.callbacks * 100_000_000_000
    assert load.waiting_blocks == reader.incomplete_blocks == 6
    assert load.overweight == run.oversize_blocks == 0
    fits = next(it for it in verdicts(run) if it.about == "fits")
    assert "Callbacks filled the 0.5 seconds that a block of 3000 has for them in 6 blocks" in fits.text
    assert "The budget" not in fits.text
    assert run.invariants.ok


def test_a_limit_that_an_upgrade_changed_is_not_told_as_the_limit_of_the_run() -> None:
    it = scenario(callback_us=100_000, blocks=12)
    upgraded = msgspec.structs.replace(it.parachains[1], upgrades=[UpgradeTable(at=8, callback_limit_us=50_000)])
    fits = next(
        it
        for it in verdicts(outcome(msgspec.structs.replace(it, parachains=[it.parachains[0], upgraded])))
        if it.about == "fits"
    )
    assert "0.5 seconds" not in fits.text
    assert "Callbacks filled the time, changed by an upgrade, that a block of 3000 has in " in fits.text
    assert "passed over (CallbackBeyondLimit in events.jsonl)" in fits.text


def test_without_a_limit_the_verdict_on_the_time_of_a_block_is_red() -> None:
    run = outcome(scenario(callback_us=300_000, limit_us=0))
    assert run.oversize_blocks == 6
    fits = next(it for it in verdicts(run) if it.about == "fits")
    assert fits.ending is Severity.BAD
    assert "takes 3.00 of 2 seconds" in fits.text


def test_bytes_that_callbacks_read_count_as_carried() -> None:
    plain, reading = outcome(scenario()), outcome(scenario(callback_proof_bytes=1_000))
    light, heavy = plain.subscribers[0].fullest_block, reading.subscribers[0].fullest_block
    assert light is not None
    assert heavy is not None
    assert heavy.by_cause["callbacks"] == 10_000
    assert heavy.pov_bytes - light.pov_bytes == 10_000
    assert sum(heavy.by_cause.values()) == heavy.pov_bytes


def test_a_scenario_that_declares_nothing_says_nothing_of_callbacks() -> None:
    """Neither its echo, from which its run id follows, nor its outcome."""
    it = scenario()
    assert b"callback_" not in msgspec.json.encode(it)
    assert b"callback_load" not in msgspec.json.encode(outcome(it).subscribers)


def test_every_engine_gives_the_same() -> None:
    it = scenario(callback_us=100_000)
    plain, array = (outcome(it, trie_engine=engine) for engine in ("plain", "array"))
    assert plain == array


def test_a_callback_that_no_block_has_time_for_is_refused_with_both_numbers() -> None:
    with pytest.raises(BadInput) as refused:
        check_references(scenario(callback_us=600, limit_us=500), "a.toml")
    assert str(refused.value) == (
        "a.toml at parachains[1].subscribe[0].callback_us: got 600, expected at most what a block allows, "
        "callback_limit_us = 500"
    )
    check_references(scenario(callback_us=500, limit_us=500), "a.toml")
    check_references(scenario(callback_us=600, limit_us=0), "a.toml")


@pytest.fixture
def net() -> rc.Network:
    return rc.Network(seed=1)


def test_python_declares_callbacks_as_scenarios_do(net: rc.Network) -> None:
    feeds = net.publisher(2000).publish_many({str(number): b"1" for number in range(6)})
    light = net.publisher(2001).publish("light", b"1")
    reader = net.subscriber(3000, keys=feeds, callback_us=200, callback_proof_bytes=7, callback_limit_us=500)
    net.subscriber(3000, keys=[light])
    net.run(blocks=3)
    assert net.chains.parachains[ParaId(3000)].subscriber.delivered.weight == Weight(400_000_000, 14)
    net.run(blocks=3)
    assert len(reader) == 7
    kept = net.chains.parachains[ParaId(3000)].kept
    assert set(kept.weights.values()) == {Weight(200_000_000, 7)}
    assert len(kept.weights) == 6


@pytest.mark.parametrize(
    ("declared", "slip", "line"),
    [
        ({"callback_us": -1}, ValueError, "callback_us is a number from 0 to 1,000,000,000, got -1"),
        ({"callback_us": 10**9 + 1}, ValueError, "got 1000000001"),
        ({"callback_us": 1.5}, TypeError, "callback_us is a whole number, got 1.5"),
        ({"callback_proof_bytes": -1}, ValueError, "callback_proof_bytes is a number from 0"),
        ({"callback_proof_bytes": 2**63}, ValueError, "callback_proof_bytes is a number from 0 to 1,073,741,824"),
        ({"callback_limit_us": -1}, ValueError, "callback_limit_us is a number from 0 to 1,000,000,000, got -1"),
        ({"callback_us": 2, "callback_limit_us": 1}, ValueError, r"at most \(1,000,000 ps, .*, got \(2,000,000 ps"),
        ({"callback_us": 500_001}, ValueError, r"at most \(500,000,000,000 ps"),  # the default
    ],
)
def test_what_cannot_be_declared_is_refused_and_leaves_nothing(
    net: rc.Network, declared: dict[str, int], slip: type[Exception], line: str
) -> None:
    feed = net.publisher(2000).publish("a", b"1")
    with pytest.raises(slip, match=line):
        net.subscriber(3000, keys=[feed], **declared)  # type: ignore[arg-type]
    assert ParaId(3000) not in net.chains.parachains


def test_the_limit_is_for_a_new_parachain(net: rc.Network) -> None:
    feed = net.publisher(2000).publish("a", b"1")
    net.subscriber(3000, keys=[feed])
    with pytest.raises(ValueError, match="policies, budget and limits are for new ones"):
        net.subscriber(3000, keys=[feed], callback_limit_us=5)


def test_a_handler_of_its_own_declares_for_itself() -> None:
    net = rc.Network(seed=1)
    chain = net.chains.add_parachain(3000, handler=_Heavy())
    with pytest.raises(ValueError, match="a handler of its own"):
        chain.declare(ParaId(2000), [bytes(32)], Weight(1))


class _Heavy(LatestValues):
    """Wants a key whose callback takes all the time that a block has for them."""

    def __init__(self) -> None:
        super().__init__()
        self.subscribe(ParaId(2000), [SubscribedKey(bytes(32))])

    def callback_weight(self, _publisher: ParaId, _key: SubscribedKey) -> Weight:
        return Weight(CALLBACK_LIMIT.ref_time)


class _TooHeavy(_Heavy):
    def callback_weight(self, _publisher: ParaId, _key: SubscribedKey) -> Weight:
        return Weight(CALLBACK_LIMIT.ref_time + 1)


def test_a_handler_whose_callback_no_block_has_time_for_is_refused_at_set_up(net: rc.Network) -> None:
    with pytest.raises(ValueError, match=r"must weigh at most .*, got"):
        net.chains.add_parachain(3000, handler=_TooHeavy())
    assert ParaId(3000) not in net.chains.parachains
