"""``relaycast verify-proofs``: verify a table of proofs from anywhere, millions if need be, on Spark."""

import json as json_text
from typing import Annotated

from cyclopts import Parameter

from relaycast.cli.exit_code import ExitCode
from relaycast.cli.flags.spark import Conf, Master, RowsAFile, Ui, bulk_session, checked_rows_a_file, table_place
from relaycast.cli.options import Json

Out = Annotated[str | None, Parameter(name="--out", help="where the verdicts go, INPUT.verdicts.parquet unless given")]


def verify_proofs(
    proofs: Annotated[str, Parameter(help="a Parquet file or folder with root, keys, and nodes or encoded proof")],
    /,
    *,
    out: Out = None,
    strict: Annotated[bool, Parameter(name="--strict", help="refuse unused nodes and nodes that come twice")] = False,
    rows_per_file: RowsAFile = None,
    master: Master = None,
    conf: Conf = None,
    spark_ui: Ui = False,
    json: Json = False,
) -> ExitCode:
    """Verify every proof of a Parquet table and write the verdicts beside it: valid, or the kind of failure.

    Exit code 1 when one does not hold. Columns: root (32 bytes), keys (a list of bytes), and the proof. That is nodes
    (a list of bytes), proof (SCALE Vec<Vec<u8>>), or numbers of nodes that lie in the folder _nodes. All other columns
    are kept. What begins with a scheme, such as s3:// or hdfs://, goes to Spark as it is; where Spark runs on other
    machines, paths of this one are refused.

    Example: relaycast verify-proofs proofs.parquet --strict
    """
    from relaycast_spark.table_places import alone_at  # noqa: PLC0415

    given = table_place(proofs, "PROOFS", master, is_read=True)
    beside = given.beside(f"{given.name.removesuffix('.parquet')}.verdicts.parquet")
    rows_a_file = checked_rows_a_file(rows_per_file)
    target = table_place(out or beside.text, "--out", master, is_read=False)
    with (
        alone_at(target, "--out" if out else "the verdicts"),
        bulk_session(master, conf, ui=spark_ui, compiled=True) as (spark, progress),
    ):
        from relaycast_spark.bulk_proofs import nodes_of, verdicts_at, verified_proofs, write_table  # noqa: PLC0415
        from relaycast_spark.jobs import named, spread  # noqa: PLC0415
        from relaycast_spark.table_places import read_parquet  # noqa: PLC0415

        table = read_parquet(spark, given, "PROOFS")
        with named(spark, f"proofs counted: {given.name}"):
            rows = table.count()
        nodes = nodes_of(table, given)
        verdicts = verified_proofs(spread(table), strict=strict, nodes=nodes)
        progress.begin("verified", rows, unit="proofs")
        write_table(verdicts, target, stage="verified", rows=rows, rows_a_file=rows_a_file, progress=progress)
        found = verdicts_at(spark, target)
    counts: dict[str, int] = found["verdicts"]
    if json:
        print(json_text.dumps({"proofs": rows, **found, "out": str(target)}))
    else:
        for verdict, count in counts.items():
            print(f"{verdict:<16} {count:>14,}")
        print(f"verdicts: {target}")
    return ExitCode.FINE if set(counts) <= {"valid"} else ExitCode.CHECK_FAILED
