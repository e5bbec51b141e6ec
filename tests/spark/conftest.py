"""One Spark for all tests of this room, on two cores, stopped when they are done."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from peers import missing
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import SessionSettings, require_spark, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    try:
        require_spark()
    except SparkUnavailable as lacking:
        missing(lacking)
    extra = (("spark.sql.shuffle.partitions", "2"),)
    with spark_session(SessionSettings(master="local[2]", app_name="relaycast tests", extra=extra)) as session:
        yield session
