"""The message queue: outcomes of upward messages as events."""
