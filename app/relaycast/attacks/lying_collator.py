"""The lying collators: every lie against every state of a running network, and what caught it.

A lie is told and gets one of five answers. The block panics: the lie is caught, by the error that it panicked with. The
block is valid, of the same nodes, and does what the honest one does: there was no lie in it. The block is valid and
ends incomplete, with less of its budget left than one read of the largest node takes. An honest collator could have
ended there, and what is held back comes later: no chain can tell the two apart. The block is valid, and hashes stand in
it for messages that would have fitted: chains allow it as long as messages move on, and the messages come later.
Anything else went undetected.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random

from msgspec import Struct

from relaycast.attacks.lies import ADDITIONS, OMISSIONS, Lie
from relaycast.attacks.proving_ground import BlockVerdict, Moment, Nodes, ProvingGround
from relaycast_pallets import ParachainInherentData
from relaycast_pallets.messaging.inbound_message import AbridgedMessages, HashedMessage
from relaycast_pallets.subscriber.policies import Policies
from relaycast_trie.engine import Engine

NO_LIE, WITHIN_MIN_WEIGHT, PUT_OFF, UNDETECTED = NOT_CAUGHT = (
    "no lie",
    "within min_weight",
    "messages put off",
    "undetected",
)

MAX_ESCAPES = 20
"""Undetected lies that are told of one by one."""


class LieRow(Struct, frozen=True, kw_only=True):
    """One lie: how often it was told, and the answers; ``caught`` by the name of the error."""

    lie: str
    meaning: str
    caught: dict[str, int]
    no_lie: int
    within_min_weight: int
    put_off: int
    undetected: int

    @property
    def told(self) -> int:
        return sum(self.caught.values()) + self.no_lie + self.within_min_weight + self.put_off + self.undetected


class LieReport(Struct, frozen=True, kw_only=True):
    """The matrix of lies and what caught them. ``moments`` counts the blocks lied about by the subscriber's state."""

    family: str
    seed: int
    blocks: int
    moments: dict[str, int]
    rows: tuple[LieRow, ...]
    min_weight_bytes: int
    most_bytes_left: int
    """Most bytes of a budget that an omission in the last ``min_weight`` left unused; below ``min_weight_bytes``."""

    most_held_back: int
    """Callbacks that such an omission put off by one block, at most."""

    escapes: tuple[str, ...]
    violations: tuple[str, ...]

    @property
    def told(self) -> int:
        return sum(row.told for row in self.rows)

    @property
    def caught(self) -> int:
        return sum(sum(row.caught.values()) for row in self.rows)

    @property
    def within_min_weight(self) -> int:
        return sum(row.within_min_weight for row in self.rows)

    @property
    def put_off(self) -> int:
        return sum(row.put_off for row in self.rows)

    @property
    def undetected(self) -> int:
        return sum(row.undetected for row in self.rows)

    @property
    def ok(self) -> bool:
        """Whether every lie was caught, as far as it can be, and no trial left a trace."""
        return not self.undetected and not self.violations

    def __repr__(self) -> str:
        return (
            f"<LieReport {self.family}: {self.told:,} told, {self.caught:,} caught, "
            f"{self.within_min_weight} within the last min_weight, {self.put_off} put messages off, "
            f"{self.undetected} undetected>"
        )


def omit(
    *,
    blocks: int = 12,
    samples: int = 10,
    seed: int = 0,
    policies: Policies | None = None,
    trie_engine: Engine = "auto",
) -> LieReport:
    """Leave nodes and messages out in every way, ``samples`` of each way in each block (0: all there are)."""
    ground = ProvingGround(seed=seed, policies=policies, trie_engine=trie_engine)
    return _Trial("omit", OMISSIONS, blocks, samples, ground).run()


def extra(
    *,
    blocks: int = 12,
    samples: int = 10,
    seed: int = 0,
    policies: Policies | None = None,
    trie_engine: Engine = "auto",
) -> LieReport:
    """Hand wrong nodes and messages over in every way, ``samples`` of each way in each block (0: all there are)."""
    ground = ProvingGround(seed=seed, policies=policies, trie_engine=trie_engine)
    return _Trial("extra", ADDITIONS, blocks, samples, ground).run()


