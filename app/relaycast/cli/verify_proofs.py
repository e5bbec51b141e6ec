"""``relaycast verify-proofs``: verify a table of proofs from anywhere, millions if need be."""

import json as json_text
from typing import Annotated

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

Out = Annotated[str | None, Parameter(name="--out", help="where the verdicts go, INPUT.verdicts.parquet unless given")]


def verify_proofs(
    proofs: Annotated[str, Parameter(help="a Parquet file or folder with root, keys, and nodes or encoded proof")],
    /,
    *,
    out: Out = None,
    strict: Annotated[bool, Parameter(name="--strict", help="refuse unused nodes and nodes that come twice")] = False,
    flags: Annotated[BulkFlags, Parameter(name="*")] = NO_BULK_FLAGS,
    json: Json = False,
) -> ExitCode:
    """Verify every proof of a Parquet table and write the verdicts beside it: valid, or the kind of failure.

    Exit code 1 when one does not hold. Columns: root (32 bytes), keys (a list of bytes), and the proof. That is nodes
    (a list of bytes), proof (SCALE Vec<Vec<u8>>), or numbers of nodes that lie in the folder _nodes. Every file of a
    folder has them. All other columns are kept, with nulls for files without them; a column has one type in all files.
    What begins with a scheme, such as s3:// or hdfs://, goes to Spark as it is. Where Spark runs on other machines,
    all of them must share the folders of paths. A run that was stopped resumes with the pieces of the table that have
    no verdicts yet. Without PySpark or Java, or with --engine local, processes of this machine do the work.

    Example: relaycast verify-proofs proofs.parquet --strict
    """
    from relaycast_ledger.bulk_work import told_verdicts, write_verdicts  # noqa: PLC0415
    from relaycast_ledger.table_places import alone_at  # noqa: PLC0415

    given = table_place(proofs, "PROOFS", flags.master, is_read=True)
    beside = given.beside(f"{given.name.removesuffix('.parquet')}.verdicts.parquet")
    rows_a_file = checked_rows_a_file(flags.rows_per_file)
    target = table_place(out or beside.text, "--out", flags.master, is_read=False)
    chosen = chosen_engine(flags, [given, target])

    def work() -> ExitCode:
        with (
            alone_at(target, "--out" if out else "the verdicts"),
            bulk_engine(flags, chosen, target, rows_a_file) as (engine, progress),
        ):
            terms: dict[str, object] = {"rows_a_file": rows_a_file}
            rows = write_verdicts(engine, given, target, terms=terms, strict=strict, progress=progress)
            found = told_verdicts(*engine.verdicts_at(target))
        counts: dict[str, int] = found["verdicts"]
        if json:
            print(json_text.dumps({"proofs": rows, **found, "out": str(target)}))
        else:
            for verdict, count in counts.items():
                print(f"{verdict:<16} {count:>14,}")
            print(f"verdicts: {target}")
        return ExitCode.FINE if set(counts) <= {"valid"} else ExitCode.CHECK_FAILED

    return resumable(work)
