"""Push delivery: every selected event reaches its sink at least once, in order, or ends as a dead letter."""
