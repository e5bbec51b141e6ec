"""Tables of a replayed run, of recorded publications, proofs and events, stage by stage: DataFrame to DataFrame.

Stages are named by what they add and compose with ``.transform``: ``replayed.transform(verified).transform(summary)``.
``replayed`` replays segments; others read its rows, here or from the Parquet files that a run keeps. ``publications``
and ``child_roots`` need no run: publishers' tries follow from recorded publications alone. Nor does
``subscriber_blocks``: proofs from anywhere will do.

Stages of an event log compare its faces over many runs. Events are the Parquet export of the log, deliveries the table
``face_deliveries``: ``events.transform(of_run, "a").transform(delivered_events, deliveries).transform(by_face)``.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema

from relaycast_ledger.exceptions import InputColumns
from relaycast_ledger.face_deliveries import FACE_DELIVERIES
from relaycast_ledger.segments.simulated import Preparation
from relaycast_spark.event_proofs import EVENT_PROOFS, READS, VALID, checked_events
from relaycast_spark.publications import (
    MAX_U32,
    PUBLICATIONS,
    PUBLISHER_ROOTS,
    SEQUENCE,
    check_columns,
    decoded,
    replay_publishers,
    told_apart,
)
from relaycast_spark.replay import REPLAYED, replay_segments
from relaycast_spark.subscriber_replay import INHERENTS, SUBSCRIBER_BLOCKS, SubscriberTerms, replay_subscribers
from relaycast_trie import StateVersion

SUBSCRIBER_ORDER = ("subscriber", "block", "number", "relay_parent")

EVENT_COLUMNS = ("run", "seq", "namespace", "id", "subject", "occurred_ns")
EVENT_KEY = ["run", "namespace", "id"]


def publications(recorded: DataFrame) -> DataFrame:
    """Return recorded publications, keys and values as bytes or text, as ``publications.PUBLICATIONS``.

    A column ``sequence`` may say their order in a block; it is kept. Raises ``InputColumns``; a job fails with
    ``RowRefused`` at a row that is no publication, which it names within its batch.
    """
    names = [name for name in recorded.columns if name != SEQUENCE]
    check_columns(names, "the publications")
    orders = [pa.field(SEQUENCE, pa.int64())] if SEQUENCE in recorded.columns else []

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            known = decoded(batch.select(names))
            columns = [batch.column(field.name).cast(field.type) for field in orders]
            yield pa.RecordBatch.from_arrays([*known.columns, *columns], schema=pa.schema([*known.schema, *orders]))

    return recorded.mapInArrow(read, from_arrow_schema(pa.schema([*PUBLICATIONS, *orders])))


def child_roots(
    publications: DataFrame, *, state_version: StateVersion = StateVersion.V1, last_block: int = MAX_U32
) -> DataFrame:
    """Replay every publisher for itself: its child root after each block that changes it, ``PUBLISHER_ROOTS``.

    Publications (``PUBLICATIONS``) take effect in their blocks, those of one block by ``sequence``. Without that
    column, a job fails with ``TableRefused`` where a publisher's key repeats in a block: rows have no other order.
    Expiry goes on to ``last_block``. Publishers are worked on side by side, each in a stream.
    """
    order = ["para_id", "block", *(name for name in publications.columns if name == SEQUENCE), "key"]

    def replay(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ordered = told_apart(batches, order)
        return replay_publishers(ordered, state_version=state_version, last_block=last_block)

    ordered = _streams(publications, "para_id").sortWithinPartitions(*order)
    return ordered.mapInArrow(replay, from_arrow_schema(PUBLISHER_ROOTS))


def replayed(segments: DataFrame, prepare: Preparation, *, keep_proofs: bool = False) -> DataFrame:
    """Replay segments (``replay.SEGMENTS``): one row for each relay block, ``replay.REPLAYED``.

    Workers load each segment's checkpoint into what ``prepare`` returns there.
    """

    def replay(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return replay_segments(batches, prepare, keep_proofs=keep_proofs)

    return segments.mapInArrow(replay, from_arrow_schema(REPLAYED))


def publisher_roots(blocks: DataFrame) -> DataFrame:
    """Return the child root of every publisher whose trie a block changed: para_id, block, child_root."""
    return blocks.select("block", F.inline("child_roots")).select("para_id", "block", "child_root")


def relay_blocks(blocks: DataFrame) -> DataFrame:
    """Return the relay chain's blocks: block, state_root, header_hash."""
    return blocks.select("block", "state_root", "header_hash")


def proved(blocks: DataFrame) -> DataFrame:
    """Return what collators collected: a row for each subscriber's block, with the proof where it was kept."""
    columns = ("relay_parent", "collected_bytes", "collected_hash", "collected")
    return blocks.transform(_subscribers).select("block", "subscriber", *columns)


def pruned(blocks: DataFrame) -> DataFrame:
    """Return what they handed over of it, after pruning."""
    columns = ("relay_parent", "proof_bytes", "proof_nodes", "static_bytes", "pruned_hash", "pruned")
    return blocks.transform(_subscribers).select("block", "subscriber", *columns)


