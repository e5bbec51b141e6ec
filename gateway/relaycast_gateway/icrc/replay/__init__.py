"""Replays: events of the log once more, for the subscriber that asked. Source: ICRC-77."""
