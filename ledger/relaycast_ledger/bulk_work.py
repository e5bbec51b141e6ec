"""Proofs in bulk, whatever engine makes them: by processes of this machine, or on Spark.

Law: a table is written in parts: proofs by ranges of ids, verdicts by pieces of the table that is verified. A part is
moved to its place after all of its rows were counted. It counts once its files are noted in it, with their digests on
this machine and their sizes elsewhere. After a kill, the next process writes the parts that are missing or whose files
differ. When every part is there, their files are moved into one table and the work folder is emptied. Parts that were
made for another state, other requests or another table are deleted. An engine goes on with the parts of another. The
caller keeps other writers out, see ``alone_at``.
"""

import glob
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from relaycast_ledger.exceptions import RowsLost
from relaycast_ledger.parquet_files import Batches
from relaycast_ledger.proof_tables import Form, TrieTable, prove_random, prove_requests, request_totals
from relaycast_ledger.segments.simulated import Progress
from relaycast_ledger.staged_file import LOCK, sync, sync_all
from relaycast_ledger.table_places import Files, TablePlace

DICTIONARY_BYTES = 1 << 25
"""Bytes of distinct values that a file keeps once for each column: proofs have most of their nodes in common."""

STAGING, OLD = "staging", "old"
"""Suffixes of a table that is not whole yet, and of the table that it replaces."""

SCHEMA_VERSION = 2

IDS_A_RANGE = 1 << 18
"""Ids whose proofs are written at a time: a kill costs half a minute's work of two cores."""

VERDICTS_WIDER = 4
"""Factor by which ranges are wider where verdicts alone are written."""

MOST_RANGES = 1 << 8
"""Ranges are wider where there are more ids, or ids far apart."""

PROVED, VERIFIED = "proved", "verified"
"""The stages that progress is told of."""

RANGE, PIECES = "ids-", "pieces-"
"""Name prefixes of parts: the first and last id follow, or the numbers of the first and last piece."""

PROOFS_A_FILE = 25_000
"""Rows of a file with proofs by default: it keeps a node once, and one of fewer rows has more bytes for each."""

MOST_FILE_BYTES = 1 << 26
"""Bytes of a file after which the next ones have fewer rows."""

ROWS_A_TASK = 1_000
"""Rows that a task has at least: one batch."""

WHOLE = "whole"
"""Where the files of all ranges are gathered: each is named by its range and its name there."""

FILE = "part-"
"""Name prefix of files with rows."""

TERMS = "terms.json"

NOTED = "_files.json"
"""The files of a range, in its folder."""

