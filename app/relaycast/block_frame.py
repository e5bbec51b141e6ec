"""The blocks of a run as a table for pandas, which is loaded when one is asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from relaycast_ledger.run_statistics import FLAGS, NAMES, SubscriberStatistics


def block_frame(subscribers: Mapping[int, SubscriberStatistics]) -> Any:
    """Return a ``DataFrame`` with a row for each block of each subscriber; ``ImportError`` without pandas."""
    pandas = import_module("pandas")
    columns = ("block", *(name for name in NAMES if name != "block"))
    tables = [
        pandas.DataFrame({"para_id": para_id, **{name: list(it.points.column(name)) for name in columns}})
        for para_id, it in subscribers.items()
    ]
    if not tables:
        return pandas.DataFrame(columns=["para_id", *columns])
    return pandas.concat(tables, ignore_index=True).astype(dict.fromkeys(FLAGS, bool))
