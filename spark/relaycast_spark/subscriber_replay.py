"""The worker's half of subscribers in bulk: proof rows in, one verdict per block out.

What a subscriber keeps, roots, cached nodes and a cursor, follows from its own blocks alone. So rows of one subscriber
come together, in their order, and no other chain is needed. A state that is put away between two blocks goes on
elsewhere, so that a long history can be cut. No Spark.

Law: it is the parachain itself that takes the proofs over. A block that panics is named and changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from relaycast_collator import Header, Parachain, ParachainBlock, ParachainUpgrade
from relaycast_collator.parachain import ParachainDump
from relaycast_pallets import (
    Panic,
    ParachainInherentData,
    PersistedValidationData,
    Policies,
    SubscribedKey,
    SubscriberConfig,
)
from relaycast_pallets.messaging.inbound_message import InboundMessagesData
from relaycast_pallets.parachain_system.pallet import MAX_POV_BYTES
from relaycast_pallets.parachain_system.relay_budget import Abridged, BudgetPolicy, PovUsage, message_free_bytes
from relaycast_pallets.subscriber.events import PublisherDisabled
from relaycast_pallets.subscriber.pallet import ProcessingMode, process_proof
from relaycast_pallets.subscriber.proof_pass import TrackedProof
from relaycast_spark.exceptions import GapRefused
from relaycast_spark.replay import BYTES, FLAG, NUMBER, TEXT, WANTED, Row, list_of
from relaycast_trie import StorageProof
from relaycast_trie.exceptions import RelaycastError
from relaycast_trie.gc_policy import uncollected
from relaycast_xcm import ParaId, Weight, WeightMeter
from relaycast_xcm.checkpoint import decoded, encoded

INHERENTS = pa.schema(
    [
        ("subscriber", NUMBER),
        ("block", NUMBER),
        ("number", NUMBER),
        ("relay_parent", NUMBER),
        ("relay_root", BYTES),
        ("proof", BYTES),
        ("budget_bytes", NUMBER),
        ("wanted", WANTED),
        ("parent_head", BYTES),
        ("messages", BYTES),
        ("messages_before", BYTES),
    ]
)
"""What a subscriber's block was given: ``proof`` as SCALE, against ``relay_root``, the state root of ``relay_parent``.

``block`` orders the rows, and those of one block their ``number``, the block's on its own chain: what a gap leaves out
subscribed to nothing; null is the next. ``messages`` are SCALE ``InboundMessagesData``, null is none. ``budget_bytes``
are what messages left for pub-sub; where null, the budget policy says. ``wanted`` is what it subscribes to from this
block on; where null, what it did before.

Behind a gap a row says what the blocks in it left: ``parent_head`` is the header that its block stands on, and
``messages_before`` the storage items about messages (``InboundMessages.encode``).
"""

UPDATES = list_of(publisher=NUMBER, key=BYTES, value=BYTES, ttl=NUMBER, when_inserted=NUMBER)

SUBSCRIBER_BLOCKS = pa.schema(
    [
        ("subscriber", NUMBER),
        ("block", NUMBER),
        ("number", NUMBER),
        ("verdict", TEXT),
        ("complete", FLAG),
        ("cursor_publisher", NUMBER),
        ("cursor_key", BYTES),
        ("given_bytes", NUMBER),
        ("proof_bytes", NUMBER),
        ("budget_bytes", NUMBER),
        ("ref_time", NUMBER),
        ("proof_size", NUMBER),
        ("updates", UPDATES),
        ("disabled", pa.list_(NUMBER)),
        ("head_hash", BYTES),
        ("state", BYTES),
    ]
)
"""What a block made of it; ``verdict`` is ``valid``, or why it panicked, and then what the pass found is null.

