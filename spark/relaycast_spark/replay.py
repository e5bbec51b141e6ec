"""The worker's half of a batch run: segments in, one row for each relay block out. Plain Python, no Spark.

What is replayed is the local engine itself, from a checkpoint on; all that is added is a look at what the collators
hand over. A chain that reads nothing leaves no trace but its head, and goes as the spine lets it. A block that fails
names itself in its row and ends its segment.
"""

from collections.abc import Iterator

import pyarrow as pa

from relaycast_collator import BlockBuilt, BlockPanicked, Fact
from relaycast_ledger import Invariants
from relaycast_ledger.segments.checkpoint import closing_digest, thaw
from relaycast_ledger.segments.simulated import Advanced, Preparation, Simulated
from relaycast_ledger.segments.spine import FrugalCollator, StaticReads
from relaycast_pallets.broadcaster.publisher_trie import publisher_of
from relaycast_spark.exceptions import SpineDiverged
from relaycast_spark.tables import REPLAYED, Row, given_of, row_of, violation_row
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.engine import Engine, warm_up_for
from relaycast_trie.gc_policy import uncollected

ROWS_A_BATCH = 32
"""Relay blocks that a worker holds as rows before it hands them on."""

Batches = Iterator[pa.RecordBatch]


class Replay:
    """A simulation that tells all about each block that it lets pass."""

    def __init__(self, simulation: Simulated, *, segment: int, keep_proofs: bool = False) -> None:
        self.simulation = simulation
        self.segment = segment
        self.keep_proofs = keep_proofs
        chains = simulation.chains
        static = StaticReads(chains.relay_chain.state)
        self._working = {
            para_id: FrugalCollator(collator, static, chains.relay_chain)
            for para_id, collator in chains.collators.items()
        }
        self._plain = dict(chains.collators)
        self._child_roots = self._read_child_roots()
        self._subscriber_blocks: list[tuple[BlockBuilt | BlockPanicked, bytes]] = []
        """Those of one relay block, in the order of their records, each with what its chain knew of messages before."""

    def block(self, number: int, *, tells: bool = True) -> Row:
        """Let relay block ``number`` pass and return its row; what it does not tell the next one that does tells."""
        chains = self.simulation.chains
        self.simulation.ledger.invariants = checks = Invariants()
        self._subscriber_blocks.clear()
        chains.collators.update(self._working)
        chains.listeners.append(self._hear)
        try:
            advanced = self.simulation.advance(number)
        finally:
            chains.collators.update(self._plain)
            chains.listeners.remove(self._hear)
            self.simulation.ledger.invariants = Invariants()
        block = chains.relay_chain.head
        return {
            "segment": self.segment,
            "block": number,
            "state_root": block.state_root,
            "header_hash": block.hash,
            "child_roots": self._changed_child_roots(),
            "publishers": [
                {"para_id": it.para_id, "sent": it.sent, "published": it.published, "refused": it.refused}
                | {"value_bytes": it.value_bytes}
                for it in advanced.publishers
            ],
            "subscribers": self._subscriber_rows(advanced),
            "told": self.simulation.take_told() if tells else None,
            "events": advanced.events,
            "checked": checks.checked,
            "violated": checks.violated,
            "violations": [violation_row(violation) for violation in checks.violations],
            "error": None,
        }

    def _hear(self, fact: Fact) -> None:
        if isinstance(fact, BlockPanicked) or (isinstance(fact, BlockBuilt) and fact.subscribes):
            self._subscriber_blocks.append((fact, self._working[fact.para_id].messages_before))

    def _subscriber_rows(self, advanced: Advanced) -> list[Row]:
        rows = []
        for record, (fact, messages_before) in zip(advanced.records, self._subscriber_blocks, strict=True):
            head = fact.block.header if isinstance(fact, BlockBuilt) else fact.head
            given = None
            if self.keep_proofs:
                wanted = self.simulation.chains.parachains[record.para_id].kept.wanted
                given = given_of(fact.collation, wanted, messages_before)
            rows.append(row_of(record, fact.collation, head.hash, given=given))
        return rows

    def _changed_child_roots(self) -> list[Row]:
        before, after = self._child_roots, self._read_child_roots()
        self._child_roots = after
        changed = [info for info in sorted(before.keys() | after.keys()) if before.get(info) != after.get(info)]
        return [{"para_id": publisher_of(info), "child_root": after.get(info)} for info in changed]

    def _read_child_roots(self) -> dict[ChildInfo, bytes | None]:
        state = self.simulation.chains.relay_chain.state
        return {
            info: state.get(info.prefixed_storage_key()) for info in state.children() if publisher_of(info) is not None
        }


def replay_segments(
    batches: Batches, prepare: Preparation, *, keep_proofs: bool = False, trie_engine: Engine = "auto"
) -> Batches:
    """Replay segments (rows of ``SEGMENTS``) and give rows of ``REPLAYED``.

    The checkpoint of each is loaded into a simulation that ``prepare`` returns.
    """
    warm_up_for(trie_engine)
    for batch in batches:
        for row in batch.to_pylist():
            simulation = prepare(trie_engine)
            thaw(row["checkpoint"], simulation)
            yield from _replay_segment(Replay(simulation, segment=row["segment"], keep_proofs=keep_proofs), row)


def rows_to_batch(rows: list[Row]) -> pa.RecordBatch:
    """Return rows as one batch of the table ``REPLAYED``."""
    return pa.RecordBatch.from_pylist(rows, REPLAYED)


def _replay_segment(replay: Replay, segment: Row) -> Batches:
    first, last = segment["first"], segment["last"]
    for start in range(first, last + 1, ROWS_A_BATCH):
        with uncollected():
            rows = list(_replay_blocks(replay, start, min(start + ROWS_A_BATCH - 1, last), segment))
        yield rows_to_batch(rows)
        if rows[-1].get("error") is not None:
            break


def _replay_blocks(replay: Replay, first: int, last: int, segment: Row) -> Iterator[Row]:
    """Yield the rows of some blocks; the row of one that fails is the last."""
    for number in range(first, last + 1):
        try:
            yield replay.block(number, tells=number == last)
            if number == segment["last"] and closing_digest(replay.simulation) != segment["closing"]:
                raise SpineDiverged(number)
        except Exception as error:
            yield {"segment": replay.segment, "block": number, "error": f"{type(error).__name__}: {error}"}
            return
