"""Events, deliveries and proofs of several runs, joined: Spark finds what plain Python finds."""

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from collator.networks import PUBLISHER, key, network, publish
from relaycast_gateway.chain_feed import ChainFeed
from relaycast_gateway.clock import VirtualClock
from relaycast_gateway.log import EventLog
from relaycast_ledger.exceptions import InputColumns
from relaycast_ledger.face_deliveries import (
    FACE_DELIVERIES,
    FaceDelivery,
    LoggedEvent,
    face_figures,
    write_face_deliveries,
)
from relaycast_spark.event_proofs import EVENT_PROOFS, checked_event, checked_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUBLISHED = "io.relaycast.data.published"


def written_log(place: Path, *, blocks: int = 5) -> int:
    """Export the log of a chain that publishes with proofs; return its number of events."""
    with EventLog.open(clock=VirtualClock()) as log:
        net = network()
        ChainFeed(log, chains=net, network_name="net", proofs=True)
        for number in range(blocks):
            publish(net, PUBLISHER, {key(0): bytes([number]), key(1): bytes([number, number])})
            net.step()
        log.purge()
        return log.export_parquet(place)


def exported(place: Path) -> list[dict[str, Any]]:
    """Return rows of ``written_log``, with their run."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - where it is needed

    written_log(place)
    return [{"run": "a", **row} for row in pq.read_table(place).to_pylist()]


def test_the_proofs_of_a_chain_hold_and_events_without_one_have_no_row(tmp_path: Path) -> None:
    rows = exported(tmp_path / "events.parquet")
    batch = pa.RecordBatch.from_pylist([{name: it[name] for name in ("run", "namespace", "id", "data")} for it in rows])
    (found,) = checked_events(iter([batch]))
    assert found.schema.equals(EVENT_PROOFS)
    proven = found.to_pylist()
    with_proof = [it["id"] for it in rows if it["namespace"] == PUBLISHED and "proof" in json.loads(it["data"])]
    assert [it["id"] for it in proven] == with_proof
    assert len(with_proof) >= 6
    assert {it["verdict"] for it in proven} == {"valid"}
    assert all(it["proof_bytes"] > it["proof_nodes"] > 1 for it in proven)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"value": "0x00ff"}, "OtherValue"),
        ({"key": "0x" + "11" * 32}, "OtherValue"),
        ({"stateRoot": "0x" + "11" * 32}, "RootMismatch"),
        ({"proof": []}, "RootMismatch"),
        ({"stateRoot": None}, "Unreadable"),
        ({"proof": ["no hex"]}, "Unreadable"),
        ({"publisher": "p"}, "Unreadable"),
        ({"key": "0x11"}, "OtherValue"),
    ],
)
def test_what_is_wrong_with_a_proof_is_named(change: dict[str, Any], verdict: str, tmp_path: Path) -> None:
    event = next(it for it in exported(tmp_path / "events.parquet") if '"proof"' in it["data"])
    found = checked_event({**event, "data": json.dumps(json.loads(event["data"]) | change)})
    assert found is not None
    assert found["verdict"] == verdict


@pytest.mark.parametrize("data", ["no json", "5", "{}", '{"proof": null}', '{"proof": "0x"}'])
def test_an_event_without_a_proof_has_no_row(data: str) -> None:
    assert checked_event({"run": "a", "namespace": "n", "id": "1", "data": data}) is None


def drawn(random: Random, run: str) -> tuple[list[LoggedEvent], list[FaceDelivery]]:
    """Draw events and deliveries of a run."""
    keys = ["dot", "ksm", None]
    events = [LoggedEvent(run, at, "n", str(at), random.choice(keys), 10 * at) for at in range(1, 60)]
    rows = []
    for face in ("push", "live"):
        for event in events:
            for subscription in ("s", "t"):
                if random.random() < 0.8:
                    times = [None if random.random() < 0.3 else event.occurred_ns + random.randrange(90)]
                    times += [event.occurred_ns + random.randrange(90)] * (random.random() < 0.2)
                    rows += [FaceDelivery(run, face, subscription, "n", event.id, it) for it in times]
    return events, rows


def test_figures_on_spark_are_those_of_plain_python_for_many_runs(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    from relaycast_spark.stages import by_face, delivered_events  # noqa: PLC0415

    random = Random(5)
    runs = [drawn(random, run) for run in ("a", "b", "c")]
    events = [event for found, _ in runs for event in found]
    rows = [row for _, found in runs for row in found]
    write_face_deliveries(tmp_path / "deliveries.parquet", rows)
    deliveries = spark.read.parquet(str(tmp_path / "deliveries.parquet"))
    assert deliveries.schema == from_arrow_schema(FACE_DELIVERIES)
    table = spark.createDataFrame([it._asdict() for it in events], "run string, seq long, namespace string, id string, "
                                  "subject string, occurred_ns long")  # fmt: skip
    found = table.transform(delivered_events, deliveries).transform(by_face).collect()
    expected = face_figures(events, rows)
    assert [it.asDict() for it in found] == [it._asdict() for it in expected]
    assert any(it.lost for it in expected)
    assert any(it.conflated > it.lost for it in expected)
    with pytest.raises(InputColumns, match="occurred_ns"):
        table.drop("occurred_ns").transform(delivered_events, deliveries)
    with pytest.raises(InputColumns, match="delivered_ns"):
        table.transform(delivered_events, deliveries.drop("delivered_ns"))


def test_exports_of_two_runs_join_their_deliveries_and_proofs(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    from relaycast_spark import stages  # noqa: PLC0415

    counts = {run: written_log(tmp_path / f"{run}.parquet", blocks=blocks) for run, blocks in (("a", 4), ("b", 6))}
    exports = [spark.read.parquet(str(tmp_path / f"{run}.parquet")).transform(stages.of_run, run) for run in counts]
    events = exports[0].unionByName(exports[1])
    assert events.count() == sum(counts.values())
    published = events.where(F.col("namespace") == PUBLISHED).collect()
    rows = [FaceDelivery(it.run, "push", "s", it.namespace, it.id, it.occurred_ns + 7) for it in published]
    write_face_deliveries(tmp_path / "deliveries.parquet", rows)
    deliveries = spark.read.parquet(str(tmp_path / "deliveries.parquet"))
    found = events.transform(stages.proven_deliveries, deliveries)
    figures = found.transform(stages.by_face).collect()
    assert [(it.run, it.selected, it.lost, it.p95_ns) for it in figures] == [
        (run, len([row for row in rows if row.run == run]), 0, 7) for run in counts
    ]
    assert [it.proven for it in figures] == [
        len([it for it in published if it.run == run and '"proof"' in it.data]) for run in counts
    ]
    assert all(it.proof_bytes > 0 for it in figures)
