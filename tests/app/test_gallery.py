"""The gallery: every preset shows what its description says, and the page shows what the presets come to."""

from collections.abc import Callable
from functools import cache

import pytest
from msgspec.structs import replace

import gallery_page
from relaycast.compare.comparison import measure
from relaycast.scenario.files import load_preset, presets, runnable_presets
from relaycast.scenario.policy_choice import PolicyTable
from relaycast_ledger.outcome import Outcome, SubscriberOutcome

outcome = cache(gallery_page.outcome)

LONG = {"block-times", "griefed-publisher", "heartbeats", "heavy-messages", "hundred-subscribers", "many-keys"}
"""Presets that take a second and more at full length; digests of their first blocks are looked at with every check."""


def readers(run: Outcome) -> dict[str, SubscriberOutcome]:
    return {it.name: it for it in run.subscribers}


def news(it: SubscriberOutcome) -> int:
    return it.proof_bytes.total - it.static_bytes.total


def heavy_messages(run: Outcome) -> bool:
    hub, exchange = readers(run)["hub"], readers(run)["exchange"]
    late = (hub.latency_blocks.max or 0) > 3 and hub.deliveries > hub.callbacks
    hardly_hurt = exchange.latency_blocks.max == 3 and exchange.incomplete_blocks < hub.incomplete_blocks
    too_much = hub.refused_bytes > 0 and exchange.refused_bytes > 0
    return late and hardly_hurt and too_much and exchange.deliveries == exchange.callbacks


def late_subscriber(run: Outcome) -> bool:
    early, late = readers(run)["early"], readers(run)["late"]
    return (
        late.callbacks == 500 + 4 * 10 and late.first_proof_bytes > early.first_proof_bytes and news(late) < news(early)
    )


def griefed_publisher(run: Outcome) -> bool:
    exchange, careless = readers(run)["exchange"], readers(run)["careless"]
    kept = exchange.callbacks == 38 * 50 + 24 * 50
    sixth = 1.14 < careless.proof_bytes.max / (careless.static_bytes.p50 + 5_270) < 1.18
    return exchange.disabled_publishers == [2000] and kept and not careless.disabled_publishers and sixth


def many_keys(run: Outcome) -> bool:
    (reader,) = run.subscribers
    is_followed = (reader.keys, reader.callbacks, reader.incomplete_blocks) == (100_000, 110_000, 0)
    return is_followed and len(run.relaychain.lifted or ()) == 3 and reader.own_bytes.max > reader.proof_bytes.max


def mass_expiry(run: Outcome) -> bool:
    (bidder,) = run.subscribers
    return bidder.callbacks == 100 and news(bidder) > 10 * 20_000


def heartbeats(run: Outcome) -> bool:
    quiet, busy = readers(run)["quiet-reader"], readers(run)["busy-reader"]
    return busy.callbacks == 9.5 * quiet.callbacks and quiet.proof_bytes.max == busy.proof_bytes.p50


def moving_window(run: Outcome) -> bool:
    steady, sliding = readers(run)["steady"], readers(run)["sliding"]
    return (steady.callbacks, sliding.callbacks, sliding.keys) == (50, 10 * 50, 59)


def block_times(run: Outcome) -> bool:
    it = readers(run)
    halved = 2 * it["sync"].callbacks == it["async"].callbacks and 2 * news(it["sync"]) == news(it["async"])
    thrice = it["elastic"].blocks == 3 * it["async"].blocks and it["elastic"].callbacks == it["async"].callbacks
    return halved and thrice and it["cautious"].latency_blocks.max == (it["async"].latency_blocks.max or 0) + 4


def hundred_subscribers(run: Outcome) -> bool:
    alone = outcome("oracle").subscribers[1]
    more_static = {it.static_bytes.p50 > alone.static_bytes.p50 for it in run.subscribers}
    same_news = {it.proof_bytes.p50 - it.static_bytes.p50 for it in run.subscribers}
    return len(run.subscribers) == 100 and more_static == {True} and same_news == {2_163}


def oracle(run: Outcome) -> bool:
    exchange, lender = run.subscribers
    return exchange.own_bytes.p50 > exchange.proof_bytes.p50 and 0.38 < news(lender) / news(exchange) < 0.44


def ring_roots(run: Outcome) -> bool:
    (forum,) = run.subscribers
    return forum.proof_bytes.p50 - forum.static_bytes.p50 == 67 and forum.callbacks == 24 + 5 * 2


def config_sync(run: Outcome) -> bool:
    (wallet,) = run.subscribers
    return wallet.proof_bytes.p50 - wallet.static_bytes.p50 == 67


CLAIMS: dict[str, Callable[[Outcome], bool]] = {
    claim.__name__.replace("_", "-"): claim
    for claim in (
        block_times,
        config_sync,
        griefed_publisher,
        heartbeats,
        heavy_messages,
        hundred_subscribers,
        late_subscriber,
        many_keys,
        mass_expiry,
        moving_window,
        oracle,
        ring_roots,
    )
}


@pytest.mark.parametrize(
    "name", [pytest.param(it, marks=[pytest.mark.slow] if it in LONG else []) for it in runnable_presets()]
)
def test_a_scenario_of_the_gallery_shows_what_it_says(name: str) -> None:
    run = outcome(name)
    assert run.name == name
    assert run.invariants.ok
    assert CLAIMS[name](run)


def test_the_cache_saves_nothing_where_everything_changes() -> None:
    kept = replace(load_preset("oracle"), blocks=12)
    without = replace(kept, policies=PolicyTable(cache="none"))
    saved, none = (measure(it).subscribers[3000] for it in (kept, without))
    assert saved.proof_bytes == none.proof_bytes
    assert saved.own_bytes.total > none.own_bytes.total


@pytest.mark.slow
def test_the_page_is_fresh() -> None:
    assert gallery_page.PAGE.read_text() == gallery_page.page(map(outcome, runnable_presets()))


def test_every_preset_says_what_it_shows() -> None:
    assert {name for name in presets() if name not in runnable_presets()} == {"polkadot-2026"}
    assert all(load_preset(name).description.count(".") >= 2 for name in runnable_presets())
