"""The proof-size gate: measured sizes held against a kept snapshot, and what made them grow.

Law: a size that grew beyond the tolerance fails, one that shrank is told, and so is every scenario or subscriber that
only one side has. The causes are those by which every byte of a proof is accounted for.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from msgspec import Struct, field

from relaycast.pov.snapshot import (
    CAUSES,
    RUNTIME_SPREADS,
    PublisherSizes,
    RuntimeSizes,
    ScenarioSizes,
    Snapshot,
    SubscriberSizes,
)
from relaycast.refusal import BadInput, shown

GATED = ("proof_bytes", "own_bytes")
RUNTIME_FIGURES = (*RUNTIME_SPREADS, "refused_blocks")
"""Figures of parachains with real runtimes; no name begins like one of a subscriber's figures."""

MAX_CAUSES = 4
"""Causes that are printed for a size that moved, largest first; the JSON has all of them."""

PERCENTILES = ("p50", "p99", "max", "total")

IN_WORDS = {
    "top": "the way to publisher {}",
    "new": "new nodes of publisher {}",
    "changed": "changed nodes of publisher {}",
    "unseen": "nodes of publisher {} that the cache does not have",
    "value": "values of publisher {}",
    "cached": "cached nodes of publisher {} read",
}


class Cause(Struct, frozen=True):
    """A part of a size, and by how many bytes it differs over all blocks."""

    what: str
    more_bytes: int


class Figure(Struct, frozen=True, kw_only=True):
    """A size, or a number of blocks, that moved beyond the tolerance; ``subscriber`` is the parachain."""

    scenario: str
    subscriber: int
    figure: str
    kept: int
    measured: int

    @property
    def growth(self) -> float | None:
        """By which part of what was kept it moved; ``None`` where that was nothing."""
        return self.measured / self.kept - 1 if self.kept else None

    @property
    def change(self) -> str:
        """The growth in words."""
        return "from nothing" if self.growth is None else f"{self.growth:+.1%}"

    def __str__(self) -> str:
        return f"{self.figure} {self.kept:,} -> {self.measured:,} ({self.change})"


class Because(Struct, frozen=True, kw_only=True):
    """Why sizes of one subscriber moved."""

    scenario: str
    subscriber: int
    sizes: str
    causes: list[Cause]

    def explains(self, figures: Iterable[Figure]) -> bool:
        """Return whether one of the figures is a size that these causes make up."""
        names = ("own_proof_bytes", "own_compact_bytes") if self.sizes == "own_proof_bytes" else (self.sizes,)
        return any(it.figure.startswith(names) for it in figures)


class Moved(NamedTuple):
    """The sizes of one subscriber that grew, or those that shrank, and why."""

    title: str
    scenario: str
    subscriber: int
    figures: list[Figure]
    causes: list[str]

    @property
    def who(self) -> str:
        """What the parachain is."""
        return "runtime" if self.figures[0].figure.startswith(RUNTIME_FIGURES) else "subscriber"

    @property
    def lines(self) -> list[str]:
        """The figures, and below them the causes."""
        return [*map(str, self.figures), *self.causes]


class Verdict(Struct, kw_only=True):
    """What became of every figure; ``wrong`` are sides that cannot be compared."""

    tolerance: float
    grown: list[Figure] = field(default_factory=list)
    shrunk: list[Figure] = field(default_factory=list)
    because: list[Because] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    compared: int = 0
    """Figures that both sides have."""

    @property
    def ok(self) -> bool:
        """Whether nothing grew and everything could be compared."""
        return not self.grown and not self.wrong

    def __repr__(self) -> str:
        return f"<Verdict {'ok' if self.ok else 'FAILED'}: {len(self.grown)} of {self.compared} figures grew>"


def tolerance_of(text: str, place: str) -> float:
    """Return ``2%`` as 0.02; raises ``BadInput``."""
    number = text.strip().removesuffix("%").strip()
    try:
        percent = float(number)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 1_000:
        raise BadInput(place, shown(text), "a percentage from 0% to 1000%, such as 2%")
    return percent / 100


