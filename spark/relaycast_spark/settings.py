"""Spark's own settings: those that relaycast starts it with, and those that the user has written down for every Spark.

Law: what the command line says comes first, then ``spark-defaults.conf``, then what stands here.
"""

import os
import re
from difflib import get_close_matches
from pathlib import Path

LOCAL_ADDRESS = "127.0.0.1"

DEFAULTS = "spark-defaults.conf"

SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",  # it folds much work in few rows into one task
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.maxResultSize": "0",
    "spark.ui.retainedJobs": "100",  # what the driver remembers of jobs that are done, pages or none
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.rpc.message.maxSize": "512",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "4",  # a minute, in place of ten
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.PYTHONHASHSEED": "0",
}

LOCAL_SETTINGS = {
    "spark.driver.bindAddress": LOCAL_ADDRESS,
    "spark.driver.host": LOCAL_ADDRESS,
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # short jobs: half the start time
}
"""For a Spark inside this process's machine alone."""


def local_settings(scratch: str) -> dict[str, str]:
    """Return settings for a Spark with a local master: it keeps its files in ``scratch``.

    Spark's default is ``/tmp``. ``SPARK_LOCAL_DIRS`` overrides them.
    """
    places = {"spark.local.dir": scratch, "spark.sql.warehouse.dir": f"{scratch}/warehouse"}
    return LOCAL_SETTINGS | places | {"spark.driver.defaultJavaOptions": f'"-Djava.io.tmpdir={scratch}"'}


_LINE = re.compile(r"\s*([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*?)\s*")


def defaults_folder() -> Path | None:
    """Return the folder of the user's ``spark-defaults.conf``, where Spark would look for it; nothing without one."""
    home, folder = os.environ.get("SPARK_HOME"), os.environ.get("SPARK_CONF_DIR")
    wanted = Path(folder) if folder else Path(home) / "conf" if home else None
    return wanted if wanted is not None and (wanted / DEFAULTS).is_file() else None


MASTERS = ("local", "local[N]", "local[*]", "local-cluster[..]", "spark://HOST:PORT", "yarn", "k8s://HOST:PORT")
"""Forms of a master that spark-submit accepts."""

_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(\s*,\s*[1-9]\d*)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^\s/]+:\d+(,[^\s/]+:\d+)*|k8s://\S+|yarn"
)


def is_master(text: str) -> bool:
    """Return whether ``text`` is a valid master."""
    return _MASTER.fullmatch(text) is not None


def like_master(text: str) -> str:
    """Return the closest master to an invalid text; an empty text if none is close."""
    rest = re.sub(r"^[^\[:]*", "", text)
    head = text.removesuffix(rest)
    for name in get_close_matches(head.lower(), ("local", "local-cluster", "spark", "yarn", "k8s"), n=3, cutoff=0.5):
        if is_master(name + rest):
            return name + rest
    return ""


def user_defaults() -> dict[str, str]:
    """Return the settings of the user's ``spark-defaults.conf``; a line is a name and a value, or a comment."""
    folder = defaults_folder()
    if folder is None:
        return {}
    lines = (folder / DEFAULTS).read_text(encoding="utf-8", errors="replace").splitlines()
    found = (_LINE.fullmatch(line) for line in lines if not line.lstrip().startswith(("#", "!")))
    return {it[1]: it[2] for it in found if it is not None}