SUCCESS = "_SUCCESS"
"""The name of an empty file by which Spark marks a table that is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedProofs:
    """Proofs with ids from ``first_id`` to ``last_id``; ``terms`` are what their rows depend on, apart from the trie.

    ``prove`` makes them of rows with an ``id``: those of ``requests`` as the engine keeps them, or just the ids.
    """

    count: int
    first_id: int
    last_id: int
    form: Form
    terms: dict[str, object]
    prove: Callable[[Batches, Callable[[], TrieTable]], Batches]
    requests: Any = None


def drawn_proofs(
    count: int, *, keys_a_proof: int, seed: int = 0, absent_percent: int = 0, form: Form = "nodes"
) -> WantedProofs:
    """Return proofs of keys drawn from a trie: those of one id are the same, whatever else is asked for."""
    drawn: dict[str, int] = {"keys_a_proof": keys_a_proof, "seed": seed, "absent_percent": absent_percent}
    return WantedProofs(
        count=count,
        first_id=0,
        last_id=count - 1,
        form=form,
        terms={"random": drawn, "form": form},
        prove=partial(prove_random, form=form, **drawn),  # type: ignore[arg-type]
    )


def requested_proofs(totals: pa.Table, requests: object, *, form: Form = "nodes") -> WantedProofs:
    """Return a proof for every row of ``requests``, whose ``proof_tables.REQUEST_TOTALS`` are these.

    Raises ``InputColumns`` where keys are missing.
    """
    count, first, last, digest = request_totals(totals)
    return WantedProofs(
        count=count,
        first_id=first,
        last_id=last,
        form=form,
        terms={"requests": [count, first, last, digest], "form": form},
        prove=partial(prove_requests, form=form),
        requests=requests,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenProofs:
    """A table of proofs in pieces, as the engine keeps them; ``terms`` say what it holds."""

    rows: Sequence[int]
    """Those of each piece."""

    terms: dict[str, object]
    pieces: Any


def given_proofs(stamps: dict[str, list[int]], rows: Sequence[int], pieces: object) -> GivenProofs:
    """Return proofs to verify: they are the same while their files have these ``stamps``."""
    about = json.dumps([sorted(stamps.items()), list(rows)]).encode()
    return GivenProofs(rows=rows, terms={"proofs": blake2b(about, digest_size=16).hexdigest()}, pieces=pieces)


class Part(NamedTuple):
    """The ids or pieces from ``first`` to ``last``, their ``place``, and where they are until they are whole."""

    first: int
    last: int
    rows: int
    place: TablePlace
    staging: TablePlace


class Engine(Protocol):
    """Whatever reads, makes and writes tables of proofs."""

    @property
    def files(self) -> Files:
        """The file systems that it writes to."""

    def columns(self, place: TablePlace, option: str) -> pa.Table:
        """Return a whole table."""

    def requested(self, place: TablePlace, form: Form) -> WantedProofs:
        """Return the proofs that a table of ``id`` and ``keys`` asks for."""

    def rows_between(self, wanted: WantedProofs, ranges: Sequence[tuple[int, int]]) -> Sequence[int]:
        """Return how many requests have ids in each range; those without an id belong to the first one."""

    def proved(
        self, wanted: WantedProofs, table: TrieTable, parts: Sequence[Part], progress: Progress
    ) -> Generator[Part]:
        """Write the proofs of each part to its staging place, and yield the part once its rows are there."""

    def write_nodes(self, table: TrieTable, whole: TablePlace) -> None:
        """Write the nodes that proofs name by number into a folder inside, which is not taken for rows."""

    def given(self, place: TablePlace) -> GivenProofs:
        """Return a table of proofs to be verified, in pieces."""

    def verified(
        self, given: GivenProofs, parts: Sequence[Part], *, strict: bool, progress: Progress
    ) -> Generator[Part]:
        """Write the verdicts on each part to its staging place, and yield the part once its rows are there."""

    def rows_at(self, staging: TablePlace) -> int:
        """Return the number of rows in the files at ``staging``; 0 if there is no file."""

    def verdicts_at(self, place: TablePlace) -> tuple[dict[str, int], int]:
        """Return how many proofs have each verdict, and the bytes of all nodes."""


def told_verdicts(counts: dict[str, int], proof_bytes: int) -> dict[str, Any]:
    """Return what is told of verdicts: the most frequent first, and the bytes of all nodes."""
    return {"verdicts": dict(sorted(counts.items(), key=lambda it: (-it[1], it[0]))), "proof_bytes": proof_bytes}


def _staging_of(place: TablePlace) -> TablePlace:
    return place.beside(f".{place.name}.{os.getpid()}.{STAGING}")


def name_of(staging: TablePlace) -> str:
    """Return the name that a table will have whose rows are there."""
    return staging.name.removeprefix(".").rsplit(".", 2)[0]


def settle(engine: Engine, staging: TablePlace, place: TablePlace, rows: int) -> None:
    """Move a table to its place if all of its ``rows`` are there; raises ``RowsLost``."""
    found = engine.rows_at(staging)
    if found != rows:
        raise RowsLost(place.text, found, rows)
    put_in_place(engine.files, staging, place)


def put_in_place(files: Files, staging: TablePlace, place: TablePlace) -> None:
    """Move a whole table to its place, once it is on the disk of this machine, and remove the old one."""
    if not staging.is_uri:
        sync_all(staging.path)
    old = place.beside(f".{place.name}.{os.getpid()}.{OLD}")
    if files.exists(place):
        files.move(place, old)
    try:
        files.move(staging, place)
    except BaseException:
        if files.exists(old):
            files.move(old, place)
        raise
    if not place.is_uri:
        sync(place.path.parent)
    files.delete(old)


def remove_leftovers(place: TablePlace) -> None:
    """Remove what killed processes of this machine left beside a path of it; what they had moved away comes back."""
    for left in () if place.is_uri else place.path.parent.glob(f".{glob.escape(place.name)}.*.*"):
        beside, pid, kind = left.name.rsplit(".", 2)
        is_ours = beside == f".{place.name}" and kind in {STAGING, OLD} and pid.isdecimal()
        if not is_ours or _runs(int(pid)):
            continue
        if kind == OLD and not place.path.exists():
            left.rename(place.path)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _runs(pid: int) -> bool:
    """Return whether a process with this number is there."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def write_by_ranges(
    engine: Engine,
    wanted: WantedProofs,
    table: TrieTable,
    place: TablePlace,
    *,
    terms: dict[str, object],
    progress: Progress,
) -> None:
    """Write all proofs to ``place``; ``terms`` say what they depend on apart from the ids. Raises ``RowsLost``.

    Proofs that name their nodes by number have the nodes in a folder inside.
    """
    with _in_parts(engine, place, {**terms, **wanted.terms}) as write:
        parts = _ranges_of(engine, wanted, place.work)
        whole = write(PROVED, parts, lambda left: engine.proved(wanted, table, left, progress), progress)
        if wanted.form == "numbers":
            engine.write_nodes(table, whole)


