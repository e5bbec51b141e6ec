"""``relaycast prove``: make proofs in bulk for a state, in processes or on Spark, as ``verify-proofs`` reads them."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.spark import (
    NO_BULK_FLAGS,
    BulkFlags,
    bulk_engine,
    checked_rows_a_file,
    chosen_engine,
    resumable,
    table_place,
)
from relaycast.cli.options import Json
from relaycast.refusal import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

    from relaycast_ledger.proof_tables import Form, TrieTable

MOST_PROOFS = 1_000_000_000
MOST_KEYS = 10_000

StateFile = Annotated[
    str, Parameter(help="a raw chain spec, keys and values in JSON, or Parquet with the columns key and value")
]
Out = Annotated[str, Parameter(name="--out", help="the Parquet folder that the proofs go to")]
Requests = Annotated[str | None, Parameter(name="--requests", help="a Parquet table with the columns id and keys")]
Count = Annotated[int, Parameter(name="--count", help="proofs of keys drawn from the state")]
KeysAProof = Annotated[int, Parameter(name="--keys", help="keys drawn for each proof")]
Absent = Annotated[int, Parameter(name="--absent", help="percent of the keys that are drawn and then altered")]
Seed = Annotated[int, Parameter(name="--seed", help="what the draw follows from")]
DistinctNodes = Annotated[
    bool, Parameter(name="--distinct-nodes", help="keep each node once, in _nodes in the folder, and proofs by numbers")
]
VerifyOnly = Annotated[
    bool, Parameter(name="--verify-only", help="verify each proof where it is made, and keep verdict and sizes alone")
]
OwnVersion = Annotated[
    Literal[0, 1] | None,
    Parameter(name="--state-version", help="0 for a chain spec and 1 for keys and values unless given"),
]


def prove(
    state: StateFile,
    /,
    *,
    out: Out,
    requests: Requests = None,
    count: Count = 1_000,
    keys: KeysAProof = 10,
    absent: Absent = 0,
    seed: Seed = 0,
    state_version: OwnVersion = None,
    distinct_nodes: DistinctNodes = False,
    verify_only: VerifyOnly = False,
    flags: Annotated[BulkFlags, Parameter(name="*")] = NO_BULK_FLAGS,
    json: Json = False,
) -> ExitCode:
    """Make proofs for a state: of keys that are drawn from it, or one for each row of --requests.

    They are written with id, root, keys and nodes, as verify-proofs reads them. STATE is what `relaycast import state`
    reads: a raw chain spec, or keys and values in JSON or Parquet. The roots of its child tries stand in the top trie,
    whose keys are proved. A table of bytes without child tries may be of any size, or a folder of Parquet files. What
    begins with a scheme, such as s3:// or hdfs://, goes to Spark as it is. Where Spark runs on other machines, all of
    them must share the folders of paths, but for STATE. A run that was stopped resumes with the ids whose proofs are
    not written yet.
    With --verify-only the table has what verify-proofs --strict would say, and the exit code is 1 unless all hold.
    Without PySpark or Java, or with --engine local, processes of this machine do the work.

    Example: relaycast prove kusama-genesis.json.gz --count 100000 --keys 10 --out proofs.parquet
    """
    from relaycast_ledger.bulk_work import PROOFS_A_FILE  # noqa: PLC0415
    from relaycast_ledger.table_places import ROWS_A_FILE, TablePlace, alone_at  # noqa: PLC0415

    _check_range("--count", count, 1, MOST_PROOFS)
    _check_range("--keys", keys, 1, MOST_KEYS)
    _check_range("--absent", absent, 0, 100)
    _check_range("--seed", seed, 0, 2**63 - 1)
    target = table_place(out, "--out", flags.master, is_read=False)
    asked = None if requests is None else table_place(requests, "--requests", flags.master, is_read=True)
    source, form = TablePlace(state), _form(distinct_nodes, verify_only)
    rows_a_file = checked_rows_a_file(flags.rows_per_file, ROWS_A_FILE if verify_only else PROOFS_A_FILE)
    chosen = chosen_engine(flags, [source, target, *([asked] if asked else [])])

    def work() -> ExitCode:
        with alone_at(target, "--out"):
            table = None if source.is_uri else _table(source.path, state_version)
            with bulk_engine(flags, chosen, target, rows_a_file) as (engine, progress):
                from relaycast_ledger.bulk_work import drawn_proofs, told_verdicts, write_by_ranges  # noqa: PLC0415

                trie = table or _table_of(*_key_values(engine.columns(source, "STATE"), state), state_version)
                root = f"0x{trie.build().root.hex()}"
                if asked is None:
                    wanted = drawn_proofs(count, keys_a_proof=keys, seed=seed, absent_percent=absent, form=form)
                else:
                    wanted = engine.requested(asked, form)
                terms = {"root": root, "state_version": int(trie.state_version), "rows_a_file": rows_a_file}
                write_by_ranges(engine, wanted, trie, target, terms=terms, progress=progress)
                told: dict[str, Any] = {"proofs": wanted.count, "root": root, "out": out}
                if verify_only:
                    told |= told_verdicts(*engine.verdicts_at(target))
        _tell(told, json)
        return ExitCode.FINE if told.get("verdicts", {}).keys() <= {"valid"} else ExitCode.CHECK_FAILED

    return resumable(work)


def _form(distinct_nodes: bool, verify_only: bool) -> "Form":
    if distinct_nodes and verify_only:
        raise BadInput("--distinct-nodes", "--verify-only beside it", "one of them: verdicts have no nodes")
    return "numbers" if distinct_nodes else "verdicts" if verify_only else "nodes"


def _tell(told: dict[str, Any], json: bool) -> None:
    if json:
        print(json_text.dumps(told))
        return
    print(f"{told['proofs']:,} proofs under {told['root']}")
    if "verdicts" not in told:
        print(f"proofs: {told['out']}")
        return
    for verdict, count in told["verdicts"].items():
        print(f"{verdict:<16} {count:>14,}")
    print(f"{told['proof_bytes']:,} bytes of nodes\nverdicts: {told['out']}")


def _check_range(place: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise BadInput(place, f"{value:,}", f"a number from {least:,} to {most:,}")


def _table(state: Path, version: int | None) -> "TrieTable":
    """Return the state's top trie as columns."""
    import pyarrow as pa  # noqa: PLC0415

    from relaycast_ledger.proof_tables import TrieTable  # noqa: PLC0415
    from relaycast_trie import StateVersion  # noqa: PLC0415

    if state.is_dir() or (state.suffix == ".parquet" and _is_in_columns(state)):
        return _table_of(*_key_values(_read_table(state), str(state)), version)
    from relaycast.genesis.chain_spec import refuse_part  # noqa: PLC0415
    from relaycast.genesis.state_export import read_state  # noqa: PLC0415

    found = read_state(str(state))
    refuse_part(found, str(state))
    chosen = found.state_version if version is None else StateVersion(version)
    pairs = found.top_with_child_roots(state_version=chosen)
    keys, values = (pa.array(list(part), pa.large_binary()) for part in (pairs.keys(), pairs.values()))
    return TrieTable.of(keys, values, state_version=chosen)


