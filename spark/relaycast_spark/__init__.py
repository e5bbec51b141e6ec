"""Many blocks at once: the emulator as a batch engine on Spark. Importing this starts and needs no Spark.

``session`` and ``stages``, ``schemas`` and ``pipeline`` need PySpark; what workers run needs none.
"""

from relaycast_spark.exceptions import InputColumns, JobFailed, SparkRefusal, SparkUnavailable, SpineDiverged

__all__ = [
    "InputColumns",
    "JobFailed",
    "SparkRefusal",
    "SparkUnavailable",
    "SpineDiverged",
]
