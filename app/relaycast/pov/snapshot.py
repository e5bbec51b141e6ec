"""``pov.snapshot.toml``: what proofs weigh, for people to keep under version control and to compare with.

A run leaves one of itself; a kept one has a table for each scenario. Law: figures alone, in a fixed order; nothing in
it depends on who ran it or when, and what is written is read back as the same figures.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct, field

from relaycast.inputs import parse_toml, read_bytes
from relaycast.out_file import write_text
from relaycast.refusal import BadInput, one_line, shown
from relaycast_ledger.outcome import Outcome, Percentiles, PublisherCost, RuntimeOutcome

SNAPSHOT_VERSION = 1
"""Version of the file's layout. It changes only with the layout, so that a new release can still read old files."""

CAUSES = ("top", "new", "changed", "unseen", "value")
SPREADS = ("proof_bytes", "static_bytes", "own_bytes")
RUNTIME_SPREADS = ("relay_proof_bytes", "own_proof_bytes", "own_compact_bytes")

_AT = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class PublisherSizes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes that one publisher took of one subscriber's proofs, all blocks together, by cause; and beside them."""

    top: int
    new: int
    changed: int
    unseen: int
    value: int
    cached: int
    pruned: int
    sibling_bytes: int


class SubscriberSizes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes of one subscriber's blocks."""

    proof_bytes: Percentiles
    static_bytes: Percentiles
    own_bytes: Percentiles
    callbacks: int
    incomplete_blocks: int
    first_proof_bytes: int = 0
    """Bytes of the largest proof in the warm-up, which the percentiles leave out; 0 without a warm-up."""

    publishers: dict[int, PublisherSizes] = field(default_factory=dict)


class RuntimeSizes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes of the blocks of one parachain with a real runtime."""

    relay_proof_bytes: Percentiles
    own_proof_bytes: Percentiles
    own_compact_bytes: Percentiles
    blocks: int
    refused_blocks: int
    items: dict[str, int] = field(default_factory=dict)
    """``own_proof_bytes`` of all blocks by storage item."""


class ScenarioSizes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run; ``source`` is the preset or the file that it was made from, relative to the snapshot.

    ``genesis`` is the file that the relay chain started from instead of the scenario's own, relative to the snapshot.
    """

    blocks: int
    seed: int
    source: str = ""
    genesis: str = ""
    subscribers: dict[int, SubscriberSizes] = field(default_factory=dict)
    runtimes: dict[int, RuntimeSizes] = field(default_factory=dict)


