"""The event log: one order of events, durable, with retention, cursors and an export for Spark."""
