"""The worker's half of a batch run: segments in, one row for each relay block out. Plain Python, no Spark.

What is replayed is the local engine itself, from a checkpoint on; all that is added is a look at what the collators
hand over. A chain that reads nothing leaves no trace but its head, and goes as the spine lets it. A block that fails
names itself in its row and ends its segment.
"""

from collections.abc import Iterator

import pyarrow as pa

from relaycast_collator import Collation, Collator, Invariants, ParachainBlock
from relaycast_collator.garbage import uncollected
from relaycast_spark.checkpoint import closing_digest, thaw
from relaycast_spark.exceptions import SpineDiverged
from relaycast_spark.record_codec import encode_records
from relaycast_spark.simulated import Advanced, Simulated
from relaycast_spark.spine import FrugalCollator, StaticReads
from relaycast_spark.tables import REPLAYED, Row, row_of, violation_row
from relaycast_trie.child_info import ChildInfo
from relaycast_trie.engine import Engine, warm_up_for
from relaycast_xcm import ParaId

ROWS_A_BATCH = 32
"""Relay blocks that a worker holds as rows before it hands them on."""

PUBSUB = b"pubsub"
"""What the name of every publisher's child trie begins with."""

Batches = Iterator[pa.RecordBatch]


class WatchedCollator(Collator):
    """A collator whose ``built`` blocks can be looked at, with the head after them: by number, and panicked or not."""

    def __init__(self, collator: Collator) -> None:
        super().__init__(
            collator.parachain, collator.relay_chain, max_pov_size=collator.max_pov_size, tamper=collator.tamper
        )
        self.built: dict[tuple[int, bool], tuple[Collation, bytes]] = {}

    def build(self, collation: Collation) -> ParachainBlock:
        """Build as the collator does."""
        panicked = True
        try:
            block = super().build(collation)
            panicked = False
        finally:
            head = self.parachain.head
            self.built[head.number, panicked] = collation, head.hash
        return block


class Replay:
    """A simulation that tells all about each block that it lets pass."""

    def __init__(self, simulation: Simulated, *, segment: int, keep_proofs: bool = False) -> None:
        self.simulation = simulation
        self.segment = segment
        self.keep_proofs = keep_proofs
        chains = simulation.chains
        self._watched = {para_id: WatchedCollator(collator) for para_id, collator in chains.collators.items()}
        static = StaticReads(chains.relay_chain.state.db)
        self._working = {
            para_id: FrugalCollator(watched, static, chains.relay_chain) for para_id, watched in self._watched.items()
        }
        self._plain = dict(chains.collators)
        self._child_roots = self._read_child_roots()

    def block(self, number: int) -> Row:
        """Let relay block ``number`` pass and return its row."""
        chains = self.simulation.chains
        chains.invariants = Invariants()
        chains.collators.update(self._working)
        for watched in self._watched.values():
            watched.built.clear()
        try:
            advanced = self.simulation.advance(number)
        finally:
            chains.collators.update(self._plain)
        block, checks = chains.relay_chain.head, chains.invariants
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
            "records": encode_records(advanced.records),
            "events": advanced.events,
            "checked": checks.checked,
            "violated": checks.violated,
            "violations": [violation_row(violation) for violation in checks.violations],
            "error": None,
        }

    def _subscriber_rows(self, advanced: Advanced) -> list[Row]:
        rows = []
        for record in advanced.records:
            collation, head_hash = self._watched[record.para_id].built[record.number, record.panic is not None]
            wanted = self.simulation.chains.parachains[record.para_id].kept.wanted if self.keep_proofs else None
            rows.append(row_of(record, collation, head_hash, wanted=wanted))
        return rows

    def _changed_child_roots(self) -> list[Row]:
        before, after = self._child_roots, self._read_child_roots()
        self._child_roots = after
        changed = [info for info in sorted(before.keys() | after.keys()) if before.get(info) != after.get(info)]
        return [{"para_id": _publisher_of(info), "child_root": after.get(info)} for info in changed]

    def _read_child_roots(self) -> dict[ChildInfo, bytes | None]:
        state = self.simulation.chains.relay_chain.state
        return {
            info: state.get(info.prefixed_storage_key()) for info in state.children() if _publisher_of(info) is not None
        }


def replay_segments(batches: Batches, *, keep_proofs: bool = False, trie_engine: Engine | None = None) -> Batches:
    """Replay segments (rows of ``SEGMENTS``) and give rows of ``REPLAYED``.

    Unless it is given, the trie engine is the one that the checkpoint was made with.
    """
    warm_up_for(trie_engine or "auto")
    for batch in batches:
        for row in batch.to_pylist():
            yield from _replay_segment(row, keep_proofs, trie_engine)


def rows_to_batch(rows: list[Row]) -> pa.RecordBatch:
    """Return rows as one batch of the table ``REPLAYED``."""
    return pa.RecordBatch.from_pylist(rows, REPLAYED)


def _replay_segment(segment: Row, keep_proofs: bool, trie_engine: Engine | None) -> Batches:
    simulation = thaw(segment["checkpoint"])
    simulation.chains.trie_engine = trie_engine or simulation.chains.trie_engine
    replay = Replay(simulation, segment=segment["segment"], keep_proofs=keep_proofs)
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
            yield replay.block(number)
            if number == segment["last"] and closing_digest(replay.simulation) != segment["closing"]:
                raise SpineDiverged(number)
        except Exception as error:
            yield {"segment": replay.segment, "block": number, "error": f"{type(error).__name__}: {error}"}
            return


def _publisher_of(info: ChildInfo) -> ParaId | None:
    """Return whose child trie this is, ``None`` when it is no publisher's."""
    name = info.storage_key
    if len(name) != len(PUBSUB) + 4 or not name.startswith(PUBSUB):
        return None
    return ParaId(int.from_bytes(name[len(PUBSUB) :], "little"))
