"""What an experiment is: rows from a seed, and from the rows alone a sentence and a chart.

Law: the sentence and the chart are derived from the rows. Whoever has the table can check both.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from relaycast.experiments.chart import Chart

SEED = 1
"""Seed of the published figures."""


class Row(Struct, frozen=True, kw_only=True):
    """One line of a table: whole numbers, numbers, texts, truth values, or nothing."""


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Scale:
    """How an experiment is run: ``quick`` is smaller, for a first look and for tests."""

    seed: int = SEED
    quick: bool = False

    def pick(self, full: "Any", quick: "Any") -> "Any":
        """Return what belongs to this scale."""
        return quick if self.quick else full


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Generic[R]):
    """An experiment; ``slug`` names its files, ``notes`` are the assumptions and what the figures leave out.

    ``first_cut`` is what was expected before it was measured, and what came of it. Columns in ``measured`` are wall
    time: they differ from run to run and stay out of the digest; sentence and chart may tell of them.
    """

    name: str
    slug: str
    question: str
    row: type[R]
    measure: Callable[[Scale], list[R]]
    answer: Callable[[Sequence[R]], str]
    chart: Callable[[Sequence[R]], Chart]
    notes: tuple[str, ...] = ()
    first_cut: str = ""
    measured: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """The name of its files, before the dot."""
        return f"e{int(self.name[1:]):02}-{self.slug}"

    def run(self, scale: Scale) -> "Result":
        """Measure, and draw the conclusion."""
        rows = self.measure(scale)
        columns = [name for name in self.row.__struct_fields__ if name not in self.measured]
        return Result(
            experiment=self,
            scale=scale,
            rows=[asdict(row) for row in rows],
            answer=self.answer(rows),
            chart=self.chart(rows),
            digest=digest_of([{name: getattr(row, name) for name in columns} for row in rows]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an experiment came to; ``digest`` is that of the rows."""

    experiment: Experiment[Any]
    scale: Scale
    rows: list[dict[str, Any]]
    answer: str
    chart: Chart
    digest: str

    @property
    def command(self) -> str:
        """The command line that gives this again."""
        quick = " --quick" if self.scale.quick else ""
        return f"relaycast bench {self.experiment.name} --seed {self.scale.seed}{quick}"


def digest_of(rows: Sequence[dict[str, Any]]) -> str:
    """Return the digest of rows: 16 bytes of Blake2b over their JSON."""
    text = json.dumps(rows, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=16).hexdigest()