class Snapshot(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kept file: scenarios by name."""

    scenarios: dict[str, ScenarioSizes] = field(default_factory=dict)
    schema: int = SNAPSHOT_VERSION

    def with_scenarios(self, others: Mapping[str, ScenarioSizes]) -> "Snapshot":
        """Return the snapshot with ``others`` in the place of those of the same name, in the order of the names."""
        return Snapshot(scenarios=dict(sorted({**self.scenarios, **others}.items())))


class _OneRun(ScenarioSizes, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file that a run leaves of itself."""

    name: str
    schema: int
    run_id: str = ""


class SubscriberFigures(Protocol):
    """What a snapshot takes of a subscriber: outcomes have it, and tallies."""

    @property
    def proof_bytes(self) -> Percentiles: ...
    @property
    def static_bytes(self) -> Percentiles: ...
    @property
    def own_bytes(self) -> Percentiles: ...
    @property
    def callbacks(self) -> int: ...
    @property
    def incomplete_blocks(self) -> int: ...
    @property
    def first_proof_bytes(self) -> int: ...
    @property
    def publishers(self) -> list[PublisherCost]: ...


def sizes_of_run(run: Outcome, *, source: str = "", genesis: str = "") -> ScenarioSizes:
    """Return the figures of a whole run; not its id, which moves with every version."""
    subscribers = {it.para_id: sizes_of(it) for it in run.subscribers}
    runtimes = {it.para_id: sizes_of_runtime(it) for it in run.runtimes}
    return ScenarioSizes(
        source=source,
        genesis=genesis,
        blocks=run.blocks,
        seed=run.seed,
        subscribers=subscribers,
        runtimes=runtimes,
    )


def sizes_of_runtime(it: RuntimeOutcome) -> RuntimeSizes:
    """Return the figures of one parachain with a real runtime."""
    return RuntimeSizes(
        relay_proof_bytes=it.relay_proof_bytes,
        own_proof_bytes=it.own_proof_bytes,
        own_compact_bytes=it.own_compact_bytes,
        blocks=it.blocks,
        refused_blocks=it.refused_blocks,
        items={item.name: item.proof_bytes for item in it.by_item},
    )


def sizes_of(it: SubscriberFigures) -> SubscriberSizes:
    """Return the figures of one subscriber."""
    return SubscriberSizes(
        proof_bytes=it.proof_bytes,
        static_bytes=it.static_bytes,
        own_bytes=it.own_bytes,
        callbacks=it.callbacks,
        incomplete_blocks=it.incomplete_blocks,
        first_proof_bytes=it.first_proof_bytes,
        publishers={cost.para_id: _publisher_sizes(cost) for cost in it.publishers},
    )


def render_snapshot(run: Outcome) -> str:
    """Return the snapshot that a run leaves of itself, as TOML; all sizes in bytes."""
    sizes = sizes_of_run(run)
    head = [f"schema = {SNAPSHOT_VERSION}", f'run_id = "{run.run_id}"', f"name = {_text(run.name)}"]
    return _joined([*head, *_terms(sizes), *_subscribers(sizes, ""), *_runtimes(sizes, "")])


def render_kept(snapshot: Snapshot) -> str:
    """Return a kept snapshot as TOML: a table for each scenario, in the order of their names."""
    lines = [f"schema = {snapshot.schema}"]
    for name, sizes in sorted(snapshot.scenarios.items()):
        table = f"scenarios.{name if _BARE_KEY.fullmatch(name) else _text(name)}"
        lines += ["", f"[{table}]"]
        files = {"source": sizes.source, "genesis": sizes.genesis}
        lines += [f"{name} = {_text(file)}" for name, file in files.items() if file]
        lines += [*_terms(sizes), *_subscribers(sizes, f"{table}."), *_runtimes(sizes, f"{table}.")]
    return _joined(lines)


def read_snapshot(file: str | Path) -> Snapshot:
    """Return what a kept file holds, or the file that a run left of itself; raises ``BadInput``."""
    place = str(file)
    table = parse_toml(read_bytes(place), place, "a snapshot in TOML")
    if table.get("schema") != SNAPSHOT_VERSION:
        got = shown(table["schema"]) if "schema" in table else "nothing"
        raise BadInput(f"{place} at schema", got, f"{SNAPSHOT_VERSION}, as relaycast pov snapshot writes it")
    try:
        if "scenarios" in table or table.keys() == {"schema"}:
            return msgspec.convert(table, Snapshot, str_keys=True)
        one = msgspec.convert(table, _OneRun, str_keys=True)
    except msgspec.ValidationError as error:
        raise _refused(str(error), place) from None
    fields = {name: getattr(one, name) for name in ScenarioSizes.__struct_fields__}
    return Snapshot(scenarios={one.name: ScenarioSizes(**fields)})


def write_kept(file: Path, snapshot: Snapshot) -> None:
    """Write a kept snapshot: whole, or not at all; raises ``BadInput``."""
    write_text(file, render_kept(snapshot), "--out")


def _publisher_sizes(it: PublisherCost) -> PublisherSizes:
    return PublisherSizes(
        **{cause: it.by_cause[cause].node_bytes for cause in CAUSES},
        cached=it.cached.node_bytes,
        pruned=sum(totals.node_bytes for totals in it.pruned.values()),
        sibling_bytes=it.sibling_bytes,
    )


def _terms(sizes: ScenarioSizes) -> Iterator[str]:
    yield f"blocks = {sizes.blocks}"
    yield f"seed = {sizes.seed}"


def _subscribers(sizes: ScenarioSizes, above: str) -> Iterator[str]:
    for para_id, it in sizes.subscribers.items():
        table = f"{above}subscribers.{para_id}"
        yield from ("", f"[{table}]")
        yield from (_spread(name, getattr(it, name)) for name in SPREADS)
        yield f"callbacks = {it.callbacks}"
        yield f"incomplete_blocks = {it.incomplete_blocks}"
        if it.first_proof_bytes:
            yield f"first_proof_bytes = {it.first_proof_bytes}"
        for publisher, causes in it.publishers.items():
            yield from ("", f"[{table}.publishers.{publisher}]")
            yield from (f"{name} = {getattr(causes, name)}" for name in PublisherSizes.__struct_fields__)


def _runtimes(sizes: ScenarioSizes, above: str) -> Iterator[str]:
    for para_id, it in sizes.runtimes.items():
        table = f"{above}runtimes.{para_id}"
        yield from ("", f"[{table}]")
        yield from (_spread(name, getattr(it, name)) for name in RUNTIME_SPREADS)
        yield f"blocks = {it.blocks}"
        yield f"refused_blocks = {it.refused_blocks}"
        yield from ("", f"[{table}.items]")
        yield from (f"{_text(name)} = {size}" for name, size in sorted(it.items.items()))


def _spread(name: str, it: Percentiles) -> str:
    return f"{name} = {{ p50 = {it.p50}, p99 = {it.p99}, max = {it.max}, total = {it.total} }}"


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Return a TOML basic string: what JSON writes, but that DEL must be escaped too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _refused(message: str, place: str) -> BadInput:
    found = _AT.search(message)
    said = one_line(message[: found.start()] if found else message)
    here = f"{place} at {found['path']}" if found else place
    return BadInput(here, f"a snapshot that does not fit ({said})", "one as relaycast pov snapshot writes it")