class _Trial:
    """One family of lies against one network."""

    def __init__(self, family: str, lies: tuple[Lie, ...], blocks: int, samples: int, ground: ProvingGround) -> None:
        if blocks < 1 or samples < 0:
            raise ValueError(f"at least one block, and samples from 0 on, got {blocks} and {samples}")
        self._family = family
        self._lies = lies
        self._blocks = blocks
        self._samples = samples
        self._seed = ground.network.seed
        self._ground = ground
        self._answers: dict[Lie, Counter[str]] = {lie: Counter() for lie in lies}
        self._moments: Counter[str] = Counter()
        self._left = self._held_back = self._min_weight = 0
        self._escapes: list[str] = []
        self._violations: list[str] = []

    def run(self) -> LieReport:
        for moment in self._ground.moments(self._blocks):
            self._moments[moment.kind] += 1
            self._min_weight = max(self._min_weight, moment.min_weight.proof_size)
            self._lie_about(moment)
        self._violations.extend(map(str, self._ground.ledger.invariants.violations))
        return LieReport(
            family=self._family,
            seed=self._seed,
            blocks=self._blocks,
            moments=dict(sorted(self._moments.items())),
            rows=tuple(_row(lie, answers) for lie, answers in self._answers.items()),
            min_weight_bytes=self._min_weight,
            most_bytes_left=self._left,
            most_held_back=self._held_back,
            escapes=tuple(self._escapes[:MAX_ESCAPES]),
            violations=tuple(self._violations),
        )

    def _lie_about(self, moment: Moment) -> None:
        before = moment.parachain.state.snapshot()
        honest = moment.attempt(moment.nodes)
        if honest.caught_by is not None:
            self._violated(moment, f"the honest proof was refused: {honest.caught_by}")
        for lie in self._lies:
            for inherent in self._inherents(lie, moment):
                self._judge(lie, moment, honest, inherent)
        if moment.parachain.state.snapshot() != before:
            self._violated(moment, "a refused block left a trace in the state")

    def _inherents(self, lie: Lie, moment: Moment) -> Iterator[ParachainInherentData]:
        """Return other inherents than the honest one, in an order that the seed shuffles."""
        draw = Random(f"{self._seed} {moment.parachain.para_id} {self._ground.network.tick} {lie.__name__}")  # noqa: S311
        ways = list(lie(moment, draw))
        draw.shuffle(ways)
        told = (way() if callable(way) else way for way in ways)
        inherents = (it if isinstance(it, ParachainInherentData) else moment.with_nodes(it) for it in told)
        return islice((it for it in inherents if it != moment.collation.inherent), self._samples or None)

    def _judge(self, lie: Lie, moment: Moment, honest: BlockVerdict, inherent: ParachainInherentData) -> None:
        verdict, answers, nodes = moment.attempt_inherent(inherent), self._answers[lie], inherent.relay_chain_state
        true_messages = inherent.messages == moment.collation.inherent.messages
        if verdict.caught_by is not None:
            answers[verdict.caught_by] += 1
        elif true_messages and sorted(nodes) == sorted(moment.nodes) and _same(verdict, honest):
            answers[NO_LIE] += 1
        elif true_messages and _within_min_weight(moment, honest, verdict, nodes):
            answers[WITHIN_MIN_WEIGHT] += 1
            self._note_held_back(honest, verdict)
        elif not true_messages and _put_off(moment, inherent):
            answers[PUT_OFF] += 1
        else:
            answers[UNDETECTED] += 1
            where = f"parachain {moment.parachain.para_id} after block {self._ground.network.tick}"
            count = f"{len(nodes)} of {len(moment.nodes)} nodes, {len(inherent.downward_messages)} downward and "
            count += f"{len(inherent.horizontal_messages)} horizontal messages"
            self._escapes.append(f"{lie.__name__}: {where}, {moment.kind}, {count}")

    def _note_held_back(self, honest: BlockVerdict, verdict: BlockVerdict) -> None:
        assert verdict.outcome is not None
        self._left = max(self._left, verdict.outcome.meter.remaining().proof_size)
        self._held_back = max(self._held_back, len(honest.updates) - len(verdict.updates))

    def _violated(self, moment: Moment, seen: str) -> None:
        self._violations.append(f"parachain {moment.parachain.para_id} after block {self._ground.network.tick}: {seen}")


def _row(lie: Lie, answers: Counter[str]) -> LieRow:
    return LieRow(
        lie=lie.__name__,
        meaning=(lie.__doc__ or "").splitlines()[0].rstrip("."),
        caught={name: count for name, count in sorted(answers.items()) if name not in NOT_CAUGHT},
        no_lie=answers[NO_LIE],
        within_min_weight=answers[WITHIN_MIN_WEIGHT],
        put_off=answers[PUT_OFF],
        undetected=answers[UNDETECTED],
    )


def _same(verdict: BlockVerdict, honest: BlockVerdict) -> bool:
    """Return whether a valid block did what the honest one does."""
    assert verdict.outcome is not None
    if honest.outcome is None:
        return False
    mine, theirs = verdict.outcome.result, honest.outcome.result
    return verdict.updates == honest.updates and mine.cursor == theirs.cursor and mine.reads == theirs.reads


def _within_min_weight(moment: Moment, honest: BlockVerdict, verdict: BlockVerdict, nodes: Nodes) -> bool:
    """Return whether nodes were left out, none are strange, and the largest read no longer fitted."""
    assert verdict.outcome is not None
    only_left_out = set(nodes) < set(moment.nodes) and len(set(nodes)) == len(nodes)
    told_truly = verdict.updates == honest.updates[: len(verdict.updates)]
    incomplete = verdict.outcome.result.cursor is not None
    return incomplete and only_left_out and told_truly and not verdict.outcome.meter.can_consume(moment.min_weight)


def _put_off(moment: Moment, inherent: ParachainInherentData) -> bool:
    """Return whether the messages are the true ones, some of them as hashes that would have fitted in full."""
    honest = moment.collation.inherent
    kinds = (
        (inherent.downward_messages, honest.downward_messages),
        (inherent.horizontal_messages, honest.horizontal_messages),
    )
    return all(_as_hashes(told) == _as_hashes(true) and len(told.full) <= len(true.full) for told, true in kinds)


def _as_hashes(messages: AbridgedMessages) -> list[HashedMessage]:
    return [*(message.hashed() for message in messages.full), *messages.hashed]
