"""One Spark for all tests of this room, on two cores, stopped when they are done.

Spark takes longer to start, and for each small job, than all that these tests compute. Tests that use it are therefore
slow, but for what is marked ``spark_smoke``: it shows with every check that runs work on it at all.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from peers import missing
from relaycast_spark.exceptions import SparkUnavailable
from relaycast_spark.session import SessionSettings, require_spark, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("spark_smoke") is None:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    try:
        require_spark()
    except SparkUnavailable as lacking:
        missing(lacking)
    root = tmp_path_factory.getbasetemp()
    files = (f"spark.hadoop.fs.viewfs.mounttable.tests.link.{root}", f"file://{root}")  # URIs that are no paths
    tries = ("spark.hadoop.ipc.client.connect.max.retries", "0")
    extra = (("spark.sql.shuffle.partitions", "2"), files, tries)
    with spark_session(SessionSettings(master="local[2]", app_name="relaycast tests", extra=extra)) as session:
        yield session
