"""How the faces of an event log fared over many runs, stage by stage: DataFrame to DataFrame.

Events are the Parquet export of the log, deliveries the table ``face_deliveries``. Both are known by their columns
alone: ``events.transform(of_run, "a").transform(delivered_events, deliveries).transform(by_face)``.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from relaycast_ledger.face_deliveries import FACE_DELIVERIES
from relaycast_spark import event_proofs as proofs_of_events
from relaycast_spark import schemas
from relaycast_spark.exceptions import InputColumns

EVENT_COLUMNS = ("run", "seq", "namespace", "id", "subject", "occurred_ns")
EVENT_KEY = ["run", "namespace", "id"]


def of_run(events: DataFrame, run: str) -> DataFrame:
    """Return events with a column ``run``: which export they are of."""
    return events.withColumn("run", F.lit(run))


def superseded_events(events: DataFrame) -> DataFrame:
    """Return events with ``superseded_ns``: when their key was published again, null where it was not.

    Raises ``InputColumns``.
    """
    _ensure_columns(events, EVENT_COLUMNS, "the events")
    of_key = Window.partitionBy("run", "namespace", "subject").orderBy("seq")
    again = F.when(F.col("subject").isNotNull(), F.lead("occurred_ns").over(of_key))
    return events.select(*EVENT_COLUMNS).withColumn("superseded_ns", again)


def delivered_events(events: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Return a row for each event that a subscription selects, with its first arrival.

    ``latency_ns`` is null where it never arrived, ``is_lost`` and ``is_conflated`` say what ``face_deliveries`` says.
    An event that the log had dropped before the export has no latency. Raises ``InputColumns``.
    """
    _ensure_columns(deliveries, FACE_DELIVERIES.names, "the deliveries")
    selected = deliveries.groupBy("run", "face", "subscription", "namespace", "id")
    first = selected.agg(F.min("delivered_ns").alias("delivered_ns"))
    joined = first.join(events.transform(superseded_events), EVENT_KEY, "left")
    is_late = F.col("delivered_ns").isNull() | (F.col("delivered_ns") > F.col("superseded_ns"))
    return (
        joined.withColumn("latency_ns", F.col("delivered_ns") - F.col("occurred_ns"))
        .withColumn("is_lost", F.col("delivered_ns").isNull())
        .withColumn("is_conflated", F.col("superseded_ns").isNotNull() & is_late)
    )


def event_proofs(events: DataFrame) -> DataFrame:
    """Check the proofs that events bring: verdict and bytes, ``event_proofs.EVENT_PROOFS``. Raises ``InputColumns``."""
    _ensure_columns(events, proofs_of_events.READS, "the events")
    return events.select(*proofs_of_events.READS).mapInArrow(proofs_of_events.checked_events, schemas.EVENT_PROOFS)


def proven_events(delivered: DataFrame, proofs: DataFrame) -> DataFrame:
    """Return ``delivered_events`` with what their proofs came to: ``verdict`` and ``proof_bytes``, null without one."""
    return delivered.join(proofs.select(*EVENT_KEY, "proof_bytes", "verdict"), EVENT_KEY, "left")


def proven_deliveries(events: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Join the exported events of a gateway's log, what its faces delivered, and the proofs that the events bring.

    A row is that of ``proven_events``, for each event that a subscription selects. Raises ``InputColumns``.
    """
    return events.transform(delivered_events, deliveries).transform(proven_events, events.transform(event_proofs))


def by_face(delivered: DataFrame) -> DataFrame:
    """Return a row for each run and face: how many events, how late, how many lost and conflated.

    Latencies are ``p50_ns``, ``p95_ns`` (nearest rank) and ``max_ns``. With ``proven_events`` it also counts ``proven``
    deliveries, whose value is proven, and their ``proof_bytes``.
    """
    figures = [
        F.count("*").alias("selected"),
        F.count("delivered_ns").alias("delivered"),
        F.sum(F.col("is_lost").cast("long")).alias("lost"),
        F.sum(F.col("is_conflated").cast("long")).alias("conflated"),
        _nearest_rank("latency_ns", 50).alias("p50_ns"),
        _nearest_rank("latency_ns", 95).alias("p95_ns"),
        F.max("latency_ns").alias("max_ns"),
    ]
    if "verdict" in delivered.columns:
        is_proven = (F.col("verdict") == proofs_of_events.VALID) & ~F.col("is_lost")
        figures += [
            F.sum(F.when(is_proven, 1).otherwise(0)).alias("proven"),
            F.sum(F.when(is_proven, F.col("proof_bytes")).otherwise(0)).alias("proof_bytes"),
        ]
    return delivered.groupBy("run", "face").agg(*figures).orderBy("run", "face")


def _nearest_rank(column: str, percent: int) -> Column:
    """Return the value that ``percent`` of all do not exceed; null of nothing."""
    ordered = F.sort_array(F.collect_list(column))
    place = F.greatest(F.ceil(F.size(ordered) * percent / 100), F.lit(1)).cast("int")
    return F.try_element_at(ordered, place)


def _ensure_columns(frame: DataFrame, expected: Sequence[str], place: str) -> None:
    missing = [name for name in expected if name not in frame.columns]
    if missing:
        raise InputColumns(place, ", ".join(frame.columns), f"{', '.join(expected)}; there is no {', '.join(missing)}")
