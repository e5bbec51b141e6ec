"""The tables of a batch run as Spark knows them: the Arrow schemas of ``tables``, each written down once there."""

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from relaycast_ledger.face_deliveries import FACE_DELIVERIES as FACE_DELIVERIES_ARROW
from relaycast_spark import event_proofs, publications, subscriber_replay, tables

REPLAYED: StructType = from_arrow_schema(tables.REPLAYED)
SEGMENTS: StructType = from_arrow_schema(tables.SEGMENTS)
PUBLICATIONS: StructType = from_arrow_schema(publications.PUBLICATIONS)
PUBLISHER_ROOTS: StructType = from_arrow_schema(publications.PUBLISHER_ROOTS)
INHERENTS: StructType = from_arrow_schema(subscriber_replay.INHERENTS)
SUBSCRIBER_BLOCKS: StructType = from_arrow_schema(subscriber_replay.SUBSCRIBER_BLOCKS)
EVENT_PROOFS: StructType = from_arrow_schema(event_proofs.EVENT_PROOFS)
FACE_DELIVERIES: StructType = from_arrow_schema(FACE_DELIVERIES_ARROW)
