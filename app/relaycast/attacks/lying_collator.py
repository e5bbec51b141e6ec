"""The lying collators: every lie against every state of a running network, and what caught it.

A lie is told and gets one of four answers. The block panics: the lie is caught, by the error that it panicked with.
The block is valid, of the same nodes, and does what the honest one does: there was no lie in it. The block is valid,
ends incomplete, and less than one read of the largest node was left of its budget: an honest collator could have ended
there, what is held back comes later, and no chain can tell the two apart. Anything else went undetected.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random

from msgspec import Struct

from relaycast.attacks.lies import ADDITIONS, OMISSIONS, Lie
from relaycast.attacks.proving_ground import BlockVerdict, Moment, Nodes, ProvingGround
from relaycast_pallets.subscriber.policies import Policies
from relaycast_trie.engine import Engine

NO_LIE, WITHIN_MIN_WEIGHT, UNDETECTED = NOT_CAUGHT = ("no lie", "within min_weight", "undetected")

MAX_ESCAPES = 20
"""Undetected lies that are told of one by one."""


class LieRow(Struct, frozen=True, kw_only=True):
    """One lie: how often it was told, and the answers; ``caught`` by the name of the error."""

    lie: str
    meaning: str
    caught: dict[str, int]
    no_lie: int
    within_min_weight: int
    undetected: int

    @property
    def told(self) -> int:
        return sum(self.caught.values()) + self.no_lie + self.within_min_weight + self.undetected


class LieReport(Struct, frozen=True, kw_only=True):
    """The matrix of lies and what caught them. ``moments`` counts the blocks lied about by the subscriber's state."""

    family: str
    seed: int
    blocks: int
    moments: dict[str, int]
    rows: tuple[LieRow, ...]
    min_weight_bytes: int
    most_bytes_left: int
    """Of a budget that an omission within the last ``min_weight`` left unused: less than ``min_weight_bytes``."""

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
    def undetected(self) -> int:
        return sum(row.undetected for row in self.rows)

    @property
    def ok(self) -> bool:
        """Whether every lie was caught, as far as it can be, and no trial left a trace."""
        return not self.undetected and not self.violations

    def __repr__(self) -> str:
        return (
            f"<LieReport {self.family}: {self.told:,} told, {self.caught:,} caught, "
            f"{self.within_min_weight} within the last min_weight, {self.undetected} undetected>"
        )


def omit(
    *,
    blocks: int = 12,
    samples: int = 10,
    seed: int = 0,
    policies: Policies | None = None,
    trie_engine: Engine = "auto",
) -> LieReport:
    """Leave nodes out in every way, ``samples`` of each way in each block (0: all there are)."""
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
    """Hand wrong nodes over in every way, ``samples`` of each way in each block (0: all there are)."""
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
            for nodes in self._proofs(lie, moment):
                self._judge(lie, moment, honest, nodes)
        if moment.parachain.state.snapshot() != before:
            self._violated(moment, "a refused block left a trace in the state")

    def _proofs(self, lie: Lie, moment: Moment) -> Iterator[Nodes]:
        """Return other proofs than the honest one, in an order that the seed shuffles."""
        draw = Random(f"{self._seed} {moment.parachain.para_id} {self._ground.network.tick} {lie.__name__}")  # noqa: S311
        ways = list(lie(moment, draw))
        draw.shuffle(ways)
        proofs = (way() if callable(way) else way for way in ways)
        return islice((nodes for nodes in proofs if nodes != moment.nodes), self._samples or None)

    def _judge(self, lie: Lie, moment: Moment, honest: BlockVerdict, nodes: Nodes) -> None:
        verdict, answers = moment.attempt(nodes), self._answers[lie]
        if verdict.caught_by is not None:
            answers[verdict.caught_by] += 1
        elif sorted(nodes) == sorted(moment.nodes) and _same(verdict, honest):
            answers[NO_LIE] += 1
        elif _within_min_weight(moment, honest, verdict, nodes):
            answers[WITHIN_MIN_WEIGHT] += 1
            self._note_held_back(honest, verdict)
        else:
            answers[UNDETECTED] += 1
            where = f"parachain {moment.parachain.para_id} after block {self._ground.network.tick}"
            self._escapes.append(f"{lie.__name__}: {where}, {moment.kind}, {len(nodes)} of {len(moment.nodes)} nodes")

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
    """Return whether nodes were left out, none are strange, and the largest read did not fit any more."""
    assert verdict.outcome is not None
    only_left_out = set(nodes) < set(moment.nodes) and len(set(nodes)) == len(nodes)
    told_truly = verdict.updates == honest.updates[: len(verdict.updates)]
    incomplete = verdict.outcome.result.cursor is not None
    return incomplete and only_left_out and told_truly and not verdict.outcome.meter.can_consume(moment.min_weight)
