"""The event log: one order of events, durable, with retention, cursors and an export for Spark."""

from relaycast_gateway.log.event_log import EventLog
from relaycast_gateway.log.retention import Retention
from relaycast_gateway.log.unusable import LogClosed, UnusableLog

__all__ = ["EventLog", "LogClosed", "Retention", "UnusableLog"]