def _table_of(keys: "pa.Array", values: "pa.Array", version: int | None) -> "TrieTable":
    from relaycast_ledger.proof_tables import TrieTable  # noqa: PLC0415
    from relaycast_trie import StateVersion  # noqa: PLC0415

    return TrieTable.of(keys, values, state_version=StateVersion(1 if version is None else version))


def _is_in_columns(file: Path) -> bool:
    """Return whether a Parquet file holds keys and values as bytes, and no child tries: it may be of any size."""
    from relaycast.genesis.state_export import CHILD, COLUMNS  # noqa: PLC0415
    from relaycast_ledger.parquet_files import open_parquet  # noqa: PLC0415

    table_place(str(file), "STATE", None, is_read=True)
    with open_parquet(file, f"STATE {file}") as opened:
        kinds = {field.name: field.type for field in opened.schema_arrow}
    return CHILD not in kinds and all(_is_binary(kinds[name]) for name in COLUMNS if name in kinds)


def _read_table(place: Path) -> "pa.Table":
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    table_place(str(place), "STATE", None, is_read=True)
    try:
        return pq.read_table(place)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(str(place), str(error).splitlines()[0], "a Parquet table") from None


def _is_binary(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _key_values(table: "pa.Table", place: str) -> tuple["pa.Array", "pa.Array"]:
    import pyarrow as pa  # noqa: PLC0415

    from relaycast.genesis.state_export import CHILD, COLUMNS  # noqa: PLC0415

    if CHILD in table.schema.names:
        raise BadInput(place, f"a folder with the column {CHILD}", "one file, where there are child tries")
    columns = []
    for name in COLUMNS:
        kind = table.schema.field(name).type if name in table.schema.names else None
        if kind is None or not _is_binary(kind):
            got = ", ".join(f"{field.name} {field.type}" for field in table.schema)
            raise BadInput(place, f"the columns {got}", "key and value, both binary")
        columns.append(table.column(name).cast(pa.large_binary()).combine_chunks())
        if columns[-1].null_count:
            raise BadInput(f"{place} in {name}", f"{columns[-1].null_count} nulls", "bytes in every row")
    if not len(columns[0]):
        raise BadInput(place, "no rows", "keys and values")
    return columns[0], columns[1]
