"""Many blocks at once: the emulator as a batch engine on Spark. Importing this starts and needs no Spark.

``stages``, ``bulk_proofs`` and ``pipeline`` need PySpark; the other modules and all code of workers need none.
"""

from relaycast_ledger.exceptions import InputColumns
from relaycast_spark.exceptions import JobFailed, SparkRefusal, SparkUnavailable, SpineDiverged

__all__ = [
    "InputColumns",
    "JobFailed",
    "SparkRefusal",
    "SparkUnavailable",
    "SpineDiverged",
]
