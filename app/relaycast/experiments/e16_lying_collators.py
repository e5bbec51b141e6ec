"""E16: every lie of a collator against every state of a subscriber, and the check that catches it.

The attacks are those of ``relaycast attack omit`` and ``relaycast attack extra``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from relaycast.attacks import LieReport, extra, omit
from relaycast.attacks.lying_collator import NO_LIE, PUT_OFF, UNDETECTED, WITHIN_MIN_WEIGHT
from relaycast.experiments.chart import Axis, Chart
from relaycast.experiments.experiment import Experiment, Row, Scale

PASSED = (NO_LIE, WITHIN_MIN_WEIGHT, PUT_OFF, UNDETECTED)


class LieAnswer(Row, frozen=True, kw_only=True):
    """One lie and one answer of the chain, with how often it was given."""

    family: str
    lie: str
    meaning: str
    answer: str
    caught: bool
    times: int
    most_bytes_left: int
    """Most bytes left of a budget that omissions of this family hid behind."""

    most_held_back: int
    """Callbacks that such an omission put off by a block."""

    moments: int
    """Blocks lied about."""


def measure(scale: Scale) -> list[LieAnswer]:
    """Tell all lies."""
    blocks, samples = scale.pick((16, 24), (10, 3))
    reports = [attack(blocks=blocks, samples=samples, seed=scale.seed) for attack in (omit, extra)]
    for report in reports:
        assert not report.violations, report.violations[0]
    return [row for report in reports for row in _rows(report)]


def _rows(report: LieReport) -> Iterator[LieAnswer]:
    for lie in report.rows:
        passed = dict(zip(PASSED, (lie.no_lie, lie.within_min_weight, lie.put_off, lie.undetected), strict=True))
        for name, times in {**lie.caught, **passed}.items():
            if times:
                yield LieAnswer(
                    family=report.family,
                    lie=lie.lie,
                    meaning=lie.meaning,
                    answer=name,
                    caught=name in lie.caught,
                    times=times,
                    most_bytes_left=report.most_bytes_left,
                    most_held_back=report.most_held_back,
                    moments=sum(report.moments.values()),
                )


def answer(rows: Sequence[LieAnswer]) -> str:
    """Say how many lies were caught, and what the others came to."""
    times: Counter[str] = Counter()
    for row in rows:
        times["caught" if row.caught else row.answer] += row.times
    told = sum(times.values())
    hidden = max(row.most_bytes_left for row in rows)
    held_back = max(row.most_held_back for row in rows)
    kinds = len({row.lie for row in rows})
    putting_off = f"{held_back} callback{'' if held_back == 1 else 's'}"
    return (
        f"Of {told:,} lies of {kinds} kinds, {times['caught']:,} make the block panic and {times[UNDETECTED]} go "
        f"undetected; of the others, {times[NO_LIE]} are no lie: the same nodes in another order; omissions pass "
        f"{times[WITHIN_MIN_WEIGHT]} times, because less than one read of the largest node was left of the budget, "
        f"{hidden:,} bytes at most; such an omission puts off at most {putting_off} by a block; another "
        f"{times[PUT_OFF]} give hashes for downward messages that would fit, which chains allow as long as one "
        "advances (against the default policies)."
    )


def chart(rows: Sequence[LieAnswer]) -> Chart:
    """Draw lies against answers."""
    answers = Counter({row.answer: 0 for row in rows})
    for row in rows:
        answers[row.answer] += row.times
    columns = [name for name, _ in answers.most_common() if name not in PASSED]
    columns += [name for name in PASSED if name in answers]
    lies = tuple(dict.fromkeys(row.lie for row in rows))
    return Chart(
        title="Lies of a collator, and what catches them",
        mark="cells",
        x=Axis(field="answer", title="", names=True, order=tuple(columns), angle=-30),
        y=Axis(field="lie", title="", names=True, order=lies),
        colour=Axis(field="times", title="times"),
        points=[{"lie": row.lie, "answer": row.answer, "times": row.times} for row in rows],
        width=60 * len(columns),
        height=20 * len(lies),
    )


EXPERIMENT = Experiment(
    name="E16",
    slug="lying-collators",
    question="Which lies of a collator does the chain catch?",
    row=LieAnswer,
    measure=measure,
    answer=answer,
    chart=chart,
    notes=(
        "Five subscribers: with room for all, with a small block, one that changes what it reads, one under message "
        "load, and one that tolerates hardly any depth. Messages come from the relay chain and through two channels.",
        "A lie is tried on the block that the honest collator is about to build, and leaves no trace.",
    ),
)
