"""What a served network costs, beside a run of the same scenario: the same, but for what clients read of the chains."""

from collections import Counter

import pytest

from relaycast.scenario.files import load_named
from relaycast.simulation.simulation import Simulation
from relaycast_ledger import BlockRecord
from relaycast_ledger.accounting import IN_THE_PROOF
from relaycast_node.chain_clock import ChainClock

BLOCKS = 12
OF_PUBLISHERS = ("new", "changed", "unseen", "value")


def records(name: str, *, served: bool) -> list[BlockRecord]:
    """Return the records of all subscriber blocks, with every byte accounted for."""
    simulation = Simulation.prepare(load_named(name, "serve"))
    simulation.keep_accounts()
    found: list[BlockRecord] = []

    def step() -> None:
        simulation.begin(simulation.chains.tick + 1)
        found.extend(simulation.network.ledger.step())

    if served:
        ChainClock(simulation.chains, step).new_block(BLOCKS)
    else:
        for _ in range(BLOCKS):
            step()
    return found


def bytes_by_cause(found: list[BlockRecord]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for record in found:
        totals["static"] += record.static_bytes
        totals["own"] += record.own_bytes
        assert record.account is not None
        for publisher in record.account.publishers:
            for cause in IN_THE_PROOF:
                totals[cause] += getattr(publisher, cause).node_bytes
    return totals


@pytest.mark.parametrize("name", ["oracle", "config-sync", "ring-roots"])
def test_a_served_network_proves_what_a_run_does_but_for_the_way_through_the_top_tries(name: str) -> None:
    ran, served = records(name, served=False), records(name, served=True)
    assert [it.deliveries for it in served] == [it.deliveries for it in ran]
    ran_bytes, served_bytes = bytes_by_cause(ran), bytes_by_cause(served)
    assert {it: served_bytes[it] for it in OF_PUBLISHERS} == {it: ran_bytes[it] for it in OF_PUBLISHERS}
    more = {it: round((served_bytes[it] - ran_bytes[it]) / len(ran)) for it in ("static", "top", "own")}
    assert more == {"static": 31, "top": 62, "own": 800}, "docs/guides/serve.md says so"
