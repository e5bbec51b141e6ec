"""What a replayed run holds, stage by stage: DataFrame to DataFrame, each named by what it adds.

They compose with ``.transform``: ``replayed.transform(verified).transform(summary)``. ``replayed`` replays segments;
others read its rows, here or from the Parquet files that a run keeps. ``publications`` and ``child_roots`` need no run:
publishers' tries follow from what is recorded alone. Nor does ``subscriber_blocks``: proofs from anywhere will do.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from relaycast_ledger.segments.simulated import Preparation
from relaycast_spark import schemas
from relaycast_spark.exceptions import InputColumns
from relaycast_spark.publications import MAX_U32, check_columns, decoded
from relaycast_spark.replay import replay_segments
from relaycast_spark.subscriber_replay import INHERENTS, SubscriberTerms, replay_subscribers
from relaycast_trie import Engine, StateVersion


def publications(recorded: DataFrame) -> DataFrame:
    """Return recorded publications, keys and values as bytes or text, as ``publications.PUBLICATIONS``.

    Raises ``InputColumns``; a job fails with ``RowRefused`` at a row that is no publication, which it names within its
    batch.
    """
    check_columns(recorded.columns, "the publications")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(decoded, batches)

    return recorded.mapInArrow(read, schemas.PUBLICATIONS)


def child_roots(
    publications: DataFrame, *, state_version: StateVersion = StateVersion.V1, last_block: int = MAX_U32
) -> DataFrame:
    """Replay every publisher for itself: its child root after each block that changes it, ``PUBLISHER_ROOTS``.

    Publications (``PUBLICATIONS``) take effect in their blocks, of one block in the order of the rows; expiry goes on
    to ``last_block``. Publishers are worked on side by side, each in a stream.
    """

    def replay(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from relaycast_spark.publisher_replay import replay_publishers  # noqa: PLC0415 - loads the compiler

        return replay_publishers(batches, state_version=state_version, last_block=last_block)

    numbered = publications.withColumn("row", F.monotonically_increasing_id())
    ordered = numbered.repartition("para_id").sortWithinPartitions("para_id", "block", "row")
    return ordered.drop("row").mapInArrow(replay, schemas.PUBLISHER_ROOTS)


def replayed(
    segments: DataFrame, prepare: Preparation, *, keep_proofs: bool = False, trie_engine: Engine = "auto"
) -> DataFrame:
    """Replay segments (``tables.SEGMENTS``): one row for each relay block, ``tables.REPLAYED``.

    Workers load each segment's checkpoint into what ``prepare`` returns there. The rows are the same with every
    ``trie_engine``.
    """

    def replay(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return replay_segments(batches, prepare, keep_proofs=keep_proofs, trie_engine=trie_engine)

    return segments.mapInArrow(replay, schemas.REPLAYED)


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
        F.map_from_entries(F.transform("reads", _source_and_bytes)).alias("read_bytes"),
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
    Raises ``InputColumns``.
    """
    if missing := set(INHERENTS.names) - set(inherents.columns):
        expected = f"{', '.join(INHERENTS.names)}; there is no {', '.join(sorted(missing))}"
        raise InputColumns("the inherents", ", ".join(inherents.columns), expected)
    known = dict(states or {})

    def replay(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return replay_subscribers(batches, terms, states=known)

    columns = [F.col(it.name).cast(it.dataType) for it in schemas.INHERENTS]
    numbered = inherents.select(columns).withColumn("row", F.monotonically_increasing_id())
    ordered = numbered.repartition("subscriber").sortWithinPartitions("subscriber", "block", "number", "row")
    return ordered.drop("row").mapInArrow(replay, schemas.SUBSCRIBER_BLOCKS)


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


def _source_and_bytes(read: Column) -> Column:
    return F.struct(read["source"], read["proof_bytes"])