def write_verdicts(
    engine: Engine, proofs: TablePlace, place: TablePlace, *, terms: dict[str, object], strict: bool, progress: Progress
) -> int:
    """Write the verdicts on a table of proofs to ``place``, and return how many they are. Raises ``RowsLost``."""
    given = engine.given(proofs)
    with _in_parts(engine, place, {**terms, **given.terms, "strict": strict}) as write:
        parts = list(_pieces_of(given, place.work))
        write(VERIFIED, parts, lambda left: engine.verified(given, left, strict=strict, progress=progress), progress)
    return sum(given.rows)


Write = Callable[[str, Sequence[Part], Callable[[Sequence[Part]], Generator[Part]], Progress], TablePlace]


@contextmanager
def _in_parts(engine: Engine, place: TablePlace, terms: dict[str, object]) -> Iterator[Write]:
    """Yield what writes the parts of a table that are not there yet; then it is moved to its place."""
    files, work, whole = engine.files, place.work, place.work.inside(WHOLE)

    def write(
        stage: str, parts: Sequence[Part], written: Callable[[Sequence[Part]], Generator[Part]], progress: Progress
    ) -> TablePlace:
        done = {part for part in parts if _is_whole(files, part.place)}
        rows = sum(part.rows for part in parts)
        progress.begin(stage, rows, done=sum(part.rows for part in done), unit="proofs")
        left = [part for part in parts if part not in done]
        for part in left:
            remove_leftovers(part.place)
            files.delete(part.place)
        try:
            with closing(written(left)) as those:
                for part in those:
                    settle(engine, part.staging, part.place, part.rows)
                    files.write(part.place.inside(NOTED), _noted(files, part.place))
        except BaseException:
            with suppress(Exception):  # the JVM may be gone: the next process removes them
                for part in left:
                    files.delete(part.staging)
            raise
        _gather(files, [part.place for part in parts], whole)
        return whole

    remove_leftovers(place)
    files.make_folder(work)
    try:
        _keep_terms(files, work, {"schema": SCHEMA_VERSION, **terms})
        _part_again(files, work)
        yield write
        put_in_place(files, whole, place)
        _clear(files, work)
    except BaseException:
        with suppress(Exception):  # the JVM may be gone
            if not any(name.startswith((RANGE, PIECES)) for name in files.names(work)):
                _clear(files, work)
        raise


