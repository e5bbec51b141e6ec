"""What is no law of the subscriber: limits, deletions that are reported, other meterings, and the drafts' mistakes."""
