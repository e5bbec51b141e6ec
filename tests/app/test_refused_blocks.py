"""Lines of the server about parachain blocks that were refused."""

import logging

import pytest

from node.chains import READER, live_chains
from relaycast.serve.refused_blocks import RefusedBlocks
from relaycast_pallets.frame.typed_storage import storage_prefix

DOWNWARD_HEAD = storage_prefix("ParachainSystem", "LastDmqMqcHead")


def test_a_refused_block_is_one_line_with_its_chain_number_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    live = live_chains()
    live.facts.connect(RefusedBlocks().on_fact)
    live.new_block(2)
    with caplog.at_level(logging.WARNING):
        live.set_storage(READER, {DOWNWARD_HEAD: b"\xff" * 32})
        live.new_block(3)
    (line,) = [it.getMessage() for it in caplog.records]
    assert line.startswith(f"parachain {READER} has no block 3 on relay block 2: the block panicked: QueueHeadMismatch")
    caplog.clear()
    live.set_storage(READER, {DOWNWARD_HEAD: b"\xee" * 32})
    live.new_block()
    assert len(caplog.records) <= 1
    assert live.relay.best.number == 6