def judge(kept: Snapshot, measured: Mapping[str, ScenarioSizes], *, tolerance: float) -> Verdict:
    """Hold what was measured against what was kept; scenarios that were not measured are no matter."""
    verdict = Verdict(tolerance=tolerance)
    for name, sizes in measured.items():
        before = kept.scenarios.get(name)
        if before is None:
            verdict.wrong.append(f"{name}: not in the kept snapshot")
        elif (before.blocks, before.seed) != (sizes.blocks, sizes.seed):
            terms = f"{before.blocks} blocks with seed {before.seed}, measured are {sizes.blocks} with {sizes.seed}"
            verdict.wrong.append(f"{name}: kept are {terms}")
        elif before.genesis and before.genesis != sizes.genesis:
            other = f"those on {sizes.genesis}" if sizes.genesis else "those on the scenario's own"
            verdict.wrong.append(f"{name}: kept are sizes on the genesis {before.genesis}, measured are {other}")
        else:
            _judge_scenario(name, before, sizes, verdict)
    return verdict


def moved(verdict: Verdict) -> Iterator[Moved]:
    """Yield what grew, reader by reader, and then what shrank, each with the causes that did."""
    for title, sign, figures in (("grew", 1, verdict.grown), ("shrank", -1, verdict.shrunk)):
        for scenario, subscriber in dict.fromkeys((it.scenario, it.subscriber) for it in figures):
            own = [it for it in figures if (it.scenario, it.subscriber) == (scenario, subscriber)]
            reasons = [it for it in verdict.because if (it.scenario, it.subscriber) == (scenario, subscriber)]
            lines = [line for it in reasons if it.explains(own) for line in _reason(it, sign)]
            yield Moved(title, scenario, subscriber, own, lines)


def described(verdict: Verdict) -> Iterator[str]:
    """Say line by line what grew, and below it what shrank; nothing where nothing did."""
    for it in moved(verdict):
        yield f"{it.title}: {it.scenario}, {it.who} {it.subscriber}"
        yield from (f"  {line}" for line in it.lines)
    yield from verdict.notes


def _judge_scenario(name: str, before: ScenarioSizes, after: ScenarioSizes, verdict: Verdict) -> None:
    for para_id in sorted(before.subscribers.keys() | after.subscribers.keys()):
        old, new = before.subscribers.get(para_id), after.subscribers.get(para_id)
        if old is None or new is None:
            where = "not in the kept snapshot" if old is None else "in the kept snapshot, but not measured"
            verdict.wrong.append(f"{name}: subscriber {para_id} is {where}")
            continue
        figures = list(_figures(name, para_id, old, new))
        verdict.because.extend(_reasons(name, para_id, old, new, _note_moved(figures, verdict)))
        if old.callbacks != new.callbacks:
            verdict.notes.append(f"{name}: subscriber {para_id} got {old.callbacks:,} -> {new.callbacks:,} callbacks")
        verdict.compared += len(figures)
    for para_id in sorted(before.runtimes.keys() | after.runtimes.keys()):
        _judge_runtime(name, para_id, before.runtimes.get(para_id), after.runtimes.get(para_id), verdict)


def _judge_runtime(
    name: str, para_id: int, old: RuntimeSizes | None, new: RuntimeSizes | None, verdict: Verdict
) -> None:
    if old is None or new is None:
        where = "not in the kept snapshot" if old is None else "in the kept snapshot, but not measured"
        verdict.wrong.append(f"{name}: runtime {para_id} is {where}")
        return
    pairs = {
        f"{sizes} {which}": (getattr(getattr(old, sizes), which), getattr(getattr(new, sizes), which))
        for sizes in RUNTIME_SPREADS
        for which in PERCENTILES
    }
    pairs["refused_blocks"] = old.refused_blocks, new.refused_blocks
    figures = [
        Figure(scenario=name, subscriber=para_id, figure=figure, kept=kept, measured=measured)
        for figure, (kept, measured) in pairs.items()
    ]
    moved_far = _note_moved(figures, verdict)
    if any(it.figure.startswith("own_") for it in moved_far):
        causes = [
            Cause(item, more)
            for item in sorted(old.items.keys() | new.items.keys())
            if (more := new.items.get(item, 0) - old.items.get(item, 0))
        ]
        ordered = sorted(causes, key=lambda cause: (-abs(cause.more_bytes), cause.what))
        verdict.because.append(Because(scenario=name, subscriber=para_id, sizes="own_proof_bytes", causes=ordered))
    if old.blocks != new.blocks:
        verdict.notes.append(f"{name}: runtime {para_id} built {old.blocks:,} -> {new.blocks:,} blocks")
    verdict.compared += len(figures)