def verified(blocks: DataFrame) -> DataFrame:
    """Return what the subscriber's chain made of it: verdict, weight, callbacks, bytes by where they came from."""
    rows = blocks.transform(_subscribers)
    read_bytes = F.map_from_entries(F.transform("reads", lambda it: F.struct(it["source"], it["proof_bytes"])))
    return rows.select(
        "block",
        "subscriber",
        F.when(F.col("panic").isNull(), F.lit("valid")).otherwise(F.col("panic")).alias("verdict"),
        "complete",
        "proof_bytes",
        "static_bytes",
        "own_bytes",
        "budget_bytes",
        "ref_time",
        "proof_size",
        F.size("deliveries").alias("callbacks"),
        read_bytes.alias("read_bytes"),
        "disabled",
        "head_hash",
    )


def inherents(blocks: DataFrame, *, collected: bool = False) -> DataFrame:
    """Return what subscribers' blocks were given, where proofs were kept, or what was ``collected`` for them.

    The columns are those of ``subscriber_replay.INHERENTS``.
    """
    rows = blocks.transform(_subscribers).withColumn("proof", F.col("collected" if collected else "pruned"))
    number = F.col("number") + F.col("panic").isNotNull().cast("int")  # a panic leaves the chain where it was
    return rows.withColumn("number", number).select(INHERENTS.names)


def subscriber_blocks(
    inherents: DataFrame, terms: SubscriberTerms, *, states: Mapping[int, bytes] | None = None
) -> DataFrame:
    """Let every subscriber take over its proofs again: verdict, weight, cursor, callbacks, ``SUBSCRIBER_BLOCKS``.

    Subscribers are worked on side by side, each in a stream and from its own state in ``states``, or from its genesis.
    Its rows are in order of block, number and relay parent, and of ``sequence`` where there is such a column. Raises
    ``InputColumns``.
    """
    _ensure_columns(inherents, INHERENTS.names, "the inherents")
    known = dict(states or {})

    def replay(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return replay_subscribers(batches, terms, states=known)

    columns = [F.col(it.name).cast(it.dataType) for it in from_arrow_schema(INHERENTS)]
    order = [*SUBSCRIBER_ORDER, *(name for name in inherents.columns if name == SEQUENCE)]
    ordered = _streams(inherents, "subscriber").sortWithinPartitions(*order).select(columns)
    return ordered.mapInArrow(replay, from_arrow_schema(SUBSCRIBER_BLOCKS))


def states(subscriber_blocks: DataFrame) -> DataFrame:
    """Return the newest state of each subscriber that was put away: subscriber, block, number, state."""
    newest = F.max_by(F.struct("block", "number", "state"), F.struct("block", "number")).alias("newest")
    kept = subscriber_blocks.where(F.col("state").isNotNull()).groupBy("subscriber").agg(newest)
    return kept.select("subscriber", "newest.*").orderBy("subscriber")


def deliveries(blocks: DataFrame) -> DataFrame:
    """Return every callback: which value reached whom, when it was published and when it arrived."""
    rows = blocks.transform(_subscribers).select("block", "subscriber", F.inline("deliveries"))
    return rows.withColumn("latency_blocks", F.col("delivered_at") - F.col("published_at"))


def summary(blocks: DataFrame) -> DataFrame:
    """Return one row for each subscriber of ``verified`` blocks: how many, how large, how complete."""
    return (
        blocks.groupBy("subscriber")
        .agg(
            F.count("*").alias("blocks"),
            F.sum("callbacks").alias("callbacks"),
            F.sum("proof_bytes").alias("proof_bytes"),
            F.max("proof_bytes").alias("proof_bytes_max"),
            F.sum(F.when(F.col("complete"), 0).otherwise(1)).alias("incomplete_blocks"),
            F.sum(F.when(F.col("verdict") == "valid", 0).otherwise(1)).alias("panics"),
        )
        .orderBy("subscriber")
    )


def _subscribers(blocks: DataFrame) -> DataFrame:
    return blocks.select("block", F.inline("subscribers")).withColumnRenamed("para_id", "subscriber")


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
    _ensure_columns(events, READS, "the events")
    return events.select(*READS).mapInArrow(checked_events, from_arrow_schema(EVENT_PROOFS))


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
        is_proven = (F.col("verdict") == VALID) & ~F.col("is_lost")
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


def _streams(frame: DataFrame, column: str) -> DataFrame:
    """Return the rows with all of one ``column`` value in one task.

    The number of tasks is given: otherwise Spark joins tasks by the bytes of their rows, which say nothing of the work.
    """
    tasks = frame.sparkSession.conf.get("spark.sql.shuffle.partitions")
    return frame.repartition(int(tasks or 0), column)


def _ensure_columns(frame: DataFrame, expected: Sequence[str], place: str) -> None:
    missing = [name for name in expected if name not in frame.columns]
    if missing:
        raise InputColumns(place, ", ".join(frame.columns), f"{', '.join(expected)}; there is no {', '.join(missing)}")