def tasks_of(rows: int, *, rows_a_file: int, cores: int) -> int:
    """Return how many tasks write ``rows`` rows: one for each file, or more where ``cores`` would wait."""
    return max(1, -(-rows // max(rows_a_file, PROOFS_A_FILE)), min(cores, rows // ROWS_A_TASK))


def _pieces_of(given: GivenProofs, work: TablePlace) -> Iterator[Part]:
    width = max(IDS_A_RANGE * VERDICTS_WIDER, -(-sum(given.rows) // MOST_RANGES))
    first = rows = 0
    for number, count in enumerate(given.rows or [0]):
        rows += count
        if rows >= width or number + 1 >= len(given.rows):
            place = work.inside(f"{PIECES}{first}-{number}")
            yield Part(first, number, rows, place, _staging_of(place))
            first, rows = number + 1, 0


def _ranges_of(engine: Engine, wanted: WantedProofs, work: TablePlace) -> list[Part]:
    """Return the ranges that have requests; the first one if none has, so that the table has its columns."""
    wider = VERDICTS_WIDER if wanted.form == "verdicts" else 1
    found = list(ranges(wanted.first_id, wanted.last_id, wider=wider))
    sizes: Sequence[int]
    if wanted.requests is None:
        sizes = [last - first + 1 for first, last in found]
    else:
        sizes = engine.rows_between(wanted, found)
    parts = []
    for (first, last), rows in zip(found, sizes, strict=True):
        if rows or (first == wanted.first_id and not any(sizes)):
            place = work.inside(f"{RANGE}{first}-{last}")
            parts.append(Part(first, last, rows, place, _staging_of(place)))
    return parts


def ranges(first_id: int, last_id: int, *, wider: int = 1) -> Iterator[tuple[int, int]]:
    """Yield the ranges that ids are worked on in, in order; one where there are none."""
    width = max(IDS_A_RANGE * wider, -(-(last_id - first_id + 1) // MOST_RANGES))
    for first in range(first_id, max(last_id, first_id) + 1, width):
        yield first, min(first + width - 1, last_id)


def _clear(files: Files, work: TablePlace) -> None:
    """Remove all of the work folder but its lock; one without a lock is removed."""
    if work.is_uri:
        files.delete(work)
        return
    for path in work.path.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _keep_terms(files: Files, work: TablePlace, terms: dict[str, object]) -> None:
    """Remove what was made on other ``terms``, and write these down."""
    kept, text = work.inside(TERMS), json.dumps(terms, sort_keys=True).encode()
    if files.read(kept) == text:
        return
    _clear(files, work)
    files.make_folder(work)
    files.write(kept, text)


def _is_whole(files: Files, part: TablePlace) -> bool:
    """Return whether a range has the files that were noted, unchanged."""
    noted = files.read(part.inside(NOTED))
    return noted is not None and noted == _noted(files, part)


def _noted(files: Files, part: TablePlace) -> bytes:
    """Return the size of every file with rows of a range, and on this machine its digest, as JSON."""
    found: dict[str, list[int | str]] = {
        name: [size] for name, size in files.sizes(part).items() if name.startswith(FILE)
    }
    if not part.is_uri:
        with ThreadPoolExecutor() as pool:
            for about, digest in zip(found.values(), pool.map(_digest_of, map(part.path.joinpath, found)), strict=True):
                about.append(digest)
    return json.dumps(found, sort_keys=True).encode()


def _digest_of(file: Path) -> str:
    with file.open("rb") as stream:
        return file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest()


def _part_again(files: Files, work: TablePlace) -> None:
    """Move the files that a process gathered before it was killed back to their ranges."""
    gathered = work.inside(WHOLE)
    for name in files.names(gathered) if WHOLE in files.names(work) else ():
        part, found, file = name.partition(f"-{FILE}")
        if found:
            files.make_folder(work.inside(part))
            files.move(gathered.inside(name), work.inside(part).inside(f"{FILE}{file}"))


def _gather(files: Files, parts: list[TablePlace], whole: TablePlace) -> None:
    """Move the files of all parts into one folder."""
    files.delete(whole)
    files.make_folder(whole)
    for part in parts:
        for name in files.names(part):
            if name.startswith(FILE):
                files.move(part.inside(name), whole.inside(f"{part.name}-{name}"))
    files.write(whole.inside(SUCCESS), b"")