def _note_moved(figures: list[Figure], verdict: Verdict) -> list[Figure]:
    """Note which figures grew and which shrank beyond the tolerance, and return both."""
    grown = [it for it in figures if it.measured > it.kept * (1 + verdict.tolerance)]
    shrunk = [it for it in figures if it.measured < it.kept * (1 - verdict.tolerance)]
    verdict.grown.extend(grown)
    verdict.shrunk.extend(shrunk)
    return [*grown, *shrunk]


def _figures(name: str, para_id: int, old: SubscriberSizes, new: SubscriberSizes) -> Iterator[Figure]:
    pairs = {
        f"{sizes} {which}": (getattr(getattr(old, sizes), which), getattr(getattr(new, sizes), which))
        for sizes in GATED
        for which in PERCENTILES
    }
    if old.first_proof_bytes and new.first_proof_bytes:
        pairs["proof_bytes first"] = old.first_proof_bytes, new.first_proof_bytes
    pairs["incomplete_blocks"] = old.incomplete_blocks, new.incomplete_blocks
    for figure, (kept, measured) in pairs.items():
        yield Figure(scenario=name, subscriber=para_id, figure=figure, kept=kept, measured=measured)


def _reasons(
    name: str, para_id: int, old: SubscriberSizes, new: SubscriberSizes, moved: list[Figure]
) -> Iterator[Because]:
    for sizes in GATED:
        if any(it.figure.startswith(sizes) for it in moved):
            causes = _proof_causes(old, new) if sizes == "proof_bytes" else _own_causes(old, new)
            largest_first = sorted(causes, key=lambda cause: (-abs(cause.more_bytes), cause.what))
            yield Because(scenario=name, subscriber=para_id, sizes=sizes, causes=largest_first)


def _proof_causes(old: SubscriberSizes, new: SubscriberSizes) -> Iterable[Cause]:
    static = new.static_bytes.total - old.static_bytes.total
    return chain([Cause("static keys", static)] if static else [], _by_publisher(old, new, CAUSES))


def _own_causes(old: SubscriberSizes, new: SubscriberSizes) -> Iterable[Cause]:
    return _by_publisher(old, new, ("cached",))


def _by_publisher(old: SubscriberSizes, new: SubscriberSizes, names: Iterable[str]) -> Iterator[Cause]:
    nothing = PublisherSizes(**dict.fromkeys(PublisherSizes.__struct_fields__, 0))
    for publisher in sorted(old.publishers.keys() | new.publishers.keys()):
        before, after = old.publishers.get(publisher, nothing), new.publishers.get(publisher, nothing)
        for name in names:
            more = getattr(after, name) - getattr(before, name)
            if more:
                yield Cause(IN_WORDS[name].format(publisher), more)


def _reason(it: Because, sign: int) -> Iterator[str]:
    """Yield the largest causes of growth (``sign`` 1) or of shrinkage (-1).

    Each has a line of its own: logs of continuous integration cut long ones off.
    """
    what = "proofs" if it.sizes == "proof_bytes" else "own state"
    causes = [cause for cause in it.causes if cause.more_bytes * sign > 0]
    if not causes:
        yield f"{what}: the same bytes by cause, in other blocks or of the parachain's other state"
        return
    yield f"{what} of all blocks:"
    for cause in causes[:MAX_CAUSES]:
        yield f"  {cause.more_bytes:+,} {cause.what}"
    if len(causes) > MAX_CAUSES:
        yield f"  {sum(cause.more_bytes for cause in causes[MAX_CAUSES:]):+,} {len(causes) - MAX_CAUSES} other causes"
    others = sum(cause.more_bytes for cause in it.causes if cause.more_bytes * sign < 0)
    if others:
        yield f"  and {abs(others):,} {'fewer' if sign > 0 else 'more'} by other causes"