``given_bytes`` are those of the proof as it came, ``proof_bytes`` of what of it was handed over. ``number`` is that of
the block; of one that panicked it is that of the block before. ``state`` is that after the block, where it is put away.
"""

VALID = "valid"

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class SubscriberTerms:
    """The configuration of subscribers: shared by all, but for ``upgrades`` by parachain.

    With ``prune`` proofs are as collected, and each is pruned by the collator's pass before the block is given it.
    After every ``state_every``-th block of a subscriber its state is put away; with 0 none is.
    """

    config: SubscriberConfig = field(default_factory=SubscriberConfig)
    policies: Policies = field(default_factory=Policies)
    budget: BudgetPolicy | None = None
    max_pov_bytes: int = MAX_POV_BYTES
    prune: bool = False
    state_every: int = 0
    upgrades: Mapping[int, Sequence[ParachainUpgrade]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Granted:
    """A fixed number of bytes for pub-sub, whatever else a block carries; messages may have taken some."""

    pubsub_bytes: int
    reduced_by_messages: bool = False

    def share_out(self, usage: PovUsage) -> Abridged:
        """Return what was granted."""
        full = len(usage.downward_messages), len(usage.horizontal_messages)
        return Abridged(*full, self.pubsub_bytes, reduced_by_messages=self.reduced_by_messages)


def replay_subscribers(
    batches: Batches, terms: SubscriberTerms, *, states: Mapping[int, bytes] | None = None
) -> Batches:
    """Let subscribers build their blocks on the proofs in ``INHERENTS``, rows of one together and in order.

    ``states`` are where subscribers go on from, by id; others begin at their genesis. Raises ``CheckpointRefused``.
    """
    known = states or {}
    chain: _Chain | None = None
    for batch in batches:
        rows = []
        with uncollected():
            for row in batch.to_pylist():
                if chain is None or chain.para_id != row["subscriber"]:
                    chain = _Chain(ParaId(row["subscriber"]), terms, known.get(row["subscriber"]))
                rows.append(chain.block(row))
        yield pa.RecordBatch.from_pylist(rows, SUBSCRIBER_BLOCKS)


class _Chain:
    """One subscriber as far as it has come."""

    def __init__(self, para_id: ParaId, terms: SubscriberTerms, state: bytes | None) -> None:
        self.para_id, self.terms, self.blocks = para_id, terms, 0
        budget, config, policies = terms.budget, terms.config, terms.policies
        self.parachain = Parachain(para_id, config=config, policies=policies, budget=budget)
        self.parachain.upgrades.scheduled += terms.upgrades.get(para_id, ())
        if state is not None:
            self.parachain.load(decoded(state, ParachainDump))
        self._budget = self.parachain.parachain_system.budget

    def block(self, row: Row) -> Row:
        """Build the block that ``row`` gives a proof for, and return what came of it."""
        self._prepare(row)
        result: Row = {"subscriber": int(self.para_id), "block": row["block"], "given_bytes": 0, "updates": []}
        try:
            self._pass_gap(row)
            proof = StorageProof.decode(row["proof"])
            result["given_bytes"] = proof.proof_bytes
            inherent = self._inherent(row, proof)
            block = self.parachain.build_block(inherent)
        except Panic as panic:
            result["verdict"] = str(panic)
        except RelaycastError as error:
            result["verdict"] = f"{type(error).__name__}: {error}"
        else:
            result |= _outcome_of(block) | {"proof_bytes": inherent.proof_bytes}
        self.blocks += 1
        head = self.parachain.head
        result |= {"number": head.number, "head_hash": head.hash, "state": self._put_away()}
        return result

    def _prepare(self, row: Row) -> None:
        """Run the code that is due at the row, with its subscriptions and budget."""
        system = self.parachain.parachain_system
        system.budget = self._budget
        self.parachain.upgrades.install(row["relay_parent"])
        self._budget = system.budget
        if row["wanted"] is not None:
            self.parachain.kept.wanted = {
                ParaId(it["publisher"]): [SubscribedKey(key) for key in it["keys"]] for it in row["wanted"]
            }
        granted = row["budget_bytes"]
        if granted is not None:
            most = message_free_bytes(self._budget, self.terms.max_pov_bytes)
            system.budget = Granted(granted, reduced_by_messages=granted < most)

    def _pass_gap(self, row: Row) -> None:
        """Pass the blocks before this one in which the chain wanted nothing: they leave messages and a header.

        The header has this chain's own state root, which is the row's where nothing else differs. Raises
        ``GapRefused``.
        """
        parachain, number = self.parachain, row["number"]
        if number is None or number <= parachain.head.number + 1:
            return
        parent = None if row["parent_head"] is None else Header.decode(row["parent_head"])
        if parent is None or parent.number != number - 1:
            found = "no parent_head" if parent is None else f"the header of block {parent.number:,}"
            raise GapRefused(parachain.head.number, number, found, "the header of the block before")
        wanted, parachain.kept.wanted = parachain.kept.wanted, {}
        empty, meter, subscriber = (
            TrackedProof.trusted({}, row["relay_root"]),
            WeightMeter(Weight.ZERO),
            parachain.subscriber,
        )
        try:
            seed = parachain.head.hash
            result = process_proof(ProcessingMode.PRUNE, empty, empty.relay_root, meter, subscriber, seed=seed)
            with parachain.state.transaction():
                parachain.system.initialize(parent.number, parent_hash=parent.parent_hash)
                parachain.parachain_system.inbound.restore(row["messages_before"] or b"")
                subscriber.apply(result, relay_parent_number=row["relay_parent"])
        finally:
            parachain.kept.wanted = wanted
        parachain.head = replace(parent, state_root=parachain.state.commit())

    def _inherent(self, row: Row, proof: StorageProof) -> ParachainInherentData:
        head, system = self.parachain.head, self.parachain.parachain_system
        data = PersistedValidationData(head.encode(), row["relay_parent"], row["relay_root"], self.terms.max_pov_bytes)
        messages = InboundMessagesData.decode(row["messages"]) if row["messages"] else InboundMessagesData()
        inherent = ParachainInherentData(data, tuple(proof), messages.downward, messages.horizontal)
        if self.terms.prune:
            with self.parachain.upgrades.migrated():
                pruned, _ = system.prune(inherent, seed=head.hash)
            inherent = replace(inherent, relay_chain_state=tuple(pruned))
        return inherent

    def _put_away(self) -> bytes | None:
        every = self.terms.state_every
        if not every or self.blocks % every:
            return None
        return encoded(self.parachain.dump())


def _outcome_of(block: ParachainBlock) -> dict[str, Any]:
    """Return what a block that was built made of its proof."""
    outcome = block.outcome
    result, cursor = outcome.result, outcome.result.cursor
    return {
        "verdict": VALID,
        "complete": result.is_complete,
        "cursor_publisher": None if cursor is None else int(cursor[0]),
        "cursor_key": None if cursor is None else bytes(cursor[1]),
        "budget_bytes": outcome.abridged.pubsub_bytes,
        "ref_time": result.consumed.ref_time,
        "proof_size": result.consumed.proof_size,
        "updates": [
            {"publisher": int(publisher), "key": bytes(key), "value": entry.value, "ttl": entry.ttl}
            | {"when_inserted": entry.when_inserted}
            for publisher, key, entry in block.updates
        ],
        "disabled": [int(event.publisher) for event in block.events if isinstance(event, PublisherDisabled)],
    }
