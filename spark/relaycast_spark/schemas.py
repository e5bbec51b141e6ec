"""The tables of a batch run as Spark knows them: the Arrow schemas of ``tables``, each written down once there."""

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from relaycast_spark import tables

REPLAYED: StructType = from_arrow_schema(tables.REPLAYED)
SEGMENTS: StructType = from_arrow_schema(tables.SEGMENTS)
